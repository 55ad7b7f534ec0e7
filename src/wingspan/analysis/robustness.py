"""How much a model loses on documents that came otherwise: the drop in F1 under each perturbation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from wingspan.corpora.gold import without_gold
from wingspan.corpora.perturbations import PERTURBATIONS, perturb
from wingspan.evaluation import Mode, Scores, recognition
from wingspan.text import Document

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
