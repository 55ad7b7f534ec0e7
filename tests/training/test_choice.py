"""`auto`: what kind of data it sees, and that the kept results, nothing else, decide."""

import io
import json
import runpy
from pathlib import Path

import pytest
from rich.console import Console

import wingspan
from trainings import dev_documents, train_documents
from wingspan.corpora.statistics import Statistics
from wingspan.recipes import find
from wingspan.training.choice import KeptRuns, choose, kept, settle
from wingspan.training.corpora import Corpora


def figures(entities=1000, nested=0, discontinuous=0, p99=6) -> Statistics:
    return Statistics(entities=entities, nested=nested, discontinuous=discontinuous, mention_words={"p99": p99})


SHAPES = {
    "flat": (figures(), 0),
    "nested": (figures(nested=80), 0),
    "long": (figures(nested=80, p99=24), 0),
    "discontinuous": (figures(discontinuous=20), 0),
    "several": (figures(), 3),
}


def row(kind, recipe, dev, corpus="one", encoder="minilm", weights=10616832) -> KeptRuns:
    return KeptRuns(kind=kind, corpus=corpus, encoder=encoder, weights=weights, recipe=recipe, dev=dev)


@pytest.mark.parametrize("kind", SHAPES)
def test_another_result_is_another_choice(kind):
    found, corpora = SHAPES[kind]
    first = [row(kind, "a", [80.0, 81.0, 82.0]), row(kind, "b", [70.0, 71.0, 72.0])]
    second = [row(kind, "a", [80.0, 81.0, 82.0]), row(kind, "b", [90.0, 91.0, 92.0])]
    others = [row(other, "c", [99.0, 99.0, 99.0]) for other in SHAPES if other != kind]
    assert choose(found, corpora, "minilm", first + others).recipe == "a"
    chosen = choose(found, corpora, "minilm", second + others)
    assert chosen.recipe == "b"
    assert "b was best on dev of one with minilm, 10.00 F1" in chosen.reason
    assert "chance" not in chosen.reason


def test_a_lead_within_the_noise_is_said_to_be_one():
    close = [row("flat", "a", [80.0, 82.0, 84.0]), row("flat", "b", [80.1, 82.1, 83.9])]
    assert "0.03 F1 before a, which may be chance" in choose(figures(), 0, "minilm", close).reason


def test_the_encoder_of_the_nearest_size_is_asked(tmp_path):
    rows = [
        row("flat", "small", [80.0, 80.0, 80.0]),
        row("flat", "large", [70.0, 70.0, 70.0], encoder="mpnet", weights=84934656),
    ]
    (tmp_path / "config.json").write_text(json.dumps({"hidden_size": 384, "num_hidden_layers": 6}))
    assert choose(figures(), 0, str(tmp_path), rows).recipe == "small"
    (tmp_path / "config.json").write_text(json.dumps({"hidden_size": 1024, "num_hidden_layers": 24}))
    assert choose(figures(), 0, str(tmp_path), rows).recipe == "large"
    assert choose(figures(), 0, "someone/some-hub-id", rows).recipe == "large"


def test_a_recipe_that_ran_on_few_of_the_corpora_is_out():
    rows = [row("flat", "a", [80.0] * 3, corpus) for corpus in ("one", "two", "three")]
    rows.append(row("flat", "lucky", [90.0] * 3, "three"))
    assert choose(figures(), 0, "minilm", rows).recipe == "a"


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("encoder", [None, "hashed", "static:vectors.txt", "minilm", "e5-small", "a/base"])
def test_every_choice_is_a_recipe_that_exists(kind, encoder):
    chosen = choose(*SHAPES[kind], encoder)
    assert find(chosen.recipe).protocol == "recognition"
    assert chosen.reason.startswith("auto: ")
    assert chosen.encoder == (encoder or "hashed")


def test_the_shipped_results_are_those_that_are_kept():
    script = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "evidence.py"))
    assert list(kept()) == script["collect"](), "run python benchmarks/evidence.py"


def test_named_recipes_stay_as_they_are():
    assert settle("bundling/span", Corpora(train_documents(2)), None) == ("bundling/span", None, None)


def test_auto_trains_says_why_and_remembers_it(tmp_path):
    console = Console(record=True, width=200, file=io.StringIO())
    model = wingspan.train(
        "auto", train=train_documents(6), dev=dev_documents(), epochs=1, output=tmp_path / "run", console=console
    )
    assert model.recipe.name == "baseline"
    said = console.export_text()
    assert "No pretrained encoder, so baseline, which needs none" in said
    assert model.facts["choice"].startswith("auto: ")
    assert "No pretrained encoder" in (tmp_path / "run" / "README.md").read_text()
