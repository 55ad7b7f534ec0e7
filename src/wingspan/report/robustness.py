"""The chapter on robustness: the drop in F1 under each perturbation of the documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from wingspan.corpora.perturb import PERTURBATIONS, perturb
from wingspan.evaluation.matching import Mode
from wingspan.evaluation.scores import Scores, recognition
from wingspan.evaluation.transfer import CorpusModel
from wingspan.report.blocks import Column, Section, Table, TableRow, numbers
from wingspan.text import Document, without_gold


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
    """The number of documents that it changed."""

    @property
    def drop(self) -> float:
        """The loss in points of micro F1."""
        return self.clean.micro.f1 - self.scores.micro.f1

    @property
    def labels(self) -> dict[str, float]:
        """The loss of each label in points of F1."""
        clean, perturbed = self.clean.labels, self.scores.labels
        return {label: clean[label].f1 - perturbed[label].f1 for label in perturbed if label in clean}


def robustness(
    model: Predicts | CorpusModel,
    gold: Sequence[Document],
    perturbations: Iterable[str] = tuple(PERTURBATIONS),
    *,
    predicted: Sequence[Document] | None = None,
    seed: int = 1,
    mode: Mode = "strict",
) -> list[Drop]:
    """Predicts the documents under every perturbation and scores each against its perturbed gold.

    `predicted` are the predictions for the documents as they are, where they are known already. The model sees no gold,
    and the entities of perturbed documents are as exact as those of the originals, so a drop is the model's.
    """
    predict: CorpusModel = model if callable(model) else model.predict

    def scored(documents: Sequence[Document]) -> Scores:
        return recognition(documents, predict([without_gold(document) for document in documents]), mode)

    clean = scored(gold) if predicted is None else recognition(gold, predicted, mode)
    drops = []
    for name in perturbations:
        perturbed = perturb(gold, name, seed)
        changed = sum(before.text != after.text for before, after in zip(gold, perturbed, strict=True))
        drops.append(Drop(name, clean, scored(perturbed), changed))
    return drops


def robustness_chapter(drops: Sequence[Drop], documents: int) -> Section:
    """The loss under each perturbation, overall and by label."""
    rows: list[TableRow] = []
    by_label: list[TableRow] = []
    labels = sorted({label for drop in drops for label in drop.clean.labels})
    for drop in drops:
        name, micro = drop.perturbation.replace("_", " "), drop.scores.micro
        rows.append((name, drop.changed, micro.precision, micro.recall, micro.f1, -drop.drop))
        losses = drop.labels
        by_label.append((name, *(-losses[label] if label in losses else None for label in labels)))
    first = Column("perturbation", "text")
    figures = numbers("changed documents", "precision", "recall", "F1")
    changes = (Column(label, "change") for label in labels)
    blocks = [
        Table("perturbations", "F1 on perturbed documents", (first, *figures, Column("change", "change")), rows),
        Table("robustness-by-label", "Change of F1 by label", (first, *changes), by_label),
    ]
    lead = f"Each perturbation is made on {documents:,} documents, with entities as exact as in the originals."
    return Section("robustness", "Robustness", blocks, lead)
