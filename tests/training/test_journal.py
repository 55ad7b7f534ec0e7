import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from wingspan.training.journal import Journal, read_journal


def test_events_come_back_in_order_with_their_time(tmp_path: Path) -> None:
    path = tmp_path / "run" / "journal.jsonl"
    with Journal(path) as journal:
        journal.write("start", recipe="baseline", seed=1)
        journal.write("epoch", losses={"loss": 0.5}, f1=80.25, best=True)
    first, second = read_journal(path)
    assert {key: first[key] for key in ("event", "recipe", "seed")} == {
        "event": "start",
        "recipe": "baseline",
        "seed": 1,
    }
    assert (second["losses"], second["f1"], second["best"]) == ({"loss": 0.5}, 80.25, True)
    assert abs(datetime.fromisoformat(first["time"]) - datetime.now(UTC)) < timedelta(minutes=1)
    assert list(first)[:2] == ["time", "event"]


def test_each_event_is_on_disk_at_once_and_reopening_appends(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    journal.write("start")
    assert len(read_journal(path)) == 1
    journal.close()
    with Journal(path) as again:
        again.write("resumed", step=40)
    assert [event["event"] for event in read_journal(path)] == ["start", "resumed"]


def test_a_line_torn_anywhere_is_cut_off_on_reopening(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        journal.write("start")
        whole = path.read_bytes()
        journal.write("progress", label="Krankheit größer 病")
    everything = path.read_bytes()
    for cut in range(len(whole), len(everything) + 1):
        path.write_bytes(everything[:cut])
        kept = 2 if cut >= len(everything) - 1 else 1  # only its line end is missing, or nothing
        assert len(read_journal(path)) == kept
        with Journal(path) as journal:
            journal.write("resumed")
        assert [event["event"] for event in read_journal(path)] == [*["start", "progress"][:kept], "resumed"]


def test_a_long_torn_line_is_cut_off_too(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        journal.write("start")
        whole = path.read_bytes()
    path.write_bytes(whole + b'{"event": "progress", "text": "' + b"x" * 200_000)
    Journal(path).close()
    assert path.read_bytes() == whole
    path.write_bytes(b'{"event"')
    Journal(path).close()
    assert path.read_bytes() == b""


def test_a_killed_writer_leaves_a_journal_that_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    code = "import sys; from wingspan.training.journal import Journal\nj = Journal(sys.argv[1])\nn = 0\n"
    code += "while True:\n    j.write('progress', step=n, text='x' * 5000); n += 1; print(n, flush=True)"
    with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        reported = [int(writer.stdout.readline()) for _ in range(20)]
        os.kill(writer.pid, signal.SIGKILL)
    with Journal(path) as journal:
        journal.write("resumed")
    events = read_journal(path)
    assert len(events) - 1 >= reported[-1]
    assert [event["step"] for event in events[:-1]] == list(range(len(events) - 1))


def test_a_broken_line_in_the_middle_is_named(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text('{"event": "start"}\n{"event": "epo\n{"event": "end"}\n')
    with pytest.raises(ValueError, match=r"journal.jsonl:2: not an event"):
        read_journal(path)


def test_values_json_has_no_word_for(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        journal.write(
            "error",
            losses={"loss": float("nan")},
            rates=(1.0, float("inf")),
            count=np.int64(3),
            share=np.float32("nan"),
            folder=tmp_path,
            label="half \ud83d",
        )
        with pytest.raises(TypeError, match="not set"):
            journal.write("error", labels={"a"})
    (event,) = read_journal(path)
    assert (event["losses"], event["rates"], event["count"]) == ({"loss": None}, [1.0, None], 3)
    assert (event["share"], event["folder"], event["label"]) == (None, str(tmp_path), "half \ud83d")
    json.loads(path.read_text(encoding="utf-8"), parse_constant=pytest.fail)
