"""One process of a search: it takes settings from the study, trains, tells the study how good they were."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any, Protocol

from rich.console import Console

from wingspan.corpora.leak_report import OnLeak
from wingspan.evaluation.protocols import headline
from wingspan.ranges import Between, OneOf
from wingspan.runs.processes import settle_in, speak_into
from wingspan.runs.reading import gather
from wingspan.runs.train import Job, prepare, run
from wingspan.runs.tune_space import as_text
from wingspan.runs.tune_study import Place, Pruner, open_study, optuna, plainly
from wingspan.training.loop import Progress


@dataclass(frozen=True)
class Order:
    """What the user asks for."""

    recipe: str
    train: tuple[Path, ...]
    dev: Path
    output: Path
    encoder: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, Between | OneOf] = field(default_factory=dict)
    format: str | None = None
    trials: int = 20
    time_budget: float | None = None
    workers: int = 1
    threads: int | None = None
    pruner: Pruner = "median"
    study: str | None = None
    name: str | None = None
    seed: int = 1
    device: str | None = None
    lexicon: str | None = None
    on_leak: OnLeak = "drop"
    heartbeat: int = 20
    """Seconds; a trial that is silent for three times as long is taken for dead and queued again."""


@dataclass(frozen=True)
class Search:
    """All that a process needs to take part in a search."""

    order: Order
    place: Place
    space: Mapping[str, Between | OneOf]
    epochs: int
    """Of one training, all phases together."""
    deadline: float | None = None
    """When no trial is to be started any more, as `time.time` counts."""


class Tickets(Protocol):
    """How many trials may still be started, by all processes together."""

    value: int

    def get_lock(self) -> Any:
        """Held while a ticket is taken."""


def work(search: Search, tickets: Tickets, threads: int | None, number: int, log: Path) -> None:
    """The life of a process of its own."""
    settle_in(threads)
    speak_into(log)
    take_part(search, tickets, number, Console(width=160))


def take_part(
    search: Search, tickets: Tickets, number: int, console: Console, after_each: Callable[[], None] | None = None
) -> None:
    """Does trials until there are no tickets or no time left. Failed ones are in the study with the reason."""
    study = open_study(search.place, search.order.pruner, search.epochs, 1000 * search.order.seed + number)

    def objective(trial: Any) -> float:
        trial.set_user_attr("worker", f"{platform.node()} {os.getpid()}")
        try:
            return try_settings(search, trial, console)
        except (ValueError, OSError) as error:
            trial.set_user_attr("problem", " ".join(str(error).split()))
            raise

    while time_left(search, study) and taken(tickets):
        with plainly(search.place):
            study.optimize(objective, n_trials=1, catch=(ValueError, OSError))
        if after_each is not None:
            after_each()


def try_settings(search: Search, trial: Any, console: Console) -> float:
    """Trains with settings that the study suggests. The best dev F1; hopeless trainings end early."""
    order = search.order
    settings = {key: as_text(suggested(trial, key, one)) for key, one in search.space.items()}
    recipe = prepare(order.recipe, order.encoder, {**order.settings, **settings})
    epochs, best = 0, 0.0

    def watch(progress: Progress) -> None:
        nonlocal epochs, best
        if progress.scores is None:
            return
        epochs += 1
        best = max(best, headline(progress.scores))
        trial.report(best, epochs)
        if trial.should_prune():
            raise optuna().TrialPruned

    console.print(f"Trial {trial.number}: {settings}", highlight=False, markup=False)
    corpora = gather(order.train, order.dev, None, order.format)
    job = Job(recipe, corpora, seed=order.seed, device=order.device, watch=watch, lexicon=order.lexicon)
    run(replace(job, on_leak=order.on_leak), console)
    return best


def suggested(trial: Any, key: str, one: Between | OneOf) -> Any:
    """A value of a range, as the study wants it."""
    if isinstance(one, OneOf):
        return trial.suggest_categorical(key, list(one.values))
    suggest = trial.suggest_int if one.whole else trial.suggest_float
    return suggest(key, one.low, one.high, log=one.log)


def taken(tickets: Tickets) -> bool:
    """Takes a ticket, if there is one."""
    with tickets.get_lock():
        tickets.value -= 1
        return tickets.value >= 0


def time_left(search: Search, study: Any) -> bool:
    """Whether a trial that takes as long as those before can end in time."""
    if search.deadline is None:
        return True
    complete = optuna().trial.TrialState.COMPLETE
    known = [trial.duration.total_seconds() for trial in study.get_trials(states=(complete,), deepcopy=False)]
    return time.time() + (fmean(known) if known else 0.0) < search.deadline
