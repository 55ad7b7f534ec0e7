"""One training at a time writes to a run folder; a lock that a dead process has left keeps nobody out."""

import os
import platform
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

import wingspan
from trainings import dev_documents, tiny, train_documents
from wingspan.training.corpora import gather
from wingspan.training.run import TrainingJob, train_seeds
from wingspan.training.state import alone_in

DATA = {"train": train_documents(6), "dev": dev_documents(2), "device": "cpu"}
BUSY = "another training is writing to it"
HOLD = """
import os, sys, time
from pathlib import Path
from wingspan.training.state import alone_in
with alone_in(Path(sys.argv[1])):
    child = os.fork() if "fork" in sys.argv else 1
    if child:
        print("held", flush=True)
    time.sleep(300)
"""


def inside(folder: Path, attempt) -> list[str]:
    """What a second training says that starts while the first is at its epochs."""
    said = []

    def watch(_):
        with pytest.raises(ValueError, match=BUSY) as caught:
            attempt()
        said.append(str(caught.value))

    wingspan.train(tiny("baseline", epochs=2), output=folder, watch=watch, **DATA)
    return said


@pytest.mark.parametrize("resume", [False, True])
def test_a_second_training_is_told_who_is_there(tmp_path, resume):
    folder = tmp_path / "run"
    said = inside(folder, lambda: wingspan.train(tiny("baseline"), output=folder, resume=resume, **DATA))
    assert len(said) == 2
    assert f"(process {os.getpid()} on {platform.node()}, since 20" in said[0]
    assert said[0].endswith("wait for its end, or choose another --output")
    assert not [path.name for path in (folder / "state").iterdir() if path.name.startswith(".")]
    assert len(wingspan.load(folder).predict("Aspirin .")) == 1
    wingspan.train(tiny("baseline", epochs=2), output=folder, resume=True, **DATA)


def test_several_seeds_hold_the_folder_above_theirs(tmp_path):
    job = TrainingJob(tiny("baseline"), gather(DATA["train"], DATA["dev"], None, None), tmp_path / "runs", device="cpu")
    with alone_in(tmp_path / "runs"), pytest.raises(ValueError, match=BUSY):
        train_seeds(job, [1, 2], Console(quiet=True))
    train_seeds(job, [1, 2], Console(quiet=True))
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {"seed-1", "seed-2", "summary.json"}


def test_trainings_without_a_folder_or_in_others_are_free(tmp_path):
    with alone_in(tmp_path / "one"), alone_in(tmp_path / "two"), alone_in(None):
        wingspan.train(tiny("baseline"), **DATA)


def test_a_training_that_fails_at_once_leaves_nothing(tmp_path):
    with pytest.raises(ValueError, match="no entity"):
        wingspan.train(
            tiny("baseline"), train=[wingspan.Document("d", "Nothing here .")], output=tmp_path / "run", device="cpu"
        )
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("forks", [(), ("fork",)])
def test_the_lock_of_a_killed_process_is_void(tmp_path, forks):
    """Also while a process that it had forked lives on, such as a worker that reads data."""
    folder = tmp_path / "run"
    command = [sys.executable, "-c", HOLD, str(folder), *forks]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as other:
        try:
            assert other.stdout.readline() == "held\n"
            with pytest.raises(ValueError, match=rf"\(process {other.pid} on "), alone_in(folder):
                pass
            os.kill(other.pid, signal.SIGKILL)
            other.wait()
            assert (folder / "state" / ".owner").is_file()
            with alone_in(folder):
                assert f"process {os.getpid()} " in (folder / "state" / ".owner").read_text()
        finally:
            os.killpg(other.pid, signal.SIGKILL) if forks else None
    assert not folder.exists() or not list(folder.rglob(".*"))
