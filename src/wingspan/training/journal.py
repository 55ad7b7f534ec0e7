"""The journal of a run on disk, one JSON line for each event, and its progress on the terminal.

A kill can tear only the last line. Opening the journal again cuts it off, and writing goes on after the last event.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.text import Text

from wingspan.evaluation.scores import HEADLINES, headline, protocol_of

if TYPE_CHECKING:  # the loop imports torch, which neither needs
    from wingspan.training.loop import Progress

Event = Literal["start", "coverage", "progress", "epoch", "best", "test", "end", "resumed", "error", "run"]


class Journal:
    """Appends events to a file; a context manager that closes it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists():
            cut_torn_line(self.path)
        self._file = self.path.open("ab")

    def write(self, event: Event, **fields: Any) -> None:
        """Writes an event with the time and its fields; NaN and infinite numbers become null."""
        record = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": event, **fields}
        line = json.dumps(_finite(record), ensure_ascii=False, allow_nan=False, default=_plain)
        # half a surrogate pair becomes \\udXXX, as in JSON
        self._file.write(line.encode("utf-8", "backslashreplace") + b"\n")
        self._file.flush()

    def close(self) -> None:
        """Closes the file; every event is on disk already."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_journal(path: str | Path) -> list[dict[str, Any]]:
    """The events of a journal, oldest first. A torn last line is left out; any other broken line is an error."""
    path = Path(path)
    lines = path.read_bytes().split(b"\n")
    events = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        event = _event(line)
        if event is None:
            if number == len(lines):  # no line end behind it: the run was killed while it wrote
                break
            raise ValueError(f"{path}:{number}: not an event of a journal; delete this line and read again")
        events.append(event)
    return events


def cut_torn_line(path: Path) -> None:
    """Makes the file end with a complete line: a torn one is cut off, one that only lacks its line end gets it."""
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        start, tail = size, b""
        while start > 0 and b"\n" not in tail:
            step = min(start, 1 << 16)
            start -= step
            file.seek(start)
            tail = file.read(step) + tail
        torn = tail.rpartition(b"\n")[2]
        if not torn:
            return
        if _event(torn) is None:
            file.truncate(size - len(torn))
        else:
            file.seek(0, os.SEEK_END)
            file.write(b"\n")


def _event(line: bytes) -> dict[str, Any] | None:
    """The event of a line, or None if there is none."""
    try:
        event = json.loads(line)
    except ValueError:  # bad JSON and bad UTF-8 alike
        return None
    return event if isinstance(event, dict) and "event" in event else None


def _finite(value: Any) -> Any:
    """The value with None for each float that JSON cannot write."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return value


def _plain(value: Any) -> Any:
    """Values that JSON does not know: paths as text, numbers of numpy and torch as numbers."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "item"):
        return _finite(value.item())
    raise TypeError(f"a journal holds plain values, not {type(value).__name__}; convert {value!r} first")


# The progress of a training: a bar on a terminal, one line for each epoch everywhere.


MOST_EMPTY = 3  # epochs without a right entity, after which there is advice
FEW_STEPS = 500  # of a whole training; the recipes that learn from scratch need about as many


def advice(steps: int) -> str:
    """What to try where nothing is right after some epochs of a training with so many steps."""
    more = (
        f"{steps} steps in all are few: take a smaller --batch-size, such as 4, or more --epochs"
        if steps < FEW_STEPS
        else "Take a higher --learning-rate or more --epochs"
    )
    return f"Nothing is right on dev yet. {more}; check too that dev has the labels of train (wingspan validate)."


class TrainingBar:
    """Shows the progress of a training: epoch, loss, dev F1 or accuracy, time left.

    A context manager; `update` takes each Progress. The bar is drawn if `enabled` and on a terminal; the line of each
    epoch is printed in any case.
    """

    def __init__(self, console: Console, enabled: bool = True, clock: Callable[[], float] = time.monotonic) -> None:
        self.console = console
        self.clock = clock
        self.dev = ""
        self.empty = 0  # epochs without a single right entity on dev
        self.first: tuple[float, int] | None = None  # when the first progress came, and at which step
        self.bars: Bars | None = None
        if enabled and console.is_terminal:
            self.bars = Bars(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TaskProgressColumn(),
                TextColumn("{task.fields[figures]}", markup=False),
                TimeRemainingColumn(),
                TextColumn("left"),
                console=console,
                transient=True,
                speed_estimate_period=300.0,  # seconds, more than the pause in which dev documents are scored
                get_time=clock,
            )

    def __enter__(self) -> Self:
        if self.bars is not None:
            self.bars.start()
            self.bars.add_task("first steps", total=None, figures="")
        return self

    def __exit__(self, *_: object) -> None:
        if self.bars is not None:
            self.bars.stop()

    def update(self, progress: Progress) -> None:
        """Shows a progress."""
        position, steps = progress.position, progress.steps
        ended = position.step == 0  # then the position is the start of the next epoch
        epoch = f"epoch {position.epoch if ended else position.epoch + 1}"
        name = epoch if position.phase == 0 else f"phase {position.phase + 1}, {epoch}"
        if progress.scores is not None:
            self.dev = f"dev {HEADLINES[protocol_of(progress.scores)]} {headline(progress.scores):.2f}"
        loss = progress.losses.get("loss")
        figures = "  ".join(figure for figure in ("" if loss is None else f"loss {loss:.4f}", self.dev) if figure)
        if self.bars is not None and self.first is None:
            # a new bar that starts where a resumed run starts, so that its speed is that of this run
            for task in self.bars.task_ids:
                self.bars.remove_task(task)
            self.bars.add_task(name, total=steps, completed=position.total, figures=figures)
        elif self.bars is not None:
            (task,) = self.bars.task_ids
            self.bars.update(task, description=name, completed=position.total, figures=figures)
        if self.first is None:
            self.first = (self.clock(), position.total)
        if ended:
            best = " (best)" if progress.best and progress.scores is not None else ""
            parts = [name, figures + best, f"step {position.total}/{steps}"]
            since, start = self.first
            if position.total > start:  # the mean speed since the first progress, pauses for scoring included
                left = (self.clock() - since) / (position.total - start) * (steps - position.total)
                parts += [f"{timedelta(seconds=round(left))} left"] if left else []
            self.console.print(Text("  ".join(part for part in parts if part)), soft_wrap=True)
        if progress.scores is not None:
            self.empty = self.empty + 1 if headline(progress.scores) == 0 else 0
            if self.empty == MOST_EMPTY:
                self.console.print(Text(advice(steps)), soft_wrap=True)
