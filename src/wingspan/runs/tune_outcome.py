"""What a search came to: its trials, the best of them, what mattered."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from wingspan.corpora.files import atomic_write
from wingspan.experiments.settings_file import SettingsFile, write_settings
from wingspan.runs.speaking import say
from wingspan.runs.tune_space import as_text
from wingspan.runs.tune_study import importances, optuna


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
