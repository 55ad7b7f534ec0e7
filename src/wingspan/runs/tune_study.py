"""Studies of Optuna: in a database file or on a server, shared by processes, alive after a kill.

A trial whose process has died is noticed by its missing heartbeat and queued again with the same settings.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

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
