"""Predictions on other words or other documents than the gold, put onto the gold text by their characters.

A tagger's column file has words and no text: the same characters in the same order, with other white space, and a row
for each sentence where the gold has a document. Both sides are compared without white space.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from os.path import commonprefix
from typing import NamedTuple

from wingspan.corpora.word_level import in_words
from wingspan.evaluation.pairing import keys_of
from wingspan.text import Document, Entity, Span

_HEAD = 24
"""How many characters of a document it is looked up by."""

# What the Penn Treebank's tokenizer writes for brackets, quotes and slashes, and with it many taggers.
_ESCAPED = {
    "-LRB-": "(",
    "-RRB-": ")",
    "-LSB-": "[",
    "-RSB-": "]",
    "-LCB-": "{",
    "-RCB-": "}",
    "``": '"',
    "''": '"',
    "\\/": "/",
    "\\*": "*",
}


class Placed(NamedTuple):
    """Predictions on the texts of the gold, and what was done to them, in sentences."""

    documents: list[Document]
    notes: tuple[str, ...] = ()


def place_on_gold(gold: Sequence[Document], found: Sequence[Document]) -> Placed:
    """The predictions with the texts of the gold, if they hold the same characters; otherwise as they are.

    Documents meet by id, then by position, then by content: rows of predictions that together read like a gold document
    (or one that reads like several) are shared out, in whatever order the documents come. Where nothing fits although
    the two sides have no id in common, a ValueError says where they part.
    """
    if not gold or not found:
        return Placed(list(found))
    known = dict(zip(keys_of(gold), gold, strict=True))
    names = keys_of(found)
    pairs: list[tuple[Document, Document]] = []
    if known.keys() >= set(names):
        pairs = [(known[name], given) for name, given in zip(names, found, strict=True)]
    elif len(gold) == len(found) and not known.keys() & set(names):
        pairs = list(zip(gold, found, strict=True))
    if pairs and all(wanted.text == given.text for wanted, given in pairs):
        return Placed(list(found))
    for candidates in (found, [_unescaped(document) for document in found]):
        stream = _Stream(candidates)
        if pairs and all(_squeezed(w.text) == text for (w, _), text in zip(pairs, stream.texts, strict=True)):
            starts = list(zip(stream.starts, (wanted for wanted, _ in pairs), strict=True))
            return Placed(stream.onto(starts), (_note(len(pairs), len(found)),))
        tiles, unfit = _tiles(gold, stream)
        if unfit is None:
            return Placed(stream.onto(tiles), (_note(len(tiles), len(found)),))
    if pairs or known.keys() & set(names):
        return Placed(list(found))  # they have names to be compared by, and `pair` says what is wrong
    raise ValueError(unfit)


def _note(documents: int, rows: int) -> str:
    return (
        f"the predictions ({rows} rows) were put onto the texts of {documents} gold documents by their characters, "
        "white space aside"
    )


def _squeezed(text: str) -> str:
    return "".join(text.split())


@dataclass
class _Stream:
    """All predicted documents one after the other, without white space."""

    documents: Sequence[Document]

    def __post_init__(self) -> None:
        self.texts = [_squeezed(document.text) for document in self.documents]
        self.starts = list(accumulate(map(len, self.texts), initial=0))[:-1]
        self.text = "".join(self.texts)

    def row_at(self, place: int) -> Document:
        """The document a place of the stream belongs to."""
        return self.documents[bisect_right(self.starts, place) - 1]

    def onto(self, tiles: Sequence[tuple[int, Document]]) -> list[Document]:
        """The entities on the gold documents whose characters start at these places of the stream."""
        starts = [start for start, _ in tiles]
        places = [[at for at, sign in enumerate(wanted.text) if not sign.isspace()] for _, wanted in tiles]
        moved: list[list[Entity]] = [[] for _ in tiles]
        for row, entity, spans in self._entities():
            number = bisect_right(starts, spans[0].start) - 1
            start, own = starts[number], places[number]
            if max(span.end for span in spans) > start + len(own):
                raise ValueError(
                    f"predicted document {row.id!r}: {entity.label!r} at {entity.start}-{entity.end} goes beyond the "
                    f"end of the gold document {tiles[number][1].id!r}; give both sides the same documents"
                )
            fragments = tuple(Span(own[a - start], own[b - start - 1] + 1) for a, b in spans)
            moved[number].append(replace(entity, spans=fragments))
        return [replace(wanted, entities=tuple(entities)) for (_, wanted), entities in zip(tiles, moved, strict=True)]

    def _entities(self) -> Iterator[tuple[Document, Entity, tuple[Span, ...]]]:
        """Every entity with its fragments in places of the stream."""
        for start, document in zip(self.starts, self.documents, strict=True):
            if not document.entities:
                continue
            before = list(accumulate((not sign.isspace() for sign in document.text), initial=start))
            for entity in document.entities:
                spans = tuple(Span(before[s], before[e]) for s, e in entity.spans)
                if any(span.width == 0 for span in spans):
                    raise ValueError(
                        f"predicted document {document.id!r}: {entity.label!r} at {entity.start}-{entity.end} holds "
                        "nothing but white space; remove it"
                    )
                yield document, entity, spans


def _tiles(gold: Sequence[Document], stream: _Stream) -> tuple[list[tuple[int, Document]], str | None]:
    """Where in the stream each gold document starts, and what does not fit if something does not.

    A document is looked up by its first characters; of several that fit, the next one of the gold is taken, then the
    longest.
    """
    texts = [_squeezed(document.text) for document in gold]
    by_head: dict[str, list[int]] = {}
    for number, text in enumerate(texts):
        for size in {min(len(text), _HEAD)} - {0}:
            by_head.setdefault(text[:size], []).append(number)
    sizes = sorted({len(head) for head in by_head}, reverse=True)
    tiles: list[tuple[int, Document]] = [(0, wanted) for wanted, text in zip(gold, texts, strict=True) if not text]
    used: set[int] = set()
    place, following = 0, 0
    while place < len(stream.text):
        near = [n for size in sizes for n in by_head.get(stream.text[place : place + size], ()) if n not in used]
        fitting = [number for number in near if stream.text.startswith(texts[number], place)]
        if not fitting:
            return [], _unfit(gold, texts, [*near, *range(following, min(following + 1, len(gold)))], stream, place)
        number = following if following in fitting else max(fitting, key=lambda n: len(texts[n]))
        tiles.append((place, gold[number]))
        used.add(number)
        place += len(texts[number])
        following = number + 1
    return tiles, None


def _unfit(gold: Sequence[Document], texts: Sequence[str], near: Sequence[int], stream: _Stream, place: int) -> str:
    """Where the predictions part from the gold document that goes along with them furthest."""
    row, shown = stream.row_at(place), stream.text[place : place + 30]
    if not near:
        return f"predicted document {row.id!r} reads {shown!r}, as no gold does; check that both are of one corpus"
    ahead = {number: stream.text[place : place + len(texts[number])] for number in near}
    shared = {number: len(commonprefix([texts[number], ahead[number]])) for number in near}
    number = max(near, key=lambda n: shared[n])
    at = shared[number]
    here = slice(max(0, at - 10), at + 10)
    there = slice(max(place, place + at - 10), place + at + 10)
    return (
        f"the predictions fit no gold document, white space aside: {stream.text[there]!r} in predicted document "
        f"{stream.row_at(min(place + at, len(stream.text) - 1)).id!r}, {texts[number][here]!r} in gold document "
        f"{gold[number].id!r}; check that both files are of one corpus, with no words changed"
    )


def _unescaped(document: Document) -> Document:
    """The document with brackets and quotes as they are written, where its words have the treebank's names for them."""
    given = [document.text[start:end] for start, end in document.words or ()]
    if not any(word in _ESCAPED for word in given) or "".join(given) != _squeezed(document.text):
        return document
    words, placed = in_words(document)
    entities = tuple(replace(entity, spans=fragments) for entity, fragments in placed)
    return Document.from_words(document.id, tuple(_ESCAPED.get(word, word) for word in words), entities)
