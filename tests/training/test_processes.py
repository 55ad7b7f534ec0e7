"""Two processes end with the weights of one that has the whole batch; one of them speaks and writes."""

import json

import pytest
import torch
import twins
from safetensors.torch import load_file

import wingspan
from trainings import save_corpora
from wingspan.text import Document
from wingspan.training.journal import read_journal
from wingspan.training.loop import part_of, shared_out
from wingspan.training.state import claim, latest_state, load_position

pytestmark = pytest.mark.skipif(not torch.distributed.is_gloo_available(), reason="torch has no gloo here")


@pytest.fixture(scope="module")
def folder(folders, tmp_path_factory):
    """What two processes and one have come to."""
    root = tmp_path_factory.mktemp("weights")
    twins.in_two(twins.train_all, folders["bert"], root)
    return root


@pytest.mark.parametrize("name", twins.NAMES)
@pytest.mark.slow
def test_the_same_weights_as_in_one_process(folder, folders, name, monkeypatch):
    for drawn in ("randn", "randn_like"):
        monkeypatch.setattr(torch, drawn, getattr(torch, drawn))  # `train` replaces them; this puts them back
    plain = name.replace("/", "-")
    expected = twins.train(name, twins.recipes(folders["bert"])[name], folder / f"{plain}.safetensors")
    one = load_file(folder / f"{plain}.safetensors")
    for number in (0, 1):
        two = load_file(folder / f"{plain}-{number}.safetensors")
        assert one.keys() == two.keys()
        assert {value.dtype for value in two.values() if value.is_floating_point()} == {torch.float64}
        assert max(float((one[key] - two[key]).abs().max()) for key in one) <= 1e-8
        figures = [float(text) for text in (folder / f"{plain}-{number}.txt").read_text().split()]
        assert figures == pytest.approx(expected, rel=1e-6, abs=1e-9)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder with runs of two processes."""
    root = tmp_path_factory.mktemp("runs")
    save_corpora(root, 6, 2)
    twins.in_two(twins.train_and_go_on, root)
    return root


@pytest.mark.slow
def test_one_process_writes_and_both_have_the_best_model(runs):
    events = [event["event"] for event in read_journal(runs / "whole" / "journal.jsonl")]
    assert [event for event in events if event != "progress"] == ["start", *["epoch"] * 3, "end"]
    said = [(runs / f"whole-{number}.txt").read_text() for number in (0, 1)]
    assert said[0] == said[1]
    assert len(said[0]) > 100
    assert twins.places(wingspan.load(runs / "whole", device="cpu")) == said[0]


@pytest.mark.slow
def test_a_resumed_run_of_two_processes_is_the_undisturbed_one(runs):
    for file in ("model.safetensors", "state/phase-1/learner.safetensors"):
        one, other = (load_file(runs / name / file) for name in ("whole", "stopped"))
        assert all(torch.equal(one[name], other[name]) for name in one)
    places = [load_position(latest_state(runs / name / "state")) for name in ("whole", "stopped")]
    assert places[0] == places[1]
    assert [e["event"] for e in read_journal(runs / "stopped" / "journal.jsonl")].count("resumed") == 1
    with pytest.raises(ValueError, match="--resume: processes is 1 now and was 2"):  # random draws would be others
        claim(runs / "whole" / "state", {"processes": 1}, resume=True)


@pytest.mark.slow
def test_from_the_shell_the_first_process_speaks(runs):
    first, second = ((runs / f"said-{number}.txt").read_text() for number in (0, 1))
    assert first.count("Recipe baseline") == 2
    assert "parameters" in first
    assert second == ""
    assert json.loads((runs / "figures-0.json").read_text())["seeds"] == [1, 2]
    assert not (runs / "figures-1.json").exists()
    assert {path.name for path in (runs / "shell").iterdir()} == {"seed-1", "seed-2", "summary.json"}


def test_batches_and_documents_are_shared_out():
    batch = [9, 4, 7, 1, 3]
    parts = [part_of(batch, number, 3) for number in range(3)]
    assert parts == [[9, 1], [4, 3], [7]]
    assert part_of([5], 1, 2) == []
    rows = [Document(str(at), "x" * 10, group=group) for at, group in enumerate(["a", "a", None, None, "b", "b"])]
    for number in (1, 2, 3, 7):
        found = shared_out(rows, number)
        assert len(found) == number
        assert [row for part in found for row in part] == rows
        assert all(rows[0] in part and rows[1] in part or rows[0] not in part for part in found)
    assert [len(part) for part in shared_out(rows, 2)] == [3, 3]
    assert shared_out([], 2) == [[], []]


def test_other_verbs_do_not_run_in_several_processes(shell, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    out, error = shell("info", shell.model, code=1)
    assert "several processes can train together and nothing else" in error
