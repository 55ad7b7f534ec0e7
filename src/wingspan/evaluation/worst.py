"""Where to look first: the worst sentences and documents, repeated mistakes, conflicts with labels in training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import NamedTuple

from wingspan.evaluation.buckets import labels_of_surfaces, surface
from wingspan.evaluation.errors import ErrorKind, JudgedDocument, Mistake, judge_documents
from wingspan.evaluation.matching import SentenceIndex
from wingspan.text import Document, Entity, Span

EXAMPLES = 5
"""The number of documents named for each row."""


class WorstPassage(NamedTuple):
    """A document or sentence with mistakes; `span` is its range in the text of gold document number `document`."""

    document: int
    span: Span
    correct: int
    fp: int
    fn: int
    mistakes: tuple[Mistake, ...]

    @property
    def f1(self) -> float:
        """F1 of this passage alone."""
        return 200 * self.correct / (2 * self.correct + self.fp + self.fn) if self.correct else 0.0


class Repeated(NamedTuple):
    """The same mistake on the same surfaces, several times; `documents` are the indices of the first few."""

    kind: ErrorKind
    gold_label: str | None
    gold_text: str | None
    found_label: str | None
    found_text: str | None
    times: int
    documents: tuple[int, ...]


@dataclass
class Conflict:
    """Mentions of one surface and label that had another label in training, counted on both sides."""

    text: str
    label: str
    training: Mapping[str, int]
    gold: int = 0
    missed: int = 0
    """Gold mentions that were not found."""
    found: int = 0
    wrong: int = 0
    """Found mentions that are not in the gold."""
    documents: list[int] = field(default_factory=list)


def worst_documents(
    gold: Sequence[Document], found: Sequence[Document], most: int = 20, *, allow_missing: bool = False
) -> list[WorstPassage]:
    """The documents with the most false positives and false negatives; of equals, the lowest F1 first."""
    passages = (
        WorstPassage(
            judged.number,
            Span(0, len(judged.gold.text)),
            len(judged.right),
            len(judged.wrong),
            len(judged.lost),
            tuple(judged.mistakes),
        )
        for judged in judge_documents(gold, found, allow_missing=allow_missing)
        if judged.wrong or judged.lost
    )
    return nsmallest(most, passages, key=_worst_first)


def worst_sentences(
    gold: Sequence[Document], found: Sequence[Document], most: int = 20, *, allow_missing: bool = False
) -> list[WorstPassage]:
    """The sentences with the most errors. An entity counts where it starts; no sentence cuts a gold or found one."""
    passages = (
        passage
        for judged in judge_documents(gold, found, allow_missing=allow_missing)
        if judged.wrong or judged.lost
        for passage in _by_sentence(judged)
    )
    return nsmallest(most, passages, key=_worst_first)


def _worst_first(passage: WorstPassage) -> tuple[int, float, int, Span]:
    return -passage.fp - passage.fn, passage.f1, passage.document, passage.span


def _by_sentence(judged: JudgedDocument) -> Iterable[WorstPassage]:
    index = SentenceIndex(judged.gold, judged.found.entities)

    def count(entities: Iterable[Entity]) -> Counter[int]:
        return Counter(index.sentence_of(entity) for entity in entities)

    right, wrong, lost = count(judged.right), count(judged.wrong), count(judged.lost)
    mistakes: dict[int, list[Mistake]] = {}
    for mistake in judged.mistakes:
        by_gold = mistake.gold is not None and judged.lost.get(mistake.gold) is mistake
        entity = mistake.gold if by_gold else mistake.found
        assert entity is not None
        mistakes.setdefault(index.sentence_of(entity), []).append(mistake)
    for sentence in sorted(wrong.keys() | lost.keys()):
        yield WorstPassage(
            judged.number,
            index.characters(sentence),
            right[sentence],
            wrong[sentence],
            lost[sentence],
            tuple(mistakes.get(sentence, ())),
        )


def repeated_mistakes(
    gold: Sequence[Document],
    found: Sequence[Document],
    most: int | None = None,
    *,
    at_least: int = 2,
    allow_missing: bool = False,
) -> list[Repeated]:
    """Mistakes of one kind with the same labels and surfaces (white space aside), the most frequent first."""
    numbers_of: dict[tuple[ErrorKind, str | None, str | None, str | None, str | None], list[int]] = {}
    for judged in judge_documents(gold, found, allow_missing=allow_missing):
        for mistake in judged.mistakes:
            key = (
                mistake.kind,
                *_label_and_text(judged.gold, mistake.gold),
                *_label_and_text(judged.gold, mistake.found),
            )
            numbers_of.setdefault(key, []).append(judged.number)
    rows = [
        Repeated(*key, len(numbers), tuple(dict.fromkeys(numbers))[:EXAMPLES])
        for key, numbers in numbers_of.items()
        if len(numbers) >= at_least
    ]
    rows.sort(key=lambda row: -row.times)  # stable: of equals the one that came first
    return rows[:most]


def _label_and_text(document: Document, entity: Entity | None) -> tuple[str | None, str | None]:
    return (entity.label, " ".join(document.text_of(entity).split())) if entity else (None, None)


def label_conflicts(
    gold: Sequence[Document],
    found: Sequence[Document],
    training: Iterable[Document],
    most: int | None = None,
    *,
    allow_missing: bool = False,
) -> list[Conflict]:
    """Gold or found mentions whose surface has another label in training, most frequent errors first."""
    known = labels_of_surfaces(training)
    rows: dict[tuple[str, str], Conflict] = {}
    for judged in judge_documents(gold, found, allow_missing=allow_missing):
        for entity in (*judged.right, *judged.wrong, *judged.lost):
            name = surface(judged.gold, entity)
            labels = known.get(name)
            if not labels or labels.keys() == {entity.label}:
                continue
            row = rows.setdefault((name, entity.label), Conflict(name, entity.label, dict(labels.most_common())))
            row.gold += entity not in judged.wrong
            row.missed += entity in judged.lost
            row.found += entity not in judged.lost
            row.wrong += entity in judged.wrong
            if len(row.documents) < EXAMPLES and judged.number not in row.documents:
                row.documents.append(judged.number)
    order = sorted(rows.values(), key=lambda row: (-row.missed - row.wrong, -row.gold - row.found, row.text, row.label))
    return order[:most]
