"""Which errors moved from one system to another: fixed, broken, both wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

from wingspan.evaluation.matching import Mode, fragments, match
from wingspan.evaluation.pairing import pair
from wingspan.evaluation.significance import mcnemar
from wingspan.text import Document, Entity

Kind = Literal["missed", "spurious"]
Move = Literal["fixed", "broken", "both"]
MOVES: tuple[Move, ...] = get_args(Move)


class Error(NamedTuple):
    """A gold entity that earned nothing, or a found one."""

    kind: Kind
    document: int
    """Its place in the gold."""
    entity: Entity


@dataclass(frozen=True)
class Moved:
    """The errors of two systems. `fixed`: only the first makes it; `broken`: only the second; `both`: both do.

    With several runs they are means over all pairs of runs: an error that a share a of the first's runs and a share b
    of the second's make is a(1 - b) fixed, b(1 - a) broken, ab both.
    """

    shares: Mapping[Move, Mapping[Error, float]]
    p: float | None
    """McNemar's test on the mentions that only one of two runs gets wrong; None where runs of one system disagree."""

    def count(self, move: Move, label: str | None = None) -> float:
        """How many errors moved that way, of one label or of all."""
        return sum(share for error, share in self.shares[move].items() if label in (None, error.entity.label))

    def listed(self, move: Move) -> list[Error]:
        """The errors that moved that way, the surest first, then in the order of the gold."""
        shares = self.shares[move]
        return sorted(shares, key=lambda error: (-shares[error], *in_order(error)))

    def to_dict(self, gold: Sequence[Document], examples: int) -> dict[str, Any]:
        """Counts, counts by label, and the first examples of each as plain data."""
        labels = sorted({error.entity.label for shares in self.shares.values() for error in shares})
        return {
            **{move: self.count(move) for move in MOVES},
            "mcnemar_p": self.p,
            "labels": {label: {move: self.count(move, label) for move in MOVES} for label in labels},
            "examples": {move: [plain(error, gold) for error in self.listed(move)[:examples]] for move in MOVES},
        }


def errors_of(
    gold: Sequence[Document],
    runs: Sequence[Sequence[Document]],
    mode: Mode = "strict",
    *,
    allow_missing: bool = False,
) -> dict[Error, float]:
    """What a system gets wrong, each error with the share of runs that make it."""
    times = Counter(
        Error(kind, number, entity)
        for run in runs
        for number, (wanted, given) in enumerate(pair(gold, run, allow_missing))
        for kind, entity in wrong(wanted.entities, given.entities, mode)
    )
    return {error: count / len(runs) for error, count in times.items()}


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


def moved(first: Mapping[Error, float], second: Mapping[Error, float]) -> Moved:
    """What changed between two systems."""
    shares: dict[Move, dict[Error, float]] = {move: {} for move in MOVES}
    for error in {**first, **second}:
        a, b = first.get(error, 0.0), second.get(error, 0.0)
        for move, share in zip(MOVES, (a * (1 - b), b * (1 - a), a * b), strict=True):
            if share:
                shares[move][error] = share
    single = all(share == 1.0 for side in (first, second) for share in side.values())
    return Moved(shares, mcnemar(len(shares["broken"]), len(shares["fixed"])) if single else None)


def in_order(error: Error) -> tuple[Any, ...]:
    """By document, then by place in the text."""
    return error.document, error.entity.spans, error.entity.label, error.kind


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
