"""Whether scores mean what they say: reliability, expected calibration error, and the temperature that repairs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from wingspan.evaluation.pairing import pair
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
