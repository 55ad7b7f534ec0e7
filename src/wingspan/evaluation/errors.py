"""Kinds of errors: boundaries, label, both, missed, spurious (after Nguyen et al., Ji et al.); confusion; moved errors.

A prediction that equals no gold entity has the boundaries of one (a type error), overlaps one (a boundary error, or
both if no gold entity it overlaps has its label), or touches none (spurious). A gold entity that was not found is
explained by the closest wrong prediction; if only right predictions touch it, or none, it is missed.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

from wingspan.evaluation.matching import Mode, fragments, match, overlaps, pair
from wingspan.evaluation.significance import mcnemar
from wingspan.text import Document, Entity, reading_order

ErrorKind = Literal["boundary", "type", "both", "missed", "spurious"]
ERROR_KINDS: tuple[ErrorKind, ...] = get_args(ErrorKind)


class Mistake(NamedTuple):
    """A wrong prediction with the gold entity closest to it, or a gold entity with the wrong prediction closest to it.

    `document` is the index of the gold document. The closest gold entity may itself have been found.
    """

    kind: ErrorKind
    document: int
    gold: Entity | None
    found: Entity | None


@dataclass(frozen=True)
class JudgedDocument:
    """One document: the right predictions, and each wrong prediction and lost gold entity with its mistake."""

    number: int
    gold: Document
    found: Document
    right: frozenset[Entity]
    wrong: Mapping[Entity, Mistake]
    lost: Mapping[Entity, Mistake]

    @property
    def mistakes(self) -> list[Mistake]:
        """Every wrong prediction, and the lost gold entities that are not paired with one of them."""
        shown = {mistake.gold for mistake in self.wrong.values()}
        return [*self.wrong.values(), *(mistake for entity, mistake in self.lost.items() if entity not in shown)]


@dataclass(frozen=True)
class Errors:
    """Errors by kind, from both sides: `wrong` are false positives, `lost` false negatives. Rates are percentages."""

    correct: int
    wrong: Mapping[ErrorKind, int]
    lost: Mapping[ErrorKind, int]
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
        """Predictions that overlap a gold entity while their boundaries equal none (B.E. of Ji et al.)."""
        return self.wrong["boundary"] + self.wrong["both"]

    @property
    def type_errors(self) -> int:
        """Predictions with the boundaries of a gold entity and another label (T.E. of Ji et al.)."""
        return self.wrong["type"]

    @property
    def span_errors(self) -> int:
        """Predictions whose boundaries equal no gold entity's (Nguyen et al., Section 5.2)."""
        return self.fp - self.type_errors

    @property
    def boundary_rate(self) -> float:
        """Boundary errors per false positive and false negative (Ji et al. 2022, eq. 24a)."""
        return _percent(self.boundary_errors, self.fp + self.fn)

    @property
    def type_rate(self) -> float:
        """Type errors per false positive and false negative (Ji et al. 2022, eq. 24b)."""
        return _percent(self.type_errors, self.fp + self.fn)

    @property
    def span_error_share(self) -> float:
        """Span errors per prediction, which is how the figures of Nguyen et al. 2023's Table 5 read."""
        return _percent(self.span_errors, self.correct + self.fp)


def errors(gold: Sequence[Document], found: Sequence[Document]) -> Errors:
    """Errors by kind, and every one of them."""
    correct = 0
    wrong: Counter[ErrorKind] = Counter()
    lost: Counter[ErrorKind] = Counter()
    labels: dict[str, Counter[str]] = {}
    mistakes: list[Mistake] = []
    for judged in judge_documents(gold, found):
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
        {kind: wrong[kind] for kind in ERROR_KINDS if kind != "missed"},
        {kind: lost[kind] for kind in ERROR_KINDS if kind != "spurious"},
        {label: {kind: labels[label][kind] for kind in ERROR_KINDS} for label in sorted(labels)},
        tuple(mistakes),
    )


def judge_documents(gold: Sequence[Document], found: Sequence[Document]) -> Iterator[JudgedDocument]:
    """Every document with its mistakes, in the order of the gold. Repeated entities count once."""
    for number, (reference, prediction) in enumerate(pair(gold, found)):
        gold_set, found_set = set(reference.entities), set(prediction.entities)
        right = frozenset(gold_set & found_set)
        everything = sorted(gold_set, key=reading_order)
        wrong = sorted(found_set - right, key=reading_order)
        beside_wrong: dict[Entity, list[Entity]] = {entity: [] for entity in wrong}
        beside_lost: dict[Entity, list[Entity]] = {entity: [] for entity in everything if entity not in right}
        for g, f in overlaps(everything, wrong):
            beside_wrong[wrong[f]].append(everything[g])
            if everything[g] in beside_lost:
                beside_lost[everything[g]].append(wrong[f])
        yield JudgedDocument(
            number,
            reference,
            prediction,
            right,
            {entity: _mistake("spurious", number, entity, others) for entity, others in beside_wrong.items()},
            {entity: _mistake("missed", number, entity, others) for entity, others in beside_lost.items()},
        )


def _mistake(alone: Literal["missed", "spurious"], number: int, entity: Entity, others: Iterable[Entity]) -> Mistake:
    """An entity with the closest of those it overlaps: equal boundaries, then the same label, then most characters."""

    def closeness(other: Entity) -> tuple[bool, bool, int]:
        shared = sum(max(0, min(a.end, b.end) - max(a.start, b.start)) for a in entity.spans for b in other.spans)
        return entity.spans == other.spans, entity.label == other.label, shared

    closest = max(others, key=closeness, default=None)  # of equals the first in the text
    kind: ErrorKind = alone
    if closest is not None:
        kind = "type" if closest.spans == entity.spans else "boundary" if closest.label == entity.label else "both"
    return Mistake(kind, number, entity, closest) if alone == "missed" else Mistake(kind, number, closest, entity)


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0


@dataclass(frozen=True)
class Confusion:
    """Counts of pairs of gold and found labels. None is no label: missed on the right, spurious on the left."""

    labels: tuple[str, ...]
    counts: Mapping[tuple[str | None, str | None], int]

    @property
    def matrix(self) -> list[list[int]]:
        """Rows are gold, columns are found, in the order of `labels`; the last row and column are no label."""
        names = (*self.labels, None)
        return [[self.counts.get((row, column), 0) for column in names] for row in names]


def confusion(
    gold: Sequence[Document], found: Sequence[Document], boundaries: Literal["exact", "overlap"] = "exact"
) -> Confusion:
    """The confusion matrix of labels.

    exact: labels are paired if all fragments are equal. overlap: also if entities share a character, with as many equal
    labels as possible. Either way an entity is paired with at most one of the other side.
    """
    if boundaries not in ("exact", "overlap"):
        raise ValueError(f"unknown boundaries {boundaries!r}; use exact or overlap")
    mode: Mode = "exact" if boundaries == "exact" else "type"
    counts: Counter[tuple[str | None, str | None]] = Counter()
    for reference, prediction in pair(gold, found):
        for verdict, right, answer in match(reference.entities, prediction.entities, mode):
            if mode == "exact" and verdict == "incorrect" and right and answer:
                counts[right.label, None] += 1
                counts[None, answer.label] += 1
            else:
                counts[right.label if right else None, answer.label if answer else None] += 1
    labels = {label for cell in counts for label in cell if label is not None}
    return Confusion(tuple(sorted(labels)), dict(counts))


# Errors that moved from one system to another


Move = Literal["fixed", "broken", "both"]
MOVES: tuple[Move, ...] = get_args(Move)


class Error(NamedTuple):
    """A gold or found entity without credit."""

    kind: Literal["missed", "spurious"]
    document: int
    """The index of the gold document."""
    entity: Entity


@dataclass(frozen=True)
class Moved:
    """The errors of two systems. `fixed`: only the first makes them; `broken`: only the second; `both`: both do.

    With several runs they are means over all pairs of runs: an error that a share a of the first system's runs and a
    share b of the second's make is a(1 - b) fixed, b(1 - a) broken, ab both.
    """

    shares: Mapping[Move, Mapping[Error, float]]
    p: float | None
    """McNemar's test on the mentions that only one of two runs gets wrong; None if runs of one system disagree."""

    def count(self, move: Move, label: str | None = None) -> float:
        """The number of errors that moved that way, of one label or of all."""
        return sum(share for error, share in self.shares[move].items() if label in (None, error.entity.label))

    def listed(self, move: Move) -> list[Error]:
        """The errors that moved that way, the surest first, then in the order of the gold."""
        shares = self.shares[move]
        return sorted(shares, key=lambda e: (-shares[e], e.document, e.entity.spans, e.entity.label, e.kind))

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
    gold: Sequence[Document], runs: Sequence[Sequence[Document]], mode: Mode = "strict", *, allow_missing: bool = False
) -> dict[Error, float]:
    """The errors of a system, entities in no correct pair, each with the share of runs that make it."""
    times: Counter[Error] = Counter()
    for run in runs:
        for number, (reference, prediction) in enumerate(pair(gold, run, allow_missing)):
            missed, spurious = set(reference.entities), set(prediction.entities)
            if mode == "fragments":
                missed, spurious = fragments(missed), fragments(spurious)
            if mode in ("strict", "fragments"):  # equality needs no matching
                missed, spurious = missed - spurious, spurious - missed
            else:
                for verdict, right, answer in match(missed, spurious, mode):
                    if verdict == "correct" and right is not None and answer is not None:
                        missed.remove(right)
                        spurious.remove(answer)
            times.update(Error("missed", number, entity) for entity in missed)
            times.update(Error("spurious", number, entity) for entity in spurious)
    return {error: count / len(runs) for error, count in times.items()}


def moved(first: Mapping[Error, float], second: Mapping[Error, float]) -> Moved:
    """The errors that moved between two systems."""
    shares: dict[Move, dict[Error, float]] = {move: {} for move in MOVES}
    for error in {**first, **second}:
        a, b = first.get(error, 0.0), second.get(error, 0.0)
        for move, share in zip(MOVES, (a * (1 - b), b * (1 - a), a * b), strict=True):
            if share:
                shares[move][error] = share
    single = all(share == 1.0 for side in (first, second) for share in side.values())
    return Moved(shares, mcnemar(len(shares["broken"]), len(shares["fixed"])) if single else None)


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
