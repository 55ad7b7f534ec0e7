"""The name of the corpus as a token: where it stands, that it learns, and that it is the same after loading."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
import torch
from several import save_two, two_corpora
from tiny import sentence

import wingspan
from trainings import dev_documents, tiny
from wingspan.encoders.pretrained import PretrainedEncoder
from wingspan.model import tensors
from wingspan.training.fit import fit

NAMES = ("drugs", "genes")


def encoder_of(folder, **settings) -> PretrainedEncoder:
    torch.manual_seed(0)
    return PretrainedEncoder(name=str(folder), corpus_token="end", corpora=NAMES, **settings).eval()


def test_the_token_stands_between_two_end_tokens(folder):
    plain = PretrainedEncoder(name=str(folder))
    named = encoder_of(folder)
    sentences = [sentence("aspirin helps", dataset=name) for name in ("drugs", "genes", "other")]
    before = plain.tokenize(sentences[:1])
    after = named.tokenize(sentences)
    end, vocabulary = plain.tokenize.behind, plain.model.get_input_embeddings().num_embeddings
    assert after.tokens[0].tolist() == [*before.tokens[0].tolist(), vocabulary, *end]
    assert after.tokens[1].tolist() == [*before.tokens[0].tolist(), vocabulary + 1, *end]
    assert after.tokens[2].tolist() == after.tokens[0].tolist()  # unknown: as the target
    assert after.token_mask.all()
    specials = len(end) + 1
    assert (after.unit_of_token[0, -specials:] == 2).all()  # no word's
    assert named.tokenize.max_length == plain.tokenize.max_length - specials
    assert named.tokenize.measure(["aspirin"]) == plain.tokenize.measure(["aspirin"])


def test_a_window_with_its_token_fits_the_encoder(folders):
    encoder = encoder_of(folders["bert"])
    (each,) = encoder.tokenize.measure(["aspirin"])
    row = encoder.tokenize([sentence("aspirin " * (encoder.tokenize.max_length // each))])
    assert encoder.model.config.max_position_embeddings - each < row.tokens.shape[1]
    assert row.tokens.shape[1] <= encoder.model.config.max_position_embeddings
    encoder(tensors(row, "cpu"))


def test_rows_start_as_their_names_and_learn(folder):
    encoder = encoder_of(folder)
    table = encoder.model.get_input_embeddings()
    expected = table(torch.tensor(encoder.tokenize.pieces("genes"))).mean(0)
    assert torch.allclose(encoder.corpus_tokens.rows.weight[1], expected)
    one, two = (tensors(encoder.tokenize([sentence("aspirin helps", dataset=name)]), "cpu") for name in NAMES)
    assert not torch.allclose(encoder(one).top, encoder(two).top)
    encoder(two).top.square().sum().backward()
    grad = encoder.corpus_tokens.rows.weight.grad
    assert grad[1].any()
    assert not grad[0].any()


def test_rows_learn_beside_frozen_weights(folders):
    pytest.importorskip("peft")
    from wingspan.encoders.lora import Lora

    encoder = encoder_of(folders["t5"], adapters=Lora())
    encoder.adapt(merged=False)
    learns = [name for name, value in encoder.named_parameters() if value.requires_grad]
    assert "corpus_tokens.rows.weight" in learns
    assert not encoder.model.get_input_embeddings().weight.requires_grad


@pytest.mark.parametrize("kind", ["bert", "t5"])
def test_a_training_fills_in_the_names_and_the_model_is_the_same_after_loading(folders, kind, tmp_path):
    recipe = tiny("baseline", folders[kind], learning_rate=1e-2)
    recipe = replace(recipe, encoder=partial(PretrainedEncoder, name=str(folders[kind]), corpus_token="end"))
    plan = two_corpora(4)
    swapped = replace(plan, corpora=tuple(reversed(plan.corpora)))
    model = wingspan.train(recipe, corpora=swapped, output=tmp_path / "model", device="cpu")
    assert model.recipe.encoder.keywords["corpora"] == ("drugs", "genes")  # the target first
    loaded = wingspan.load(tmp_path / "model", device="cpu")
    tokens = [one.learner.model.encoder.corpus_tokens.rows.weight for one in (model, loaded)]
    assert torch.equal(*tokens)
    fresh = encoder_of(folders[kind]).corpus_tokens.rows.weight
    assert not torch.allclose(tokens[0], fresh)
    documents = dev_documents(3)
    for dataset in (None, "genes"):
        assert loaded.predict(documents, dataset=dataset, threshold=0.1) == model.predict(
            documents, dataset=dataset, threshold=0.1
        )
    with pytest.raises(ValueError, match="--from: this model is of several corpora"):
        fit(recipe, [replace(document, dataset="main") for document in plan.training], start=loaded)


def test_the_setting_from_the_shell(shell, folders, tmp_path):
    file = save_two(tmp_path, number=3)
    where = ["--corpora", file, "--device", "cpu", "--set", "train.epochs=1", "--set", "encoder.corpus_token=end"]
    shell("train", "baseline", "--encoder", folders["bert"], "--output", tmp_path / "run", *where)
    out, _ = shell("info", tmp_path / "run")
    assert "  corpora: drugs, genes\n" in out
    assert "no setting 'corpus_token'" in shell.refuses("train", "baseline", "--output", tmp_path / "two", *where)
