"""What users get wrong, one clear sentence each: never a traceback, never a shifted or lost entity."""

import json
import shutil
from pathlib import Path

import pytest
from shells import QUICK, lines, training


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ("bundlin", "no recipe 'bundlin'; did you mean 'bundling'? There are baseline, "),
        ("bundling/bl-spam", "has no variant 'bl-spam'; did you mean 'bl-span"),
        ("nowhere.py", "nowhere.py: no such Python file; check the path"),
    ],
)
def test_unknown_recipes(shell, tmp_path, recipe, message):
    assert message in shell.refuses(*training(shell, tmp_path, recipe=recipe))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", "train.epoch=3"], "no such setting; did you mean 'train.epochs'?"),
        (["--set", "train.epochs"], "write it as key=value, for example --set train.epochs=3"),
        (["--set", "train.epochs=many"], "expected a whole number, not 'many'"),
        (["--set", "train.epochs=0"], "train.epochs is 0; give at least 1"),
        (["--set", "train.accumulate=0"], "train.accumulate is 0"),
        (["--set", "max_width=0"], "max_width is 0; give at least 1, or auto"),
        (["--set", "train.schedule=linar"], "expected linear or cosine or constant"),
        (["--seeds", "1,x"], "--seeds 1,x: write whole numbers with commas"),
        (["--seeds", "1,,2"], "write whole numbers with commas"),
        (["--seeds", ""], "write whole numbers with commas"),
        (["--seeds", "-1"], "write whole numbers with commas"),
        (["--seeds", "1,1"], "each seed once"),
        (["--encoder", "/no/such/folder"], "encoder '/no/such/folder' cannot be loaded"),
        (["--encoder", "no-such/encoder"], "use --encoder hashed (needs nothing), minilm"),
        (["--from", "/no/model"], "neither a model folder nor a hub id"),
        (["--rename", "A=B"], "give --from MODEL too"),
        (["--track", "nonsense"], "--track nonsense: not installed or unknown"),
        (["--dev", "/no/dev.jsonl"], "/no/dev.jsonl: no such file or folder"),
        (["--format", "jsonll"], "unknown format 'jsonll'; use one of"),
    ],
)
def test_bad_options_of_train(shell, tmp_path, options, message):
    given = training(shell, tmp_path, *options)
    if "--encoder" in options or "--from" in options:  # which know nothing of the tiny encoder's settings
        given = [part for part in given if part not in QUICK and part != "--set"]
    assert message in shell.refuses(*given)
    assert not (tmp_path / "run" / "model.safetensors").exists()


def test_a_device_that_is_not_there(shell, tmp_path):
    assert "no device 'gpu'; use cpu, cuda or cuda:N" in shell.refuses(
        "predict", "text", "--model", shell.model, "--device", "gpu"
    )
    assert "no device 'gpu'" in shell.refuses(*training(shell, tmp_path, "--device", "gpu"))


def test_from_brings_its_encoder(shell, tmp_path):
    assert "--from brings its own encoder" in shell.refuses(*training(shell, tmp_path, "--from", shell.model))


def test_missing_and_empty_corpora(shell, tmp_path):
    assert f"{tmp_path}/no.jsonl: no such file" in shell.refuses(
        *training(shell, tmp_path, train=tmp_path / "no.jsonl")
    )
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    assert "empty.jsonl" in shell.refuses(*training(shell, tmp_path, train=empty))
    assert "empty.jsonl" in shell.refuses(*training(shell, tmp_path, "--dev", empty))
    assert "empty.jsonl" in shell.refuses("evaluate", shell.model, empty)
    bare = lines(tmp_path / "bare.jsonl", {"text": "nothing here", "entities": []})
    assert "no entity in 1 training documents; there is nothing to learn" in shell.refuses(
        *training(shell, tmp_path, train=bare)
    )


def test_a_corpus_without_entities_can_be_evaluated_on(shell, tmp_path):
    bare = lines(tmp_path / "bare.jsonl", {"text": "nothing here", "entities": []})
    out, _ = shell("evaluate", shell.model, bare, "--json", tmp_path / "f.json")
    assert "Coverage: there are no entities to find" in out
    assert json.loads((tmp_path / "f.json").read_text())["micro"]["fn"] == 0


def test_labels_of_one_class_with_spaces_and_odd_characters(shell, tmp_path):
    text = "The café 💊 أسبرين zero\u200bwidth kidney."
    for label in ("cell line", "💊", "סוג", "a\u200bb", "[bold]x[/]"):
        entity = {"label": label, "start": 4, "end": 8}
        corpus = lines(tmp_path / f"{len(label)}.jsonl", *({"text": text, "entities": [entity]} for _ in range(3)))
        output = tmp_path / f"run-{label.encode().hex()}"
        sets = [part for item in QUICK for part in ("--set", item)]
        shell("train", "baseline", "--train", corpus, "--dev", corpus, "--output", output, "--device", "cpu", *sets)
        out, _ = shell("predict", corpus, "--model", output, "--threshold", "0.0")
        found = [json.loads(line) for line in out.splitlines()]
        assert [record["text"] for record in found] == [text] * 3
        assert {e["label"] for record in found for e in record["entities"]} == {label}
        assert all(e["text"] == text[e["start"] : e["end"]] for record in found for e in record["entities"])


def test_unknown_labels_count_as_missed_and_are_said(shell, tmp_path):
    entity = {"label": "Planet", "start": 0, "end": 4}
    corpus = lines(tmp_path / "planets.jsonl", {"text": "Mars is far.", "entities": [entity]})
    out, _ = shell("evaluate", shell.model, corpus, "--json", tmp_path / "f.json")
    assert "The model has no label 'Planet': all 1 count as missed" in out
    assert json.loads((tmp_path / "f.json").read_text())["labels"]["Planet"]["fn"] == 1


def test_an_output_folder_that_holds_a_run(shell, tmp_path):
    shell.trains(tmp_path / "run")
    before = (tmp_path / "run" / "model.safetensors").read_bytes()
    assert "there is a run already; choose another --output, or go on with --resume" in shell.refuses(
        *training(shell, tmp_path)
    )
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == before
    (tmp_path / "file").write_text("")
    given = training(shell, tmp_path)
    given[given.index(tmp_path / "run")] = tmp_path / "file"
    assert "file" in shell.refuses(*given)


def test_damaged_models(shell, tmp_path):
    folder = Path(shutil.copytree(shell.model, tmp_path / "model"))
    (folder / "model.safetensors").write_bytes(b"half")
    for command in (["predict", "text", "--model", folder], ["evaluate", folder, shell.dev], ["info", folder]):
        assert "the weights do not fit or are damaged" in shell.refuses(*command)
    (folder / "recipe.json").write_text("{")
    assert "recipe.json: damaged" in shell.refuses("info", folder)
    assert "recipe.json is missing" in shell.refuses("info", tmp_path)
    assert "neither a model folder nor a hub id" in shell.refuses("info", tmp_path / "none")


def test_bad_input_of_predict(shell, tmp_path):
    options = ["--model", shell.model]
    assert "no such file or folder" in shell.refuses("predict", "missing.jsonl", *options)
    assert "no such file or folder" in shell.refuses("predict", "folder/of/texts", *options)
    bad = tmp_path / "latin.txt"
    bad.write_bytes("café".encode("latin-1"))
    assert "latin.txt:1: byte 4 of the line is 0xe9, which is no UTF-8" in shell.refuses("predict", bad, *options)
    assert "standard input, line 2: not UTF-8" in shell.refuses("predict", "-", *options, stdin=b"fine\n\xff\xfe\n")
    (tmp_path / "nothing").mkdir()
    assert "no .txt file in this folder" in shell.refuses("predict", tmp_path / "nothing", *options)
    assert "unknown format 'nope'" in shell.refuses("predict", shell.dev, *options, "--from", "nope")
    assert "unknown format 'nope'" in shell.refuses(
        "predict", shell.dev, *options, "--output", tmp_path / "x", "--format", "nope"
    )
    assert not (tmp_path / "x").exists()
    _, err = shell("predict", "text", *options, "--threshold", "7", code=2)
    assert "Invalid value for '--threshold'" in err


def test_a_failed_prediction_leaves_no_half_file(shell, tmp_path):
    good, bad = tmp_path / "a.txt", tmp_path / "b.txt"
    good.write_text("fine")
    bad.write_bytes(b"\xff")
    shell.refuses("predict", good, bad, "--model", shell.model, "--output", tmp_path / "out.jsonl")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "b.txt"]


def test_odd_texts(shell, tmp_path):
    texts = ["", "   ", "💊" * 50, "x" * 300_000, "\u202eright to left\u202c", "a\u0301" * 20, "null \x00 byte"]
    corpus = lines(tmp_path / "odd.jsonl", *({"text": text, "entities": []} for text in texts))
    out, _ = shell("predict", corpus, "--model", shell.model, "--threshold", "0.1")
    found = [json.loads(line) for line in out.split("\n") if line]
    assert [record["text"] for record in found] == texts
    assert all(e["text"] == r["text"][e["start"] : e["end"]] for r in found for e in r["entities"])


def test_a_recipe_file_that_does_not_run(shell, tmp_path):
    broken = tmp_path / "broken_recipe.py"
    broken.write_text("def recipe(:\n")
    said = shell.refuses(*training(shell, tmp_path, recipe=str(broken)))
    assert f"{broken}: this Python file does not run (" in said
