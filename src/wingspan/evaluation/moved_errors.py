"""Which errors moved from one system to another: fixed, broken, both wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from wingspan.evaluation.matching import Mode, fragments, match
from wingspan.evaluation.pairing import pair
from wingspan.evaluation.significance import mcnemar
from wingspan.text import Document, Entity

Kind = Literal["missed", "spurious"]


class Error(NamedTuple):
    """A gold entity that earned nothing, or a found one."""

    kind: Kind
    document: int
    """Its place in the gold."""
    entity: Entity


@dataclass(frozen=True)
class Moved:
    """The errors of two systems. `fixed`: only the first makes it; `broken`: only the second; `both`: both do.

    `p` is McNemar's test on the mentions that only one of them gets wrong.
    """

    fixed: tuple[Error, ...]
    broken: tuple[Error, ...]
    both: tuple[Error, ...]
    p: float

    def labels(self) -> dict[str, dict[str, int]]:
        """How many of each by label."""
        counts = {name: Counter(error.entity.label for error in getattr(self, name)) for name in MOVES}
        return {label: {name: counts[name][label] for name in MOVES} for label in sorted(set().union(*counts.values()))}

    def to_dict(self, gold: Sequence[Document], examples: int) -> dict[str, Any]:
        """Counts, counts by label, and the first examples of each as plain data."""
        parts: dict[str, tuple[Error, ...]] = {name: getattr(self, name) for name in MOVES}
        return {
            **{name: len(errors) for name, errors in parts.items()},
            "mcnemar_p": self.p,
            "labels": self.labels(),
            "examples": {name: [plain(error, gold) for error in errors[:examples]] for name, errors in parts.items()},
        }


MOVES = ("fixed", "broken", "both")


def errors_of(
    gold: Sequence[Document],
    runs: Sequence[Sequence[Document]],
    mode: Mode = "strict",
    *,
    allow_missing: bool = False,
) -> set[Error]:
    """What a system gets wrong. With several runs an error is the system's where more than half of them make it."""
    times = Counter(
        Error(kind, number, entity)
        for run in runs
        for number, (wanted, given) in enumerate(pair(gold, run, allow_missing))
        for kind, entity in wrong(wanted.entities, given.entities, mode)
    )
    return {error for error, count in times.items() if 2 * count > len(runs)}


def wrong(gold: Iterable[Entity], found: Iterable[Entity], mode: Mode) -> set[tuple[Kind, Entity]]:
    """The errors of one document: each entity on either side that is in no correct pair."""
    if mode == "fragments":
        gold, found = fragments(gold), fragments(found)
    wanted, given = set(gold), set(found)
    if mode in ("strict", "fragments"):  # equality needs no matching
        wanted, given = wanted - given, given - wanted
    else:
        for one in match(wanted, given, mode):
            if one.verdict == "correct" and one.gold is not None and one.found is not None:
                wanted.remove(one.gold)
                given.remove(one.found)
    return {("missed", entity) for entity in wanted} | {("spurious", entity) for entity in given}


def moved(first: set[Error], second: set[Error]) -> Moved:
    """What changed between two systems, in the order of the gold."""
    fixed, broken = in_order(first - second), in_order(second - first)
    return Moved(fixed, broken, in_order(first & second), mcnemar(len(broken), len(fixed)))


def in_order(errors: Iterable[Error]) -> tuple[Error, ...]:
    """By document, then by place in the text."""
    return tuple(sorted(errors, key=lambda error: (error.document, error.entity.spans, error.entity.label, error.kind)))


def plain(error: Error, gold: Sequence[Document]) -> dict[str, Any]:
    """An error with the text around it."""
    document, entity = gold[error.document], error.entity
    start, end = max(entity.start - 40, 0), entity.end + 40
    return {
        "document": document.id,
        "kind": error.kind,
        "label": entity.label,
        "text": document.text_of(entity),
        "fragments": [list(span) for span in entity.spans],
        "context": document.text[start:end],
    }
