"""Sentences with what stands around them in their document, encoded but never predicted.

Rows that follow each other with the same `group` are one document. Context is added to sentences and windows as
`segment` makes them, so that what is owned, found and lost is the same with context and without.

See: paper 003, whose inputs are documents (systems.md 3.B.3); there spans across sentences are negatives, here they
are no spans at all.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from wingspan.corpora.segment import Measure, Segmenting, segment_sized
from wingspan.text import Document, Entity, Sentence, Span


def segment_all(
    documents: Iterable[Document], settings: Segmenting, measure: Measure | None = None, gold: bool = True
) -> Iterator[Sentence]:
    """The sentences of all documents, one after the other, with the context that the settings ask for."""
    return (sentence for sentence in segment_rows(documents, settings, measure, gold) if sentence is not None)


def segment_rows(
    documents: Iterable[Document], settings: Segmenting, measure: Measure | None = None, gold: bool = True
) -> Iterator[Sentence | None]:
    """The same, with None after the last sentence of each document. Reads as far ahead as a window reaches."""
    rows = groupby(documents, _article) if settings.context == "document" else ((None, [row]) for row in documents)
    for _, article in rows:
        pieces = _pieces(article, settings, measure, gold)
        if settings.context == "document":
            yield from _in_context(pieces, settings.max_length, settings.context_words)
        else:
            yield from (piece.sentence for piece in pieces)


def _article(row: Document) -> object:
    """What rows of one document have in common; a row without a group is a document of its own."""
    return (row.dataset, row.group) if row.group is not None else object()


class _Piece(NamedTuple):
    """A sentence of a row and the sizes of its words; no sentence where the row ends."""

    row: int
    sentence: Sentence | None
    sizes: list[int]


def _pieces(article: Iterable[Document], settings: Segmenting, measure: Measure | None, gold: bool) -> Iterator[_Piece]:
    for number, row in enumerate(article):
        for sentence, sizes in segment_sized(row, settings, measure, gold):
            yield _Piece(number, sentence, sizes)
        yield _Piece(number, None, [])


def _in_context(pieces: Iterable[_Piece], limit: int, most: int | None) -> Iterator[Sentence | None]:
    """Holds sentences back until enough is known of what follows them."""
    text = _Text()
    held: deque[tuple[_Piece, int]] = deque()  # with the place of its first word in the text
    for piece in pieces:
        first = text.length
        if piece.sentence is not None:
            first -= piece.sentence.core.start
            text.add(piece)
        held.append((piece, first))
        while held and _ready(*held[0], text, limit):
            yield _widened(*held.popleft(), text, limit, most)
        text.forget(held[0][1] - limit if held else text.length - limit)
    for piece, first in held:
        yield _widened(piece, first, text, limit, most)


def _ready(piece: _Piece, first: int, text: _Text, limit: int) -> bool:
    """Whether the text after the sentence would fill all the room that is left."""
    if piece.sentence is None:
        return True
    end = first + len(piece.sizes)
    return end <= text.length and text.size(end, text.length) >= limit - sum(piece.sizes)


def _widened(piece: _Piece, first: int, text: _Text, limit: int, most: int | None) -> Sentence | None:
    """The sentence between its context. Each side gets half of the room, and what the other has no words for.

    Where words are counted, up to `most` of them, each side gets half of these, whatever the other has.
    """
    if piece.sentence is None:
        return None
    end = first + len(piece.sizes)
    room = max(limit - sum(piece.sizes), 0)
    after = min(text.size(end, text.length), room)
    before = text.back_from(first, max(room // 2, room - after))
    last = text.on_from(end, room - text.size(before, first))
    if most is not None:
        half = max(most - len(piece.sizes), 0) // 2
        before, last = max(before, first - half), min(last, end + half)
    return _moved(piece, text.words(before, first, piece.row), text.words(end, last, piece.row))


def _moved(piece: _Piece, before: list[tuple[str, Span]], after: list[tuple[str, Span]]) -> Sentence:
    """The sentence with words before and after it; everything that counts stays inside it."""
    sentence, by = piece.sentence, len(before)
    assert sentence is not None

    def move(span: Span) -> Span:
        return Span(span.start + by, span.end + by)

    return replace(
        sentence,
        words=(*(word for word, _ in before), *sentence.words, *(word for word, _ in after)),
        offsets=(*(place for _, place in before), *sentence.offsets, *(place for _, place in after)),
        entities=tuple(Entity(e.label, tuple(map(move, e.spans)), e.score, e.meta) for e in sentence.entities),
        core=move(sentence.core),
        reach=move(sentence.reach),
    )


class _Text:
    """The words of an article as far as they are read and still needed. Places count from its first word.

    The cores of windows share the words out, so one core after the other is the text.
    """

    def __init__(self) -> None:
        self.rows: list[tuple[int, str, Span]] = []  # row, word, its characters in the row
        self.sums = [0]  # the size of all words before each place, and at the end that of all
        self.forgotten = 0  # how many words are not kept any more

    @property
    def length(self) -> int:
        """How many words were read."""
        return self.forgotten + len(self.rows)

    def add(self, piece: _Piece) -> None:
        """The words that the sentence owns."""
        assert piece.sentence is not None
        for at in range(*piece.sentence.core):
            self.rows.append((piece.row, piece.sentence.words[at], piece.sentence.offsets[at]))
            self.sums.append(self.sums[-1] + piece.sizes[at])

    def size(self, start: int, end: int) -> int:
        """The size of the words from one place to another."""
        return self.sums[end - self.forgotten] - self.sums[start - self.forgotten]

    def back_from(self, place: int, room: int) -> int:
        """The first place whose words up to this one fit into the room."""
        return bisect_left(self.sums, self.sums[place - self.forgotten] - room) + self.forgotten

    def on_from(self, place: int, room: int) -> int:
        """The last place up to which the words from this one fit into the room."""
        return bisect_right(self.sums, self.sums[place - self.forgotten] + room) - 1 + self.forgotten

    def words(self, start: int, end: int, row: int) -> list[tuple[str, Span]]:
        """Words and their characters; those of another row have no place in this one."""
        kept = self.rows[start - self.forgotten : end - self.forgotten]
        return [(word, place if owner == row else Span(0, 0)) for owner, word, place in kept]

    def forget(self, place: int) -> None:
        """Drops the words before a place, when they are many."""
        gone = place - self.forgotten
        if gone > max(len(self.rows) // 2, 1024):
            del self.rows[:gone], self.sums[:gone]
            self.forgotten = place
