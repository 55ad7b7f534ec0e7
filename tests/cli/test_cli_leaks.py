"""`wingspan leaks` from the shell."""

from __future__ import annotations

import json
from random import Random

import pytest
from copies import edited, invented_text

from wingspan.corpora.formats import write
from wingspan.text import Document, Entity

NONE = {"exact": 0, "normalized": 0, "near": 0}


@pytest.fixture
def names(tmp_path):
    """Two training files and two to be scored: one document is in both, one nearly, one shares only its id."""
    texts = [invented_text(seed) for seed in range(6)]
    documents = [Document(f"d{at}", text, (Entity.at("X", 0, 4),)) for at, text in enumerate(texts)]
    write(documents[:2], tmp_path / "one.jsonl")
    write([*documents[2:4], Document("d5", texts[0][::-1])], tmp_path / "two.txt", "doccano")
    write([documents[0], Document("d3", edited(texts[3], Random(1)))], tmp_path / "dev.jsonl")
    write(documents[4:6], tmp_path / "test.jsonl")
    return [str(tmp_path / name) for name in ("one.jsonl", "two.txt", "dev.jsonl", "test.jsonl")]


@pytest.mark.parametrize("form", ["all at once", "one by one", "first"])
def test_the_figures_as_json(form, shell, names, tmp_path):
    one, two, dev, test = names
    sides = {
        "all at once": (one, two, "--against", dev, test),
        "one by one": (one, two, "--against", dev, "--against", test),
        "first": ("--against", dev, "--against", test, one, two),
    }
    shell("leaks", *sides[form], "--json", tmp_path / "leaks.json")
    found = json.loads((tmp_path / "leaks.json").read_text())
    assert (found["documents"], found["near_documents"], found["against_documents"]) == (1, 1, 4)
    assert found["train_files"] == {one: {**NONE, "exact": 1}, two: {**NONE, "near": 1}}
    assert found["against_files"] == {dev: {**NONE, "exact": 1, "near": 1}, test: NONE}
    assert [(pair["train"]["id"], pair["against"]["id"]) for pair in found["pairs"]] == [("d0", "d0")]
    assert [(pair["train"]["id"], pair["same_id"]) for pair in found["near_duplicates"]] == [("d3", True)]
    assert [pair["train"] for pair in found["same_id_other_text"]] == [{"file": two, "id": "d5"}]
    assert found["mentions"] == {"of": 3, "in_leaking_documents": 1, "annotated_in_training": 1}


def test_the_report_and_the_exit_code(shell, names):
    one, two, dev, test = names
    said, _ = shell("leaks", one, two, "--against", dev, "--fail", code=1)
    assert "1 document of 2: the text is in training." in said
    assert "1 document more: something nearly equal is in training." in said
    assert "They hold 1 of 1 mention; 1 are annotated in training too, at the same place." in said
    said, _ = shell("leaks", one, "--against", test, "--fail")
    assert "0 documents of 2: the text is in training." in said


def test_what_cannot_be_compared_is_one_sentence(shell, names, tmp_path):
    (tmp_path / "empty.jsonl").write_text("")
    assert "no documents" in shell.refuses("leaks", names[0], "--against", tmp_path / "empty.jsonl")
    assert "no such file" in shell.refuses("leaks", tmp_path / "missing.jsonl", "--against", names[0])
    assert "Missing option" in shell("leaks", names[0], code=2)[1]
