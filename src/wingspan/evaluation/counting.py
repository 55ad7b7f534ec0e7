"""True positives, found and gold entities of every document, run and label: what every resampling test works on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from wingspan.evaluation.matching import Mode, fragments, match
from wingspan.evaluation.pairing import pair
from wingspan.evaluation.scores import Counts, of, tally
from wingspan.text import Document, Entity

Floats = npt.NDArray[np.floating[Any]]

AVERAGES = ("micro", "macro")
FIGURES = ("precision", "recall", "f1")
T = TypeVar("T")


@dataclass(frozen=True)
class Rows(Generic[T]):
    """One value for all entities together, one for the mean over labels, one for each label."""

    micro: T
    macro: T
    labels: Mapping[str, T]

    def items(self) -> list[tuple[str, T]]:
        """Labels first, the averages below, as in tables."""
        return [*self.labels.items(), ("micro", self.micro), ("macro", self.macro)]

    def to_dict(self, plain: Callable[[T], Any]) -> dict[str, Any]:
        """As plain data, in the shape of `wingspan score`."""
        labels = {label: plain(value) for label, value in self.labels.items()}
        return {"micro": plain(self.micro), "macro": plain(self.macro), "labels": labels}


@dataclass(frozen=True)
class CountTable:
    """Counts of several runs on the same documents. Rows of one `group` are one unit: they are drawn together.

    `counts` is (units, runs, 1 + labels, 3): tp, found, gold; the first row is all labels together. Halves and whole
    numbers below eight million are exact in 32 bits, and so are their sums.
    """

    units: tuple[str, ...]
    labels: tuple[str, ...]
    counts: npt.NDArray[np.float32]

    def named(self, values: Sequence[T]) -> Rows[T]:
        """Values in the order of the rows of `figures`, by name."""
        micro, macro, *labels = values
        return Rows(micro, macro, dict(zip(self.labels, labels, strict=True)))

    def figures(self) -> npt.NDArray[np.float64]:
        """Precision, recall and F1 of every run.  (runs, rows, 3)"""
        return figures(self.counts.sum(0, dtype=np.float64))


def tabulate(
    gold: Sequence[Document],
    runs: Sequence[Sequence[Document]],
    mode: Mode = "strict",
    *,
    allow_missing: bool = False,
) -> CountTable:
    """Counts the runs against the gold as `recognition` does, unit by unit."""
    pairs = [pair(gold, run, allow_missing) for run in runs]
    names: dict[str | int, int] = {}
    unit_of = [
        names.setdefault(number if document.group is None else document.group, len(names))
        for number, document in enumerate(gold)
    ]
    units = [""] * len(names)
    for document, unit in zip(gold, unit_of, strict=True):
        units[unit] = document.id if document.group is None else document.group
    documents = [document for side in (gold, *runs) for document in side]
    labels = sorted({entity.label for document in documents for entity in document.entities})
    place = {label: at for at, label in enumerate(labels, 1)}
    counts = np.zeros((len(units), len(runs), 1 + len(labels), 3), dtype=np.float32)
    for run, answered in enumerate(pairs):
        for unit, (wanted, given) in zip(unit_of, answered, strict=True):
            present = {entity.label for entity in (*wanted.entities, *given.entities)}
            if not present:
                continue
            here = counts[unit, run]
            together = counted(wanted.entities, given.entities, mode)
            here[0] += together
            for label in present:
                alone = len(present) == 1
                one = together if alone else counted(of(label, wanted.entities), of(label, given.entities), mode)
                here[place[label]] += one
    return CountTable(tuple(units), tuple(labels), counts)


def counted(gold: Iterable[Entity], found: Iterable[Entity], mode: Mode) -> tuple[float, float, float]:
    """True positives, found and gold entities of one document. Being equal as sets needs no matching."""
    if mode == "fragments":
        gold, found = fragments(gold), fragments(found)
    if mode in ("strict", "fragments"):
        wanted, given = set(gold), set(found)
        return len(wanted & given), len(given), len(wanted)
    counts = Counts(**tally(match(gold, found, mode)))
    return counts.tp, counts.found, counts.gold


def figures(sums: Floats) -> npt.NDArray[np.float64]:
    """Percentages from summed counts, macro as second row: labels that occur on neither side take no part in it.

    (..., 1 + labels, 3) -> (..., 2 + labels, 3)
    """
    tp, found, gold = np.moveaxis(sums.astype(np.float64), -1, 0)
    each = np.stack([share(tp, found), share(tp, gold), share(2 * tp, found + gold)], -1)  # (..., 1 + labels, 3)
    occurs = ((found + gold)[..., 1:] > 0)[..., None]
    macro = (each[..., 1:, :] * occurs).sum(-2, keepdims=True) / np.maximum(occurs.sum(-2, keepdims=True), 1)
    return np.concatenate([each[..., :1, :], macro, each[..., 1:, :]], -2)


def share(part: Floats, whole: Floats) -> Floats:
    """The part in percent; 0.0 where there is nothing to divide by."""
    return 100 * np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)
