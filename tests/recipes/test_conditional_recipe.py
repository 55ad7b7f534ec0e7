"""The variants of `conditional` on two small corpora: they train, are saved without the autoencoder, say the same."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import pytest
from conditionals import MAP, run_of, small
from marks import mostly_slow
from safetensors import safe_open
from several import TYPES, two_corpora

import wingspan
from trainings import alike, dev_documents, first_losses, tiny, train_documents
from wingspan.objectives.conditional import ConditionalReconstruction, condition_rows
from wingspan.recipe_json import as_json, from_json, override, spelled_out
from wingspan.recipes import conditional, find
from wingspan.report.collect import read_label_rows
from wingspan.training.fit import fit
from wingspan.training.journal import read_journal
from wingspan.training.multi_corpus import read_corpora

EVERY = [f"conditional/{name}" if name else "conditional" for name in conditional.variants]


@pytest.mark.parametrize("name", mostly_slow(EVERY, "conditional", "conditional/multi"))
def test_every_variant_trains_and_leaves_the_autoencoder_behind(name, tmp_path):
    plan = two_corpora(6, label_map=MAP)
    recipe = small(name, batch_size=4, learning_rate=2e-2)
    model = wingspan.train(recipe, corpora=plan, output=tmp_path / "run", device="cpu")
    again = wingspan.load(tmp_path / "run", device="cpu")
    documents = dev_documents()
    for corpus in TYPES:
        found = model.predict(documents, dataset=corpus, threshold=0.01)
        assert any(document.entities for document in found)
        assert alike(found, again.predict(documents, dataset=corpus, threshold=0.01), 1e-6)
    with safe_open(str(tmp_path / "run" / "model.safetensors"), framework="numpy") as file:
        assert not [key for key in file.keys() if "cvae" in key]  # noqa: SIM118  it is no mapping
    assert set(again.learner.objectives) == {"spans"}
    assert ("cvae" in model.learner.objectives) == ("cvae" in recipe.terms)
    assert as_json(again.recipe) == as_json(spelled_out(model.recipe))
    assert again.labels.to_dict() == plan.labels.to_dict()


def test_latents_hold_something_and_the_journal_tells_so(tmp_path):
    """With the published scaling and weight, they are nearly empty on the same documents."""
    held = latents(two_corpora(12, label_map=MAP), tmp_path)
    assert min(held["default"]) > 2, held
    assert max(held["published"]) < 1, held


@pytest.mark.skipif("WINGSPAN_DATA" not in os.environ, reason="WINGSPAN_DATA names no folder with corpora")
def test_latents_hold_something_on_real_text(tmp_path):
    root = Path(os.environ["WINGSPAN_DATA"])
    for corpus in ("biored", "ncbi-disease"):
        lines = (root / corpus / "dev.jsonl").read_text(encoding="utf-8").splitlines()
        (tmp_path / f"{corpus}.jsonl").write_text("\n".join(lines[:60]) + "\n", encoding="utf-8")
    tables = [f'[[corpora]]\nname = "{name}"\ntrain = "{name}.jsonl"\n' for name in ("biored", "ncbi-disease")]
    (tmp_path / "corpora.toml").write_text("\n".join([*tables, 'role = "target"\ndev = "ncbi-disease.jsonl"\n']))
    held = latents(tmp_path / "corpora.toml", tmp_path)
    assert min(held["default"]) > 2, held
    assert held["published"][-1] < 1, held  # they begin with more, and lose it


def latents(corpora, folder):
    """Nats per span after each epoch: by default, and with the published scaling and weight."""
    held = {}
    published = {"terms.cvae.objective.error": "mean", "terms.cvae.weight": str(conditional.PAPER_WEIGHT)}
    for name, settings in (("default", {}), ("published", published)):
        recipe = tiny("conditional", epochs=4, batch_size=8)
        for key, value in settings.items():
            recipe = override(recipe, key, value)
        wingspan.train(recipe, corpora=corpora, output=folder / name, device="cpu")
        epochs = [event for event in read_journal(folder / name / "journal.jsonl") if event["event"] == "epoch"]
        held[name] = [event["figures"]["cvae"]["nats_per_span"] for event in epochs]
        assert all(math.isfinite(event["figures"]["cvae"]["label_gain"]) for event in epochs)
    return held


@pytest.mark.parametrize("name", conditional.variants)
def test_recipes_to_json_and_back(name):
    record = json.loads(json.dumps(as_json(conditional.variants[name]())))
    assert as_json(from_json(record)) == record


@pytest.mark.parametrize(
    ("name", "expected"),
    [("conditional/multi", [1.558922, 1.529645, 1.442451]), ("conditional/multi-cvae", [1.558923, 1.529647, 1.442452])],
)
def test_golden_losses(name, expected):
    """Three steps from seed 1; a change here is a change of what is learned."""
    assert first_losses(run_of(small(name)), 3) == pytest.approx(expected, rel=1e-4)


def test_only_rows_that_may_learn_move():
    for name, moves in (("multi-cvae", True), ("fixed", False), ("unshared", True), ("random", True)):
        run = run_of(small(f"conditional/{name}"))
        before = run.learner.objectives["cvae"].rows.detach().clone()
        first_losses(run, 2)
        assert bool((run.learner.objectives["cvae"].rows != before).any()) == moves, name


def test_one_corpus_is_enough_for_single_and_single_cvae():
    for name in ("conditional/single", "conditional/single-cvae"):
        model = wingspan.train(small(name), train=train_documents(4), device="cpu")
        assert len(model.labels.types) == 1
    rows = model.learner.objectives["cvae"].rows
    assert rows.shape == (model.labels.num_classes, 2 * model.labels.num_classes)


def test_the_rows_are_read_from_what_training_kept(tmp_path):
    plan = two_corpora(6, label_map=MAP)
    model = wingspan.train(small("conditional"), corpora=plan, output=tmp_path / "run", device="cpu")
    found = read_label_rows(tmp_path / "run", model.recipe, model.labels)
    assert found.names[:4] == ("drugs: nothing", "drugs: Chemical", "drugs: Disease", "genes: nothing")
    assert found.meanings == ("nothing", "Chemical", "Disease", "nothing", "Disease", "none")
    assert found.values.shape == (6, 6 + 3)
    assert abs(found.values - condition_rows(model.labels).numpy()).max() < 0.5  # near where they started
    assert read_label_rows(tmp_path / "other", model.recipe, model.labels) is None
    assert read_label_rows(tmp_path / "run", find("baseline"), model.labels) is None


@pytest.mark.skipif("WINGSPAN_DATA" not in os.environ, reason="WINGSPAN_DATA names no folder with corpora")
def test_ten_corpora_have_47_classes_and_rows_of_54(tmp_path):
    """The example with its declared labels; one small file of each corpus is enough to build the model."""
    folder = Path(__file__).parents[2] / "examples" / "biomedical"
    text = (folder / "corpora.toml").read_text()
    lines = [line for line in text.splitlines() if not line.startswith(("train = ", "dev_into"))]
    small_files = "\n".join(lines).replace("dev = ", "train = ").replace("label_map.tsv", str(folder / "label_map.tsv"))
    (tmp_path / "corpora.toml").write_text(
        "\n".join(line for line in small_files.splitlines() if not line.startswith("test = ") or "nlmchem" in line)
    )
    plan = read_corpora(tmp_path / "corpora.toml")
    rows = condition_rows(plan.labels)
    assert rows.shape == (47, 54)
    assert len(plan.corpora) == 10
    assert len([corpus for corpus in plan.corpora if corpus.train]) == 9  # NLM-Chem is scored only
    without = [meaning for meaning, row in zip(plan.labels.meanings(), rows, strict=True) if not row[47:].any()]
    assert len(without) == 6  # the labels without a counterpart
    species = [row[47:].argmax() for m, row in zip(plan.labels.meanings(), rows, strict=True) if m[1] == "Species"]
    assert {int(at) for at in species} == {5}
    fitted = fit(small("conditional"), plan.training[:40], declared=plan.labels)
    assert isinstance(fitted.learner.objectives["cvae"], ConditionalReconstruction)
    assert fitted.learner.objectives["cvae"].rows.shape == (47, 54)
