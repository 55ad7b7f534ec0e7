"""What is wrong with the entities that were not right: boundaries, label, both, missed, spurious (papers 000 and 002).

A prediction that equals no gold entity has the boundaries of one (a type error), overlaps one (a boundary error, or
both if no gold entity it overlaps has its label), or touches none (spurious). A gold entity that was not found is
explained by the wrong prediction that comes closest; where only right predictions touch it, or none, it is missed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

from wingspan.evaluation.matching import overlaps
from wingspan.evaluation.pairing import pair
from wingspan.text import Document, Entity, reading_order

Kind = Literal["boundary", "type", "both", "missed", "spurious"]
KINDS: tuple[Kind, ...] = get_args(Kind)


class Mistake(NamedTuple):
    """A wrong prediction with the gold entity closest to it, or a gold entity with the wrong prediction closest to it.

    `document` is the place among the gold documents. The closest gold entity may itself have been found.
    """

    kind: Kind
    document: int
    gold: Entity | None
    found: Entity | None


@dataclass(frozen=True)
class Judged:
    """One document: what was right, each wrong prediction and each lost gold entity with its mistake."""

    number: int
    gold: Document
    found: Document
    right: frozenset[Entity]
    wrong: Mapping[Entity, Mistake]
    lost: Mapping[Entity, Mistake]

    @property
    def mistakes(self) -> list[Mistake]:
        """Every wrong prediction, and those lost gold entities that are not beside one of them already."""
        shown = {mistake.gold for mistake in self.wrong.values()}
        return [*self.wrong.values(), *(mistake for entity, mistake in self.lost.items() if entity not in shown)]


@dataclass(frozen=True)
class Errors:
    """Errors by kind, from both sides: `wrong` are false positives, `lost` false negatives. Rates are percentages."""

    correct: int
    wrong: Mapping[Kind, int]
    lost: Mapping[Kind, int]
    labels: Mapping[str, Mapping[str, int]]
    """Errors of each label: wrong predictions by the predicted label, `missed` by the gold label."""
    mistakes: tuple[Mistake, ...] = field(repr=False)

    @property
    def fp(self) -> int:
        """False positives."""
        return sum(self.wrong.values())

    @property
    def fn(self) -> int:
        """False negatives."""
        return sum(self.lost.values())

    @property
    def boundary_errors(self) -> int:
        """Predictions that overlap a gold entity while their boundaries equal none, whatever the label (B.E., 002)."""
        return self.wrong["boundary"] + self.wrong["both"]

    @property
    def type_errors(self) -> int:
        """Predictions with the boundaries of a gold entity and another label (T.E., 002; category errors, 000)."""
        return self.wrong["type"]

    @property
    def span_errors(self) -> int:
        """Predictions whose boundaries equal no gold entity's, whether they overlap one or not (000, Section 5.2)."""
        return self.fp - self.type_errors

    @property
    def boundary_rate(self) -> float:
        """Boundary errors per false positive and false negative (002, eq. 24a)."""
        return _percent(self.boundary_errors, self.fp + self.fn)

    @property
    def type_rate(self) -> float:
        """Type errors per false positive and false negative (002, eq. 24b)."""
        return _percent(self.type_errors, self.fp + self.fn)

    @property
    def span_error_share(self) -> float:
        """Span errors per prediction, which is how the figures of 000's Table 5 read."""
        return _percent(self.span_errors, self.correct + self.fp)

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data, without the single mistakes."""
        names = ("correct", "fp", "fn", "boundary_errors", "type_errors", "span_errors")
        rates = ("boundary_rate", "type_rate", "span_error_share")
        return {
            **{name: getattr(self, name) for name in (*names, *rates)},
            "wrong": dict(self.wrong),
            "lost": dict(self.lost),
            "labels": {label: dict(counts) for label, counts in self.labels.items()},
        }


def errors(gold: Sequence[Document], found: Sequence[Document], *, allow_missing: bool = False) -> Errors:
    """Errors by kind, and every one of them."""
    correct = 0
    wrong: Counter[Kind] = Counter()
    lost: Counter[Kind] = Counter()
    labels: dict[str, Counter[str]] = {}
    mistakes: list[Mistake] = []
    for judged in judge_documents(gold, found, allow_missing=allow_missing):
        correct += len(judged.right)
        wrong.update(mistake.kind for mistake in judged.wrong.values())
        lost.update(mistake.kind for mistake in judged.lost.values())
        for entity, mistake in judged.wrong.items():
            labels.setdefault(entity.label, Counter())[mistake.kind] += 1
        for entity, mistake in judged.lost.items():
            if mistake.kind == "missed":
                labels.setdefault(entity.label, Counter())["missed"] += 1
        mistakes += judged.mistakes
    return Errors(
        correct,
        {kind: wrong[kind] for kind in KINDS if kind != "missed"},
        {kind: lost[kind] for kind in KINDS if kind != "spurious"},
        {label: {kind: labels[label][kind] for kind in KINDS} for label in sorted(labels)},
        tuple(mistakes),
    )


def judge_documents(
    gold: Sequence[Document], found: Sequence[Document], *, allow_missing: bool = False
) -> Iterator[Judged]:
    """Every document with its mistakes, in the order of the gold. Repeated entities count once."""
    for number, (wanted, given) in enumerate(pair(gold, found, allow_missing)):
        gold_set, found_set = set(wanted.entities), set(given.entities)
        right = frozenset(gold_set & found_set)
        everything = sorted(gold_set, key=reading_order)
        wrong = sorted(found_set - right, key=reading_order)
        beside_wrong: dict[Entity, list[Entity]] = {entity: [] for entity in wrong}
        beside_lost: dict[Entity, list[Entity]] = {entity: [] for entity in everything if entity not in right}
        for g, f in overlaps(everything, wrong):
            beside_wrong[wrong[f]].append(everything[g])
            if everything[g] in beside_lost:
                beside_lost[everything[g]].append(wrong[f])
        yield Judged(
            number,
            wanted,
            given,
            right,
            {entity: _false_positive(number, entity, others) for entity, others in beside_wrong.items()},
            {entity: _false_negative(number, entity, others) for entity, others in beside_lost.items()},
        )


def _false_positive(number: int, entity: Entity, beside: Iterable[Entity]) -> Mistake:
    partner = _closest(entity, beside)
    return Mistake(_kind(entity, partner) if partner else "spurious", number, partner, entity)


def _false_negative(number: int, entity: Entity, beside: Iterable[Entity]) -> Mistake:
    partner = _closest(entity, beside)
    return Mistake(_kind(entity, partner) if partner else "missed", number, entity, partner)


def _kind(entity: Entity, partner: Entity) -> Kind:
    if entity.spans == partner.spans:
        return "type"
    return "boundary" if entity.label == partner.label else "both"


def _closest(entity: Entity, others: Iterable[Entity]) -> Entity | None:
    """Equal boundaries before the same label before the most shared characters; the first in the text of equals."""
    return max(
        others,
        key=lambda other: (entity.spans == other.spans, entity.label == other.label, _shared(entity, other)),
        default=None,
    )


def _shared(one: Entity, other: Entity) -> int:
    """How many characters two entities share."""
    return sum(max(0, min(a.end, b.end) - max(a.start, b.start)) for a in one.spans for b in other.spans)


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0
