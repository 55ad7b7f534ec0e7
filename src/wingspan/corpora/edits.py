"""A document with an edited text, its annotations moved along exactly.

An edit that would cut an annotation in two, or take its first or last character away, is not made. So every fragment
keeps its characters (as edited), none becomes empty, and no two entities fall on one place.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

from wingspan.corpora.gold import ABOUT_ENTITIES, LAYOUTS
from wingspan.corpora.words import split_words
from wingspan.text import Document, Span

_POSITIONED = ABOUT_ENTITIES | LAYOUTS | {"columns"}
"""Keys of `meta` that speak of offsets or of one value per word."""


class Edit(NamedTuple):
    """Characters from start to end become `text`; an insertion has end == start and belongs to no annotation there."""

    start: int
    end: int
    text: str


def edited(document: Document, edits: Iterable[Edit]) -> Document:
    """The document after all edits that can be made. They must not overlap; the order does not matter."""
    made = _allowed(document, sorted(edits))
    if not made:
        return document
    at = _Positions(made)
    text = _text(document.text, made)
    entities = tuple(
        replace(entity, spans=tuple(Span(at.start(s), at.end(e)) for s, e in entity.spans))
        for entity in document.entities
    )
    return replace(
        document,
        text=text,
        entities=entities,
        words=None if document.words is None else _words(document.words, made, at, text),
        # what is inserted between two sentences goes to the first one
        sentences=None if document.sentences is None else tuple(Span(*map(at.start, s)) for s in document.sentences),
        meta={key: value for key, value in document.meta.items() if key not in _POSITIONED},
    )


def _allowed(document: Document, edits: Sequence[Edit]) -> list[Edit]:
    starts = {span.start for entity in document.entities for span in entity.spans}
    ends = {span.end for entity in document.entities for span in entity.spans}
    borders = sorted(starts | ends)
    kept = []
    for edit in edits:
        cuts = bisect_left(borders, edit.end) > bisect_right(borders, edit.start)
        empties = edit.start < edit.end and not edit.text.strip() and (edit.start in starts or edit.end in ends)
        if not cuts and not empties:
            kept.append(edit)
    return kept


def _text(text: str, edits: Sequence[Edit]) -> str:
    pieces, done = [], 0
    for edit in edits:
        assert done <= edit.start <= edit.end <= len(text), f"edits overlap or leave the text at {edit.start}"
        pieces += [text[done : edit.start], edit.text]
        done = edit.end
    return "".join([*pieces, text[done:]])


class _Positions:
    """Where borders of annotations are after the edits."""

    def __init__(self, edits: Sequence[Edit]) -> None:
        self._edits = edits
        self._ends = [edit.end for edit in edits]
        self._shifts = list(accumulate((len(e.text) - (e.end - e.start) for e in edits), initial=0))

    def start(self, place: int) -> int:
        """A start comes after what is inserted there; within something replaced it goes to the beginning of that."""
        before = bisect_right(self._ends, place)
        if before < len(self._edits):
            place = min(place, self._edits[before].start)
        return place + self._shifts[before]

    def end(self, place: int) -> int:
        """An end comes before what is inserted there."""
        before = bisect_right(self._ends, place)
        while before and self._edits[before - 1].start == place:
            before -= 1
        return place + self._shifts[before]


def _words(words: Sequence[Span], edits: Sequence[Edit], at: _Positions, text: str) -> tuple[Span, ...]:
    """The words where they are now, without white space in them; what belongs to none is split by the rules.

    Words of which an edit has taken a part together with something else are split anew.
    """
    borders = sorted({border for word in words for border in word})
    breaking = [e for e in edits if bisect_left(borders, e.end) > bisect_right(borders, e.start)]
    starts = [edit.start for edit in breaking]
    kept: list[Span] = []
    done = 0
    for word in words:
        near = bisect_left(starts, word.end) - 1  # the last breaking edit that starts before the word ends
        if near >= 0 and breaking[near].end > word.start:
            continue
        now = Span(at.start(word.start), max(at.end(word.end), at.start(word.start)))
        kept += _moved(split_words(text[done : now.start]), done)
        kept += _visible(text, now)
        done = now.end
    return (*kept, *_moved(split_words(text[done:]), done))


def _moved(spans: Iterable[Span], by: int) -> list[Span]:
    return [Span(start + by, end + by) for start, end in spans]


def _visible(text: str, span: Span) -> list[Span]:
    """The parts of a word between white space; nothing if the word has gone."""
    parts, at = [], span.start
    for part in text[span.start : span.end].split():
        at = text.index(part, at)
        parts.append(Span(at, at + len(part)))
        at += len(part)
    return parts
