"""Whether scores mean what they say: reliability, expected calibration error, and the temperature that repairs it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from wingspan.evaluation.matching import pair
from wingspan.text import Document

Floats = npt.NDArray[np.float64]
T = TypeVar("T")

COLDEST, WARMEST = 0.25, 10.0
"""The range of temperatures; without limits, an infinitely cold one would win if all dev decisions are right."""


@dataclass(frozen=True)
class ByLabel(Generic[T]):
    """One value for all entities, one for each label."""

    overall: T
    labels: Mapping[str, T]


class ScoredEntities(NamedTuple):
    """Scores of found entities, whether each is right (strictly), and the number of gold entities."""

    scores: Floats  # (N,)
    right: npt.NDArray[np.bool_]  # (N,)
    gold: int


class Bin(NamedTuple):
    """The found entities with a score in a range: their mean score and the share of right ones, in percent."""

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
        """The mean distance between confidence and accuracy, over entities."""
        return sum(bin.entities * abs(bin.confidence - bin.accuracy) for bin in self.bins) / max(self.entities, 1)

    @property
    def worst(self) -> float:
        """The largest distance of any bin."""
        return max((abs(bin.confidence - bin.accuracy) for bin in self.bins if bin.entities), default=0.0)

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        bins = [bin._asdict() for bin in self.bins]
        return {"error": self.error, "worst": self.worst, "entities": self.entities, "bins": bins}


@dataclass(frozen=True)
class Calibration:
    """The calibration of a model, saved as `calibration.json`.

    Class scores are divided by `temperature` before they become chances; `thresholds` are the least scores of labels.
    `facts` describe the data it was fitted on.
    """

    temperature: float = 1.0
    thresholds: Mapping[str, float] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], where: object) -> Self:
        """From plain data; `where` names the file in errors."""

        def is_number(value: object) -> bool:
            return isinstance(value, int | float) and not isinstance(value, bool)

        temperature, thresholds, facts = (plain.get(name, {}) for name in ("temperature", "thresholds", "facts"))
        if not is_number(temperature) or not 0 < temperature < float("inf"):
            raise ValueError(f"{where}: the temperature is {temperature!r}, not a number above 0; calibrate again")
        if not isinstance(thresholds, dict) or not all(is_number(x) and 0 <= x <= 1 for x in thresholds.values()):
            raise ValueError(f"{where}: thresholds are not labels with numbers from 0 to 1; calibrate again")
        return cls(float(temperature), thresholds, facts if isinstance(facts, dict) else {})

    def __str__(self) -> str:
        """As `wingspan info` prints it."""
        thresholds = ", ".join(f"{label} {threshold:.3g}" for label, threshold in self.thresholds.items())
        return f"temperature {self.temperature:.3g}" + (f"; thresholds {thresholds}" if thresholds else "")


def scored(gold: Sequence[Document], found: Sequence[Document]) -> ByLabel[ScoredEntities]:
    """Scores of found entities, and whether they are right. Repeated entities count once, with their highest score."""
    scores: dict[str, list[tuple[float, bool]]] = {}
    gold_counts: Counter[str] = Counter()
    for reference, prediction in pair(gold, found):
        right = set(reference.entities)
        gold_counts.update(entity.label for entity in right)
        best: dict[Any, float] = {}
        for entity in prediction.entities:
            best[entity] = max(entity.score, best.get(entity, entity.score))
        for entity, score in best.items():
            scores.setdefault(entity.label, []).append((score, entity in right))

    def columns(rows: Sequence[tuple[float, bool]], gold: int) -> ScoredEntities:
        return ScoredEntities(np.array([row[0] for row in rows]), np.array([row[1] for row in rows], dtype=bool), gold)

    labels = {label: columns(scores.get(label, []), gold_counts[label]) for label in sorted({*scores, *gold_counts})}
    return ByLabel(columns([row for rows in scores.values() for row in rows], gold_counts.total()), labels)


def calibration_of(gold: Sequence[Document], found: Sequence[Document], *, bins: int = 10) -> ByLabel[Reliability]:
    """The distance of scores from the share of right entities, overall and for each label that was found."""
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
    """The temperature that makes the right classes likeliest (Guo et al. 2017, eq. 9).

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
    """The slope of the loss over 1/T: the expected class score minus that of the right class, summed."""
    chance = softmax(coldness * logits)
    expected = np.where(chance > 0, chance * np.where(np.isfinite(logits), logits, 0.0), 0.0).sum(-1)
    return float((expected - logits[np.arange(len(target)), target]).sum())


def log_loss(logits: Floats, target: npt.NDArray[np.int64], temperature: float = 1.0) -> float:
    """The mean of -log of the right class's chance."""
    chance = softmax(logits / temperature)[np.arange(len(target)), target]
    return float(-np.log(np.maximum(chance, np.finfo(float).tiny)).mean())


def softmax(logits: Floats) -> Floats:
    """Chances of classes.  (N, C)"""
    grown = np.exp(logits - logits.max(-1, keepdims=True))
    chance: Floats = grown / grown.sum(-1, keepdims=True)
    return chance


# Precision and recall at every threshold


@dataclass(frozen=True)
class Curve:
    """Precision, recall and F1 of keeping the entities with at least a score, from the highest down, in percent.

    It ends at the lowest found score: predict with a low threshold to see more of it.
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


class Choice(NamedTuple):
    """A threshold and its figures on the documents it was chosen on."""

    threshold: float
    precision: float
    recall: float
    f1: float
    reached: bool
    """Whether the target precision is reached; always true if the aim is F1."""


def curves(gold: Sequence[Document], found: Sequence[Document]) -> ByLabel[Curve]:
    """The precision-recall curve of all entities, and of each label."""
    rows = scored(gold, found)
    return ByLabel(curve(rows.overall), {label: curve(row) for label, row in rows.labels.items()})


def curve(row: ScoredEntities) -> Curve:
    """One point for each score that occurs."""
    order = np.argsort(-row.scores, kind="stable")
    scores = row.scores[order]
    last = np.nonzero(np.append(scores[1:] != scores[:-1], True))[0] if len(scores) else np.zeros(0, dtype=int)
    tp = row.right[order].cumsum()[last]
    found = last + 1
    precision, recall = 100 * tp / found, 100 * tp / max(row.gold, 1)
    return Curve(scores[last], precision, recall, 200 * tp / (found + row.gold), row.gold)


def choose(points: Curve, precision: float | None = None) -> Choice | None:
    """The threshold with the best F1, or with the most recall at the target precision.

    If that precision is never reached, the most precise one. A threshold lies halfway to the next lower score, so that
    it does not hang on a single entity; None if nothing was found.
    """
    if not len(points.thresholds):
        return None
    if precision is None:
        at = int(points.f1.argmax())
    elif (enough := np.flatnonzero(points.precision >= precision)).size:
        at = int(enough[-1])
    else:
        at = int(len(points.precision) - 1 - points.precision[::-1].argmax())
    threshold = float(points.thresholds[at : at + 2].mean())
    reached = precision is None or bool(points.precision[at] >= precision)
    return Choice(threshold, float(points.precision[at]), float(points.recall[at]), float(points.f1[at]), reached)


def choose_thresholds(
    gold: Sequence[Document], found: Sequence[Document], precision: float | None = None
) -> dict[str, Choice]:
    """A threshold for each label that was found: the best F1, or the target precision in percent.

    Predict with a low threshold first; lower ones than that cannot be chosen.
    """
    if precision is not None and not 0 < precision <= 100:
        raise ValueError(f"a precision of {precision:g} cannot be had; give percent, above 0 up to 100")
    chosen = {label: choose(points, precision) for label, points in curves(gold, found).labels.items()}
    return {label: choice for label, choice in chosen.items() if choice is not None}
