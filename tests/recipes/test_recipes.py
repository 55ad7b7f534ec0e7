"""Every variant of every system: trains, is saved, is loaded, and says the same again."""

import json
from dataclasses import replace
from functools import partial

import pytest
import torch
from marks import mostly_slow

import wingspan
from trainings import HASHED, alike, dev_documents, first_losses, run_of, tiny, train_documents
from wingspan.checkpoint import predictor
from wingspan.objectives.tagging import Tagging
from wingspan.recipe import Term, bundle
from wingspan.recipe_json import as_json, from_json, spelled_out
from wingspan.recipes import NAMES, find, variants

# these have files of their own: test_deep_recipe.py, test_typed_spans.py and so on
OWN_TESTS = ("deep_span", "compress_generate", "conditional", "discontinuous", "typed_spans")
ANY_ENCODER = [system for system in NAMES if system not in OWN_TESTS]
EVERY = [f"{system}/{variant}" if variant else system for system in ANY_ENCODER for variant in variants(system)]
QUICK = ["baseline", "baseline/proposals", "bundling", "bundling/seq-crf", "bundling/bl-span"]
# one of each kind on the tiny Transformer; the encoder makes no difference to the others
ON_BERT = ["baseline/pretrained", "bundling/bl-span-crf", "bundling/paper", "bundling/paper-seq"]


def trained_and_back(recipe, folder):
    """Trains for an epoch, saves, loads: both must say the same."""
    recipe = replace(recipe, train=replace(recipe.train, learning_rate=2e-2, batch_size=4))
    model = wingspan.train(recipe, train=train_documents(15), output=folder, device="cpu")
    if model.recipe.read_with == "tags":  # after one epoch all tags are O; other weights must survive as well as these
        tags = model.learner.objectives["tags"]
        tags.score.bias.data.view(tags.layers, tags.tags)[:, 0] -= 5.0
        model.save_pretrained(folder)
    again = wingspan.load(folder, device="cpu")
    low = 0.01  # after one epoch nothing is sure, so ask for much
    found = model.predict(dev_documents(), threshold=low)
    assert any(document.entities for document in found)
    assert alike(found, again.predict(dev_documents(), threshold=low), 1e-6)
    assert alike(model.predict(dev_documents()), again.predict(dev_documents()), 1e-6)
    assert again.recipe == model.recipe or as_json(again.recipe) == as_json(spelled_out(model.recipe))
    assert again.labels == model.labels
    return again


@pytest.mark.parametrize("name", mostly_slow(EVERY, *QUICK))
def test_every_variant_trains_and_survives_saving(name, tmp_path):
    recipe = tiny(name)
    again = trained_and_back(recipe, tmp_path / "model")
    kept = json.loads((tmp_path / "model" / "recipe.json").read_text())["recipe"]
    assert as_json(from_json(kept)) == kept
    assert kept["name"] == recipe.name
    assert isinstance(again.recipe.max_width, int)
    assert again.recipe.overlap in ("flat", "nested", "any")


@pytest.mark.parametrize("name", mostly_slow(ON_BERT, "bundling/bl-span-crf"))
def test_the_same_on_a_pretrained_encoder(name, tmp_path, folders):
    trained_and_back(tiny(name, folders["bert"]), tmp_path / "model")
    assert (tmp_path / "model" / "encoder" / "config.json").is_file()
    assert (tmp_path / "model" / "tokenizer.json").is_file()


@pytest.mark.parametrize("name", EVERY)
def test_recipe_to_json_and_back(name):
    recipe = find(name)
    record = json.loads(json.dumps(as_json(recipe)))
    assert as_json(from_json(record)) == record


# what links join cannot be read from tags; discontinuous/bundled is read from links
SPAN_RECIPES = [name for name in EVERY if not {"tags", "links"} & find(name).terms.keys()]
TAGGERS = [name for name in EVERY if "spans" not in find(name).terms]


@pytest.mark.parametrize("crf", [False, True])
@pytest.mark.parametrize("name", mostly_slow(SPAN_RECIPES, "baseline"))
def test_tags_are_bundled_with_every_span_recipe(name, crf, tmp_path):
    recipe = bundle(tiny(name), 0.1, crf=crf)
    again = trained_and_back(recipe, tmp_path / "model")
    tags = trained_and_back(replace(recipe, read_with="tags"), tmp_path / "tags")
    assert set(again.learner.objectives) == {"spans", "tags"}
    assert tags.recipe.read_with == "tags"


@pytest.mark.parametrize("name", mostly_slow(TAGGERS, "bundling/seq"))
def test_spans_are_bundled_with_every_tagger(name, tmp_path):
    spans = find("bundling/span")
    own = {"spans": spans.spans, "head": spans.head, "objective": spans.terms["spans"].objective}
    again = trained_and_back(bundle(tiny(name), 0.1, **own), tmp_path / "model")
    assert set(again.learner.objectives) == {"spans", "tags"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("baseline", [0.271920, 0.284857, 0.517001]),
        ("bundling/bl-span", [0.777361, 0.759361, 0.932982]),
    ],
)
def test_golden_losses(name, expected):
    """Three steps from seed 1; a change here is a change of what is learned."""
    losses = first_losses(run_of(tiny(name)), 3)
    assert losses == pytest.approx(expected, rel=1e-4)


def test_training_lowers_the_loss():
    losses = first_losses(run_of(tiny("bundling/bl-span", batch_size=8)), 12)
    assert sum(losses[-3:]) < 0.8 * sum(losses[:3])


def test_the_same_seed_gives_the_same_model_and_another_one_another():
    one, same, other = (
        wingspan.train(tiny("bundling/bl-span"), train=train_documents(6), seed=seed, device="cpu")
        for seed in (1, 1, 2)
    )
    weights = [model.learner.state_dict() for model in (one, same, other)]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    assert not all(torch.equal(weights[0][name], weights[2][name]) for name in weights[0])


def test_what_only_trains_is_not_saved(tmp_path):
    class Extra(Tagging):
        predicts = False

    recipe = tiny("baseline")
    recipe = replace(recipe, terms={**recipe.terms, "extra": Term(partial(Extra), 0.1)}, encoder=HASHED)
    model = wingspan.train(recipe, train=train_documents(4), device="cpu")
    assert "extra" in model.learner.objectives
    assert set(predictor(model.learner).objectives) == {"spans"}


@pytest.mark.parametrize(
    "name",
    ["deep_span/biaffine-rotary", "deep_span/biaffine-cnn", "deep_span/biaffine-pooled-cnn", "bundling/bl-span-cnn"],
)
def test_a_variant_that_no_paper_has_does_not_pass_for_its_system(name):
    """Logs and model cards cite it; `auto` chooses two of these."""
    assert find(name).paper != find(name.partition("/")[0]).paper
    assert find(name).name == name
