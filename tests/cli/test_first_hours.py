"""What a newcomer meets in the first hours: where the model is, how to go on, forgiving arguments, a helpful API."""

from __future__ import annotations

import json

import pytest
from shells import training

import wingspan
from trainings import TINY
from wingspan.training import run as training_run
from wingspan.training.state import load_position
from wingspan.views.console import program

RECORDS = [
    {"text": f"Aspirin helps against pain number {n}.", "entities": [{"start": 0, "end": 7, "label": "Drug"}]}
    for n in range(6)
]


def test_the_version_is_told(shell):
    assert shell("--version")[0] == f"wingspan {wingspan.__version__}\n"


def test_a_training_ends_with_the_next_command(shell, tmp_path):
    out, _ = shell.trains(tmp_path / "run")
    assert out.rstrip().endswith(f"wingspan predict 'Some text.' --model {tmp_path / 'run'}")
    assert f"{tmp_path / 'run'}: the model." in out


@pytest.mark.parametrize(
    ("called", "found", "shown"),
    [
        ("/home/ada/clone/.venv/bin/wingspan", None, "/home/ada/clone/.venv/bin/wingspan"),
        ("/home/ada/clone/.venv/bin/wingspan", "/usr/bin/wingspan", "wingspan"),
        ("/site-packages/wingspan/__main__.py", None, "wingspan"),
    ],
)
def test_commands_are_shown_as_the_shell_finds_them(monkeypatch, called, found, shown):
    monkeypatch.setattr("sys.argv", [called])
    monkeypatch.setattr("shutil.which", lambda _: found)
    assert program() == shown


def test_a_training_that_is_stopped_says_how_to_go_on(shell, tmp_path, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(training_run, "run", stopped)
    out, _ = shell(*training(shell, tmp_path), code=130)
    assert "Stopped. Go on from the last state with: wingspan train baseline --train " in out
    assert out.rstrip().endswith("--resume")


def test_a_resumed_run_says_from_where_and_takes_more_epochs(shell, tmp_path):
    shell(*training(shell, tmp_path, "--dev", shell.dev, "--epochs", 2))
    out, _ = shell(*training(shell, tmp_path, "--dev", shell.dev, "--epochs", 3, "--resume"))
    assert "Resumed after step " in out
    assert "in epoch 3 of 3; the best dev score so far is " in out
    (state,) = (tmp_path / "run" / "state").glob("step-*")
    assert load_position(state).epoch == 3
    events = [json.loads(line) for line in (tmp_path / "run" / "journal.jsonl").read_text().splitlines()]
    assert [event["epoch"] for event in events if event["event"] == "epoch"] == [1, 2, 3]


def test_a_resumed_run_takes_no_fewer_epochs(shell, tmp_path):
    shell(*training(shell, tmp_path, "--epochs", 2))
    said = shell.refuses(*training(shell, tmp_path, "--epochs", 1, "--resume"))
    assert "train.epochs is 1 now and was 2" in said


def test_short_options_are_settings(shell, tmp_path):
    shell(*training(shell, tmp_path, "--epochs", 2, "--batch-size", 3, "--learning-rate", 0.01))
    settings = wingspan.load(tmp_path / "run").recipe.train
    assert (settings.epochs, settings.batch_size, settings.learning_rate) == (2, 3, 0.01)


@pytest.mark.parametrize(("key", "meant"), [("epochs", "train.epochs"), ("train.leraning_rate", "train.learning_rate")])
def test_a_near_miss_suggests_the_whole_key(shell, tmp_path, key, meant):
    said = shell.refuses(*training(shell, tmp_path, "--set", f"{key}=1"))
    assert f"did you mean '{meant}'?" in said


@pytest.mark.parametrize("order", ["model first", "corpus first", "option"])
def test_evaluate_takes_its_arguments_in_any_order(shell, tmp_path, order):
    given = {
        "model first": [shell.model, shell.dev],
        "corpus first": [shell.dev, shell.model],
        "option": [shell.dev, "--model", shell.model],
    }[order]
    shell("evaluate", *given, "--json", tmp_path / "figures.json")
    assert json.loads((tmp_path / "figures.json").read_text())["micro"]["tp"] >= 0


def test_evaluate_without_a_model_says_what_it_needs(shell):
    assert "MODEL CORPUS, or CORPUS --model MODEL" in shell.refuses("evaluate", shell.dev)


def test_predict_takes_the_model_first_too(shell):
    text = "Mutations in TGFB1 cause lung fibrosis."
    assert shell("predict", shell.model, text) == shell("predict", text, "--model", shell.model)
    assert "wingspan predict MODEL INPUT" in shell.refuses("predict", shell.model)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (["gone.txt"], "gone.txt: no such file or folder"),
        (["A text.", "--from", "brta"], "brta"),
        (["A text.", "--output", "x", "--to", "brta"], "brta"),
    ],
)
def test_wrong_arguments_are_found_before_a_model_is_loaded(shell, monkeypatch, wrong, said):
    monkeypatch.setattr("wingspan.recognizer.Recognizer.from_pretrained", None)
    assert said in shell.refuses("predict", *wrong, "--model", shell.model)


def test_one_unreadable_file_does_not_end_a_folder(shell, tmp_path):
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "good.txt").write_text("Mutations in TGFB1.")
    (tmp_path / "texts" / "bad.txt").write_bytes(b"\xff\xfe broken \xff")
    arguments = ["predict", tmp_path / "texts", "--model", shell.model]
    assert "bad.txt" in shell.refuses(*arguments)
    out, err = shell(*arguments, "--on-error", "skip")
    assert [json.loads(line)["id"] for line in out.splitlines()] == ["good"]
    assert "left out: 1 file or record that could not be read" in err
    assert "bad.txt" in err


def test_the_format_of_the_output_is_to_everywhere(shell, tmp_path):
    for flag in ("--to", "--format"):
        shell("predict", shell.dev, "--model", shell.model, "--output", tmp_path / flag, flag, "brat", "--lossy")
        assert list((tmp_path / flag).glob("*.ann"))


def test_compare_takes_models(shell, tmp_path):
    shell("predict", shell.dev, "--model", shell.model, "--output", tmp_path / "found.jsonl")
    out, _ = shell("compare", shell.dev, f"model={shell.model}", f"file={tmp_path / 'found.jsonl'}")
    assert "0 errors of model are fixed by file, 0 are new" in out


# Python


def test_dictionaries_are_a_corpus(capsys):
    model = wingspan.train("baseline", train=RECORDS, dev=RECORDS[:2], epochs=1, settings=TINY, device="cpu")
    assert model.labels.types == {"main": ("Drug",)}
    assert repr(model).startswith("<Recognizer baseline: Drug; ")
    assert model("Aspirin.") == model.predict("Aspirin.")[0]
    assert model(["Aspirin."]) == model.predict(["Aspirin."])
    assert capsys.readouterr() == ("", ""), "no bar where nobody watches"


def test_a_bar_is_shown_to_a_person_unless_it_is_switched_off(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal, as far as rich can tell
    options = {"train": RECORDS, "epochs": 1, "settings": TINY, "device": "cpu"}
    wingspan.train("baseline", **options)
    assert "epoch 1" in capsys.readouterr().err
    wingspan.train("baseline", **options, progress=False)
    assert capsys.readouterr().err == ""


def test_public_names_are_all_that_dir_shows():
    assert dir(wingspan) == sorted([*wingspan.__all__, "__version__"])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: wingspan.train("baseline", train=RECORDS, epoch=3), "has no argument 'epoch'; did you mean 'epochs'?"),
        (lambda: wingspan.train("baseline", train=3), "train is of type int; give a file, documents, or dictionaries"),
        (lambda: wingspan.train("baseline", train=RECORDS, dev=[3]), "dev holds a value of type int"),
    ],
)
def test_wrong_arguments_get_a_sentence(call, said):
    with pytest.raises(TypeError, match=said.replace("(", r"\(").replace("?", r"\?")):
        call()


def test_a_wrong_record_is_named_by_its_place():
    wrong = {"text": "a b", "entities": [{"start": 0, "end": 9, "label": "X"}]}
    with pytest.raises(ValueError, match='train:2: entity "X" ends at character 9'):
        wingspan.train("baseline", train=[RECORDS[0], wrong])


def test_predict_names_what_it_takes(prepared):
    with pytest.raises(TypeError, match="predict takes a text, a Document, or a list of them, not int"):
        wingspan.load(prepared / "model").predict(3)
