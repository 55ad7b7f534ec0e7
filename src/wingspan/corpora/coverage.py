"""Coverage: how many gold entities a model can find at all. Reported before training, because recall cannot exceed it.

Sentences are made once: `Census` records their entities, and counts the losses to the limits once these are known.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from wingspan.corpora.fragments import mistaken
from wingspan.corpora.segment import GoldOutcome, Segmenting, Tables, segment_rows, word_sizes
from wingspan.text import Document, Entity, Sentence, Span

Overlap = Literal["flat", "nested", "any"]

# reason -> its wording; reasons are checked in this order, and each entity is lost to one only
REASONS: dict[str, str] = {
    "misaligned": "not on word borders",
    "cut": "cut by a sentence or window",
    "discontinuous": "discontinuous",
    "unjoined": "made of links that others share",
    "too_wide": "wider than {max_width}",
    "same_span": "with the span of another label",
    "overlapping": "overlapping another",
    "crossing": "crossing another",
    "same_type": "overlapping another of their type",
}


@dataclass(frozen=True)
class Coverage:
    """The number of gold entities, and how many of them can never be found, by reason."""

    total: int
    lost: Mapping[str, int] = field(default_factory=dict)
    moved: int = 0  # misaligned ones that are trained on with their borders moved to words
    capped_words: int = 0  # words with more pieces than a window holds: the encoder sees their beginnings
    max_width: int | None = None
    unit: Literal["word", "piece"] = "word"  # what max_width counts
    verb: Literal["found", "typed"] = "found"

    @property
    def found(self) -> int:
        """How many a perfect model would find."""
        return self.total - sum(self.lost.values())

    @property
    def percent(self) -> float:
        """The highest recall that can be reached, in percent."""
        return 100.0 * self.found / self.total if self.total else 100.0

    def lines(self) -> list[str]:
        """The figures as sentences."""
        if not self.total:
            return ["Coverage: there are no entities to find"]
        shown = math.floor(self.percent * 10) / 10  # 99.96 % is not everything
        width = _counted(self.max_width or 0, self.unit)
        reasons = [
            f"{self.lost[name]:,} {REASONS[name].format(max_width=width)}" for name in REASONS if name in self.lost
        ]
        details = f" ({', '.join(reasons)})" if reasons else ""
        lines = [f"Coverage: {shown:.1f}% of {_counted(self.total, 'entity')} can be {self.verb}{details}"]
        if self.moved:
            trained = "1 is trained on with its" if self.moved == 1 else f"{self.moved:,} are trained on with their"
            lines.append(f"Of those not on word borders, {trained} borders moved to words")
        if self.capped_words:
            lines.append(f"{_counted(self.capped_words, 'word')} longer than a window: only the beginning is seen")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data."""
        figures = {"entities": self.total, "found": self.found, "percent": self.percent, "lost": dict(self.lost)}
        return figures | {"moved": self.moved, "capped_words": self.capped_words, "max_width": self.max_width}


class Census:
    """Makes sentences, and counts what becomes of the entities."""

    def __init__(self, segmenting: Segmenting, tables: Tables | None = None, gold: bool = True) -> None:
        """Takes the arguments of `segment`; `gold=False` cuts as prediction does."""
        self.segmenting = replace(segmenting, context="sentence")  # context has no part in what is lost
        self.tables = tables
        self.gold = gold
        self.outcomes: Counter[GoldOutcome] = Counter()
        self.capped_words = 0
        self._moved: dict[int, Entity] = {}  # by identity; kept here so that no other object can get its id

    def sentences(self, documents: Iterable[Document]) -> Iterator[Sentence]:
        """The sentences of all documents, one after the other."""
        return (sentence for sentence in self.rows(documents) if sentence is not None)

    def rows(self, documents: Iterable[Document]) -> Iterator[Sentence | None]:
        """The sentences of each document, and None after them; by then what became of its entities is counted."""
        for sentence in segment_rows(documents, self.segmenting, self.tables, self.gold, self._record):
            if sentence is not None and len(sentence.words) == 1:  # a word longer than a window is alone in one
                self.capped_words += int(word_sizes(sentence)[0] > self.segmenting.max_length)
            yield sentence

    def coverage(
        self,
        sentences: Iterable[Sentence],
        *,
        max_width: int | None,
        overlap: Overlap = "nested",
        one_label_per_span: bool = True,
        discontinuous: bool = False,
        tags: bool = False,
        pieces: bool = False,
    ) -> Coverage:
        """The entities lost to the limits in the sentences made here, and those lost in making them.

        `discontinuous`: fragments can be joined. `tags`: entities are decoded from tags, one layer per type, or a
        single layer where `overlap` is flat; then discontinuity and overlaps are limits, width and labels per span are
        not.
        `pieces`: widths count pieces instead of words.
        """
        lost: Counter[str] = Counter()
        for sentence in sentences:
            left = [entity for entity in sentence.entities if id(entity) not in self._moved]
            if tags or not discontinuous:
                left = _without(left, [e for e in left if e.discontinuous], "discontinuous", lost)
            else:
                left = _without(left, mistaken(left)[0], "unjoined", lost)
            if not tags and max_width is not None:
                wide = [e for e in left if any(width_of(span, sentence, pieces) > max_width for span in e.spans)]
                left = _without(left, wide, "too_wide", lost)
            if not tags and one_label_per_span:
                first = {e.spans: e for e in reversed(left)}
                second = [e for e in left if first[e.spans] is not e and not e.discontinuous]
                left = _without(left, second, "same_span", lost)
            if overlap == "flat":
                _without(left, _clashing(left, nested=False), "overlapping", lost)
            elif tags:
                for label in {e.label for e in left}:
                    _without(left, _clashing([e for e in left if e.label == label], nested=False), "same_type", lost)
            elif overlap == "nested":
                _without(left, _clashing(left, nested=True), "crossing", lost)
        lost["misaligned"] = self.outcomes["misaligned"] + self.outcomes["moved"]
        lost["cut"] = self.outcomes["cut"]
        return Coverage(
            total=self.outcomes.total(),
            lost={name: lost[name] for name in REASONS if lost[name]},
            moved=self.outcomes["moved"],
            capped_words=self.capped_words,
            max_width=max_width,
            unit="piece" if pieces else "word",
        )

    def _record(self, entity: Entity, outcome: GoldOutcome, placed: Entity | None) -> None:
        self.outcomes[outcome] += 1
        if outcome == "moved" and placed is not None:
            self._moved[id(placed)] = placed


def width_of(span: Span, sentence: Sentence, pieces: bool = False) -> int:
    """The width of a span in words, or in pieces."""
    return int(word_sizes(sentence)[span.start : span.end].sum()) if pieces else span.width


def auto_width(sentences: Iterable[Sentence], share: float = 0.99, pieces: bool = False) -> int:
    """The smallest width, in words or pieces, that holds this share of the entities' fragments."""
    widths = Counter(width_of(span, s, pieces) for s in sentences for entity in s.entities for span in entity.spans)
    reached = 0
    for width in sorted(widths):
        reached += widths[width]
        if reached >= share * widths.total():
            return max(width, 1)
    return 1


def auto_overlap(sentences: Iterable[Sentence]) -> Overlap:
    """The overlap that the gold needs: "any" if two entities cross, "nested" if one is in another, else "flat"."""
    nested = False
    for sentence in sentences:
        if _clashing(sentence.entities, nested=True):
            return "any"
        nested = nested or bool(_clashing(sentence.entities, nested=False))
    return "nested" if nested else "flat"


def _without(entities: list[Entity], losing: list[Entity], reason: str, lost: Counter[str]) -> list[Entity]:
    """Counts the lost entities and returns the others."""
    lost[reason] += len(losing)
    gone = {id(entity) for entity in losing}
    return [entity for entity in entities if id(entity) not in gone]


def _clashing(entities: Sequence[Entity], nested: bool) -> list[Entity]:
    """The entities that cannot stay beside the others: overlapping ones, or crossing ones where nesting is allowed.

    They are taken by their ends, so that as many as possible stay where none may overlap.
    """
    kept: list[Entity] = []
    clashing: list[Entity] = []
    for entity in sorted(entities, key=lambda e: (e.end, -e.start)):
        clashes = False
        for other in reversed(kept):
            if clashes or other.end <= entity.start:
                break
            clashes = any(a.crosses(b) if nested else a.overlaps(b) for a in other.spans for b in entity.spans)
        (clashing if clashes else kept).append(entity)
    return clashing


def _counted(number: int, noun: str) -> str:
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1] + 'ies' if noun.endswith('y') else noun + 's'}"
