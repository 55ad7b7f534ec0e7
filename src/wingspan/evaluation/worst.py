"""Where to look first: the worst sentences and documents, repeated mistakes, conflicts with labels in training."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import NamedTuple

from wingspan.evaluation.buckets import labels_of_surfaces, surface
from wingspan.evaluation.errors import ErrorKind, Mistake, judge_documents
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


def worst_sentences(
    gold: Sequence[Document], found: Sequence[Document], most: int = 20, *, whole_documents: bool = False
) -> list[WorstPassage]:
    """The sentences, or whole documents, with the most errors; of equals, the lowest F1 first.

    An entity counts where it starts; no sentence cuts a gold or found one.
    """
    passages = []
    for judged in judge_documents(gold, found):
        if not judged.wrong and not judged.lost:
            continue
        index = None if whole_documents else SentenceIndex(judged.gold, judged.found.entities)
        sentence_of = index.sentence_of if index else lambda _: 0
        right, wrong, lost = (Counter(map(sentence_of, side)) for side in (judged.right, judged.wrong, judged.lost))
        mistakes: dict[int, list[Mistake]] = {}
        for mistake in judged.mistakes:
            by_gold = mistake.gold is not None and judged.lost.get(mistake.gold) is mistake
            entity = mistake.gold if by_gold else mistake.found
            assert entity is not None
            mistakes.setdefault(sentence_of(entity), []).append(mistake)
        for at in sorted(wrong.keys() | lost.keys()):
            span = index.characters(at) if index else Span(0, len(judged.gold.text))
            counts = right[at], wrong[at], lost[at]
            passages.append(WorstPassage(judged.number, span, *counts, tuple(mistakes.get(at, ()))))
    return nsmallest(most, passages, key=lambda passage: (-passage.fp - passage.fn, passage.f1, *passage[:2]))


def repeated_mistakes(
    gold: Sequence[Document], found: Sequence[Document], most: int | None = None, *, at_least: int = 2
) -> list[Repeated]:
    """Mistakes of one kind with the same labels and surfaces (white space aside), the most frequent first."""
    numbers_of: dict[tuple[ErrorKind, str | None, str | None, str | None, str | None], list[int]] = {}
    for judged in judge_documents(gold, found):
        for mistake in judged.mistakes:
            gold_side, found_side = (_label_and_text(judged.gold, side) for side in (mistake.gold, mistake.found))
            numbers_of.setdefault((mistake.kind, *gold_side, *found_side), []).append(judged.number)
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
    gold: Sequence[Document], found: Sequence[Document], training: Iterable[Document], most: int | None = None
) -> list[Conflict]:
    """Gold or found mentions whose surface has another label in training, most frequent errors first."""
    known = labels_of_surfaces(training)
    rows: dict[tuple[str, str], Conflict] = {}
    for judged in judge_documents(gold, found):
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
