"""Whether scores mean what they say: reliability, expected calibration error, and the temperature that repairs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from wingspan.evaluation.matching import pair
from wingspan.text import Document

Floats = npt.NDArray[np.float64]
T = TypeVar("T")

COLDEST, WARMEST = 0.25, 10.0
"""Where a temperature is looked for; where dev decisions are all right the coldest would win, however cold it is."""


@dataclass(frozen=True)
class ByLabel(Generic[T]):
    """One value for all entities, one for each label."""

    overall: T
    labels: Mapping[str, T]


class Scored(NamedTuple):
    """Found entities: how sure each was and whether it is right (strictly); and how many there are to find."""

    scores: Floats  # (N,)
    right: npt.NDArray[np.bool_]  # (N,)
    gold: int


class Bin(NamedTuple):
    """The found entities with a score in a range: how sure they were on average, how many are right, in percent."""

    low: float
    high: float
    entities: int
    confidence: float
    accuracy: float


@dataclass(frozen=True)
class Reliability:
    """A reliability diagram. `error` is the expected calibration error in points (Naeini et al. 2015)."""

    bins: tuple[Bin, ...]
    entities: int

    @property
    def error(self) -> float:
        """The mean distance of confidence and accuracy, over entities."""
        return sum(one.entities * abs(one.confidence - one.accuracy) for one in self.bins) / max(self.entities, 1)

    @property
    def worst(self) -> float:
        """The largest distance of any bin."""
        return max((abs(one.confidence - one.accuracy) for one in self.bins if one.entities), default=0.0)

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        bins = [one._asdict() for one in self.bins]
        return {"error": self.error, "worst": self.worst, "entities": self.entities, "bins": bins}


@dataclass(frozen=True)
class Calibration:
    """What is saved with a calibrated model, as `calibration.json`.

    Class scores are divided by `temperature` before they become chances; `thresholds` are the least score of labels.
    `facts` tell what it was fitted on.
    """

    temperature: float = 1.0
    thresholds: Mapping[str, float] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {"temperature": self.temperature, "thresholds": dict(self.thresholds), "facts": dict(self.facts)}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any], where: object) -> Self:
        """From plain data; what cannot be meant is said with its place."""
        temperature, thresholds, facts = (found.get(name, {}) for name in ("temperature", "thresholds", "facts"))
        if not is_number(temperature) or not 0 < temperature < float("inf"):
            raise ValueError(f"{where}: the temperature is {temperature!r}, not a number above 0; calibrate again")
        if not isinstance(thresholds, dict) or not all(is_number(x) and 0 <= x <= 1 for x in thresholds.values()):
            raise ValueError(f"{where}: thresholds are not labels with numbers from 0 to 1; calibrate again")
        return cls(float(temperature), thresholds, facts if isinstance(facts, dict) else {})

    def __str__(self) -> str:
        """As `wingspan info` says it."""
        said = f"temperature {self.temperature:.3g}"
        bars = ", ".join(f"{label} {bar:.3g}" for label, bar in self.thresholds.items())
        return f"{said}; thresholds {bars}" if bars else said


def is_number(value: object) -> bool:
    """Whether JSON holds a number there."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def scored(gold: Sequence[Document], found: Sequence[Document], *, allow_missing: bool = False) -> ByLabel[Scored]:
    """Scores of found entities beside whether they are right. One found twice counts once, with its higher score."""
    scores: dict[str, list[tuple[float, bool]]] = {}
    wanted_of: dict[str, int] = {}
    for wanted, given in pair(gold, found, allow_missing):
        right = set(wanted.entities)
        for entity in right:
            wanted_of[entity.label] = wanted_of.get(entity.label, 0) + 1
        best: dict[Any, float] = {}
        for entity in given.entities:
            best[entity] = max(entity.score, best.get(entity, entity.score))
        for entity, score in best.items():
            scores.setdefault(entity.label, []).append((score, entity in right))
    labels = {
        label: as_scored(scores.get(label, []), wanted_of.get(label, 0)) for label in sorted({*scores, *wanted_of})
    }
    everything = [one for rows in scores.values() for one in rows]
    return ByLabel(as_scored(everything, sum(wanted_of.values())), labels)


def as_scored(rows: Sequence[tuple[float, bool]], gold: int) -> Scored:
    """Pairs of score and rightness as columns."""
    return Scored(np.array([row[0] for row in rows]), np.array([row[1] for row in rows], dtype=bool), gold)


def calibration_of(gold: Sequence[Document], found: Sequence[Document], *, bins: int = 10) -> ByLabel[Reliability]:
    """How far scores are from the share of entities that are right, overall and for each label that was found."""
    rows = scored(gold, found)
    labels = {label: reliability(*row[:2], bins) for label, row in rows.labels.items() if len(row.scores)}
    return ByLabel(reliability(*rows.overall[:2], bins), labels)


def reliability(scores: Floats, right: npt.NDArray[np.bool_], bins: int = 10) -> Reliability:
    """A diagram of equally wide bins over 0 to 1; each holds its lower end, the last one also 1."""
    if bins < 1:
        raise ValueError(f"{bins} bins; give at least 1")
    if len(scores) and not (scores.min() >= 0 and scores.max() <= 1):
        raise ValueError(f"scores go from {scores.min():g} to {scores.max():g}; calibration needs chances from 0 to 1")
    place = np.minimum((scores * bins).astype(np.int64), bins - 1)
    count = np.bincount(place, minlength=bins)
    some = np.maximum(count, 1)
    confidence = 100 * np.bincount(place, scores, minlength=bins) / some
    accuracy = 100 * np.bincount(place, right, minlength=bins) / some
    columns = zip(count.tolist(), confidence.tolist(), accuracy.tolist(), strict=True)
    found = tuple(Bin(at / bins, (at + 1) / bins, *column) for at, column in enumerate(columns))
    return Reliability(found, len(scores))


def fit_temperature(logits: Floats, target: npt.NDArray[np.int64]) -> float:
    """What class scores have to be divided by for the right classes to be likeliest (Guo et al. 2017, eq. 9).

    The mean of -log softmax(logits / T)[target] is convex in 1/T, so its slope is bisected.  (N, C), (N,)
    """
    if not len(logits):
        raise ValueError("there is no decision to fit a temperature to; give more documents")
    low, high = 1 / WARMEST, 1 / COLDEST
    if slope(logits, target, low) >= 0:
        return WARMEST
    if slope(logits, target, high) <= 0:
        return COLDEST
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if slope(logits, target, middle) > 0 else (middle, high)
    return 2 / (low + high)


def slope(logits: Floats, target: npt.NDArray[np.int64], coldness: float) -> float:
    """How the loss changes with 1/T: the expected class score minus that of the right class, summed."""
    chance = softmax(coldness * logits)
    expected = np.where(chance > 0, chance * np.where(np.isfinite(logits), logits, 0.0), 0.0).sum(-1)
    return float((expected - logits[np.arange(len(target)), target]).sum())


def log_loss(logits: Floats, target: npt.NDArray[np.int64], temperature: float = 1.0) -> float:
    """The mean of -log of the chance that the right class had."""
    chance = softmax(logits / temperature)[np.arange(len(target)), target]
    return float(-np.log(np.maximum(chance, np.finfo(float).tiny)).mean())


def softmax(logits: Floats) -> Floats:
    """Chances of classes.  (N, C)"""
    grown = np.exp(logits - logits.max(-1, keepdims=True))
    chance: Floats = grown / grown.sum(-1, keepdims=True)
    return chance


# --- Precision and recall at every threshold, and the thresholds that suit a purpose best.


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
