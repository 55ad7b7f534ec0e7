"""The installed model: found without running its package, refused where a file differs, the default of every verb."""

import ast
import io
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from boxes import PIN, PLACE, install, needs_box, uninstall
from pages import ROOT
from rich.console import Console

import wingspan
from trainings import entities
from wingspan import box
from wingspan.cli import demo
from wingspan.cli.compare import files
from wingspan.cli.serve import from_environment
from wingspan.corpora.formats import read
from wingspan.evaluation.scores import recognition
from wingspan.training.teaching import Teacher

TEXT = "Aspirin lowers BRCA1 in the cell ."
SAID = "wingspan: no model is named, so wingspan-bio-small is used\n"
SENTENCES = list(read(ROOT / "examples" / "biomedical" / "regression.jsonl"))
FLOOR = 74.9
"""Strict F1 of the shipped model on the regression set, minus a margin of 2 points for other versions of torch."""
MOST_IN_NOTHING = 2
"""Entities found in the 22 sentences that have none, plus a margin of 2."""


@pytest.fixture
def boxed(prepared, tmp_path, monkeypatch) -> Path:
    """The folder of an installed model, which is the one of the shell's tests."""
    return install(prepared / "model", tmp_path / "installed", monkeypatch)


@pytest.fixture
def bare(monkeypatch) -> None:
    """No model is installed."""
    uninstall(monkeypatch)


# Finding and checking


def test_it_is_found_by_its_name_and_without_one(boxed, prepared, capsys):
    own = entities(wingspan.load(prepared / "model").predict(TEXT, threshold=0.05))
    assert entities(wingspan.load("wingspan-bio-small").predict(TEXT, threshold=0.05)) == own != [[]]
    assert capsys.readouterr() == ("", "")
    for _ in range(2):
        assert entities(wingspan.load().predict(TEXT, threshold=0.05)) == own
    assert capsys.readouterr() == ("", SAID)  # once
    assert box.PACKAGE not in sys.modules


def test_a_folder_of_that_name_is_no_model(boxed, tmp_path, monkeypatch, saved_bert):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(saved_bert, tmp_path / "wingspan-bio-small")
    assert wingspan.load("wingspan-bio-small").recipe.name == "baseline"
    assert wingspan.load("./wingspan-bio-small").recipe.name == "bundling/bl-span"
    assert wingspan.load(Path("wingspan-bio-small")).recipe.name == "bundling/bl-span"
    assert files("./wingspan-bio-small") == [Path("wingspan-bio-small")]
    assert files("wingspan-bio-small") == [box.installed_model()]


def test_a_text_may_be_longer_than_the_name_of_a_file(boxed, shell):
    long = f"{TEXT} " * 100  # without a slash it would be one name, which no file system takes
    out, _ = shell("predict", long)
    assert json.loads(out)["text"] == long


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda folder: (folder / "labels.json").unlink(), "labels.json is missing"),
        (lambda folder: (folder / "labels.json").write_bytes(b"{}"), "labels.json was changed"),
        (lambda folder: (folder / "more.json").write_bytes(b"{}"), "more.json does not belong there"),
        (lambda folder: (folder / "a" / "b").mkdir(parents=True) or (folder / "a/b/c").touch(), "a/b/c does not"),
        (lambda folder: shutil.rmtree(folder), "and 3 more"),
        (lambda folder: os.mkfifo(folder / "pipe"), "pipe: no regular file"),
        (lambda folder: (folder / "link").symlink_to("/etc/passwd"), "link: a link that leaves the model folder"),
    ],
    ids=["missing", "changed", "extra", "extra below", "all gone", "pipe", "link"],
)
def test_another_file_is_refused(boxed, shell, harm, said):
    harm(boxed)
    for arguments in (["predict", TEXT], ["info", "wingspan-bio-small"]):
        assert said in shell.refuses(*arguments)


def test_one_changed_byte_of_the_weights_is_refused(boxed):
    weights = bytearray((boxed / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (boxed / "model.safetensors").write_bytes(weights)
    with pytest.raises(ValueError, match=r"not the wingspan-bio-small that belongs .*model.safetensors was changed"):
        wingspan.load("wingspan-bio-small")


def test_where_it_is_not_installed_one_sentence_says_how(bare, shell):
    sentence = (
        "wingspan-bio-small is not installed, and no other model is named; name one, or in a checkout of Wingspan run: "
        "pip install ./models/wingspan-bio-small"
    )
    for arguments in (
        ["predict", TEXT],
        ["predict", shell.dev, "--output", "out.jsonl"],
        ["predict", TEXT, "--model", "wingspan-bio-small"],
        ["serve"],
        ["info"],
        ["info", "wingspan-bio-small"],
    ):
        assert shell.refuses(*arguments) == f"wingspan: {sentence}\n"
    with pytest.raises(ValueError, match="wingspan-bio-small is not installed"):
        wingspan.load()


# Every verb


def test_predict_and_info_use_it_without_a_name(boxed, shell, tmp_path):
    out, err = shell("predict", TEXT, "--threshold", "0.05")
    assert err == SAID
    assert json.loads(out)["entities"]
    box.say_once.cache_clear()
    out, err = shell("predict", shell.dev, "--output", tmp_path / "found.jsonl")
    assert (err, (tmp_path / "found.jsonl").is_file()) == (SAID, True)
    box.say_once.cache_clear()
    out, err = shell("info")
    assert (err, out.splitlines()[0]) == (SAID, "recipe: baseline")


def test_predict_takes_the_model_first(boxed, shell):
    for model in (shell.model, "wingspan-bio-small"):
        out, err = shell("predict", model, TEXT)
        assert (json.loads(out)["text"], err) == (TEXT, "")
    assert "is a model; give a text or files too" in shell.refuses("predict", shell.model)


def test_its_name_is_known_to_all_verbs(boxed, shell, tmp_path):
    name = "wingspan-bio-small"
    assert "micro" in shell("evaluate", name, shell.dev)[0]
    assert "micro" in shell("evaluate", shell.dev, name)[0]
    assert "wingspan-bio-small" in shell("compare", shell.dev, name, f"B={name}", "--samples", "20")[0]
    assert "give --output" in shell.refuses("calibrate", name, shell.dev)
    shell("calibrate", name, shell.dev, "--output", tmp_path / "calibrated")
    assert wingspan.load(tmp_path / "calibrated").calibration is not None
    shell("analyze", name, shell.dev, "--output", tmp_path / "report", "--skip-representation", "--samples", "20")
    assert (tmp_path / "report" / "report.html").is_file()
    shell("label-map", f"a={shell.train}", "--target", f"b={shell.train}", "--model", name)
    for option in ("--teacher", "--from"):
        sets = [] if option == "--from" else ["--set", "encoder.buckets=100"]
        run = tmp_path / option
        shell("train", "baseline", "--train", shell.train, "--output", run, option, name, "--epochs", "1", *sets)
        assert (run / "model.safetensors").is_file()
    assert box.differences(boxed, json.loads(box.PINS.read_text())) == []  # nobody wrote into it


@pytest.mark.slow
def test_export_knows_its_name(boxed, shell, tmp_path):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    shell("export", "wingspan-bio-small", tmp_path / "onnx", "--first", "2")
    assert (tmp_path / "onnx" / "export.json").is_file()


def test_a_teacher_is_known_by_its_weights(boxed):
    model = wingspan.load("wingspan-bio-small")
    assert Teacher("wingspan-bio-small", model).identity == box.sha256_of(boxed / "model.safetensors")[:16]


def test_serve_without_a_model_serves_it_with_an_example(boxed, monkeypatch, capsys):
    pytest.importorskip("fastapi")
    testing = pytest.importorskip("fastapi.testclient")
    from wingspan.cli.serve import serve

    served = []
    monkeypatch.setattr("uvicorn.run", lambda app, **options: served.append(app))
    monkeypatch.setattr("signal.signal", lambda *_: None)
    serve(port=0)
    assert SAID in capsys.readouterr().err
    with testing.TestClient(served.pop()) as client:
        about = client.get("/v1/models").json()
        assert [model["name"] for model in about["models"]] == ["wingspan-bio-small"]
        assert about["example"] == " ".join(box.EXAMPLES)
        assert client.post("/v1/entities", json={"texts": [TEXT]}).status_code == 200
    serve(port=0, processes=2)
    assert served == ["wingspan.cli.serve:from_environment"]
    with testing.TestClient(from_environment()) as client:
        assert client.get("/v1/models").json()["example"] == " ".join(box.EXAMPLES)
    serve(models=["wingspan-bio-small"], port=0)
    with testing.TestClient(served.pop()) as client:
        assert client.get("/v1/models").json()["example"] is None


def test_the_demo_shows_it_first(boxed, monkeypatch):
    written = io.StringIO()
    demo.show_installed(Console(file=written, width=200))
    shown = written.getvalue()
    assert [sentence in shown for sentence in box.EXAMPLES] == [True] * 3
    assert shown.startswith("What wingspan-bio-small")
    uninstall(monkeypatch)
    written = io.StringIO()
    demo.show_installed(Console(file=written, width=200))
    assert written.getvalue().strip().endswith(box.HOW)
    assert written.getvalue().strip().count("\n") == 0


@pytest.mark.filterwarnings("ignore:entities that are no whole tokens")
def test_spacy_uses_it_without_a_name(boxed, monkeypatch, capsys):
    spacy = pytest.importorskip("spacy")
    __import__("wingspan.adapters.spacy_component")
    for config in ({}, {"model": "wingspan-bio-small"}):
        nlp = spacy.blank("en")
        nlp.add_pipe("wingspan", config={**config, "threshold": 0.05})
        assert nlp(TEXT).spans["sc"]
    assert capsys.readouterr().err == SAID


# The list of files, and the package


def test_pinning_writes_the_list(boxed, tmp_path):
    pins = PIN(boxed, tmp_path / "list.json")
    assert json.loads((tmp_path / "list.json").read_text()) == pins
    assert list(pins) == sorted(path.relative_to(boxed).as_posix() for path in boxed.rglob("*") if path.is_file())
    assert box.differences(boxed, pins) == []


def test_the_list_is_that_of_the_model_in_this_checkout():
    if not (PLACE / box.PACKAGE / box.FOLDER).is_dir():
        pytest.skip("this checkout has no model")
    command = [sys.executable, str(ROOT / "models" / "pin.py"), "--check"]
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    checked = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": path}
    )
    assert checked.returncode == 0, checked.stderr


def test_the_package_has_no_code():
    source = (PLACE / box.PACKAGE / "__init__.py").read_text()
    (only,) = ast.parse(source).body
    assert ast.get_docstring(ast.Module([only], [])) is not None
    assert [path.name for path in PLACE.rglob("*.py")] == ["__init__.py"]


# The model itself


@pytest.fixture(scope="session")
def shipped():
    """The model as it is shipped, loaded once."""
    return wingspan.load(box.NAME, device="cpu")


@needs_box
def test_the_six_types(shipped):
    labels = shipped.labels
    assert set(labels.types[labels.target]) == {"Disease", "Chemical", "Gene", "Variant", "Species", "CellLine"}


@needs_box
def test_it_is_not_worse_than_it_was(shipped):
    found = shipped.predict(SENTENCES)
    assert recognition(SENTENCES, found).micro.f1 >= FLOOR
    nothing = [one for one, sentence in zip(found, SENTENCES, strict=True) if sentence.meta["category"] == "none"]
    assert len(nothing) == 22
    assert sum(len(document.entities) for document in nothing) <= MOST_IN_NOTHING
    assert max(len(document.entities) for document in nothing) <= 2


@needs_box
def test_workers_know_its_name(shell, tmp_path):
    pytest.importorskip("pyarrow")
    options = ("--engine", "local", "--workers", "1", "--no-progress")
    shell("predict", shell.dev, "--output", tmp_path / "found", *options)
    record = json.loads(next((tmp_path / "found").glob("*.json")).read_text())
    assert record["model"] == "wingspan-bio-small"
    assert record["fingerprint"] != "wingspan-bio-small"


@needs_box
def test_a_fresh_process_needs_neither_a_name_nor_long(tmp_path):
    code = "import wingspan; print(wingspan.load().predict('Cisplatin caused acute renal failure.')[0].to_dict())"
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, SAID)
    assert "Cisplatin" in done.stdout
    assert time.perf_counter() - began < 30  # on a busy machine; alone it takes a few seconds
