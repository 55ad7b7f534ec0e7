"""Rows of a file as the documents they come from: rows with one `group` that stand together are one article."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from wingspan.corpora.sameness import bare, bare_places
from wingspan.corpora.sentences import split_sentences
from wingspan.corpora.word_level import word_spans
from wingspan.text import Document, Span

Fragments = tuple[Span, ...]


@dataclass(frozen=True)
class Article:
    """One document, be it one row or many."""

    part: str
    """The file, or whatever its rows are known by."""
    id: str
    first: int
    """The place of its first row in the part."""
    rows: tuple[Document, ...]

    @cached_property
    def text(self) -> str:
        """The rows, one on each line."""
        return "\n".join(row.text for row in self.rows)

    @cached_property
    def key(self) -> str:
        """Its letters and digits: the same in a file of words, of sentences and of characters."""
        return bare(self.text)

    @cached_property
    def mentions(self) -> list[Fragments]:
        """Where its entities are, as ranges of the key; row by row, in the order of the entities."""
        found, before = [], 0
        for row in self.rows:
            if row.entities:
                places = before + bare_places(row.text)
                found += [
                    tuple(Span(int(places[start]), int(places[end])) for start, end in entity.spans)
                    for entity in row.entities
                ]
            before += len(bare(row.text))
        return found

    @cached_property
    def mention_set(self) -> frozenset[Fragments]:
        """The mentions, to look one up."""
        return frozenset(self.mentions)

    def sentences(self) -> Iterator[tuple[Span, str]]:
        """Its sentences, declared or found by rules: as ranges of the key, and as they are written."""
        at = 0
        for row in self.rows:
            for start, end in row.sentences or split_sentences(row.text, word_spans(row)):
                written = row.text[start:end]
                place = self.key.find(letters := bare(written), at)
                if letters and place >= 0:
                    at = place + len(letters)
                    yield Span(place, at), written


def articles(part: str, documents: Iterable[Document]) -> Iterator[Article]:
    """The articles of a part, in its order, while it is read."""
    row = 0
    for (group, _), together in groupby(enumerate(documents), key=lambda pair: _identity(*pair)):
        rows = tuple(document for _, document in together)
        yield Article(part, rows[0].id if group is None else group, row, rows)
        row += len(rows)


def _identity(row: int, document: Document) -> tuple[str | None, int]:
    return (None, row) if document.group is None else (document.group, -1)
