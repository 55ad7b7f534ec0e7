"""The recipe `deep_span`: every variant trains, is saved, is loaded, and says the same; the paper's settings."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from marks import mostly_slow
from tiny import ENCODER, of_length, piece_inputs
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, MPNetConfig, MPNetModel

import wingspan
from trainings import FAST, HASHED, alike, dev_documents, first_losses, run_of, train_documents
from wingspan.candidates import Grid
from wingspan.encoders.pretrained import PretrainedEncoder
from wingspan.labels import LabelSet
from wingspan.recipe import assemble, bundle, with_proposals
from wingspan.recipe_json import as_json, from_json, override, spelled_out
from wingspan.recipes import find, variants
from wingspan.recipes.deep_span import PAPER
from wingspan.text import Document, Entity, Span
from wingspan.training.loop import build_optimizer

EVERY = [f"deep_span/{variant}" if variant else "deep_span" for variant in variants("deep_span")]
# one of each kind; the others differ in a number
KINDS = [
    "",
    "depth-2",
    "share-weights",
    "no-bilstm",
    "proposals",
    "init-additive",
    "shallow-max",
    "shallow-multiplicative",
]
KINDS = [*KINDS, "shallow-max-proposals", "biaffine", "biaffine-proposals", "paper"]
KINDS = [*KINDS, "biaffine-rotary", "biaffine-cnn", "biaffine-pooled-cnn"]
HAN = "张王李赵刘陈杨黄在和的公司大学北京上海广州去了见过工作学习是人说很好。"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A BERT of 12 tiny layers that knows letters, endings and Chinese characters."""
    return written(tmp_path_factory.mktemp("deep") / "bert", BertConfig, BertModel)


def written(where, config, model, **sizes):
    """A tiny encoder and its tokenizer as a folder."""
    where.mkdir()
    letters = "abcdefghijklmnopqrstuvwxyz0123456789-.,()"
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters, *(f"##{letter}" for letter in letters[:36]), *HAN]
    tokenizer = Tokenizer(models.WordPiece({piece: at for at, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    marks = [("[CLS]", 2), ("[SEP]", 3)]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=marks)
    tokenizer.save(str(where / "tokenizer.json"))
    special = dict(unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]")
    (where / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer", **special}))
    sizes = dict(hidden_size=8, num_hidden_layers=12, num_attention_heads=2, intermediate_size=8) | sizes
    torch.manual_seed(0)
    model(config(vocab_size=len(pieces), max_position_embeddings=300, **sizes)).save_pretrained(where)
    return where


def small(name: str, folder, **train):
    """A variant with the tiny encoder in its own units, small parts and one quick epoch."""
    recipe = find(name)
    encoder = partial(PretrainedEncoder, **{**recipe.encoder.keywords, "name": str(folder), "max_length": 200})
    rates = {prefix: min(factor, 1.0) for prefix, factor in recipe.train.factors.items()}
    recipe = replace(recipe, encoder=encoder, train=replace(FAST, factors=rates, **train))
    if "hidden_size" in recipe.spans.keywords:
        recipe = override(recipe, "spans.hidden_size", "12")
    return recipe if recipe.max_width == "auto" else replace(recipe, max_width=8)


def survives(recipe, folder, train, dev):
    """Trains, saves, loads: both must find the same."""
    model = wingspan.train(recipe, train=train, output=folder, device="cpu")
    again = wingspan.load(folder, device="cpu")
    found = model.predict(dev, threshold=0.0)  # after one epoch nothing is sure, so ask for all
    assert any(document.entities for document in found)
    assert alike(found, again.predict(dev, threshold=0.0), 1e-6)
    assert as_json(again.recipe) == as_json(spelled_out(model.recipe))
    return again


@pytest.mark.parametrize("variant", mostly_slow(KINDS, "", "proposals", "biaffine"))
def test_variants_train_and_survive_saving(variant, folder, tmp_path):
    name = f"deep_span/{variant}" if variant else "deep_span"
    again = survives(small(name, folder), tmp_path / "model", train_documents(3), dev_documents(1))
    kept = json.loads((tmp_path / "model" / "recipe.json").read_text())["recipe"]
    assert as_json(from_json(kept)) == kept
    assert again.recipe.name.startswith("deep_span")


def test_the_span_transformer_trains_on_mpnet_and_learns_its_distances(tmp_path):
    folder = written(tmp_path / "mpnet", MPNetConfig, MPNetModel, num_hidden_layers=3)
    again = survives(small("deep_span", folder), tmp_path / "model", train_documents(3), dev_documents(1))
    spans = again.learner.model.scorer.spans.around
    begun = MPNetModel.from_pretrained(folder).encoder.relative_attention_bias.weight
    assert len(spans.blocks) == 3
    assert not torch.equal(spans.distances.weight, begun)


def chinese(number: int, seed: int = 0) -> tuple[Document, ...]:
    """Generated text: people, places and firms of some characters, nested at times."""
    draw = np.random.default_rng(seed)
    people, places = ["张王", "李大", "赵好", "刘陈杨"], ["北京", "上海", "广州"]
    documents = []
    for at in range(number):
        text, entities = "", []
        for kind in draw.permutation(["person", "place", "firm"]):
            begin = len(text)
            if kind == "person":
                text += str(draw.choice(people))
            else:
                text += str(draw.choice(places))
                entities.append(Entity("Place", (Span(begin, len(text)),)))
                text += "大学公司" if kind == "firm" else ""
            if kind != "place":
                entities.append(Entity(kind.title(), (Span(begin, len(text)),)))
            text += str(draw.choice(["去了", "在", "见过", "说很好"]))
        documents.append(Document(f"zh-{at}", text + "。", tuple(entities)))
    return tuple(documents)


@pytest.mark.parametrize("variant", mostly_slow(["", "proposals", "paper-genia"], ""))
def test_characters_are_units_of_chinese(variant, folder, tmp_path):
    recipe = small(f"deep_span/{variant}" if variant else "deep_span", folder)
    again = survives(recipe, tmp_path / "model", chinese(12), chinese(3, seed=1))
    found = again.predict(chinese(3, seed=1), threshold=0.01)
    assert any(entity.spans[0].end - entity.spans[0].start > 1 for document in found for entity in document.entities)


@pytest.mark.parametrize("name", EVERY)
def test_recipe_to_json_and_back(name):
    recipe = find(name)
    record = json.loads(json.dumps(as_json(recipe)))
    assert as_json(from_json(record)) == record
    assert recipe.name == name or name.startswith("deep_span/paper")


@pytest.mark.parametrize("name", [name for name in EVERY if not name.startswith("deep_span/paper")])
def test_every_variant_assembles(name, folder):
    recipe = replace(small(name, folder), max_width=5, overlap="nested")
    learner = assemble(recipe, LabelSet({"main": ("Drug",)}))
    assert (learner.model.encoder.keep_layers > 0) == (".blocks." in str(list(learner.state_dict())) or "share" in name)


@pytest.mark.parametrize("corpus", PAPER)
def test_paper_settings(corpus):
    recipe = find(f"deep_span/paper-{corpus}")
    width, epochs, rate, batch, documents = PAPER[corpus]
    assert (recipe.max_width, recipe.train.epochs, recipe.train.batch_size) == (width, epochs, batch)
    assert recipe.train.learning_rate == rate
    assert rate * recipe.train.factors["model.scorer"] == pytest.approx(2e-3)
    assert recipe.train.factors["model.scorer.spans.around.blocks"] == 1.0
    assert recipe.train.decay_bias
    assert recipe.encoder.keywords["unit"] == "piece"
    assert recipe.encoder.keywords["dropout"] == 0.2
    cut = ("whole", "document") if documents else ("split", "sentence")
    assert (recipe.segments.sentences, recipe.segments.context, recipe.segments.max_length) == (*cut, 510)
    assert recipe.scope == f"spans up to {width} pieces"


def test_the_papers_baseline_has_the_papers_settings():
    recipe, paper = find("deep_span/paper-biaffine"), find("deep_span/paper")
    assert recipe.spans == find("deep_span/biaffine").spans
    assert (recipe.train, recipe.max_width, recipe.segments) == (paper.train, paper.max_width, paper.segments)
    assert recipe.encoder.keywords == paper.encoder.keywords


def test_both_towers_learn_slowly_and_the_rest_fast(folder):
    recipe = replace(find("deep_span"), encoder=partial(PretrainedEncoder, name=str(folder), shapes=False), max_width=4)
    learner = assemble(replace(recipe, overlap="nested"), LabelSet({"main": ("Drug",)}))
    rates = {
        id(p): group["base_rate"]
        for group in build_optimizer(learner, recipe.train).param_groups
        for p in group["params"]
    }
    for name, parameter in learner.named_parameters():
        tower = name.startswith("model.encoder") or ".around.blocks." in name
        assert rates[id(parameter)] == pytest.approx(1.5e-4 if tower else 1.5e-3), name


def test_dropout_of_both_towers_is_the_one_asked_for(folder):
    recipe = replace(small("deep_span/paper", folder), overlap="nested")
    learner = assemble(recipe, LabelSet({"main": ("Drug",)}))
    blocks = [*learner.model.encoder.blocks, *learner.model.scorer.spans.around.blocks]
    found = {part.p for block in blocks for part in block.modules() if isinstance(part, torch.nn.Dropout)}
    assert found == {0.2}


def test_spans_inside_words_are_negatives_in_training_and_never_read():
    sentences = [of_length(3), of_length(2)]
    inputs = piece_inputs(sentences, [[2, 1, 3], [1, 1]])
    plain, inner = Grid(ENCODER, 4), Grid(ENCODER, 4, within_words=True)
    gold = object()
    assert torch.equal(inner(inputs, None).mask, plain(inputs, None).mask)
    cells = inner(inputs, None, gold)
    assert int(cells.mask[0].sum()) == 4 * (2 * 6 - 4 + 1) // 2
    assert int(cells.mask[1].sum()) == 3
    assert int(plain(inputs, None, gold).mask[0].sum()) == 5  # of six spans of words the whole sentence is too wide


def test_neighbors_need_the_grid():
    with pytest.raises(ValueError, match="ContextualSpans needs the whole grid, which Proposed does not give"):
        with_proposals(find("deep_span"))


def test_an_encoder_without_blocks_is_refused_with_a_sentence():
    recipe = replace(find("deep_span"), encoder=HASHED, max_width=4, overlap="nested")
    with pytest.raises(ValueError, match="HashedEncoder has none: choose such an encoder"):
        assemble(recipe, LabelSet({"main": ("Drug",)}))


def test_depth_can_be_set_from_the_shell():
    recipe = override(find("deep_span"), "spans.around.depth", "6")
    assert recipe.spans.keywords["around"].keywords["depth"] == 6
    with pytest.raises(ValueError, match="did you mean 'spans.around.depth'"):
        override(recipe, "spans.around.depht", "6")


@pytest.mark.parametrize("variant", ["depth-2", "depth-2-proposals", "biaffine"])
def test_tags_can_be_bundled(variant, folder):
    recipe = bundle(small(f"deep_span/{variant}", folder))
    assert {"spans", "tags"} <= set(recipe.terms)
    assert all(np.isfinite(first_losses(run_of(recipe, documents=train_documents(2)), 1)))


def test_widths_count_units(folder):
    """On letters as pieces, the widest span is as wide as the letters of an entity."""
    recipe = replace(find("deep_span/depth-2"), max_width="auto")
    words, pieces = (
        run_of(replace(recipe, encoder=partial(PretrainedEncoder, name=str(folder), unit=unit))).recipe.max_width
        for unit in ("word", "piece")
    )
    assert words < 10 < pieces


def test_training_lowers_the_loss(folder):
    recipe = small("deep_span/depth-2", folder, batch_size=8)
    losses = first_losses(run_of(recipe), 10)
    assert sum(losses[-3:]) < 0.8 * sum(losses[:3])
