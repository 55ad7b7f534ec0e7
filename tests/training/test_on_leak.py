"""Training documents that are also scored on are dropped, stop the training, or are named in the results."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from copies import invented_text
from rich.console import Console

import wingspan
from trainings import TINY, dev_documents, train_documents
from wingspan.corpora.formats import write
from wingspan.corpora.statistics import describe
from wingspan.text import Document
from wingspan.training.corpora import Corpora, handle_leaks
from wingspan.training.multi_corpus import CorporaPlan, OneOfSeveral
from wingspan.training.run import TrainingJob, prepare, train_seeds

QUICK = {**TINY, "train.epochs": 1}
TRAIN, DEV, TEST = train_documents(8), dev_documents(2), dev_documents(4)[2:]
LEAKY = (*TRAIN[:3], DEV[0], *TRAIN[3:], TEST[1])


def trained(**how) -> wingspan.Recognizer:
    return wingspan.train("baseline", train=LEAKY, dev=DEV, test=TEST, settings=QUICK, device="cpu", **how)


def test_leaking_documents_are_dropped_by_default_and_the_run_tells(tmp_path, capsys):
    model = trained(output=tmp_path / "run")
    assert model.facts["train_fingerprint"] == describe(TRAIN).fingerprint
    told = model.facts["leaks"]
    assert (told["on_leak"], told["dropped"], told["documents"]) == ("drop", 2, 2)
    assert told["said"].startswith("Leaks: 2 of 10 training documents are in dev and test (2 exact) and are dropped; ")
    kept = json.loads((tmp_path / "run" / "leaks.json").read_text())
    assert {pair["against"]["file"] for pair in kept["pairs"]} == {"dev", "test"}
    assert told["said"] in (tmp_path / "run" / "README.md").read_text()
    assert wingspan.load(tmp_path / "run").facts["leaks"] == told


def test_allow_trains_on_all_and_says_so_in_the_results(tmp_path):
    job = TrainingJob(
        prepare("baseline", None, QUICK), Corpora(LEAKY, DEV, TEST), tmp_path / "run", on_leak="allow", device="cpu"
    )
    figures = train_seeds(job, [1], Console(quiet=True))
    assert (figures["leaks"]["on_leak"], figures["leaks"]["dropped"]) == ("allow", 0)
    assert "trained on anyway (--on-leak allow)" in figures["leaks"]["said"]
    facts = json.loads((tmp_path / "run" / "facts.json").read_text())
    assert facts["train_fingerprint"] == describe(LEAKY).fingerprint


def test_stop_stops_before_anything_is_trained(tmp_path):
    with pytest.raises(ValueError, match="2 of 10 training documents are in dev and test, such as 'dev-0'"):
        trained(output=tmp_path / "run", on_leak="stop")
    assert not (tmp_path / "run").exists()
    assert handle_leaks(TRAIN, {"dev": DEV}, "stop").documents == TRAIN


def test_nothing_left_to_train_on_is_said():
    with pytest.raises(ValueError, match="all 2 training documents are in dev, so that none is left"):
        handle_leaks(DEV, {"dev": DEV}, "drop")
    with pytest.raises(ValueError, match="on_leak is 'keep'; use drop, stop, allow"):
        handle_leaks(DEV, {"dev": DEV}, "keep")


def test_a_corpus_of_sentences_keeps_its_short_ones():
    words = [Document.from_words(f"s{at}", tuple(text.split())) for at, text in enumerate(("Methods :", "Results :"))]
    text = Document("long", invented_text(1, 30))
    handled = handle_leaks([*words, text], {"test": [*words, text]}, "drop")
    assert handled.documents == words
    assert handled.leaks.short == 2
    assert handled.line.endswith("2 equal documents too short to count.")


def test_no_held_out_documents_no_leaks():
    handled = handle_leaks(TRAIN, {"dev": (), "test": ()}, "drop")
    assert handled.documents == TRAIN or handled.documents == list(TRAIN)
    assert handled.line == "Leaks: there are no dev or test documents to look for in training."


def test_corpora_are_told_apart():
    """Rows are those of the whole list, whatever corpus they belong to."""
    other = Document("x", invented_text(7), dataset="other")
    handled = handle_leaks([TRAIN[0], other, TRAIN[1], DEV[0]], {"dev": [DEV[0]], "other test": [other]}, "drop")
    assert handled.documents == [TRAIN[0], TRAIN[1]]
    assert handled.leaks.files == {
        "main": {"exact": 1, "normalized": 0, "near": 0},
        "other": {"exact": 1, "normalized": 0, "near": 0},
    }


def test_from_the_shell(shell, tmp_path):
    write(LEAKY, tmp_path / "leaky.jsonl")
    write(DEV, tmp_path / "dev.jsonl")
    options = ("--train", tmp_path / "leaky.jsonl", "--dev", tmp_path / "dev.jsonl")
    assert "is in dev" not in shell.refuses(*_train(shell, tmp_path, *options, "--on-leak", "stop"))
    said, _ = shell(*_train(shell, tmp_path, *options))
    assert "1 of 10 training documents are in dev (1 exact) and are dropped" in said.replace("\n", " ")


def _train(shell, tmp_path, *options):
    sets = [part for key, value in QUICK.items() for part in ("--set", f"{key}={value}")]
    return ["train", "baseline", "--output", tmp_path / "run", "--device", "cpu", *sets, *options]


def test_of_several_corpora_every_dev_and_test_part_is_held_out_from_all():
    texts = [replace(TRAIN[0], id=str(at), text=invented_text(at), entities=()) for at in range(5)]
    ours, theirs = ([replace(text, dataset=name) for text in texts] for name in ("a", "b"))
    first = OneOfSeveral("a", ("X",), ("X",), (ours[0], ours[3]), (ours[1],), (ours[2],), role="target")
    second = OneOfSeveral(
        "b", ("Y",), ("Y",), (theirs[1], theirs[4]), (theirs[2],), (theirs[3],), dev_into_training=True
    )
    plan = CorporaPlan((first, second))
    corpora = Corpora(plan.training, first.dev, first.test, plan)
    assert {part: len(documents) for part, documents in corpora.held_out.items()} == {
        "a dev": 1,
        "a test": 1,
        "b dev": 0,
        "b test": 1,
    }
    handled = handle_leaks(corpora.train, corpora.held_out, "drop", corpora.target)
    assert [document.id for document in handled.documents] == ["0", "4"]
    assert handled.line.startswith("Leaks: 3 of 5 training documents (a 1, b 2) are in ")
    only = replace(plan, corpora=(replace(first, train=(ours[3],)), second))
    corpora = Corpora(only.training, first.dev, first.test, only)
    with pytest.raises(ValueError, match="all documents of 'a' are in .* so that none is left to train on"):
        handle_leaks(corpora.train, corpora.held_out, "drop", corpora.target)
    assert handle_leaks(corpora.train, corpora.held_out, "allow", corpora.target).documents == corpora.train
