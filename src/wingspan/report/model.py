"""Chapters that need the model: its recipe and training, and how it stands up to documents that came otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from wingspan.corpora.perturb import PERTURBATIONS, perturb
from wingspan.evaluation.matching import Mode
from wingspan.evaluation.scores import Scores, recognition
from wingspan.report import plots
from wingspan.report.blocks import Block, Column, Facts, Row, Section, Table
from wingspan.report.geometry import losses_by_epoch
from wingspan.report.plots import available, drawn
from wingspan.text import Document, without_gold


def perturbed(drops: Sequence[Drop], documents: int) -> Section:
    """What is lost under each perturbation, overall and by label."""
    columns = (
        Column("perturbation", "text"),
        Column("changed documents"),
        Column("precision"),
        Column("recall"),
        Column("F1"),
        Column("change", "change"),
    )
    rows: list[Row] = []
    for drop in drops:
        micro = drop.scores.micro
        rows.append((named(drop), drop.changed, micro.precision, micro.recall, micro.f1, -drop.drop))
    labels = sorted({label for drop in drops for label in drop.clean.labels})
    by_label: list[Row] = []
    for drop in drops:
        figures = drop.to_dict()["labels"]
        changes = (-figures[label]["drop"] if label in figures else None for label in labels)
        by_label.append((named(drop), *changes))
    lead = f"Each perturbation is made on {documents:,} documents, with entities as exact as in the originals."
    return Section(
        "robustness",
        "Robustness",
        [
            Table("perturbations", "F1 on perturbed documents", columns, rows),
            Table(
                "robustness-by-label",
                "Change of F1 by label",
                (Column("perturbation", "text"), *(Column(label, "change") for label in labels)),
                by_label,
            ),
        ],
        lead,
    )


def named(drop: Drop) -> str:
    """A perturbation in words."""
    return drop.perturbation.replace("_", " ")


def trained(recipe: Mapping[str, Any], facts: Mapping[str, Any], journal: Path | None, figures: Path | None) -> Section:
    """The recipe with all its settings, what is known of the training, and its curves."""
    blocks: list[Block] = []
    if journal is not None:
        blocks += curves(journal, figures)
    blocks.append(Facts("training", "The training", facts))
    blocks.append(Facts("recipe", "The recipe", recipe))
    return Section("model", "Model and training", blocks)


def curves(journal: Path, figures: Path | None) -> list[Block]:
    """Losses and dev F1 or accuracy, epoch by epoch (001, Figure 3)."""
    epochs = losses_by_epoch(journal)
    if not epochs:
        return []
    blocks: list[Block] = []
    dev = f"dev {epochs[0].figure}"
    if available():
        blocks.append(drawn(plots.losses_figure(epochs), "loss-curve", f"Loss and {dev} by epoch", figures))
    names = list(dict.fromkeys(name for one in epochs for name in one.losses))
    columns = (Column("epoch"), *(Column(name, digits=4) for name in names), Column(dev))
    rows: list[Row] = [(one.epoch, *(one.losses.get(name) for name in names), one.dev) for one in epochs]
    return [*blocks, Table("epochs", f"Losses and {dev} by epoch", columns, rows)]


# --- How much a model loses on documents that came otherwise: the drop in F1 under each perturbation.


Predict = Callable[[Sequence[Document]], Sequence[Document]]
"""Documents without entities in, the same documents with entities out."""


class Predicts(Protocol):
    """A model, such as `Recognizer`."""

    def predict(self, texts: Any, /) -> Sequence[Document]:
        """Documents with entities, in the order of the input."""


@dataclass(frozen=True)
class Drop:
    """The scores under one perturbation, beside those without it."""

    perturbation: str
    clean: Scores
    scores: Scores
    changed: int
    """How many documents it changed."""

    @property
    def drop(self) -> float:
        """What is lost, in points of micro F1."""
        return self.clean.micro.f1 - self.scores.micro.f1

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data; the drop of each label beside its F1."""
        labels = {
            label: {"f1": counts.f1, "drop": self.clean.labels[label].f1 - counts.f1}
            for label, counts in self.scores.labels.items()
            if label in self.clean.labels
        }
        micro = self.scores.micro
        figures = {"precision": micro.precision, "recall": micro.recall, "f1": micro.f1, "drop": self.drop}
        return {"perturbation": self.perturbation, "changed": self.changed, **figures, "labels": labels}


def robustness(
    model: Predicts | Predict,
    gold: Sequence[Document],
    perturbations: Iterable[str] = tuple(PERTURBATIONS),
    *,
    seed: int = 1,
    mode: Mode = "strict",
) -> list[Drop]:
    """Predicts the documents as they are and under every perturbation, and scores each against its own gold.

    The model sees no gold, and the entities of perturbed documents are as exact as those of the originals, so a drop is
    the model's.
    """
    predict: Predict = model if callable(model) else model.predict
    clean = _scored(predict, gold, mode)
    drops = []
    for name in perturbations:
        other = perturb(gold, name, seed)
        changed = sum(before.text != after.text for before, after in zip(gold, other, strict=True))
        drops.append(Drop(name, clean, _scored(predict, other, mode), changed))
    return drops


def _scored(predict: Predict, gold: Sequence[Document], mode: Mode) -> Scores:
    return recognition(gold, predict([without_gold(document) for document in gold]), mode)
