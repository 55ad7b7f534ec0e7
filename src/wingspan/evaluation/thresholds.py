"""Precision and recall at every threshold, and the thresholds that suit a purpose best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from wingspan.evaluation.calibration import ByLabel, Floats, Scored, scored
from wingspan.text import Document


@dataclass(frozen=True)
class Curve:
    """What keeping all entities with at least a score gives, from the highest score down; figures in percent.

    It can go no further than what was found: predict with a low threshold to see more of it.
    """

    thresholds: Floats
    precision: Floats
    recall: Floats
    f1: Floats
    gold: int

    @property
    def average_precision(self) -> float:
        """The area below the curve as a sum of steps; entities that are never found count against it."""
        return float((np.diff(self.recall, prepend=0.0) * self.precision).sum() / 100)

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        columns = {name: getattr(self, name).tolist() for name in ("thresholds", "precision", "recall", "f1")}
        return {**columns, "average_precision": self.average_precision, "gold": self.gold}


class Choice(NamedTuple):
    """A threshold and what it gives on the documents it was chosen on."""

    threshold: float
    precision: float
    recall: float
    f1: float
    reached: bool
    """Whether the wanted precision is reached; it always is where the aim is F1."""


def curves(gold: Sequence[Document], found: Sequence[Document]) -> ByLabel[Curve]:
    """The precision-recall curve of all entities, and of each label."""
    rows = scored(gold, found)
    return ByLabel(curve(rows.overall), {label: curve(row) for label, row in rows.labels.items()})


def curve(row: Scored) -> Curve:
    """One point for each score that occurs."""
    order = np.argsort(-row.scores, kind="stable")
    scores = row.scores[order]
    last = np.nonzero(np.append(scores[1:] != scores[:-1], True))[0] if len(scores) else np.zeros(0, dtype=int)
    tp = row.right[order].cumsum()[last]
    found = last + 1
    precision, recall = 100 * tp / found, 100 * tp / max(row.gold, 1)
    return Curve(scores[last], precision, recall, 200 * tp / (found + row.gold), row.gold)


def choose(points: Curve, precision: float | None = None) -> Choice | None:
    """The threshold with the best F1, or the one with the most recall at the wanted precision.

    Where that precision is never reached, the most precise one. A threshold lies halfway to the next lower score, so
    that it is no accident of one entity; None where nothing was found.
    """
    if not len(points.thresholds):
        return None
    enough = np.full(len(points.f1), True) if precision is None else points.precision >= precision
    if precision is None:
        at = int(points.f1.argmax())
    elif enough.any():
        at = int(np.nonzero(enough)[0][-1])
    else:
        at = int(len(points.precision) - 1 - points.precision[::-1].argmax())
    lower = points.thresholds[at + 1] if at + 1 < len(points.thresholds) else points.thresholds[at]
    bar = float((points.thresholds[at] + lower) / 2)
    return Choice(bar, float(points.precision[at]), float(points.recall[at]), float(points.f1[at]), bool(enough[at]))


def choose_thresholds(
    gold: Sequence[Document], found: Sequence[Document], precision: float | None = None
) -> dict[str, Choice]:
    """A threshold for each label that was found: the best F1, or the wanted precision in percent.

    Give predictions made with a low threshold; what they leave out cannot be chosen.
    """
    if precision is not None and not 0 < precision <= 100:
        raise ValueError(f"a precision of {precision:g} cannot be had; give percent, above 0 up to 100")
    chosen = {label: choose(points, precision) for label, points in curves(gold, found).labels.items()}
    return {label: choice for label, choice in chosen.items() if choice is not None}
