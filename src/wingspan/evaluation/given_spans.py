"""Typing: how often the label of a given span was guessed right. An accuracy, never an F1: the spans were given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from wingspan.evaluation.pairing import pair
from wingspan.text import Document, Entity, Span


class Share(NamedTuple):
    """How many of how many are right."""

    correct: int
    total: int

    @property
    def accuracy(self) -> float:
        """The share in percent; 0.0 if there is nothing to guess."""
        return 100 * self.correct / self.total if self.total else 0.0

    def to_dict(self) -> dict[str, float]:
        """Accuracy and counts as plain data."""
        return {"accuracy": self.accuracy, "correct": self.correct, "total": self.total}


@dataclass(frozen=True)
class TypingScores:
    """What `typing` found out; `labels` is by gold label."""

    overall: Share
    labels: Mapping[str, Share]
    coverage: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def accuracy(self) -> float:
        """The share of gold labels that were guessed, in percent."""
        return self.overall.accuracy

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data, ready for JSON."""
        return {
            "protocol": "typing",
            **self.overall.to_dict(),
            "labels": {label: share.to_dict() for label, share in self.labels.items()},
            "coverage": dict(self.coverage),
            "notes": list(self.notes),
        }


def typing(gold: Sequence[Document], guessed: Sequence[Document], *, allow_missing: bool = False) -> TypingScores:
    """Compares labels on the gold spans. A span with two gold labels takes two guesses; one without a guess is wrong.

    Guessing where the gold has no span, or more labels than the gold has, would be recognition and is an error.
    """
    correct: Counter[str] = Counter()
    total: Counter[str] = Counter()
    unanswered = 0
    pairs = pair(gold, guessed, allow_missing)
    for wanted, given in pairs:
        right, guesses = _by_spans(wanted.entities), _by_spans(given.entities)
        for spans, labels in guesses.items():
            if len(labels) > len(right.get(spans, ())):
                raise ValueError(_not_given(wanted, spans, labels, right.get(spans, set())))
        for spans, labels in right.items():
            answers = guesses.get(spans, set())
            total.update(labels)
            correct.update(labels & answers)
            unanswered += len(labels) - len(answers)
    notes = [f"{unanswered} gold labels have no guess and count as wrong"] if unanswered else []
    return TypingScores(
        Share(correct.total(), total.total()),
        {label: Share(correct[label], total[label]) for label in sorted(total)},
        {"documents": len(pairs), "unanswered": unanswered},
        tuple(notes),
    )


def _by_spans(entities: Iterable[Entity]) -> dict[tuple[Span, ...], set[str]]:
    """The labels at every place."""
    places: dict[tuple[Span, ...], set[str]] = {}
    for entity in entities:
        places.setdefault(entity.spans, set()).add(entity.label)
    return places


def _not_given(document: Document, spans: tuple[Span, ...], guesses: set[str], gold: set[str]) -> str:
    """Why a guess is not a typing of given spans."""
    where = ";".join(f"{span.start}-{span.end}" for span in spans)
    return (
        f"document {document.id!r}: {len(guesses)} guessed labels at {where} ({', '.join(sorted(guesses))}), where the"
        f" gold has {len(gold)}; typing takes one guess per gold label of a given span, use recognition for found spans"
    )
