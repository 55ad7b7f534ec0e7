"""`wingspan tune`: a search for better settings, by several processes on one study; the best as a file for `train`."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from multiprocessing.connection import wait
from typing import Any

from rich.console import Console

from wingspan.corpora.statistics import describe
from wingspan.experiments.settings_file import SettingsFile
from wingspan.ranges import Between, OneOf
from wingspan.recipe import Recipe
from wingspan.recipes import ranges
from wingspan.recognizer import usable_device
from wingspan.runs.leak_handling import handle_leaks
from wingspan.runs.processes import last_words, starting
from wingspan.runs.reading import gather
from wingspan.runs.recognizers_only import must_recognize
from wingspan.runs.speaking import say
from wingspan.runs.synonyms import lexicon_of
from wingspan.runs.train import prepare
from wingspan.runs.tune_outcome import Found, conclude, news, told
from wingspan.runs.tune_space import as_text, own_values, search_space
from wingspan.runs.tune_study import Place, open_study, optuna
from wingspan.runs.tune_trials import Order, Search, take_part, work
from wingspan.training.fitting import fit

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
