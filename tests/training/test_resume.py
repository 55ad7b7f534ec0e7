"""A run that is killed at any moment and resumed ends with exactly the weights of the undisturbed one."""

import json
import random
import shutil
import signal
import time
from functools import partial
from pathlib import Path

import pytest
import torch
from resumable import STEPS, process
from safetensors.torch import load_file

import wingspan
from trainings import train_documents, untrained
from wingspan.encoders.hashed import HashedEncoder
from wingspan.training import state
from wingspan.training.journal import read_journal
from wingspan.training.state import claim, latest_state, load_position


def finish(folder: Path, resume: bool = False, several: bool = False) -> None:
    running = process(folder, resume, several=several)
    running.join(120)
    assert running.exitcode == 0


def die(folder: Path, where: str, number: int, several: bool = False) -> None:
    running = process(folder, kill=(where, number), several=several)
    running.join(120)
    assert running.exitcode == -signal.SIGKILL


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "whole"
    finish(folder)
    return folder


def same(one: Path, other: Path) -> None:
    """The same model, the same state at the end, the same scores."""
    first, second = load_file(one / "model.safetensors"), load_file(other / "model.safetensors")
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    ends = [latest_state(folder / "state") for folder in (one, other)]
    assert [end.name for end in ends] == [ends[0].name] * 2
    states = [load_file(end / "learner.safetensors") for end in ends]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    facts = [json.loads((folder / "facts.json").read_text()) for folder in (one, other)]
    assert facts[0] == facts[1]


def test_the_undisturbed_run(undisturbed):
    events = read_journal(undisturbed / "journal.jsonl")
    assert [e["event"] for e in events if e["event"] != "progress"] == ["start", *["epoch"] * 3, "end"]
    assert load_position(latest_state(undisturbed / "state")).epoch == 3
    assert load_position(latest_state(undisturbed / "state")).total == STEPS
    assert [path.name for path in (undisturbed / "state").glob("step-*")] == [
        (undisturbed / "state" / "latest").read_text()
    ]


@pytest.mark.parametrize("steps", [(2, 5), (6, 10), (11, STEPS)])
@pytest.mark.slow
def test_killed_inside_a_step(undisturbed, tmp_path, steps):
    folder = tmp_path / "run"
    die(folder, "step", random.randint(*steps))
    finish(folder, resume=True)
    same(undisturbed, folder)


@pytest.mark.slow
def test_killed_while_batches_come_from_two_corpora(tmp_path):
    finish(tmp_path / "whole", several=True)
    die(tmp_path / "run", "step", random.randint(3, 9), several=True)
    finish(tmp_path / "run", resume=True, several=True)
    same(tmp_path / "whole", tmp_path / "run")


@pytest.mark.slow
def test_killed_twice_and_at_a_random_moment(undisturbed, tmp_path):
    folder = tmp_path / "run"
    die(folder, "step", 7)
    running = process(folder, resume=True)
    latest = folder / "state" / "latest"
    before = latest.read_text()
    while running.is_alive() and latest.read_text() == before:
        time.sleep(0.005)
    time.sleep(random.random() * 0.2)
    running.kill()
    running.join()
    finish(folder, resume=True)
    same(undisturbed, folder)


@pytest.mark.parametrize(
    ("where", "number"),
    [
        ("write_weights", 4),
        pytest.param("write_weights", 1, marks=pytest.mark.slow),
        pytest.param("write_json", 4, marks=pytest.mark.slow),  # the first state's is the third
        pytest.param("write_text", 5, marks=pytest.mark.slow),
    ],
)
def test_killed_while_a_state_is_written(undisturbed, tmp_path, where, number):
    folder = tmp_path / "run"
    die(folder, where, number)
    state = latest_state(folder / "state")
    if number > 1:
        assert state is not None
        assert {path.name for path in state.iterdir()} == {"learner.safetensors", "optimizer.pt", "place.json"}
        assert load_position(state).total > 0
    finish(folder, resume=True)
    same(undisturbed, folder)


def test_a_finished_run_resumed_stays_as_it_is(undisturbed, tmp_path):
    folder = Path(shutil.copytree(undisturbed, tmp_path / "run"))
    finish(folder, resume=True)
    same(undisturbed, folder)


@pytest.mark.slow
def test_a_kill_before_the_first_state_starts_again(undisturbed, tmp_path):
    folder = tmp_path / "run"
    die(folder, "step", 1)
    assert latest_state(folder / "state") is None
    finish(folder, resume=True)
    same(undisturbed, folder)
    assert [event["event"] for event in read_journal(folder / "journal.jsonl")][:2] == ["start", "resumed"]


def test_a_state_that_cannot_be_written_again_leaves_the_one_there_is(tmp_path, monkeypatch):
    learner = torch.nn.Linear(2, 2)
    optimizer = torch.optim.AdamW(learner.parameters())
    state.save_state(tmp_path, state.Position(total=3), learner, optimizer)

    def full(*arguments):
        raise OSError("no space left")

    monkeypatch.setattr(state, "write_weights", full)
    with pytest.raises(OSError, match="the last one is unchanged"):
        state.save_state(tmp_path, state.Position(total=3), learner, optimizer)  # the same step, as after a resume
    kept = latest_state(tmp_path)
    assert load_position(kept).total == 3
    state.load_state(kept, torch.nn.Linear(2, 2), None)


class Code:
    """Runs when it is unpickled."""

    def __reduce__(self):
        return (Path.touch, (Path("unpickled"),))


def test_no_code_is_unpickled_from_a_state(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    learner = torch.nn.Linear(2, 2)
    optimizer = torch.optim.AdamW(learner.parameters())
    state.save_state(tmp_path / "state", state.Position(), learner, optimizer)
    kept = latest_state(tmp_path / "state")
    torch.save({"optimizer": Code(), "scaler": None}, kept / "optimizer.pt")
    with pytest.raises(ValueError, match="the optimizer's state is damaged"):
        state.load_state(kept, learner, optimizer)
    assert not Path("unpickled").exists()


@pytest.mark.parametrize("name", ["train.average", "terms.consistency.weight", "teachers"])
def test_a_run_with_something_that_this_one_lacks_is_not_resumed(tmp_path, name):
    claim(tmp_path, {"train.epochs": 3, name: "0.9"}, resume=False)
    with pytest.raises(ValueError, match=f"--resume: {name} was '0.9' and this run has none"):
        claim(tmp_path, {"train.epochs": 3}, resume=True)


def test_an_older_run_that_says_that_it_had_none_of_it_is_resumed(tmp_path):
    claim(tmp_path, {"train.epochs": 3, "train.average": None}, resume=False)
    claim(tmp_path, {"train.epochs": 4}, resume=True)


def test_an_older_run_that_does_not_say_its_recipe_is_resumed(tmp_path):
    claim(tmp_path, {"train.epochs": 3}, resume=False)
    claim(tmp_path, {"recipe": "baseline", "train.epochs": 3}, resume=True)


def test_a_training_says_its_recipe(tmp_path):
    quick = {"train": train_documents(3), "encoder": "hashed", "epochs": 1, "output": tmp_path, "device": "cpu"}
    wingspan.train("bundling/span", **quick)
    with pytest.raises(ValueError, match="--resume: recipe is 'baseline' now and was 'bundling/span'"):
        wingspan.train("baseline", resume=True, **quick)


def test_a_run_of_another_recipe_is_told_so_first(tmp_path):
    claim(tmp_path, {"recipe": "bundling/span", "spans.views": ["max"]}, resume=False)
    with pytest.raises(ValueError, match="--resume: recipe is 'baseline' now and was 'bundling/span'; give the same"):
        claim(tmp_path, {"recipe": "baseline", "spans.views": ["first"]}, resume=True)


def test_a_run_goes_on_from_the_model_it_began_with(tmp_path):
    """Before the first state is kept, another one would change all that follows."""
    starts = [tmp_path / name for name in ("one", "other")]
    for factor, start in enumerate(starts, 1):
        model = untrained("bundling/span", encoder=partial(HashedEncoder))
        for weight in model.learner.parameters():
            weight.data *= factor
        model.save_pretrained(start)
    quick = {"train": train_documents(3), "epochs": 1, "output": tmp_path / "run", "device": "cpu"}
    wingspan.train("auto", start=starts[0], **quick)
    with pytest.raises(ValueError, match="--resume: model to start from is '[0-9a-f]+' now and was '[0-9a-f]+'; give"):
        wingspan.train("auto", start=starts[1], resume=True, **quick)
    wingspan.train("auto", start=starts[0], resume=True, **quick)
