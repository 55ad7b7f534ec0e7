"""The search for settings: killed and resumed, shared by two commands, pruned, and its best taken by train."""

import io
import json
import os
import signal
import threading
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import pytest
from plans import QUICK, forked, make_corpora, plan, plan_file
from rich.console import Console

from wingspan.recipe import DEFAULT_RANGES, Between, OneOf, Times, parse_range
from wingspan.recipe_json import SettingsFile, read_settings, write_settings
from wingspan.recipes import NAMES, find, ranges
from wingspan.training.choice import Settled, settle
from wingspan.training.corpora import gather
from wingspan.tuning import search
from wingspan.tuning.search import SearchRequest, open_study, tune
from wingspan.tuning.space import own_values, search_space, value_of

pytest.importorskip("optuna")
QUIET = Console(quiet=True)
SETTINGS = {key: str(value) for key, value in QUICK.items() if key != "train.learning_rate"} | {"train.epochs": "2"}
RATE = {"train.learning_rate": Between(1e-3, 1e-1, log=True)}


def request(folder, **changes) -> SearchRequest:
    corpus = make_corpora(folder)[0]
    train, dev = (folder / corpus[part] for part in ("train", "dev"))
    base = SearchRequest("baseline", (train,), dev, folder / "search", settings=SETTINGS, ranges=RATE, device="cpu")
    return replace(base, **{"trials": 3, **changes})


@pytest.mark.slow
def test_killed_it_goes_on_and_queues_the_lost_trial_again(tmp_path):
    asked = request(tmp_path, heartbeat=1)
    killed = forked(tune, asked, kill=("step", 3 * 2 + 2))  # three steps an epoch: in the second trial
    killed.join()
    assert killed.exitcode == -signal.SIGKILL
    time.sleep(6)  # three heartbeats, which are kept in whole seconds, and some more for a busy machine
    found = tune(asked, QUIET)
    assert [trial["state"] for trial in found.trials] == ["complete"] * 3
    numbers = [trial["number"] for trial in found.trials]
    assert len(set(numbers)) == 3
    assert 1 not in numbers  # the one that was killed has failed, and is in the study again under another number
    again = tune(asked, QUIET)
    assert again.trials == found.trials  # enough is enough
    assert len(tune(replace(asked, trials=4), QUIET).trials) == 4


def test_auto_is_named_and_what_it_brings_can_be_searched(tmp_path, folders):
    asked = request(tmp_path, recipe="auto", encoder=str(folders["bert"]), settings={}, ranges={})
    hidden = {"encoder.word_dropout": Between(0.0, 0.3)}
    corpora = gather(asked.train, asked.dev, None, None)
    log = Console(record=True, width=300, file=io.StringIO())
    known = search.named(asked, corpora, log)
    assert "auto: " in log.export_text()
    assert known.recipe == settle("auto", corpora, asked.encoder).recipe
    assert known.brought["encoder.word_dropout"] == "0.15"
    recipe, _, space = search.check(replace(known, ranges=hidden), corpora, QUIET)
    assert recipe.encoder.keywords["word_dropout"] == 0.15
    assert space["encoder.word_dropout"] == hidden["encoder.word_dropout"]
    recipe, _, space = search.check(replace(known, settings={"encoder.word_dropout": "0.25"}), corpora, QUIET)
    assert recipe.encoder.keywords["word_dropout"] == 0.25
    assert "encoder.word_dropout" not in space


def test_a_study_goes_on_only_with_the_settings_that_auto_brought_before(tmp_path, monkeypatch):
    brought = {"train.clip": "2.5"}
    monkeypatch.setattr(search, "settle", lambda *_: Settled("bundling/span", "hashed", "auto: so.", dict(brought)))
    asked = request(tmp_path, recipe="auto", trials=1)
    tune(asked, QUIET)
    brought["train.clip"] = "3.5"
    with pytest.raises(ValueError, match="was made with another settings"):
        tune(asked, QUIET)


@pytest.mark.parametrize("study", [None, "shared.db"])
def test_a_search_of_another_recipe_is_not_replaced(tmp_path, monkeypatch, study):
    monkeypatch.setattr(search, "run", pretend)

    def auto_stands_for(recipe):
        monkeypatch.setattr(search, "settle", lambda *_: Settled(recipe, "hashed", "auto: so.", {}))

    asked = request(tmp_path, recipe="auto", trials=1, study=study and str(tmp_path / study))
    auto_stands_for("bundling/span")
    tune(asked, QUIET)
    results = [tmp_path / "search" / name for name in ("best.toml", "trials.jsonl")]
    before = [file.read_bytes() for file in results]
    auto_stands_for("baseline")  # as with another corpus, or in another release
    refused = "search: the search there is for the recipe 'bundling/span', not 'baseline'.* choose another --output$"
    for name in (None, "another"):
        with pytest.raises(ValueError, match=refused):
            tune(replace(asked, name=name), QUIET)
    assert [file.read_bytes() for file in results] == before
    tune(replace(asked, output=tmp_path / "elsewhere"), QUIET)
    assert read_settings(tmp_path / "elsewhere" / "best.toml").recipe == "baseline"
    auto_stands_for("bundling/span")
    assert len(tune(replace(asked, trials=2), QUIET).trials) == 2  # it goes on


def test_what_auto_brings_is_in_every_trial_and_in_what_is_found(tmp_path, monkeypatch):
    settled = Settled("bundling/span", "hashed", "auto: so.", {"train.clip": "2.5"})
    tried, prepare = [], search.prepare
    monkeypatch.setattr(search, "settle", lambda *_: settled)
    monkeypatch.setattr(search, "prepare", lambda *given: tried.append(prepare(*given)) or tried[-1])
    found = tune(request(tmp_path, recipe="auto", trials=1), QUIET)
    assert [trial["state"] for trial in found.trials] == ["complete"]
    assert {(recipe.name, recipe.train.clip) for recipe in tried} == {("bundling/span", 2.5)}
    best = read_settings(tmp_path / "search" / "best.toml")
    assert (best.recipe, best.settings["train.clip"]) == ("bundling/span", "2.5")


PATIENT = """
import os, time
from dataclasses import replace
from functools import partial
from pathlib import Path
from wingspan.encoders.hashed import HashedEncoder
from wingspan.recipes import baseline

class Patient(HashedEncoder):
    def forward(self, inputs):
        met = Path(__file__).parent / "met"
        met.mkdir(exist_ok=True)
        (met / str(os.getpid())).touch()
        end = time.monotonic() + 60
        while len(list(met.iterdir())) < 2 and time.monotonic() < end:
            time.sleep(0.01)
        return super().forward(inputs)

def recipe():
    return replace(baseline.recipe(), name="patient", encoder=partial(Patient, buckets=300, embedding=4, hidden=8))
"""


@pytest.mark.slow
def test_two_commands_share_one_study(tmp_path):
    (tmp_path / "patient.py").write_text(PATIENT)  # it waits until both are at work
    changes = {"recipe": str(tmp_path / "patient.py"), "settings": {"train.epochs": "1"}, "ranges": {}, "trials": 5}
    asked = request(tmp_path, **changes)
    commands = [forked(tune, asked) for _ in range(2)]
    for command in commands:
        command.join()
    assert [command.exitcode for command in commands] == [0, 0]
    found = tune(asked, QUIET)
    numbers = sorted(trial["number"] for trial in found.trials)
    assert numbers in ([*range(5)], [*range(6)])  # both may have started the last one
    assert len({trial["worker"] for trial in found.trials}) == 2
    assert {trial["state"] for trial in found.trials} <= {"complete", "pruned"}
    assert len({str(trial["settings"]) for trial in found.trials}) == len(numbers)  # never the same draws
    assert {trial["settings"]["train.batch_size"] for trial in found.trials} <= {8, 16, 32}  # the default ranges
    assert set(found.best["settings"]) == set(DEFAULT_RANGES)
    lines = (tmp_path / "search" / "trials.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == found.trials
    assert len(list((tmp_path / "search" / "logs").glob("trial-*.log"))) == len(numbers)


@pytest.mark.filterwarnings("ignore:Heartbeat of storage")
def test_a_queued_trial_is_started_once(tmp_path):
    shared = request(tmp_path, study=str(tmp_path / "study.db"), name="race", pruner="none")
    studies = [open_study(shared, 1) for _ in range(4)]
    for number in range(3):
        studies[0].enqueue_trial({"x": number})
    together = threading.Barrier(4)

    def ask(study) -> int:
        together.wait()
        return study.ask().number

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(ask, studies)) == [0, 1, 2, 3]


@pytest.mark.slow
def test_train_and_plans_take_the_best_settings(tmp_path, shell):
    found = tune(request(tmp_path, encoder="hashed"), QUIET)
    best = tmp_path / "search" / "best.toml"
    rate = found.best["settings"]["train.learning_rate"]
    assert tomllib.loads(best.read_text())["set"]["train.learning_rate"] == rate
    files = ["--train", tmp_path / "first" / "train.jsonl", "--dev", tmp_path / "first" / "dev.jsonl"]
    options = ["--settings", best, "--json", tmp_path / "f.json", "--device", "cpu"]
    shell("train", "baseline", *files, "--output", tmp_path / "model", *options)
    recipe = json.loads((tmp_path / "model" / "recipe.json").read_text())["recipe"]
    assert recipe["train"]["learning_rate"] == rate
    assert recipe["train"]["epochs"] == 2
    assert json.loads((tmp_path / "f.json").read_text())["micro"]["f1"] == pytest.approx(found.best["dev_f1"])
    shell("train", "baseline", *files, "--output", tmp_path / "other", *options, "--set", "train.epochs=1")
    assert json.loads((tmp_path / "other" / "recipe.json").read_text())["recipe"]["train"]["epochs"] == 1  # --set wins
    said = shell.refuses("train", "bundling", *files, "--output", tmp_path / "wrong", *options)
    assert "best.toml: these settings are for the recipe 'baseline', not 'bundling'" in said
    entry = {"recipe": "baseline", "name": "tuned", "settings": "search/best.toml", "set": {"train.epochs": 3}}
    (run, *_) = plan(tmp_path, recipes=[entry], set={}).runs()
    assert run.settings == {**read_settings(best).settings, "train.epochs": "3"}
    wrong = plan_file(tmp_path, recipes=[{**entry, "recipe": "bundling"}])
    assert "these settings are for" in shell.refuses("experiment", wrong)


def pretend(job, console) -> None:
    """A training that is the better the closer its learning rate is to 0.01, whatever the warm-up."""
    rate = job.recipe.train.learning_rate
    for epoch in range(1, 6):
        f1 = epoch * max(0.0, 20 - 10 * abs(rate - 0.01) / 0.01)
        scores = SimpleNamespace(micro=SimpleNamespace(f1=f1))
        job.watch(SimpleNamespace(scores=None))
        job.watch(SimpleNamespace(scores=scores))


def test_hopeless_trials_end_early_and_what_matters_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(search, "run", pretend)
    space = {
        "train.learning_rate": Between(1e-3, 3e-2),
        "train.warmup": Between(0.0, 0.2),
        "head.dropout": OneOf((0.1, 0.3)),
    }
    fixed = {key: value for key, value in SETTINGS.items() if key != "train.warmup"} | {"train.batch_size": "4"}
    found = tune(request(tmp_path, settings=fixed, ranges=space, trials=18), QUIET)
    assert set(found.best["settings"]) == {*space, "encoder.dropout", "spans.width_size"}
    assert found.best["dev_f1"] > 90
    assert found.best["settings"]["train.learning_rate"] == pytest.approx(0.01, abs=0.002)
    pruned = [trial for trial in found.trials if trial["state"] == "pruned"]
    assert pruned
    assert all(trial["epochs"] < 5 and trial["dev_f1"] is None for trial in pruned)
    assert max(found.importances, key=found.importances.get) == "train.learning_rate"
    assert sum(found.importances.values()) == pytest.approx(1)
    none = tune(request(tmp_path, settings=fixed, ranges=space, trials=7, pruner="none", name="all"), QUIET)
    assert {trial["state"] for trial in none.trials} == {"complete"}
    first = found.trials[0]["settings"]
    assert first["encoder.dropout"] == value_of(find("baseline"), "encoder.dropout")  # the recipe itself comes first


def test_a_failed_trial_is_told_and_counts(tmp_path, monkeypatch, capsys):
    def broken(job, console):
        raise ValueError("the loss 'loss' is nan")

    monkeypatch.setattr(search, "run", broken)
    found = tune(request(tmp_path, trials=2), Console(width=200))
    assert [trial["problem"] for trial in found.trials] == ["the loss 'loss' is nan"] * 2
    assert found.best is None
    out = capsys.readouterr().out
    assert "failed: the loss 'loss' is nan" in out
    assert "No trial has ended with a score yet" in out


def test_no_trial_starts_after_the_time_budget(tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(search.time, "monotonic", lambda: now[0])

    def ten_seconds(job, console):
        now[0] += 10
        return pretend(job, console)

    monkeypatch.setattr(search, "run", ten_seconds)
    assert tune(request(tmp_path, time_budget=0), QUIET).trials == []
    found = tune(request(tmp_path, time_budget=15), QUIET)  # the second begins in time and outlasts it
    assert [trial["state"] for trial in found.trials] == ["complete"] * 2
    assert len(tune(request(tmp_path, time_budget=1), QUIET).trials) == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--range", "train.learnin_rate=1:2"], "--range train.learnin_rate: --set train.learnin_rate: no such"),
        (["--range", "train.epochs=0:3"], "train.epochs is 0; give at least 1"),
        (["--range", "train.epochs=3:1"], "a range goes from a lower to a higher number"),
        (["--range", "train.epochs=3"], "'3' is no range"),
        (["--range", "train.epochs=1:2:logs"], "'1:2:logs' is no range"),
        (["--range", "train.warmup=0:1:log"], "a log range starts above 0"),
        (["--range", "train.epochs=1:2", "--set", "train.epochs=2"], "has both --set and --range"),
        (["--study", "nosuch://host/db"], "nosuch://host/db: no study can be kept there"),
        (["--study", "/proc/none/study.db"], "/proc/none/study.db: no study can be kept there"),
        (["--encoder", "no/encoder"], "encoder 'no/encoder' cannot be loaded"),
        (["--device", "tpu"], "no device 'tpu'"),
    ],
)
def test_mistakes_are_one_sentence(options, said, tmp_path, shell):
    files = ["--train", shell.train, "--dev", shell.dev, "--output", tmp_path / "search"]
    assert said in shell.refuses("tune", "baseline", *files, *options)


def test_a_study_of_something_else_is_not_mixed(tmp_path, monkeypatch):
    monkeypatch.setattr(search, "run", pretend)
    asked = request(tmp_path, trials=1)
    tune(asked, QUIET)
    with pytest.raises(ValueError, match="was made with another ranges"):
        tune(replace(asked, ranges={}), QUIET)
    with pytest.raises(ValueError, match="was made with another dev corpus"):
        tune(replace(asked, dev=asked.train[0]), QUIET)
    tune(replace(asked, dev=asked.train[0], name="another"), QUIET)


def test_without_optuna_one_sentence_says_so(tmp_path, shell, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    files = ["--train", shell.train, "--dev", shell.dev, "--output", tmp_path / "search"]
    assert "pip install 'wingspan-ner[tune]'" in shell.refuses("tune", "baseline", *files)


def test_every_declared_range_is_one_that_its_recipe_has():
    for name in NAMES:
        space = search_space(find(name), ranges(name), {}, {})
        assert set(space) == set(ranges(name)), name
        assert own_values(find(name), space) is not None, name
    assert "spans.dropout" not in search_space(find("bundling/seq"), ranges("bundling/seq"), {}, {})


def test_ranges_as_text():
    assert parse_range("1e-5:1e-3:log") == Between(1e-5, 1e-3, True)
    assert parse_range("1:4") == Between(1, 4)
    assert parse_range("1:4").whole
    assert not parse_range("0:0.5").whole
    assert parse_range("8, 16,max,true,none") == OneOf((8, 16, "max", True, "none"))
    assert Times(0.5, 2).around(1e-3) == Between(5e-4, 2e-3, log=True)


def test_settings_files_round_trip(tmp_path):
    content = SettingsFile("own.py", "minilm", {"a.b": "0.1", "c": "word", "d": "[1, 2]", "e": "true", "f": 'a"b'})
    write_settings(tmp_path / "x.toml", content, ["one", "two"])
    assert read_settings(tmp_path / "x.toml") == content
    assert (tmp_path / "x.toml").read_text().startswith("# one\n# two\n")
    assert os.listdir(tmp_path) == ["x.toml"]
