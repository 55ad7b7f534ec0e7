"""Trainings that take a second: few generated documents, tiny encoders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator

from wingspan.corpora.demo import corpus
from wingspan.corpora.formats import write
from wingspan.encoders.hashed import HashedEncoder
from wingspan.encoders.pretrained import PretrainedEncoder
from wingspan.labels import LabelSet
from wingspan.model import tensors
from wingspan.recipe import Recipe, TrainSettings, assemble
from wingspan.recipes import find
from wingspan.recognizer import Recognizer
from wingspan.text import Document
from wingspan.training.fit import fit
from wingspan.training.loop import TrainingData, TrainingRun, build_optimizer, collator, plan

TINY = {"encoder.buckets": 300, "encoder.embedding": 4, "encoder.hidden": 8}
"""Settings for `--set` that make the hashed encoder tiny."""
HASHED = partial(HashedEncoder, buckets=300, embedding=4, hidden=8, dropout=0.1)
FAST = TrainSettings(epochs=1, batch_size=16, learning_rate=5e-3, clip=5.0, warmup=0.0)


def train_documents(number: int = 20) -> tuple[Document, ...]:
    return corpus()[0][:number]


def dev_documents(number: int = 4) -> tuple[Document, ...]:
    return corpus()[1][:number]


def tiny(name: str, bert: Path | None = None, **train) -> Recipe:
    """A recipe with a tiny encoder and a quick training."""
    encoder = HASHED if bert is None else partial(PretrainedEncoder, name=str(bert))
    return replace(find(name), encoder=encoder, train=replace(FAST, **train))


def untrained(name: str = "baseline", labels: Sequence[str] = ("Drug", "Gene"), seed: int = 0, **changes) -> Recognizer:
    """A recognizer with random weights: its findings are arbitrary but always the same."""
    recipe = replace(tiny(name), max_width=4, overlap="any")
    head: Any = recipe.head
    if head is not None and "start_chance" in head.keywords:  # types that start rare are hardly found by random weights
        recipe = replace(recipe, head=partial(head.func, **{**head.keywords, "start_chance": None}))
    recipe = replace(recipe, **changes)
    label_set = LabelSet({"main": tuple(labels)})
    torch.manual_seed(seed)
    learner = assemble(recipe, label_set)
    with torch.no_grad():
        for parameter in learner.parameters():  # larger than the usual start, so that something is found
            parameter.add_(0.2 * torch.randn_like(parameter))
    return Recognizer(recipe, label_set, learner, device="cpu")


def run_of(recipe: Recipe, seed: int = 1, documents: Sequence[Document] = (), lexicon=None, **others) -> TrainingRun:
    """A training on the generated documents, ready for the loop."""
    fitted = fit(recipe, documents or train_documents(), seed=seed, lexicon=lexicon)
    return TrainingRun(fitted.recipe, fitted.labels, fitted.learner, TrainingData(fitted.sentences), seed, **others)


def first_losses(run: TrainingRun, steps: int, terms: tuple[str, ...] = ()) -> list[float]:
    """The losses of the first steps, by hand, as the loop takes them."""
    optimizer = build_optimizer(run.learner, run.recipe.train)
    collate, order = collator(run.recipe, run.labels, run.learner), plan(run, 0)[0]
    run.learner.train()
    losses = []
    for step in range(steps):
        torch.manual_seed(step)
        batch = tensors(collate([run.data.sentences[at] for at in order[step]]), "cpu")
        loss = run.learner(batch.inputs, batch.gold, dict(batch.targets), terms or tuple(run.recipe.terms))["loss"]
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def on_cpu() -> Accelerator:
    return Accelerator(cpu=True)


def entities(documents: Sequence[Document]) -> list[list[tuple]]:
    """What was found, to be compared: label, spans, score."""
    return [[(e.label, e.spans, e.score) for e in document.entities] for document in documents]


def alike(one: Sequence[Document], other: Sequence[Document], tolerance: float = 1e-5) -> bool:
    """The same entities, with scores within the tolerance."""
    first, second = entities(one), entities(other)
    if [[e[:2] for e in d] for d in first] != [[e[:2] for e in d] for d in second]:
        return False
    pairs = zip([e for d in first for e in d], [e for d in second for e in d], strict=True)
    return all(abs(a[2] - b[2]) <= tolerance for a, b in pairs)


def save_corpora(folder: Path, train: int = 12, dev: int = 4) -> tuple[Path, Path]:
    """Training and dev documents as files."""
    write(train_documents(train), folder / "train.jsonl")
    write(dev_documents(dev), folder / "dev.jsonl")
    return folder / "train.jsonl", folder / "dev.jsonl"
