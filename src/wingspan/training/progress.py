"""The progress of a training: a bar on a terminal, one line for each epoch everywhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.text import Text

from wingspan.evaluation.scores import HEADLINES, headline, protocol_of

if TYPE_CHECKING:  # the loop imports torch, which a bar does not need
    from wingspan.training.loop import Progress

SPEED_OVER = 300.0  # seconds that the speed is a mean of: longer than the pause in which the dev documents are scored


class TrainingBar:
    """Shows a training as it goes on: epoch, loss, dev F1 or accuracy, time left.

    A context manager; `update` takes each Progress. The bar is drawn if `enabled` and on a terminal; the line of each
    epoch is printed in any case.
    """

    def __init__(self, console: Console, enabled: bool = True, clock: Callable[[], float] = time.monotonic) -> None:
        self.console = console
        self.clock = clock
        self.dev = ""
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
                speed_estimate_period=SPEED_OVER,
                get_time=clock,
            )

    def __enter__(self) -> Self:
        if self.bars is not None:
            self.bars.start()
            self.bars.add_task("first steps", total=None, figures="")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bars is not None:
            self.bars.stop()

    def update(self, progress: Progress) -> None:
        """Shows where the training is now."""
        if progress.scores is not None:
            self.dev = f"dev {HEADLINES[protocol_of(progress.scores)]} {headline(progress.scores):.2f}"
        if self.bars is not None:
            self._move(self.bars, progress)
        if self.first is None:
            self.first = (self.clock(), progress.place.total)
        if ends_epoch(progress):
            self.console.print(Text(self._line(progress)), soft_wrap=True)

    def _move(self, bars: Bars, progress: Progress) -> None:
        """Moves the bar. The first move starts it where a resumed run starts, so that its speed is that of this run."""
        done, total = progress.place.total, progress.steps
        if self.first is None:
            for task in bars.task_ids:
                bars.remove_task(task)
            bars.add_task(epoch_name(progress), total=total, completed=done, figures=self._figures(progress))
        else:
            (task,) = bars.task_ids
            bars.update(task, description=epoch_name(progress), completed=done, figures=self._figures(progress))

    def _figures(self, progress: Progress) -> str:
        loss = progress.losses.get("loss")
        known = [] if loss is None else [f"loss {loss:.4f}"]
        return "  ".join([*known, self.dev] if self.dev else known)

    def _line(self, progress: Progress) -> str:
        """One epoch in one line."""
        best = " (best)" if progress.best and progress.scores is not None else ""
        parts = [epoch_name(progress), self._figures(progress) + best, f"step {progress.place.total}/{progress.steps}"]
        left = self._seconds_left(progress)
        if left:
            parts.append(f"{timedelta(seconds=round(left))} left")
        return "  ".join(part for part in parts if part)

    def _seconds_left(self, progress: Progress) -> float | None:
        """At the mean speed since the first progress, pauses for scoring included."""
        if self.first is None:
            return None
        since, start = self.first
        steps = progress.place.total - start
        return (self.clock() - since) / steps * (progress.steps - progress.place.total) if steps > 0 else None


def ends_epoch(progress: Progress) -> bool:
    """Whether this progress is the last of an epoch: its place is then the start of the next one."""
    return progress.place.step == 0


def epoch_name(progress: Progress) -> str:
    """The epoch that is running or has just ended, counted from 1; the phase too, where it is not the first."""
    epoch = progress.place.epoch + (0 if ends_epoch(progress) else 1)
    return f"epoch {epoch}" if progress.place.phase == 0 else f"phase {progress.place.phase + 1}, epoch {epoch}"
