"""Which label was taken for which: the confusion matrix, with a row and a column for nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from wingspan.evaluation.matching import match
from wingspan.evaluation.pairing import pair
from wingspan.text import Document

Boundaries = Literal["exact", "overlap"]


@dataclass(frozen=True)
class Confusion:
    """How often a gold label met a found label. None stands for nothing: missed on the right, spurious on the left."""

    labels: tuple[str, ...]
    counts: Mapping[tuple[str | None, str | None], int]

    @property
    def matrix(self) -> list[list[int]]:
        """Rows are gold, columns are found, both in the order of `labels`; the last row and column are nothing."""
        names = (*self.labels, None)
        return [[self.counts.get((wanted, given), 0) for given in names] for wanted in names]

    def to_dict(self) -> dict[str, Any]:
        """Labels and matrix as plain data."""
        return {"labels": list(self.labels), "matrix": self.matrix}


def confusion(
    gold: Sequence[Document],
    found: Sequence[Document],
    boundaries: Boundaries = "exact",
    *,
    allow_missing: bool = False,
) -> Confusion:
    """The confusion matrix of labels.

    exact: labels meet where all fragments are equal. overlap: also where entities share a character, and as many equal
    labels meet as possible. Either way an entity meets at most one of the other side.
    """
    if boundaries not in ("exact", "overlap"):
        raise ValueError(f"unknown boundaries {boundaries!r}; use exact or overlap")
    counts: Counter[tuple[str | None, str | None]] = Counter()
    for wanted, given in pair(gold, found, allow_missing):
        for verdict, one, other in match(wanted.entities, given.entities, "exact" if boundaries == "exact" else "type"):
            if boundaries == "exact" and verdict == "incorrect" and one and other:
                counts[one.label, None] += 1
                counts[None, other.label] += 1
            else:
                counts[one.label if one else None, other.label if other else None] += 1
    labels = {label for cell in counts for label in cell if label is not None}
    return Confusion(tuple(sorted(labels)), dict(counts))
