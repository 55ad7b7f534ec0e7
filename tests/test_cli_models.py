"""The commands that run a model, as users run them: the right result, or one clear sentence and an exit code."""

import io
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trainings import TINY, save_corpora
from wingspan.cli import main
from wingspan.corpora import read

QUICK = [f"{key}={value}" for key, value in {**TINY, "train.epochs": 1, "train.learning_rate": 0.02}.items()]


class Shell:
    """Runs commands in this process, which has torch loaded."""

    def __init__(self, monkeypatch, capsys, folder: Path) -> None:
        self.monkeypatch, self.capsys, self.folder = monkeypatch, capsys, folder

    def __call__(self, *arguments: object, code: int = 0, stdin: bytes = b"") -> tuple[str, str]:
        """What was printed on both outputs, after a look at the exit code."""
        self.monkeypatch.setattr(sys, "argv", ["wingspan", *map(str, arguments)])
        self.monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        self.capsys.readouterr()
        try:
            main()
            found = 0
        except SystemExit as stop:
            found = stop.code or 0
        out, err = self.capsys.readouterr()
        assert found == code, out + err
        return out, err

    def refuses(self, *arguments: object, stdin: bytes = b"") -> str:
        """The one sentence of a command that fails."""
        _, err = self(*arguments, code=1, stdin=stdin)
        assert err.startswith("wingspan: ")
        assert err.count("\n") == 1
        assert "Traceback" not in err
        assert len(err) < 700
        return err

    def trains(self, output: Path, *options: object, recipe: str = "baseline") -> tuple[str, str]:
        sets = [part for item in QUICK for part in ("--set", item)]
        return self("train", recipe, "--train", self.train, "--output", output, "--device", "cpu", *sets, *options)

    @property
    def train(self) -> Path:
        return self.folder / "train.jsonl"

    @property
    def dev(self) -> Path:
        return self.folder / "dev.jsonl"

    @property
    def model(self) -> Path:
        return self.folder / "model"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory) -> Path:
    """Corpora and a trained model."""
    import wingspan

    folder = tmp_path_factory.mktemp("shell")
    train, dev = save_corpora(folder)
    settings = dict(item.split("=") for item in QUICK) | {"train.epochs": "3", "train.batch_size": "4"}
    wingspan.train("baseline", train=train, dev=dev, output=folder / "model", settings=settings, device="cpu")
    return folder


@pytest.fixture
def shell(monkeypatch, capsys, prepared) -> Shell:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)  # says at once that the hub is out of reach
    return Shell(monkeypatch, capsys, prepared)


def lines(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")
    return path


# --- the happy paths


def test_train_predict_evaluate_info(shell, tmp_path):
    out, _ = shell.trains(
        tmp_path / "run", "--dev", shell.dev, "--test", shell.dev, "--json", tmp_path / "figures.json"
    )
    assert out.index("Coverage: ") < out.index("epoch 1")
    assert "Recipe baseline" in out
    assert "Test scores of the best epoch's model, seed 1" in out
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["protocol"] == "recognition"
    assert {"precision", "recall", "f1", "tp", "fp", "fn"} <= set(figures["micro"])
    kept = {path.name for path in (tmp_path / "run").iterdir()}
    assert kept == {
        "recipe.json",
        "labels.json",
        "model.safetensors",
        "facts.json",
        "README.md",
        "journal.jsonl",
        "state",
    }

    out, _ = shell("evaluate", tmp_path / "run", shell.dev, "--json", tmp_path / "again.json", "--device", "cpu")
    assert "Coverage: " in out
    again = json.loads((tmp_path / "again.json").read_text())
    assert again["micro"] == figures["micro"]
    assert again["coverage"]["entities"] > 0

    out, _ = shell("info", tmp_path / "run")
    assert "recipe: baseline" in out
    out, _ = shell("info", tmp_path / "run", "--json", "-")
    facts = json.loads(out)
    assert facts["test"]["micro"] == figures["micro"]
    assert facts["parameters"] > 100
    assert facts["max_width"] >= 1


def test_json_on_standard_output_is_nothing_but_json(shell, tmp_path):
    out, err = shell.trains(tmp_path / "run", "--dev", shell.dev, "--json", "-")
    assert json.loads(out)["protocol"] == "recognition"
    assert "Coverage" in err
    out, err = shell("evaluate", shell.model, shell.dev, "--json", "-")
    assert json.loads(out)["protocol"] == "recognition"
    assert "Coverage" in err


def test_predict_prints_json_lines_in_a_pipe(shell):
    out, _ = shell("predict", shell.dev, "--model", shell.model, "--threshold", "0.1")
    records = [json.loads(line) for line in out.splitlines()]
    gold = list(read(shell.dev))
    assert [record["id"] for record in records] == [document.id for document in gold]
    assert [record["text"] for record in records] == [document.text for document in gold]
    found = [entity for record in records for entity in record["entities"]]
    assert found
    assert {"start", "end", "text", "label", "score", "fragments"} == set(found[0])


def test_predict_takes_a_text_a_file_a_folder_and_standard_input(shell, tmp_path):
    texts = ["Loss of BRCA1 in mice.", "Effects of zodridine on gastritis."]
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.txt").write_text(text)
    asked = {
        "texts": shell("predict", *texts, "--model", shell.model),
        "files": shell("predict", tmp_path / "0.txt", tmp_path / "1.txt", "--model", shell.model),
        "folder": shell("predict", tmp_path, "--model", shell.model),
        "lines": shell("predict", "-", "--model", shell.model, stdin="\r\n".join(texts).encode()),
        "bom": shell("predict", "-", "--model", shell.model, stdin=b"\xef\xbb\xbf" + "\n".join(texts).encode()),
    }
    found = {kind: [json.loads(line) for line in out.splitlines()] for kind, (out, _) in asked.items()}
    assert all([record["text"] for record in records] == texts for records in found.values())
    first = [record["entities"] for record in found["texts"]]
    assert all([record["entities"] for record in records] == first for records in found.values())


@pytest.mark.parametrize("length", [200, 300, 900, 5000])
def test_a_text_of_any_length_is_no_file_name(shell, length):
    text = ("word " * length)[:length].strip()
    out, _ = shell("predict", text, "--model", shell.model)
    assert json.loads(out)["text"] == text


def test_predict_writes_any_format_and_says_what_it_cannot_hold(shell, tmp_path):
    options = ["--model", shell.model, "--threshold", "0.05", "--overlap", "nested"]
    out, _ = shell("predict", shell.dev, *options, "--output", tmp_path / "found.jsonl")
    assert "found.jsonl: 4 documents" in out
    assert "cannot hold" not in out
    nested = list(read(tmp_path / "found.jsonl"))
    assert any(document.entities for document in nested)
    out, _ = shell("predict", shell.dev, *options, "--output", tmp_path / "found.conll")
    assert "conll cannot hold" in out
    assert "scores (not written)" in out
    assert len(list(read(tmp_path / "found.conll"))) >= 4
    shell("predict", shell.dev, *options, "--output", tmp_path / "found.x", "--format", "bioc-json")
    assert len(list(read(tmp_path / "found.x", "bioc-json"))) == 4


def test_overlap_and_threshold_reach_the_model(shell):
    def number(*options):
        out, _ = shell("predict", shell.dev, "--model", shell.model, *options)
        return sum(len(json.loads(line)["entities"]) for line in out.splitlines())

    low = number("--threshold", "0.02", "--overlap", "any")
    assert low > number("--threshold", "0.02", "--overlap", "flat") > 0
    assert low > number("--threshold", "0.9", "--overlap", "any")


def test_recipes(shell):
    out, _ = shell("recipes")
    assert "bundling" in out
    assert "bl-span" in out
    out, _ = shell("recipes", "bundling/bl-span")
    assert "train.learning_rate" in out
    assert "terms.tags.weight = 0.1" in out


def test_every_shown_setting_can_be_set(shell):
    from wingspan.recipes import find
    from wingspan.record import override

    out, _ = shell("recipes", "bundling/paper")
    shown = [line.strip().split(" = ") for line in out.splitlines() if " = " in line]
    assert len(shown) > 20
    recipe = find("bundling/paper")
    for key, value in shown:
        if ":" in value or value in ("{}", "null") or key in ("phases", "thresholds"):
            continue  # parts, and what has no value yet
        override(recipe, key, value)


def test_several_seeds(shell, tmp_path):
    out, _ = shell.trains(tmp_path / "runs", "--dev", shell.dev, "--seeds", "1,2", "--json", tmp_path / "f.json")
    assert "Dev scores over 2 seeds" in out
    summary = json.loads((tmp_path / "runs" / "summary.json").read_text())
    assert summary == json.loads((tmp_path / "f.json").read_text())
    assert summary["micro"]["f1"].keys() == {"mean", "deviation", "values"}


def test_resume_and_from(shell, tmp_path):
    shell.trains(tmp_path / "run")
    out, _ = shell.trains(tmp_path / "run", "--resume", "--dev", shell.dev)
    assert "Dev scores" in out
    new = lines(
        tmp_path / "new.jsonl", {"text": "The kidney.", "entities": [{"label": "Organ", "start": 4, "end": 10}]}
    )
    options = ["--train", new, "--output", tmp_path / "more", "--set", "train.epochs=1", "--device", "cpu"]
    shell("train", "baseline", *options, "--from", tmp_path / "run", "--rename", "Gene=Protein")
    labels = json.loads((tmp_path / "more" / "labels.json").read_text())["main"]
    assert "Organ" in labels
    assert "Protein" in labels
    assert "Gene" not in labels


def test_a_run_without_dev_says_so(shell, tmp_path):
    out, _ = shell.trains(tmp_path / "run")
    assert "No dev or test documents were given" in out


def test_a_recipe_file(shell, tmp_path):
    own = tmp_path / "mine.py"
    own.write_text(
        "from dataclasses import replace\n"
        "from wingspan.recipes.baseline import recipe as base\n"
        "from wingspan.encoders.hashed import HashedEncoder\n"
        "def recipe():\n"
        "    return replace(base(), name='mine', encoder=HashedEncoder)\n"
    )
    shell(
        *["train", own, "--train", shell.train, "--output", tmp_path / "run", "--encoder", "hashed"],
        *["--set", "train.epochs=1", "--device", "cpu"],
    )
    out, _ = shell("info", tmp_path / "run")
    assert "recipe: mine" in out


def test_help_has_an_example(shell):
    for verb in ("train", "predict", "evaluate", "info", "recipes", "demo"):
        out, _ = shell(verb, "--help")
        assert f"Example: wingspan {verb}" in " ".join(out.split())


# --- bad input: one sentence each


def training(shell, tmp_path, *options: object, train: Path | None = None, recipe: str = "baseline") -> list[object]:
    sets = [part for item in QUICK for part in ("--set", item)]
    where = ["--train", train or shell.train, "--output", tmp_path / "run", "--device", "cpu"]
    return ["train", recipe, *where, *sets, *options]


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ("bundlin", "no recipe 'bundlin', did you mean 'bundling'?"),
        ("bundling/bl-spam", "has no variant 'bl-spam', did you mean 'bl-span"),
        ("nowhere.py", "nowhere.py: no such recipe file; check the path"),
    ],
)
def test_unknown_recipes(shell, tmp_path, recipe, message):
    assert message in shell.refuses(*training(shell, tmp_path, recipe=recipe))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", "train.epoch=3"], "no setting 'epoch'; did you mean 'epochs'?"),
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
    assert "not UTF-8 at byte 3; convert it to UTF-8 first" in shell.refuses("predict", bad, *options)
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
    _, err = shell("predict", "text", code=2)
    assert "--model" in err


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


# --- a fresh process: what is imported, and pipes


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)


def test_import_needs_no_torch_and_no_time():
    code = (
        "import time; began = time.perf_counter(); import wingspan, sys; took = time.perf_counter() - began; "
        "print(took); sys.exit(any(name in sys.modules for name in ('torch', 'transformers', 'numpy')))"
    )
    done = [python(code) for _ in range(3)]
    assert [process.returncode for process in done] == [0, 0, 0]
    assert min(float(process.stdout) for process in done) < 0.5


@pytest.mark.parametrize("arguments", [["score", "--help"], ["--help"], ["train", "--help"], ["recipes", "--help"]])
def test_help_needs_no_torch(arguments):
    code = (
        f"import sys; sys.argv = ['wingspan', *{arguments!r}]\n"
        "from wingspan.cli import main\n"
        "try: main()\n"
        "except SystemExit as stop: assert not stop.code\n"
        "assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    began = time.perf_counter()
    done = python(code)
    assert done.returncode == 0, done.stderr
    assert "Usage" in done.stdout
    assert time.perf_counter() - began < 20  # on a busy machine; alone it is well below a second


def test_a_reader_that_goes_away_is_no_error(prepared, tmp_path):
    many = lines(
        tmp_path / "many.jsonl", *({"text": "A text of some words. " * 20, "entities": []} for _ in range(400))
    )
    command = f"{sys.executable} -c 'from wingspan.cli import main; main()' predict {many} --model {prepared / 'model'}"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} | head -n 1"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        timeout=120,
    )
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1
