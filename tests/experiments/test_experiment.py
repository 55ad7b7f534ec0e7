"""Experiments as they are run: killed and gone on with, two at a time, with workers that die, with bad plans."""

import json
import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
import torch
from plans import QUICK, documents, make_corpora, plan, plan_file, started
from rich.console import Console

from wingspan.corpora.formats import read
from wingspan.evaluation.scores import recognition
from wingspan.experiments import run
from wingspan.experiments.run import Ledger, check, outcomes, run_experiment

QUIET = Console(quiet=True)


def lines(folder) -> list[dict]:
    return [json.loads(line) for line in (folder / "results" / "results.jsonl").read_text().splitlines()]


def lasting(line: dict) -> dict:
    """A line without what differs between two runs of the same."""
    return {key: value for key, value in line.items() if key not in ("time", "seconds")}


@pytest.mark.slow
def test_killed_twice_it_goes_on_and_makes_the_same_tables(tmp_path):
    (tmp_path / "whole").mkdir()
    (tmp_path / "killed").mkdir()
    undisturbed = run_experiment(plan(tmp_path / "whole", seeds=[1, 2]), QUIET)
    assert undisturbed.runs == undisturbed.done == 12
    assert any(cell.facts["mean"] > 50 for table in undisturbed.tables for _, cells in table.rows for cell in cells)

    killed = plan(tmp_path / "killed", seeds=[1, 2])
    first = started(killed, ("line", 4))  # while the fourth line is being written
    first.join()
    assert first.exitcode == -signal.SIGKILL
    assert (tmp_path / "killed" / "results" / "results.jsonl").read_bytes()[-1:] != b"\n"
    second = started(plan(tmp_path / "killed", seeds=[1, 2], workers=2))  # from outside, in the middle of trainings
    deadline = time.monotonic() + 100
    while len(Ledger(killed.output).lines()) < 7:
        assert time.monotonic() < deadline
        assert second.is_alive()
        time.sleep(0.05)
    os.kill(second.pid, signal.SIGKILL)
    second.join()
    before = {line["id"]: line for line in Ledger(killed.output).lines().values()}
    assert 7 <= len(before) < 12

    last = run_experiment(killed, QUIET)
    assert last.done == 12
    assert last.tables == undisturbed.tables
    for suffix in ("md", "json"):
        name = f"results/table.{suffix}"
        assert (tmp_path / "killed" / name).read_text() == (tmp_path / "whole" / name).read_text()
    found = lines(tmp_path / "killed")
    assert max(Counter(line["id"] for line in found).values()) == 1
    assert all(line == before[line["id"]] for line in found if line["id"] in before)  # finished runs are kept
    wanted = {line["id"]: lasting(line) for line in lines(tmp_path / "whole")}
    assert {line["id"]: lasting(line) for line in found} == wanted


def test_two_that_begin_together_do_not_stumble_over_each_other(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "write_text", lambda *_, **__: 0)  # as if the other had deleted it already
    Ledger(tmp_path / "output").prepare()
    assert (tmp_path / "output" / ".claims").is_dir()


@pytest.mark.slow
def test_two_processes_share_the_runs(tmp_path):
    shared = plan(tmp_path, seeds=[1, 2, 3, 4], recipes=["baseline"])
    processes = [started(shared) for _ in range(2)]
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    found = lines(tmp_path)
    assert len(found) == len({line["id"] for line in found}) == 8


@pytest.mark.slow
def test_a_run_with_checkpoints_goes_on_in_the_middle(tmp_path):
    one = plan(tmp_path, seeds=[1], recipes=["baseline"], corpora=make_corpora(tmp_path)[:1], checkpoints=True)
    process = started(one, ("step", 8))  # in the third epoch of six
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert run_experiment(one, QUIET).done == 1
    (line,) = lines(tmp_path)
    log = (tmp_path / "results" / "logs" / f"{line['id']}.log").read_text()
    assert log.count("epoch 1 ") == 1
    assert log.count("epoch 6 ") == 1
    assert not (tmp_path / "results" / "running" / line["id"]).exists()
    (tmp_path / "again").mkdir()
    whole = plan(tmp_path / "again", seeds=[1], recipes=["baseline"], corpora=make_corpora(tmp_path / "again")[:1])
    run_experiment(whole, QUIET)
    assert lasting(lines(tmp_path / "again")[0]) == lasting(line)


DEADLY = """
import os, signal
from dataclasses import replace
from functools import partial
from wingspan.encoders.hashed import HashedEncoder
from wingspan.recipes import baseline

class Deadly(HashedEncoder):
    def forward(self, inputs):
        print("about to die", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

def recipe():
    return replace(baseline.recipe(), name="deadly", encoder=partial(Deadly, buckets=300, embedding=4, hidden=8))
"""
BROKEN = DEADLY.replace("os.kill(os.getpid(), signal.SIGKILL)", "raise KeyError('a bug of mine')")


@pytest.mark.slow
def test_a_worker_that_dies_takes_one_run_with_it(tmp_path, shell):
    (tmp_path / "deadly.py").write_text(DEADLY)
    (tmp_path / "broken.py").write_text(BROKEN)
    path = plan_file(tmp_path, workers=2, encoder=None, seeds=[1], recipes=["deadly.py", "broken.py", "baseline"])
    out, _ = shell("experiment", path, "--json", tmp_path / "summary.json", code=1)
    assert "FAILED deadly on first, seed 1: its process was killed by SIGKILL; last lines of" in out
    assert "about to die" in out
    assert "KeyError: 'a bug of mine'" in out
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (summary["runs"], summary["done"], summary["remaining"]) == (6, 2, 4)
    assert {line["name"] for line in lines(tmp_path)} == {"baseline"}
    assert "4 runs failed, 0 are still to do" in out


@pytest.mark.slow
def test_workers_start_from_nothing_for_a_gpu(tmp_path, monkeypatch):
    small = plan(tmp_path, workers=1, seeds=[1], recipes=["baseline"])
    todo = list(check(small).values())
    monkeypatch.setattr(run, "usable_device", lambda _: torch.device("cuda"))
    assert [outcome["id"] for _, outcome in outcomes(small, todo, False, None)] == [each.id for each in todo]
    assert run.starting("cuda").get_start_method() == "spawn"


@pytest.mark.parametrize("workers", [0, 1])
def test_a_run_of_another_process_is_waited_for_at_the_end(workers, tmp_path, capsys):
    small = plan(tmp_path, seeds=[1], recipes=["baseline"], workers=workers)
    first, second = check(small)
    claimed, dies = threading.Event(), threading.Event()

    def other_process() -> None:
        with Ledger(small.output).claim(first):
            claimed.set()
            dies.wait(60)

    threading.Thread(target=other_process).start()
    assert claimed.wait(10)
    tried = list(outcomes(small, list(check(small).values()), False, None))
    assert [assignment.id for assignment, _ in tried] == [first, second]
    assert tried[0][1] is None
    assert tried[1][1]["id"] == second
    threading.Timer(0.3, dies.set).start()
    summary = run_experiment(small, Console(width=200))
    assert (summary.done, summary.failed) == (2, {})
    out = capsys.readouterr().out
    assert "Other processes are at 1 run, such as baseline on first, seed 1; waiting for them." in out
    assert "[2/2] baseline on first, seed 1" in out


def test_no_run_starts_after_the_time_budget(tmp_path, monkeypatch):
    now = [100.0]

    def train(assignment, patience):
        now[0] += 10

    monkeypatch.setattr(run, "attempt", train)
    small = plan(tmp_path, seeds=[1])
    todo = list(check(small).values())
    monkeypatch.setattr(run.time, "monotonic", lambda: now[0])
    assert [assignment for assignment, _ in outcomes(small, todo, False, 125.0)] == todo[:3]  # at 100, 110 and 120
    assert list(outcomes(small, todo, False, 125.0)) == []
    now[0] = 125.1
    assert run_experiment(small, QUIET, time_budget=0).remaining == 6


def test_lines_counts_predictions_and_models_agree(tmp_path, shell):
    path = plan_file(tmp_path, seeds=[5], recipes=["bundling"], keep_models=True, keep_predictions=True, commit="abc")
    shell("experiment", path)
    for line in lines(tmp_path):
        results, gold = tmp_path / "results", list(read(tmp_path / line["corpus"]["name"] / "test.jsonl"))
        scores = recognition(gold, list(read(results / "predictions" / f"{line['id']}.test.jsonl")))
        assert line["test"]["micro"] == scores.micro.to_dict()
        assert Ledger(results).documents(line["id"], "test") == scores.documents
        assert line["test"]["coverage"]["entities"] == 8
        shell("evaluate", results / "models" / line["id"], tmp_path / line["corpus"]["name"] / "dev.jsonl")
        assert (line["recipe"], line["variant"], line["seed"], line["commit"]) == ("bundling", "", 5, "abc")
        assert line["settings"]["train.epochs"] == "6"
        assert line["device"] == "cpu"
        assert set(line["versions"]) == {"wingspan", "torch", "transformers", "python"}
        assert line["seconds"]["total"] >= line["seconds"]["training"] > 0


def test_a_time_budget_leaves_the_rest_for_later(tmp_path, shell):
    path = plan_file(tmp_path, seeds=[1, 2], recipes=["baseline"])
    out, _ = shell("experiment", path, "--time-budget", 0)
    assert "0 runs failed, 4 are still to do" in out
    assert "–" in (tmp_path / "results" / "table.md").read_text()
    shell("experiment", path, "--seeds", "1")
    out, _ = shell("experiment", path, "--tables-only")
    assert "(n=1)" in out
    shell("experiment", path)
    assert len(lines(tmp_path)) == 4


def test_fractions_make_a_learning_curve(tmp_path, shell):
    path = plan_file(tmp_path, seeds=[1], fractions=[0.3, 1.0], recipes=["baseline"], evaluate=["test"])
    shell("experiment", path)
    assert {(line["fraction"], line["train_documents"]) for line in lines(tmp_path)} == {(0.3, 3), (1.0, 9)}
    assert (
        "| | first, 30 % | first, 100 % | second, 30 % | second, 100 % |"
        in (tmp_path / "results" / "table.md").read_text()
    )


def test_a_lexicon_reaches_the_training(tmp_path, shell):
    corpora = [{**corpus, "lexicon": "names.tsv"} for corpus in make_corpora(tmp_path)[:1]]
    (tmp_path / "names.tsv").write_text("C1\tDrug\taspirin\tacetylsalicylic acid\n")
    sizes = {f"terms.generate.objective.{name}": 8 for name in ("latent_size", "embedding_size", "hidden")}
    changes = {"recipes": ["compress_generate"], "set": {**QUICK, **sizes, "phases.0.epochs": 1}, "seeds": [1]}
    shell("experiment", plan_file(tmp_path, corpora=corpora, **changes))
    (line,) = lines(tmp_path)
    assert line["lexicon"] == str(tmp_path / "names.tsv")
    assert "synonyms" in (tmp_path / "results" / "logs" / f"{line['id']}.log").read_text()
    (tmp_path / "names.tsv").write_text("C1\tDrug\taspirin\tASA\n")
    shell("experiment", plan_file(tmp_path, corpora=corpora, **changes))
    assert len(lines(tmp_path)) == 2  # another lexicon, another run
    (tmp_path / "names.tsv").unlink()
    assert "names.tsv: there is no such lexicon" in shell.refuses("experiment", tmp_path / "plan.toml")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"recipes": ["bundlin"]}, "recipe 'bundlin' on corpus 'first': no recipe 'bundlin'; did you mean 'bundling'?"),
        ({"recipes": [{"recipe": "bundling/seq", "set": {"spans.dropout": 0.1}}]}, "--set spans.dropout"),
        ({"encoder": "no/such-encoder", "set": {}}, "encoder 'no/such-encoder' cannot be loaded"),
        (
            {"corpora": [{"name": "x", "train": "nowhere.jsonl", "dev": "a", "test": "b"}]},
            "nowhere.jsonl: no such file",
        ),
        ({"corpora": [{"name": "x", "train": "first/train.jsonl"}]}, "corpus 'x' has no dev file"),
        ({"output": "/proc/nowhere"}, "/proc/nowhere"),
        ({"device": "tpu"}, "no device 'tpu'"),
        ({"seeds": [1, 1]}, "seeds must be a list of different whole numbers"),
        ({"recipe": ["baseline"]}, "no key 'recipe' here; did you mean 'recipes'?"),
        ({"recipes": None}, "recipes is missing"),
        ({"recipes": ["baseline", {"recipe": "baseline", "name": "again"}]}, "is the same training as"),
        ({"recipes": ["baseline", "baseline"]}, "two recipes are called 'baseline'"),
        ({"baseline": "nobody"}, "the baseline 'nobody' is none of the recipes"),
        ({"published": "papers.toml"}, "papers.toml: no such file"),
        ({"figures": ["f1"]}, "figures must be a list such as"),
    ],
)
def test_a_bad_plan_is_one_sentence_before_anything_trains(changes, said, tmp_path, shell, monkeypatch):
    def never(*_):
        raise AssertionError("a training was started")

    monkeypatch.setattr("wingspan.experiments.run.run", never)
    assert said in shell.refuses("experiment", plan_file(tmp_path, **changes))


def test_a_file_that_is_no_plan(tmp_path, shell):
    (tmp_path / "plan.toml").write_text("recipes = [")
    assert "not TOML" in shell.refuses("experiment", tmp_path / "plan.toml")
    assert "no such file" in shell.refuses("experiment", tmp_path / "none.toml")
    path = plan_file(tmp_path)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "results.jsonl").write_text('{"text": "a corpus"}\n')
    assert "not an event" in shell.refuses("experiment", path)


def test_a_corpus_that_changed_is_another_run(tmp_path, shell):
    from wingspan.corpora.formats import write

    path = plan_file(tmp_path, seeds=[1], recipes=["baseline"])
    shell("experiment", path)
    write(documents("train", 10), tmp_path / "first" / "train.jsonl")
    shell("experiment", path)
    assert Counter(line["corpus"]["name"] for line in lines(tmp_path)) == {"first": 2, "second": 1}
