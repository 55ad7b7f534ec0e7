"""Recognition: precision, recall and F1 of found entities, in percent, with the counts behind them.

Where nothing can be counted (no gold, nothing found) precision, recall and F1 are 0.0, as in conlleval and the n2c2
script. Figures are not rounded; tables round when they print.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, get_args

from wingspan.evaluation.matching import Match, Mode, Verdict, match
from wingspan.evaluation.pairing import pair
from wingspan.text import Document, Entity

MODES: tuple[Mode, ...] = get_args(Mode)


@dataclass(frozen=True, slots=True)
class Counts:
    """How many entities got which verdict, and the figures that follow. Precision, recall and F1 are percentages."""

    correct: int = 0
    incorrect: int = 0
    partial: int = 0
    missed: int = 0
    spurious: int = 0

    @property
    def gold(self) -> int:
        """How many gold entities there are (POS in SemEval-2013)."""
        return self.correct + self.incorrect + self.partial + self.missed

    @property
    def found(self) -> int:
        """How many entities were found (ACT in SemEval-2013)."""
        return self.correct + self.incorrect + self.partial + self.spurious

    @property
    def tp(self) -> float:
        """True positives; a partial match is half of one."""
        return self.correct + self.partial / 2 if self.partial else self.correct

    @property
    def fp(self) -> float:
        """What was found and earned no credit."""
        return self.found - self.tp

    @property
    def fn(self) -> float:
        """What is in the gold and earned no credit."""
        return self.gold - self.tp

    @property
    def precision(self) -> float:
        """Credit per found entity."""
        return 100 * self.tp / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        """Credit per gold entity."""
        return 100 * self.tp / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return 200 * self.tp / (self.found + self.gold) if self.tp else 0.0

    def to_dict(self) -> dict[str, float]:
        """The figures, then the counts; `gold` is the support."""
        names = ("precision", "recall", "f1", "tp", "fp", "fn", "gold", "found")
        verdicts: tuple[Verdict, ...] = get_args(Verdict)
        return {name: getattr(self, name) for name in (*names, *verdicts)}


class Average(NamedTuple):
    """Plain means over labels or documents; F1 is the mean of the F1s."""

    precision: float
    recall: float
    f1: float
    over: int

    @classmethod
    def of(cls, parts: Iterable[Counts]) -> Average:
        """The mean of each figure; zeros if there is nothing to average."""
        rows = [(part.precision, part.recall, part.f1) for part in parts]
        if not rows:
            return cls(0.0, 0.0, 0.0, 0)
        precision, recall, f1 = (sum(column) / len(rows) for column in zip(*rows, strict=True))
        return cls(precision, recall, f1, len(rows))


@dataclass(frozen=True)
class Scores:
    """What `recognition` found out. `labels` and `documents` hold the counts of each label and each document."""

    mode: Mode
    micro: Counts
    labels: Mapping[str, Counts]
    documents: tuple[Counts, ...]
    coverage: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    continuity: Mapping[str, Counts] = field(default_factory=dict)
    """Strict counts of discontinuous entities and of the others, where `by_continuity` was asked."""

    @property
    def macro(self) -> Average:
        """The mean over the labels that occur on either side (as in seqeval)."""
        return Average.of(self.labels.values())

    @property
    def document_macro(self) -> Average:
        """The mean over documents (the "macro" of the n2c2 script); documents without any entity count as zero."""
        return Average.of(self.documents)

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data, ready for JSON."""
        macro, by_document = self.macro._asdict(), self.document_macro._asdict()
        labels, documents = macro.pop("over"), by_document.pop("over")
        parts = {name: counts.to_dict() for name, counts in self.continuity.items()}
        return {
            "protocol": "recognition",
            "mode": self.mode,
            "micro": self.micro.to_dict(),
            "macro": {**macro, "labels": labels},
            "document_macro": {**by_document, "documents": documents},
            "labels": {label: counts.to_dict() for label, counts in self.labels.items()},
            "coverage": dict(self.coverage),
            **({"continuity": parts} if parts else {}),
            "notes": list(self.notes),
        }


def recognition(
    gold: Sequence[Document], found: Sequence[Document], mode: Mode = "strict", *, allow_missing: bool = False
) -> Scores:
    """Scores found entities against gold ones, document by document.

    strict: all fragments and the label are right. exact: all fragments are right. partial: any overlap, half credit
    unless exact. type: any overlap, same label. lenient: as type, wrong labels are no pair. fragments: strict, every
    fragment by itself. A label's row is the score of that label's entities alone on both sides. Rows of one `group` are
    one document.
    """
    if mode not in MODES:
        raise ValueError(f"unknown mode {mode!r}; use one of {', '.join(MODES)}")
    total: Counter[str] = Counter()
    labels: dict[str, Counter[str]] = {}
    documents: dict[str | int, Counter[str]] = {}
    pairs = pair(gold, found, allow_missing)
    for number, (wanted, given) in enumerate(pairs):
        verdicts = tally(match(wanted.entities, given.entities, mode))
        total.update(verdicts)
        documents.setdefault(number if wanted.group is None else wanted.group, Counter()).update(verdicts)
        present = {entity.label for entity in (*wanted.entities, *given.entities)}
        for label in present:
            if len(present) > 1:
                verdicts = tally(match(of(label, wanted.entities), of(label, given.entities), mode))
            labels.setdefault(label, Counter()).update(verdicts)
    return Scores(
        mode,
        Counts(**total),
        {label: Counts(**labels[label]) for label in sorted(labels)},
        tuple(Counts(**counts) for counts in documents.values()),
        *remarks_on(pairs, len(pairs) - len(found)),
    )


def tally(matches: Iterable[Match]) -> Counter[str]:
    """How often each verdict was given."""
    return Counter(verdict for verdict, _, _ in matches)


def of(label: str, entities: Iterable[Entity]) -> list[Entity]:
    """The entities of one label."""
    return [entity for entity in entities if entity.label == label]


def remarks_on(pairs: Sequence[tuple[Document, Document]], missing: int) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What was scored, in numbers, and what a reader of the figures should know, in sentences."""
    sides = [[document.entities for document in side] for side in zip(*pairs, strict=True)] or [[], []]
    known, guessed = ({entity.label for entities in side for entity in entities} for side in sides)
    twice = {
        name: sum(len(entities) - len(set(entities)) for entities in side)
        for name, side in zip(("gold", "found"), sides, strict=True)
    }
    by_position = any(given.id != wanted.id for wanted, given in pairs)
    coverage = {"documents": len(pairs), "without_prediction": missing, "repeated": twice}
    notes = []
    if by_position:
        notes.append("no id occurs on both sides, so documents were paired by position")
    if missing:
        notes.append(f"{missing} of {len(pairs)} documents have no prediction and count as predicted empty")
    if not known:
        notes.append("the gold has no entities, so recall and F1 are 0.0 by convention")
    if guessed - known:
        notes.append(f"the predictions have labels unknown to the gold: {', '.join(sorted(guessed - known))}")
    if known - guessed:
        notes.append(f"the gold has labels that were never predicted: {', '.join(sorted(known - guessed))}")
    if any(twice.values()):
        notes.append(f"repeated entities count once: {twice['gold']} in the gold, {twice['found']} in the predictions")
    return coverage, tuple(notes)
