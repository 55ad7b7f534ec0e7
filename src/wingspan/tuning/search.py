"""`wingspan tune`: a search for better settings with Optuna; the best go into a file for `train`.

The study is in a database, so the search goes on after a kill, and several commands may share it: each trains one trial
after the other. A trial whose process has died misses its heartbeats and is queued again with the same settings.
"""

from __future__ import annotations

import json
import math
import os
import platform
import random
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from filelock import FileLock
from rich.console import Console

from wingspan.corpora.leaks import OnLeak
from wingspan.evaluation.scores import headline
from wingspan.files import atomic_write
from wingspan.recipe import Between, OneOf, Recipe, must_recognize
from wingspan.recipe_json import SettingsFile, read_settings, write_settings
from wingspan.recipes import ranges
from wingspan.recognizer.torch_engine import usable_device
from wingspan.text import corpus_fingerprint
from wingspan.training.choice import settle
from wingspan.training.corpora import Corpora, gather, handle_leaks, lexicon_for
from wingspan.training.fit import fit
from wingspan.training.loop import Progress
from wingspan.training.run import TrainingJob, prepare, run
from wingspan.tuning.space import as_text, own_values, search_space
from wingspan.views.console import say


@dataclass(frozen=True)
class SearchRequest:
    """What to search, on which corpus, and for how long."""

    recipe: str
    train: tuple[Path, ...]
    dev: Path
    output: Path
    encoder: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    brought: Mapping[str, str] = field(default_factory=dict)
    """Settings that `auto` brings: the recipe's own here, where the search begins."""
    ranges: Mapping[str, Between | OneOf] = field(default_factory=dict)
    format: str | None = None
    trials: int = 20
    time_budget: float | None = None
    pruner: Literal["median", "hyperband", "none"] = "median"
    study: str | None = None
    name: str | None = None
    seed: int = 1
    device: str | None = None
    lexicon: str | None = None
    on_leak: OnLeak = "drop"
    heartbeat: int = 20
    """Seconds; a trial that is silent for three times as long is taken for dead and queued again."""

    @property
    def known(self) -> dict[str, str]:
        """Settings that every trial has, unless it searches them."""
        return {**self.brought, **self.settings}

    @property
    def database(self) -> str:
        """The file or URL of the study."""
        return self.study or str(self.output / "study.db")

    @property
    def best(self) -> Path:
        """The settings file of the best trial."""
        return self.output / "best.toml"


class SearchResult(NamedTuple):
    """The best trial of the study, how much each setting mattered, and all trials."""

    best: dict[str, Any] | None
    importances: dict[str, float]
    trials: list[dict[str, Any]]

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data, ready for JSON."""
        return self._asdict()


def tune(request: SearchRequest, console: Console) -> SearchResult:
    """Searches until the study has the requested number of trials, counting those of earlier and other commands.

    Commands that share a study do not wait for each other, so each may end up with one trial more.
    """
    deadline = time.monotonic() + request.time_budget if request.time_budget is not None else math.inf
    optuna()
    corpora = gather(request.train, request.dev, None, request.format)
    request = named(request, corpora, console)
    recipe, corpora, space = check(request, corpora, console)
    request.output.mkdir(parents=True, exist_ok=True)
    epochs = sum(recipe.train.epochs if phase.epochs is None else phase.epochs for phase in recipe.phases)
    with FileLock(request.output / ".study.lock"):  # of two commands that start together, one creates the study
        refuse_another_recipe(request)
        study = open_study(request, epochs)
        claim(study, request, space, corpora)
        if not study.get_trials(deepcopy=False) and (own := own_values(recipe, space)) is not None:
            study.enqueue_trial(own)  # the search never ends with settings worse on dev than the recipe's own
    done = sum(trial["state"] != "running" for trial in trials_of(study))
    left = max(0, request.trials - done)
    say(console, f"{request.database}: {done} trials done, {left} to do")
    for key, choices in space.items():
        if isinstance(choices, OneOf):
            values = " or ".join(map(as_text, choices.values))
        else:
            whole, log = "whole numbers " if choices.whole else "", ", log" if choices.log else ""
            values = f"{whole}{choices.low:g} to {choices.high:g}{log}"
        say(console, f"  {key}: {values}")

    def objective(trial: Any) -> float:
        # by the number of the trial, so that commands that share the study never draw the same settings
        draws = random.Random(f"{request.seed} {trial.number}").getrandbits(31)
        study.sampler = optuna().samplers.TPESampler(seed=draws, constant_liar=True)
        trial.set_user_attr("worker", f"{platform.node()} {os.getpid()}")
        try:
            return try_settings(request, corpora, space, trial)
        except (ValueError, OSError) as error:
            trial.set_user_attr("problem", " ".join(str(error).split()))
            raise

    def after(study: Any, trial: Any) -> None:
        trials = trials_of(study)
        row = next(row for row in trials if row["number"] == trial.number)
        ends = {"complete": f"dev F1 {row['dev_f1'] or 0:.2f}", "pruned": f"ended after epoch {row['epochs']}"}
        end = ends.get(row["state"], f"failed: {row.get('problem')}")
        values = {key: f"{value:.4g}" if isinstance(value, float) else value for key, value in row["settings"].items()}
        chosen = ", ".join(f"{key}={value}" for key, value in values.items())
        say(console, f"trial {row['number']}: {end} ({chosen}; {row['seconds'] or 0:.0f} s)")
        if sum(row["state"] != "running" for row in trials) >= request.trials or time.monotonic() >= deadline:
            study.stop()

    if left and time.monotonic() < deadline:
        with plain_errors(request.database):
            study.optimize(objective, n_trials=left, callbacks=[after], catch=(ValueError, OSError))
    return conclude(study, request, console)


def named(request: SearchRequest, corpora: Corpora, console: Console) -> SearchRequest:
    """The same with the recipe that `auto` stands for on this corpus."""
    settled = settle(request.recipe, corpora, request.encoder)
    if settled.reason is None:
        return request
    assert isinstance(settled.recipe, str)
    say(console, settled.reason)
    return replace(request, recipe=settled.recipe, encoder=settled.encoder, brought=settled.settings)


def check(
    request: SearchRequest, corpora: Corpora, console: Console
) -> tuple[Recipe, Corpora, dict[str, Between | OneOf]]:
    """The recipe, the corpora and the ranges, after a check of everything that could fail in the first trial."""
    recipe = must_recognize(prepare(request.recipe, request.encoder, request.known), "a search")
    space = search_space(recipe, ranges(request.recipe), request.ranges, request.settings)
    usable_device(request.device)
    handling = handle_leaks(corpora.train, corpora.held_out, request.on_leak, corpora.target)
    say(console, handling.line)
    corpora = replace(corpora, train=handling.documents)
    lexicon, said = lexicon_for(recipe, request.lexicon, corpora.train)
    if said:
        say(console, said)
    fit(recipe, corpora.train, corpora.dev, lexicon=lexicon)
    return recipe, corpora, space


def try_settings(request: SearchRequest, corpora: Corpora, space: Mapping[str, Between | OneOf], trial: Any) -> float:
    """Trains with settings that the study suggests. Returns the best dev F1; hopeless trainings end early."""
    settings: dict[str, str] = {}
    for key, choices in space.items():
        if isinstance(choices, OneOf):
            value = trial.suggest_categorical(key, list(choices.values))
        else:
            draw = trial.suggest_int if choices.whole else trial.suggest_float
            value = draw(key, choices.low, choices.high, log=choices.log)
        settings[key] = as_text(value)
    recipe = prepare(request.recipe, request.encoder, {**request.known, **settings})
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

    log = request.output / "logs" / f"trial-{trial.number}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w", encoding="utf-8") as file:
        job = TrainingJob(
            recipe,
            corpora,
            seed=request.seed,
            device=request.device,
            watch=watch,
            lexicon=request.lexicon,
            on_leak=request.on_leak,
        )
        run(job, Console(file=file, width=160))
    return best


def optuna() -> Any:
    """The library, made quiet; an error with the fix where it is missing."""
    try:
        import optuna as library
    except ImportError:
        raise ValueError(
            "Optuna is needed for wingspan tune and is not installed; install it with: pip install 'wingspan-ner[tune]'"
        ) from None
    library.logging.set_verbosity(library.logging.ERROR)
    return library


@contextmanager
def plain_errors(database: str) -> Iterator[None]:
    """Turns trouble with the database into one sentence, and silences the warning that heartbeats are experimental."""
    library = optuna()
    from sqlalchemy.exc import SQLAlchemyError

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", library.exceptions.ExperimentalWarning)
        try:
            yield
        except (SQLAlchemyError, library.exceptions.StorageInternalError, ImportError) as error:
            cause = " ".join(str(error.__cause__ or error).split())[:200]
            raise ValueError(f"{database}: no study can be kept there ({cause}); check the file or URL") from error


def open_study(request: SearchRequest, epochs: int) -> Any:
    """The study, created where there is none yet. Higher is better: the value is dev F1."""
    library = optuna()
    url, pruners = request.database, library.pruners
    if "://" not in url:
        from sqlalchemy.engine import URL

        url = URL.create("sqlite", database=str(Path(url).absolute())).render_as_string(hide_password=False)
    pruner = {
        "median": lambda: pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=max(1, epochs // 5)),
        "hyperband": lambda: pruners.HyperbandPruner(max_resource=max(2, epochs)),
        "none": pruners.NopPruner,
    }[request.pruner]()
    with plain_errors(request.database):
        storage = library.storages.RDBStorage(
            url,
            # a process waits up to a minute for a database file that another one writes to
            engine_kwargs={"connect_args": {"timeout": 60}} if url.startswith("sqlite") else None,
            heartbeat_interval=request.heartbeat,
            grace_period=3 * request.heartbeat,
            heartbeat_stale_trial_callback=library.storages.RetryHeartbeatStaleTrialCallback(max_retry=3),
        )
        if storage.engine.dialect.name == "sqlite":
            serialize_transactions(storage.engine)
        return library.create_study(
            storage=storage,
            study_name=request.name or request.recipe,
            direction="maximize",
            load_if_exists=True,
            pruner=pruner,
        )


def serialize_transactions(engine: Any) -> None:
    """Makes every transaction with a SQLite file wait for the one before it, reads included.

    Otherwise two processes may both read that a queued trial waits, and both start it: SQLite has no row locks, and
    Python's driver begins a transaction only at the first write.
    """
    from sqlalchemy import event

    def leave_begin_to_us(connection: Any, _: Any) -> None:
        connection.isolation_level = None

    def begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    event.listen(engine, "connect", leave_begin_to_us)
    event.listen(engine, "begin", begin)
    engine.dispose()  # connections opened earlier do not have the listeners


def refuse_another_recipe(request: SearchRequest) -> None:
    """Refuses a folder with what was found for another recipe, as when `auto` stands for another one than before.

    The study would be another one, and its results would replace those.
    """
    earlier = read_settings(request.best).recipe if request.best.exists() else request.recipe
    if earlier != request.recipe:
        raise ValueError(
            f"{request.output}: the search there is for the recipe {earlier!r}, not {request.recipe!r}, which would "
            "replace its results; choose another --output"
        )


def claim(study: Any, request: SearchRequest, space: Mapping[str, Between | OneOf], corpora: Corpora) -> None:
    """Notes what the study is about; values of another recipe or corpus cannot be compared with it."""
    facts = {
        "recipe": request.recipe,
        "encoder": request.encoder,
        "settings": dict(request.known),
        "ranges": {key: repr(choices) for key, choices in space.items()},
        "seed": request.seed,
        "lexicon": request.lexicon,
        "train corpus": corpus_fingerprint(corpora.train),
        "dev corpus": corpus_fingerprint(corpora.dev),
    }
    before = study.user_attrs.get("search")
    if before is None:
        study.set_user_attr("search", facts)
        return
    other = [name for name in facts if before.get(name) != facts[name]]
    if other:
        raise ValueError(
            f"{request.database}: the study {study.study_name!r} was made with another {other[0]} "
            f"({before.get(other[0])!r}, not {facts[other[0]]!r}); choose another --output or --name"
        )


def trials_of(study: Any) -> list[dict[str, Any]]:
    """The trials as plain data, without those that wait or died with their process, which are queued again."""
    states = optuna().trial.TrialState
    return [
        {
            "number": trial.number,
            "state": trial.state.name.lower(),
            "dev_f1": trial.value if trial.state == states.COMPLETE else None,
            "settings": dict(trial.params),
            "epochs": len(trial.intermediate_values),
            "seconds": trial.duration.total_seconds() if trial.duration else None,
            **trial.user_attrs,
        }
        for trial in study.get_trials(deepcopy=False)
        if trial.state != states.WAITING and (trial.state != states.FAIL or "problem" in trial.user_attrs)
    ]


def conclude(study: Any, request: SearchRequest, console: Console) -> SearchResult:
    """Writes all trials, and the best settings together with the requested ones as a file for `train`."""
    trials = trials_of(study)
    with atomic_write(request.output / "trials.jsonl") as file:
        file.writelines(json.dumps(trial) + "\n" for trial in trials)
    complete = [trial for trial in trials if trial["state"] == "complete"]
    best = max(complete, key=lambda trial: (trial["dev_f1"], -trial["number"]), default=None)
    weights: dict[str, float] = {}  # how much each setting matters for the value, from 0 to 1, by PED-ANOVA
    if len({trial["dev_f1"] for trial in complete}) >= 4:
        library = optuna()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            evaluator = library.importance.PedAnovaImportanceEvaluator(target_quantile=0.25)
            weights = library.importance.get_param_importances(study, evaluator=evaluator)
    result = SearchResult(best, {key: float(value) for key, value in weights.items()}, trials)
    for key, value in result.importances.items():
        say(console, f"importance of {key}: {100 * value:.0f} %")
    if best is None:
        say(console, "No trial has ended with a score yet; the same command goes on.")
        return result
    path = request.best
    settings = {**request.known, **{key: as_text(value) for key, value in best["settings"].items()}}
    which = f"trial {best['number']}, the best of {len(trials)}, dev F1 {best['dev_f1']:.2f}"
    remarks = [f"wingspan tune: {which}.", f"Use it with: wingspan train {request.recipe} --settings {path.name}"]
    write_settings(path, SettingsFile(request.recipe, request.encoder, settings), remarks)
    say(console, f"Settings of {which}: {path}")
    return result
