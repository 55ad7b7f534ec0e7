"""Plans for trainings that take a moment, and processes that carry them out until they are killed."""

from __future__ import annotations

import json
import multiprocessing
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch._dynamo
import torch.distributed.tensor  # both are imported by the first training, which takes seconds: once is enough
from forking import forking
from killing import deadly
from rich.console import Console

from trainings import TINY
from wingspan.corpora.formats import write
from wingspan.experiments.plan import ExperimentPlan, read_plan
from wingspan.experiments.run import run_experiment
from wingspan.text import Document, Entity, Span
from wingspan.training.journal import Journal

RECIPES = ["baseline", {"recipe": "bundling/seq", "name": "tagger"}, {"recipe": "bundling/bl-span", "name": "both"}]
QUICK = {**TINY, "train.epochs": 6, "train.batch_size": 3, "train.learning_rate": 0.05, "train.warmup": 0.0}
WORDS = {"Drug": ("aspirin", "zodrin", "quinate"), "Gene": ("BRCA1", "TP53", "KRAS")}


def documents(part: str, number: int, shift: int = 0) -> list[Document]:
    """Sentences with a drug and a gene each, easy to learn."""
    made = []
    for at in range(number):
        drug, gene = WORDS["Drug"][(at + shift) % 3], WORDS["Gene"][at % 3]
        text = f"We saw {drug} act on {gene} in mice."
        spans = {"Drug": (7, 7 + len(drug)), "Gene": (text.index(gene), text.index(gene) + len(gene))}
        found = tuple(Entity(label, (Span(*span),)) for label, span in spans.items())
        made.append(Document(f"{part}-{at}", text, found))
    return made


def make_corpora(folder: Path) -> list[dict[str, Any]]:
    """Two corpora as files."""
    found = []
    for shift, name in enumerate(("first", "second")):
        for part, number in (("train", 9), ("dev", 3), ("test", 4)):
            write(documents(part, number, shift), folder / name / f"{part}.jsonl")
        found.append({"name": name, **{part: f"{name}/{part}.jsonl" for part in ("train", "dev", "test")}})
    return found


def plan_file(folder: Path, **changes: Any) -> Path:
    """A plan of 3 recipes x 2 corpora x 3 seeds, with changes; a key that is None is left out."""
    content = {
        "title": "Quick",
        "output": "results",
        "encoder": "hashed",
        "device": "cpu",
        "workers": 0,
        "recipes": RECIPES,
        "set": QUICK,
        "corpora": make_corpora(folder),
    }
    path = folder / "plan.toml"
    kept = {key: value for key, value in {**content, **changes}.items() if value is not None}
    path.write_text("\n".join(f"{key} = {toml(value)}" for key, value in kept.items()))
    tomllib.loads(path.read_text())
    return path


def toml(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


def plan(folder: Path, **changes: Any) -> ExperimentPlan:
    return read_plan(plan_file(folder, **changes))


def started(plan: ExperimentPlan, kill: tuple[str, int] | None = None) -> multiprocessing.Process:
    """A process that carries a plan out."""
    return forked(run_experiment, plan, kill=kill)


def forked(target: Callable, *arguments: object, kill: tuple[str, int] | None = None) -> multiprocessing.Process:
    """A process that has torch loaded and calls a function with a silent console.

    `kill` names at which call of what it kills itself.
    """
    process = forking().Process(target=call, args=(target, arguments, kill))
    process.start()
    return process


def call(target: Callable, arguments: tuple[object, ...], kill: tuple[str, int] | None) -> None:
    torch.set_num_threads(1)
    if kill is not None and kill[0] == "step":
        torch.optim.AdamW.step = deadly(torch.optim.AdamW.step, kill[1])
    elif kill is not None:
        Journal.write = deadly(Journal.write, kill[1], half_a_line)
    target(*arguments, Console(quiet=True))


def half_a_line(journal: Any, *_: object) -> None:
    """What a kill in the middle of writing leaves."""
    journal._file.write(b'{"time": "2026-01-01", "event": "run", "id": "ab')
    journal._file.flush()
