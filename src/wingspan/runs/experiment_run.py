"""One run of an experiment: claim it, train, score, write its line."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import torch
from rich.console import Console

from wingspan.corpora import write
from wingspan.evaluation.scores import Counts, Scores, recognition
from wingspan.experiments.fractions import fraction_of
from wingspan.experiments.ledger import Ledger
from wingspan.experiments.plan import Plan, PlannedRun, Sources
from wingspan.recipe import Recipe, made_by
from wingspan.recognizer import Recognizer
from wingspan.runs.reading import Corpora, corpora_of, documents_of
from wingspan.runs.train import Job, prepare, run
from wingspan.text import Document
from wingspan.training.fitting import coverage_of

Status = Literal["done", "failed", "held", "found"]


@dataclass(frozen=True)
class Assignment:
    """A run as a worker gets it."""

    id: str
    run: PlannedRun
    plan: Plan
    fingerprints: Mapping[str, str]

    @property
    def log(self) -> Path:
        """Where the training says what it does."""
        return self.plan.output / "logs" / f"{self.id}.log"


@dataclass(frozen=True)
class Outcome:
    """What became of an assignment: done with its line, failed with a reason, held or finished by another process."""

    status: Status
    line: Mapping[str, Any] | None = None
    problem: str = ""


def attempt(assignment: Assignment) -> Outcome:
    """Does a run unless someone else has done it or is at it. Bad data or settings fail this run and no other."""
    ledger = Ledger(assignment.plan.output)
    with ledger.claim(assignment.id) as mine:
        if not mine:
            return Outcome("held")
        if assignment.id in ledger.lines():
            return Outcome("found", ledger.lines()[assignment.id])
        try:
            line, documents = carry_out(assignment)
            ledger.add(assignment.id, line, documents)
        except (ValueError, OSError) as error:
            return Outcome("failed", problem=" ".join(str(error).split()))
    return Outcome("done", ledger.lines()[assignment.id])


def carry_out(assignment: Assignment) -> tuple[dict[str, Any], dict[str, tuple[Counts, ...]]]:
    """Trains and scores. The line of the run, and the counts of every document of what was scored."""
    plan, planned = assignment.plan, assignment.run
    corpora = known_parts(planned.corpus.sources(), tuple(assignment.fingerprints.items()))
    parts = {"dev": corpora.dev, "test": corpora.test}
    train = fraction_of(corpora.train, planned.fraction, planned.seed)
    settings = {**corpora.settings, **planned.settings}
    recipe = prepare(planned.system.recipe, planned.system.encoder, settings)
    torch.set_float32_matmul_precision("high" if plan.tf32 else "highest")
    began = time.perf_counter()
    unseen = {"test": corpora.test} if "test" in plan.evaluate and corpora.plan is None else {}
    model = train_model(assignment, recipe, replace(corpora, train=train, test=()), unseen)
    trained = time.perf_counter()
    found = {part: score(model, part, parts[part], assignment) for part in plan.evaluate}
    if plan.keep_models:
        model.save_pretrained(plan.output / "models" / assignment.id)
    shutil.rmtree(states(assignment), ignore_errors=True)
    scored = time.perf_counter()
    line = {
        "name": planned.system.name,
        **dict(zip(("recipe", "variant"), _system_and_variant(planned.system.recipe), strict=True)),
        "settings": settings,
        "encoder": planned.system.encoder or encoder_name(model.recipe),
        "corpus": {"name": planned.corpus.name, "fingerprints": dict(assignment.fingerprints)},
        "lexicon": planned.corpus.lexicon,
        "seed": planned.seed,
        "fraction": planned.fraction,
        "train_documents": len(train),
        "leaks": model.facts["leaks"],
        "commit": plan.commit,
        "versions": model.facts["versions"],
        "device": device_name(model),
        "max_width": model.recipe.max_width,
        "overlap": model.recipe.overlap,
        "epochs": model.recipe.train.epochs,
        "train_coverage": model.facts["coverage"],
        **{part: scores.to_dict() for part, scores in found.items()},
        **({"corpora": model.facts["corpora"]} if corpora.plan is not None else {}),
        "seconds": {
            "training": round(trained - began, 1),
            "scoring": round(scored - trained, 1),
            "total": round(scored - began, 1),
        },
    }
    return line, {part: scores.documents for part, scores in found.items()}


def train_model(
    assignment: Assignment, recipe: Recipe, corpora: Corpora, unseen: Mapping[str, Sequence[Document]]
) -> Recognizer:
    """Trains, in memory or with states on the disk from which a killed run goes on; not on what shall be unseen."""
    plan, planned = assignment.plan, assignment.run
    folder = states(assignment) if plan.checkpoints else None
    resume = folder is not None and (folder / "state" / "run.json").is_file()
    if folder is not None and not resume:
        shutil.rmtree(folder, ignore_errors=True)
    assignment.log.parent.mkdir(parents=True, exist_ok=True)
    with assignment.log.open("a", encoding="utf-8") as log:
        console = Console(file=log, width=160)
        console.print(f"{planned} ({assignment.id})", highlight=False, markup=False)
        job = Job(
            recipe,
            corpora,
            folder,
            planned.seed,
            resume=resume,
            device=plan.device,
            lexicon=planned.corpus.lexicon,
            on_leak=plan.on_leak,
            held_out=unseen,
        )
        return run(job, console)[0]


def states(assignment: Assignment) -> Path:
    """Where a run with checkpoints keeps what it needs to go on."""
    return assignment.plan.output / "running" / assignment.id


def score(model: Recognizer, part: str, gold: Sequence[Document], assignment: Assignment) -> Scores:
    """Strict scores of a part, with what the model can never find in it; keeps the predictions where asked to."""
    predicted = model.predict(gold, batch_size=64)
    if assignment.plan.keep_predictions:
        write(predicted, assignment.plan.output / "predictions" / f"{assignment.id}.{part}.jsonl")
    scores = recognition(gold, predicted)
    coverage = coverage_of(model.recipe, model.learner.model.encoder, gold)
    return replace(scores, coverage={**scores.coverage, **coverage.to_dict()})


def read_parts(sources: Sources) -> Corpora:
    """The documents of a corpus; of several together, dev and test are those of their target."""
    if sources.several is not None:
        return corpora_of(None, None, None, None, sources.several)
    parts = {
        part: [document for path in paths for document in documents_of(path, sources.format)]
        for part, paths in sources.files
    }
    return Corpora(parts["train"], parts.get("dev", ()), parts.get("test", ()))


@lru_cache(maxsize=2)
def known_parts(sources: Sources, fingerprints: tuple[tuple[str, str], ...]) -> Corpora:
    """The same; a worker that goes on with the same content does not read it again."""
    return read_parts(sources)


def device_name(model: Recognizer) -> str:
    """What the run was on."""
    return torch.cuda.get_device_name(model.device) if model.device.type == "cuda" else model.device.type


def encoder_name(recipe: Recipe) -> str:
    """The encoder of a recipe as people call it."""
    part: Any = recipe.encoder
    return str(getattr(part, "keywords", {}).get("name", made_by(part).__name__))


def _system_and_variant(recipe: str) -> tuple[str, str]:
    """`bundling/span` as its two halves; the file of a user's own recipe as its name."""
    if recipe.endswith(".py"):
        return Path(recipe).name, ""
    system, _, variant = recipe.partition("/")
    return system, variant
