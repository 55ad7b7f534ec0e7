"""What a reader of the whole code found: each was wrong once."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from trainings import dev_documents, run_of, tiny, train_documents, untrained
from wingspan.corpora.formats import read, write
from wingspan.recipe import Phase
from wingspan.recognizer import Recognizer
from wingspan.text import Document
from wingspan.training.fit import fit
from wingspan.training.loop import train
from wingspan.training.processes import accelerator_for
from wingspan.training.state import latest_state, load_position
from wingspan.training.warm_start import renamed

BRAT = "T1\tDrug 0 7\tAspirin\nT2\tSym 15 23\theadache\nR1\tTreats Arg1:T1 Arg2:T2\nN1\tReference T1 MESH:D1\tAspirin\n"


def test_notes_and_relations_of_gold_do_not_end_up_at_found_entities(tmp_path):
    (tmp_path / "gold").mkdir()
    (tmp_path / "gold" / "a.txt").write_text("Aspirin treats headache.")
    (tmp_path / "gold" / "a.ann").write_text(BRAT)
    (document,) = read(tmp_path / "gold", "brat")
    (found,) = untrained(overlap="flat").predict([document])
    assert found.entities
    write([found], tmp_path / "found", "brat")
    kinds = {line[0] for line in (tmp_path / "found" / "a.ann").read_text().splitlines()}
    assert kinds <= {"T", "#"}


def test_relations_leave_a_layout_and_passages_stay():
    layout = {"passages": [{"offset": 0, "relations": [1]}], "relations": [{"id": "R1"}]}
    (found,) = untrained().predict([Document("d", "One two.", meta={"bioc": layout, "source": "x"})])
    assert found.meta == {"bioc": {"passages": [{"offset": 0}]}, "source": "x"}


def test_offsets_count_the_line_ends_of_a_text_file(shell, tmp_path):
    path = tmp_path / "windows.txt"
    path.write_bytes(b"First line.\r\nMutations in TGFB1 cause lung fibrosis.\r\n")
    out, _ = shell("predict", path, "--model", shell.model, "--threshold", 0.0)
    record = json.loads(out)
    assert record["text"] == path.read_bytes().decode()
    assert record["entities"]
    assert all(record["text"][e["start"] : e["end"]] == e["text"] for e in record["entities"])


def test_texts_in_folders_below_are_read_and_keep_apart(shell, tmp_path):
    for name in ("a/x.txt", "b/x.txt"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("One text.")
    out, _ = shell("predict", tmp_path, "--model", shell.model)
    assert [json.loads(line)["id"] for line in out.splitlines()] == ["a/x", "b/x"]


def test_several_datasets_are_refused():
    documents = [replace(document, dataset=f"d{n}") for n, document in enumerate(train_documents(2))]
    with pytest.raises(ValueError, match=r"several datasets \(d0, d1\)"):
        fit(tiny("baseline"), documents)
    with pytest.raises(ValueError, match="dataset 'typo' is unknown; the model has main"):
        untrained().predict("A text.", dataset="typo")


def test_a_rest_of_accumulated_batches_counts_as_a_step_when_resumed(tmp_path):
    recipe = tiny("baseline", epochs=3, accumulate=2, batch_size=16, checkpoint_steps=1)
    whole = run_of(recipe, documents=train_documents(9))
    batches = len(whole.data.sentences) // 16 + 1
    assert batches % 2, "the last optimizer step of an epoch has one batch only"
    list(train(whole, accelerator_for("no", "cpu")))
    stopped = replace(run_of(recipe, documents=train_documents(9)), states=tmp_path)
    for _ in train(stopped, accelerator_for("no", "cpu")):
        break  # at the end of the first epoch, before its own state is kept
    assert load_position(latest_state(tmp_path)).step == batches
    resumed = replace(run_of(recipe, documents=train_documents(9)), states=tmp_path, resume=True)
    list(train(resumed, accelerator_for("no", "cpu")))
    for name, value in whole.learner.state_dict().items():
        assert value.equal(resumed.learner.state_dict()[name]), name


def test_a_changed_recipe_is_not_resumed(shell, tmp_path):
    shell.trains(tmp_path / "run")
    said = shell.refuses(
        "train", "baseline", "--train", shell.train, "--dev", shell.dev, "--output", tmp_path / "run", "--resume"
    )
    assert "--resume: " in said
    assert "now and was" in said


def test_what_cannot_be_read_with_is_said():
    recipe = replace(tiny("baseline/proposals"), read_with="proposals", phases=(Phase(),))
    with pytest.raises(ValueError, match="'proposals' cannot read entities; use spans, tags or links"):
        fit(recipe, train_documents(2), dev_documents(1))


def test_two_labels_cannot_take_one_name():
    model: Recognizer = untrained()
    with pytest.raises(ValueError, match="'Gene' would name two labels"):
        renamed(model, {"Drug": "Gene"})
    assert renamed(model, {"Drug": "Gene", "Gene": "Drug"}).labels.types["main"] == ("Gene", "Drug")


def test_the_demo_does_not_write_over_a_folder(shell, tmp_path):
    assert "is there already; choose another --output" in shell.refuses("demo", "--output", tmp_path)
