"""Precision, recall and F1 by attributes of the entities (papers 002 and 003), and the gaps between systems.

Precision counts predictions by their own attribute, recall counts gold by its own. Strict matches only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from wingspan.evaluation.attributes import ATTRIBUTES, Attribute, Scene, Value, attribute_named
from wingspan.evaluation.errors import Errors
from wingspan.evaluation.intervals import Interval, quantile_intervals
from wingspan.evaluation.pairing import pair
from wingspan.evaluation.seen import Seen
from wingspan.text import Document

NOT_GIVEN, OUTSIDE = "not given", "other"
"""The bucket of entities without the attribute, and that of values in none of the intervals."""
FEW_VALUES = 12
"""A number that the corpus gives has a bucket for each of its values up to this many; beyond it, quartiles."""

Figure = Literal["precision", "recall", "f1"]


@dataclass(frozen=True)
class Bucket:
    """Entities of one bucket. A figure is None where there is nothing it could be counted on."""

    name: str
    gold: int = 0
    gold_right: int = 0
    found: int = 0
    found_right: int = 0

    @property
    def precision(self) -> float | None:
        """The share of found entities that are right, in percent."""
        return 100 * self.found_right / self.found if self.found else None

    @property
    def recall(self) -> float | None:
        """The share of gold entities that were found, in percent."""
        return 100 * self.gold_right / self.gold if self.gold else None

    @property
    def f1(self) -> float | None:
        """The harmonic mean. A bucket with gold and nothing found has 0, not None."""
        precision, recall = self.precision, self.recall
        if not precision and not recall:
            return None if precision is None and recall is None else 0.0
        if precision is None or recall is None:  # one side says nothing of the attribute, so there is no mean
            return None
        return 2 * precision * recall / (precision + recall)

    def to_dict(self) -> dict[str, Any]:
        """Counts and figures."""
        names = ("name", "precision", "recall", "f1", "gold", "gold_right", "found", "found_right")
        return {name: getattr(self, name) for name in names}


class BucketTable(NamedTuple):
    """The buckets of one attribute, in the order of the table."""

    attribute: str
    title: str
    rows: tuple[Bucket, ...]

    def to_dict(self) -> dict[str, Any]:
        """The table as plain data."""
        return {"attribute": self.attribute, "title": self.title, "rows": [row.to_dict() for row in self.rows]}


class Gap(NamedTuple):
    """How far systems are from a standard, bucket by bucket: one block of a heat map (002, Table 6)."""

    attribute: str
    title: str
    buckets: tuple[str, ...]
    values: Mapping[str, tuple[float | None, ...]]


Cells = dict[Value, list[int]]
"""By value of an attribute: gold, right gold, found, right found."""


def buckets(
    gold: Sequence[Document],
    found: Sequence[Document],
    attributes: Iterable[str | Attribute] | None = None,
    *,
    training: Iterable[Document] | None = None,
    quantiles: int | None = None,
    allow_missing: bool = False,
) -> dict[str, BucketTable]:
    """One table for each attribute; without a choice, all of `ATTRIBUTES` (those about training if it is given).

    Intervals are the papers', or so many quantiles of the gold's values, which are the same for every system.
    """
    if attributes is None:
        chosen = [each for each in ATTRIBUTES.values() if training is not None or not each.needs_training]
    else:
        chosen = [attribute_named(each) if isinstance(each, str) else each for each in attributes]
    if training is None and (blind := [each.name for each in chosen if each.needs_training]):
        raise ValueError(f"{', '.join(blind)}: compares with the training corpus; give it (`training`, --train)")
    seen = Seen.of(training or ())
    cells: list[Cells] = [{} for _ in chosen]
    for scene in _scenes(pair(gold, found, allow_missing), seen):
        wanted, given = set(scene.gold.entities), set(scene.found)
        for column, entities, others in ((0, wanted, given), (2, given, wanted)):
            for entity in entities:
                right = entity in others
                for attribute, cell in zip(chosen, cells, strict=True):
                    counts = cell.setdefault(attribute.value(scene, entity), [0, 0, 0, 0])
                    counts[column] += 1
                    counts[column + 1] += right
    return {each.name: _table(each, cell, quantiles) for each, cell in zip(chosen, cells, strict=True)}


def _scenes(pairs: Sequence[tuple[Document, Document]], seen: Seen) -> Iterator[Scene]:
    """Each pair with its place in its group: rows of one article follow each other as they do in the file."""
    sizes: Counter[str] = Counter()
    for wanted, _ in pairs:
        if wanted.group is not None:
            sizes[wanted.group] += len(wanted.text)
    passed: Counter[str] = Counter()
    for wanted, given in pairs:
        group, size = wanted.group, len(wanted.text)
        if group is None:
            yield Scene(wanted, given.entities, seen, 0, size)
        else:
            yield Scene(wanted, given.entities, seen, passed[group], sizes[group])
            passed[group] += size


def _table(attribute: Attribute, cells: Cells, quantiles: int | None) -> BucketTable:
    intervals = _intervals(attribute, cells, quantiles)
    rows: dict[str, list[int]] = {name: [0, 0, 0, 0] for name in _first_rows(attribute, intervals)}
    for value, counts in sorted(cells.items(), key=_order):
        row = rows.setdefault(_name(value, intervals), [0, 0, 0, 0])
        row[:] = [old + new for old, new in zip(row, counts, strict=True)]
    return BucketTable(attribute.name, attribute.title, tuple(Bucket(name, *counts) for name, counts in rows.items()))


def _order(cell: tuple[Value, list[int]]) -> tuple[int, float, str]:
    """Numbers by size, then names by how often they occur, then what is not given."""
    value, counts = cell
    if isinstance(value, str):
        return 1, -counts[0] - counts[2], value
    return (2, 0, "") if value is None else (0, value, "")


def _intervals(attribute: Attribute, cells: Cells, quantiles: int | None) -> tuple[Interval, ...]:
    numbers = [value for value in cells if isinstance(value, int | float)]
    given_by_corpus = not attribute.intervals and not attribute.categories and len(numbers) > FEW_VALUES
    if numbers and (quantiles is not None or given_by_corpus):
        values = [value for value in numbers for _ in range(cells[value][0])]
        return quantile_intervals(values, quantiles or 4)
    return attribute.intervals


def _first_rows(attribute: Attribute, intervals: Sequence[Interval]) -> Iterable[str]:
    return [interval.name for interval in intervals] or attribute.categories


def _name(value: Value, intervals: Sequence[Interval]) -> str:
    if value is None:
        return NOT_GIVEN
    if isinstance(value, str) or not intervals:
        return value if isinstance(value, str) else f"{value:g}"
    return next((interval.name for interval in intervals if interval.holds(value)), OUTSIDE)


def gaps(systems: Mapping[str, Mapping[str, BucketTable]], standard: str, figure: Figure = "f1") -> list[Gap]:
    """Each system's figure minus the standard's, in every bucket (002, Table 6); None where either has no figure."""
    _check(systems, standard)
    found = []
    for name, table in systems[standard].items():
        names = tuple(dict.fromkeys(row.name for tables in systems.values() for row in tables[name].rows))
        figures = {
            system: {row.name: getattr(row, figure) for row in tables[name].rows} for system, tables in systems.items()
        }
        values = {
            system: tuple(_minus(own.get(bucket), figures[standard].get(bucket)) for bucket in names)
            for system, own in figures.items()
        }
        found.append(Gap(name, table.title, names, values))
    return found


def error_rate_gaps(systems: Mapping[str, Errors], standard: str) -> dict[str, dict[str, float]]:
    """Each system's boundary and type error rates minus the standard's (002, Table 7)."""
    _check(systems, standard)
    base = systems[standard]
    return {
        system: {
            "boundary_rate": own.boundary_rate - base.boundary_rate,
            "type_rate": own.type_rate - base.type_rate,
        }
        for system, own in systems.items()
    }


def _minus(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other


def _check(systems: Mapping[str, Any], standard: str) -> None:
    if standard not in systems:
        raise ValueError(f"no system is called {standard!r}; the standard is one of {', '.join(systems)}")
