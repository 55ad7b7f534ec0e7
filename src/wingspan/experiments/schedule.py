"""Which run comes next: in the order of the plan, and with a time budget none that would not end in time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from wingspan.experiments.plan import PlannedRun

RETRY = 2.0
"""Seconds after which a run that another process holds is looked at again."""
SPARE = 1.2
"""A run may take so many times what it is expected to take."""


class Task(NamedTuple):
    """A planned run under its identity."""

    id: str
    run: PlannedRun


class Schedule:
    """The runs to do. `finished` lines of earlier runs say how long others may take."""

    def __init__(
        self,
        tasks: Iterable[Task],
        finished: Iterable[Mapping[str, Any]] = (),
        budget: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.waiting = list(tasks)
        self.times = [(_traits(line), float(line["seconds"]["total"])) for line in finished]
        self.clock = clock
        self.end = clock() + budget if budget is not None else None
        self.held: dict[str, float] = {}  # identity -> when it may be looked at again

    def next(self) -> Task | None:
        """The next run that may start now, taken off the list."""
        now = self.clock()
        for place, task in enumerate(self.waiting):
            if self.held.get(task.id, now) <= now and self._fits(task.run, now):
                return self.waiting.pop(place)
        return None

    def hold(self, task: Task) -> None:
        """Another process is at this run: it comes back later, in case that process dies."""
        self.held[task.id] = self.clock() + RETRY
        self.waiting.append(task)

    def pause(self) -> float | None:
        """Seconds until a held run may be looked at; None where there is nothing to wait for."""
        now = self.clock()
        later = [self.held[task.id] for task in self.waiting if task.id in self.held and self._fits(task.run, now)]
        return max(0.0, min(later) - now) if later else None

    def learn(self, line: Mapping[str, Any]) -> None:
        """One more run whose time is known."""
        self.times.append((_traits(line), float(line["seconds"]["total"])))

    def expected(self, run: PlannedRun) -> float | None:
        """Seconds a run should take: the mean of those most like it; None while none has ended."""
        wanted = (run.corpus.name, run.system.name, run.fraction)
        for alike in ((0, 1, 2), (0, 2), (0, 1), (1,), ()):
            near = [seconds for traits, seconds in self.times if all(traits[i] == wanted[i] for i in alike)]
            if near:
                return fmean(near)
        return None

    def _fits(self, run: PlannedRun, now: float) -> bool:
        if self.end is None:
            return True
        return now + SPARE * (self.expected(run) or 0.0) < self.end


def _traits(line: Mapping[str, Any]) -> Sequence[Any]:
    return line["corpus"]["name"], line["name"], line["fraction"]
