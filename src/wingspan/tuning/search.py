"""`wingspan tune`: a search for better settings, by several processes on one study; the best as a file for `train`."""

from __future__ import annotations

import json
import os
import platform
import random
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing.connection import wait
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, Protocol

from rich.console import Console

from wingspan.corpora.leaks import OnLeak
from wingspan.corpora.statistics import describe
from wingspan.evaluation.scores import headline
from wingspan.files import atomic_write
from wingspan.recipe import Between, OneOf, Recipe
from wingspan.recipe_json import SettingsFile, write_settings
from wingspan.recipes import ranges
from wingspan.recognizer import usable_device
from wingspan.training.corpora import gather, handle_leaks, lexicon_of
from wingspan.training.fit import fit
from wingspan.training.loop import Progress
from wingspan.training.processes import last_words, settle_in, speak_into, starting
from wingspan.training.run import Job, must_recognize, prepare, run
from wingspan.tuning.space import as_text, own_values, search_space
from wingspan.views.console import say

POLL = 1.0
"""Seconds between looks at what the processes have done."""


class OwnTickets:
    """Tickets of a search in one process."""

    def __init__(self, value: int) -> None:
        self.value = value
        self.lock = threading.Lock()

    def get_lock(self) -> AbstractContextManager[Any]:
        """Nobody else asks, but the one who does need not know that."""
        return self.lock


def tune(order: Order, console: Console) -> Found:
    """Searches until so many trials are in the study, earlier calls counted. Killed and called again, it goes on."""
    optuna()
    search, recipe, content = prepared(order, console)
    order.output.mkdir(parents=True, exist_ok=True)
    study = open_study(search.place, order.pruner, search.epochs, order.seed)
    claim(study, search, content)
    if not study.get_trials(deepcopy=False) and (own := own_values(recipe, search.space)) is not None:
        study.enqueue_trial(own)  # so that what is found is never worse on dev than what was there
    left = order.trials - sum(trial["state"] != "running" for trial in told(study))
    say(console, f"{search.place.where}: {order.trials - left} trials done, {max(0, left)} to do")
    for key, one in search.space.items():
        say(console, f"  {key}: {' or '.join(map(as_text, one.values)) if isinstance(one, OneOf) else spoken(one)}")
    problems: list[str] = []
    if left > 0:
        problems = follow(search, study, left, console)
    return conclude(study, order.output, SettingsFile(order.recipe, order.encoder, order.settings), problems, console)


def prepared(order: Order, console: Console) -> tuple[Search, Recipe, dict[str, str]]:
    """Everything that can go wrong is found here: recipe, encoder, ranges, device, corpora, lexicon."""
    recipe = must_recognize(prepare(order.recipe, order.encoder, order.settings), "a search")
    space = search_space(recipe, ranges(order.recipe), order.given, order.settings)
    usable_device(order.device)
    corpora = gather(order.train, order.dev, None, order.format)
    handled = handle_leaks(corpora.train, corpora.held_out, order.on_leak, corpora.target)
    say(console, handled.line)
    train = handled.documents
    fit(recipe, train, corpora.dev, lexicon=lexicon_of(order.lexicon, train))  # to see that it can be
    content = {"train": describe(train).fingerprint, "dev": describe(corpora.dev).fingerprint}
    epochs = sum(recipe.train.epochs if phase.epochs is None else phase.epochs for phase in recipe.phases)
    deadline = time.time() + order.time_budget if order.time_budget is not None else None
    place = Place(order.study or str(order.output / "study.db"), order.name or order.recipe, order.heartbeat)
    return Search(order, place, space, epochs, deadline), recipe, content


def claim(study: Any, search: Search, content: Mapping[str, str]) -> None:
    """Notes what the study is about; values of another recipe or corpus cannot be compared with its own."""
    order = search.order
    facts = {
        "recipe": order.recipe,
        "encoder": order.encoder,
        "settings": dict(order.settings),
        "ranges": {key: repr(one) for key, one in search.space.items()},
        "seed": order.seed,
        "lexicon": order.lexicon,
        **{f"{part} corpus": fingerprint for part, fingerprint in content.items()},
    }
    before = study.user_attrs.get("search")
    if before is None:
        study.set_user_attr("search", facts)
        return
    other = [name for name in facts if before.get(name) != facts[name]]
    if other:
        raise ValueError(
            f"{search.place.where}: the study {search.place.name!r} was made with another {other[0]} "
            f"({before.get(other[0])!r}, not {facts[other[0]]!r}); choose another --output or --name"
        )


def follow(search: Search, study: Any, left: int, console: Console) -> list[str]:
    """Trains, here or in processes, and says how each trial ended. What went wrong with the processes."""
    order = search.order
    seen = {trial["number"] for trial in told(study) if trial["state"] != "running"}
    if order.workers == 0:
        take_part(search, OwnTickets(left), 0, Console(quiet=True), lambda: news(study, seen, console))
        return []
    context = starting(usable_device(order.device).type)
    tickets = context.Value("i", left)
    threads = order.threads or (1 if order.workers > 1 else None)
    logs = {number: order.output / "logs" / f"worker-{number}.log" for number in range(min(order.workers, left))}
    started = {
        number: context.Process(target=work, args=(search, tickets, threads, number, log), daemon=True)
        for number, log in logs.items()
    }
    for process in started.values():
        process.start()
    problems = []
    while started:
        wait([process.sentinel for process in started.values()], POLL)
        for number in [number for number, process in started.items() if not process.is_alive()]:
            process = started.pop(number)
            process.join()
            if process.exitcode:
                problems.append(last_words(process.exitcode, logs[number]))
                say(console, f"FAILED worker {number}: {problems[-1]}")
        news(study, seen, console)
    return problems


def spoken(one: Between) -> str:
    """A range of numbers in words."""
    kind = "whole numbers " if one.whole else ""
    return f"{kind}{one.low:g} to {one.high:g}{', log' if one.log else ''}"


# --- Studies of Optuna: in a database file or on a server, shared by processes, alive after a kill.
#
# A trial whose process has died is noticed by its missing heartbeat and queued again with the same settings.


Pruner = Literal["median", "hyperband", "none"]

PATIENCE = 60
"""Seconds that a process waits for a database file another one writes to."""


@dataclass(frozen=True)
class Place:
    """Where a study is and how it is kept: a file or a URL, the study's name in it, seconds between heartbeats."""

    where: str
    name: str
    heartbeat: int = 20

    @property
    def url(self) -> str:
        """As SQLAlchemy wants it."""
        if "://" in self.where:
            return self.where
        from sqlalchemy.engine import URL

        return URL.create("sqlite", database=str(Path(self.where).absolute())).render_as_string(hide_password=False)


def optuna() -> Any:
    """The library, told to be quiet; one sentence where it is missing."""
    try:
        import optuna as library
    except ImportError:
        raise ValueError(
            "Optuna is needed for wingspan tune and is not installed; install it with: pip install 'wingspan[tune]'"
        ) from None
    library.logging.set_verbosity(library.logging.ERROR)
    return library


@contextmanager
def plainly(place: Place) -> Iterator[None]:
    """Troubles with the database as one sentence; heartbeats count as experimental, which nobody needs to read."""
    library = optuna()
    from sqlalchemy.exc import SQLAlchemyError

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", library.exceptions.ExperimentalWarning)
        try:
            yield
        except (SQLAlchemyError, library.exceptions.StorageInternalError, ImportError) as error:
            said = " ".join(str(error.__cause__ or error).split())[:200]
            raise ValueError(f"{place.where}: no study can be kept there ({said}); check the file or URL") from error


def open_study(place: Place, pruner: Pruner, epochs: int, seed: int) -> Any:
    """The study, made where there is none yet. Higher is better: the value is dev F1.

    Random draws depend on the seed and on how many trials there are, so that a study that goes on does not repeat
    itself.
    """
    library = optuna()
    with plainly(place):
        storage = library.storages.RDBStorage(
            place.url,
            engine_kwargs={"connect_args": {"timeout": PATIENCE}} if place.url.startswith("sqlite") else None,
            heartbeat_interval=place.heartbeat,
            grace_period=3 * place.heartbeat,
            heartbeat_stale_trial_callback=library.storages.RetryHeartbeatStaleTrialCallback(max_retry=3),
        )
        if storage.engine.dialect.name == "sqlite":
            take_turns(storage.engine)
        study = library.create_study(
            storage=storage,
            study_name=place.name,
            direction="maximize",
            load_if_exists=True,
            pruner=make_pruner(pruner, epochs),
        )
        draws = random.Random(f"{seed} {len(study.get_trials(deepcopy=False))}").getrandbits(31)
        study.sampler = library.samplers.TPESampler(seed=draws, constant_liar=True)
    return study


def take_turns(engine: Any) -> None:
    """Makes every transaction with a SQLite file wait for the one before it, reads included.

    Otherwise two processes may both read that a queued trial waits, and both start it: SQLite has no row locks, and
    Python's driver begins a transaction at the first write only.
    """
    from sqlalchemy import event

    def driver_begins_nothing(connection: Any, _: Any) -> None:
        connection.isolation_level = None

    def begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    event.listen(engine, "connect", driver_begins_nothing)
    event.listen(engine, "begin", begin)
    engine.dispose()  # connections that were opened before know nothing of this


def make_pruner(name: Pruner, epochs: int) -> Any:
    """Ends trials that do worse than others did after as many epochs."""
    pruners = optuna().pruners
    if name == "median":
        return pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=max(1, epochs // 5))
    return pruners.HyperbandPruner(max_resource=max(2, epochs)) if name == "hyperband" else pruners.NopPruner()


def importances(study: Any) -> dict[str, float]:
    """How much each setting matters for the value, from 0 to 1, by PED-ANOVA; nothing while too few trials are in."""
    library = optuna()
    complete = library.trial.TrialState.COMPLETE
    values = {trial.value for trial in study.get_trials(states=(complete,), deepcopy=False)}
    if len(values) < 4:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = library.importance.get_param_importances(
            study, evaluator=library.importance.PedAnovaImportanceEvaluator(target_quantile=0.25)
        )
    return {key: float(value) for key, value in found.items()}


# --- One process of a search: it takes settings from the study, trains, tells the study how good they were.


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


# --- What a search came to: its trials, the best of them, what mattered.


@dataclass(frozen=True)
class Found:
    """What a search came to."""

    trials: list[dict[str, Any]]
    best: dict[str, Any] | None
    importances: dict[str, float]
    problems: list[str]

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        return {"best": self.best, "importances": self.importances, "trials": self.trials, "problems": self.problems}


def told(study: Any) -> list[dict[str, Any]]:
    """The trials as plain data. One that was queued again counts once; one that waits does not count yet."""
    states = optuna().trial.TrialState
    rows = []
    for trial in study.get_trials(deepcopy=False):
        if trial.state == states.WAITING or (trial.state == states.FAIL and "problem" not in trial.user_attrs):
            continue
        rows.append(
            {
                "number": trial.number,
                "state": trial.state.name.lower(),
                "dev_f1": trial.value if trial.state == states.COMPLETE else None,
                "settings": dict(trial.params),
                "epochs": len(trial.intermediate_values),
                "seconds": trial.duration.total_seconds() if trial.duration else None,
                **trial.user_attrs,
            }
        )
    return rows


def news(study: Any, seen: set[int], console: Console) -> None:
    """One line for each trial that has ended since the last look."""
    for trial in told(study):
        if trial["state"] == "running" or trial["number"] in seen:
            continue
        seen.add(trial["number"])
        how = {"complete": f"dev F1 {trial['dev_f1'] or 0:.2f}", "pruned": f"ended after epoch {trial['epochs']}"}
        chosen = ", ".join(f"{key}={rounded(value)}" for key, value in trial["settings"].items())
        end = how.get(trial["state"], f"failed: {trial.get('problem')}")
        say(console, f"trial {trial['number']}: {end} ({chosen}; {trial['seconds'] or 0:.0f} s)")


def rounded(value: Any) -> str:
    """A value short enough for a line."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def conclude(study: Any, folder: Path, asked: SettingsFile, problems: list[str], console: Console) -> Found:
    """Writes all trials, and the best settings, with those that were given, as a file for `train`."""
    trials = told(study)
    with atomic_write(folder / "trials.jsonl") as file:
        file.writelines(json.dumps(trial) + "\n" for trial in trials)
    complete = [trial for trial in trials if trial["state"] == "complete"]
    best = max(complete, key=lambda trial: (trial["dev_f1"], -trial["number"]), default=None)
    found = Found(trials, best, importances(study), problems)
    for key, value in found.importances.items():
        say(console, f"importance of {key}: {100 * value:.0f} %")
    if best is None:
        say(console, "No trial has ended with a score yet; the same command goes on.")
        return found
    path = folder / "best.toml"
    settings = {**asked.settings, **{key: as_text(value) for key, value in best["settings"].items()}}
    which = f"trial {best['number']}, the best of {len(trials)}, dev F1 {best['dev_f1']:.2f}"
    remarks = [f"wingspan tune: {which}.", f"Use it with: wingspan train {asked.recipe} --settings {path.name}"]
    write_settings(path, replace(asked, settings=settings), remarks)
    say(console, f"Settings of {which}: {path}")
    return found
