"""No verb writes over what it reads: the same file under any name, or a folder with the annotations that were read."""

import inspect
import os
import shutil
from pathlib import Path

import pytest
from shells import lines

from wingspan.cli import OUTPUTS, app, load_verbs
from wingspan.corpora.formats import keep_apart, write
from wingspan.files import CorpusError
from wingspan.text import Document, Entity

OVER = "would be written over"
# by verb and option: the arguments, with SAME for the file that is read and would be written
ARGUMENTS = {
    ("train", "json"): "baseline --train SAME --output run --json SAME",
    ("predict", "output"): "SAME --model MODEL --output SAME",
    ("evaluate", "json"): "MODEL SAME --json SAME",
    ("calibrate", "json"): "MODEL SAME --json SAME",
    ("score", "json"): "OTHER SAME --json SAME",
    ("compare", "json"): "OTHER a=OTHER b=OTHER,SAME --json SAME",
    ("compare", "report"): "OTHER OTHER sam*.jsonl --report SAME",
    ("analyze", "json"): "--gold OTHER --predicted a=SAME --output report --json SAME",
    ("experiment", "json"): "SAME --json SAME",
    ("tune", "json"): "baseline --train OTHER --dev SAME --output search --json SAME",
    ("validate", "json"): "OTHER SAME --json SAME",
    ("split", "json"): "SAME --output parts --json SAME",
    ("leaks", "json"): "OTHER --against SAME --json SAME",
    ("show", "output"): "SAME --output SAME",
    ("label-map", "output"): "a=OTHER,SAME --target b=OTHER --output SAME",
    ("label-map", "json"): "a=OTHER --target b=SAME --json SAME",
    ("lexicon", "output"): "OTHER --from-corpus SAME --output SAME",
    ("lexicon", "json"): "OTHER --coverage SAME --json SAME",
    ("vectors", "output"): "SAME --output SAME",
    ("vectors", "json"): "SAME --output vectors.npz --json SAME",
}
# outputs that are folders, or beside no file that is read
OTHERS = {
    *(("train", "output"), ("demo", "output"), ("info", "json"), ("calibrate", "output"), ("analyze", "output")),
    *(("experiment", "output"), ("tune", "output"), ("split", "output"), ("export", "output")),
}


def test_every_output_of_every_verb_is_tried() -> None:
    load_verbs([])
    found = set()
    for command in app.registered_commands:
        assert command.callback is not None
        name = command.name or command.callback.__name__.replace("_", "-")
        found |= {(name, option) for option in inspect.signature(command.callback).parameters if option in OUTPUTS}
    assert found == {*ARGUMENTS, *OTHERS}


@pytest.mark.parametrize(("verb", "option"), ARGUMENTS)
@pytest.mark.parametrize("link", [False, True])
def test_a_file_that_is_read_is_not_written_over(shell, tmp_path, monkeypatch, verb, option, link) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("other.jsonl", "same.jsonl"):
        shutil.copy(shell.dev, name)
    if link:
        os.symlink("same.jsonl", "link.jsonl")
    names = {"SAME": "same.jsonl", "OTHER": "other.jsonl", "MODEL": str(shell.model)}
    words = ARGUMENTS[verb, option].split()
    for placeholder, name in names.items():
        words = [word.replace(placeholder, name) for word in words]
    words[-1] = "link.jsonl" if link else os.path.join(".", words[-1])
    assert OVER in shell.refuses(verb, *words)
    assert Path("same.jsonl").read_bytes() == shell.dev.read_bytes()


def annotated(folder: Path) -> dict[str, bytes]:
    """A brat folder with two documents; the contents of its files."""
    write([Document(name, "Oslo rains.", (Entity.at("LOC", 0, 4),)) for name in ("a", "b")], folder, "brat")
    return contents(folder)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("inputs", [["gold"], ["gold/a.txt"], ["gold/b.ann", "gold/a.ann"]])
@pytest.mark.parametrize("output", ["gold", "./gold/", "gold/../gold"])
def test_annotations_in_a_folder_are_not_written_over(shell, tmp_path, monkeypatch, inputs, output) -> None:
    monkeypatch.chdir(tmp_path)
    before = annotated(Path("gold"))
    assert OVER in shell.refuses("predict", *inputs, "--model", shell.model, "--output", output, "--format", "brat")
    assert OVER in shell.refuses("convert", inputs[0], output, "--to", "brat")
    assert contents(Path("gold")) == before


def test_one_pair_of_brat_files_is_not_written_over(tmp_path) -> None:
    annotated(tmp_path)
    with pytest.raises(CorpusError, match=OVER):
        keep_apart(tmp_path / "a.ann", [tmp_path / "a.txt"])
    (tmp_path / "a.ann").unlink()
    keep_apart(tmp_path / "a.ann", [tmp_path / "a.txt"])  # a text gets its first annotations
    (tmp_path / "a.conll").write_text("")
    keep_apart(tmp_path, [tmp_path / "a.conll"])  # a folder of brat files beside another file


def test_parts_reports_and_models_do_not_replace_their_source(shell, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("train.jsonl", "predictions.jsonl"):
        shutil.copy(shell.dev, name)
    assert OVER in shell.refuses("split", "train.jsonl", "--dev", 25, "--test", 25, "--output", ".")
    assert OVER in shell.refuses("analyze", shell.model, "predictions.jsonl", "--output", ".")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["predictions.jsonl", "train.jsonl"]
    shutil.copytree(shell.model, "start")
    Path("start/journal.jsonl").unlink()  # as a model from the hub, which is no run
    before = Path("start/model.safetensors").read_bytes()
    assert OVER in shell.refuses("train", "baseline", "--train", shell.train, "--from", "start", "--output", "start")
    assert Path("start/model.safetensors").read_bytes() == before


def test_an_empty_name_is_no_folder(shell, tmp_path, monkeypatch) -> None:
    annotated(tmp_path)
    monkeypatch.chdir(tmp_path)
    for words in (["validate", ""], ["calibrate", shell.model, ""], ["split", "a.ann", "--output", ""]):
        assert "an empty argument where a file or folder is named" in shell.refuses(*words)
    assert "give a model and a corpus" in shell.refuses("evaluate", shell.model, "")
    assert "an empty argument" in shell.refuses("predict", "a text", "--model", shell.model, "--output", "")
    shell("validate", ".")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.ann", "a.txt", "b.ann", "b.txt"]


def test_an_output_of_its_own_may_be_replaced(shell, tmp_path) -> None:
    corpus = lines(tmp_path / "in.jsonl", {"text": "Oslo", "entities": []})
    for _ in range(2):
        shell("predict", corpus, "--model", shell.model, "--output", tmp_path / "out.jsonl")
        shell("validate", corpus, "--json", tmp_path / "figures.json")
