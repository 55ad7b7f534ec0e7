"""Documents as formats see them that count in words: words as strings, entities as ranges of words."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from wingspan.corpora.formats import CorpusError
from wingspan.corpora.words import split_words
from wingspan.text import Document, Entity, Span


def word_spans(document: Document) -> tuple[Span, ...]:
    """The words that the document gives, or those of the splitter."""
    return split_words(document.text) if document.words is None else document.words


class WordRanges:
    """Turns ranges of characters into ranges of words."""

    def __init__(self, words: Sequence[Span]) -> None:
        """Takes the words in the order of the text."""
        self.words = words
        self._starts = [word.start for word in words]
        self._ends = [word.end for word in words]

    def touched(self, span: Span) -> Span:
        """The words that share a character with the span; empty (start == end) if there is none."""
        first = bisect_right(self._ends, span.start)
        return Span(first, max(first, bisect_left(self._starts, span.end)))

    def exact(self, span: Span) -> Span | None:
        """The words that make up the span exactly, or None where an edge lies inside of a word or on white space."""
        found = self.touched(span)
        return found if found.start < found.end and self.characters(found) == span else None

    def characters(self, found: Span) -> Span:
        """A range of words as a range of characters."""
        return Span(self.words[found.start].start, self.words[found.end - 1].end)


def in_words(document: Document) -> tuple[list[str], list[tuple[Entity, tuple[Span, ...]]]]:
    """The words, and the entities with their fragments in words. Entities have to fall on word boundaries."""
    spans = word_spans(document)
    _refuse_text_outside(document, spans)
    return [document.text[word.start : word.end] for word in spans], list(_placed(document, spans))


def _refuse_text_outside(document: Document, words: Sequence[Span]) -> None:
    """Words are all that is written: text that belongs to none of them would be lost."""
    at = 0
    for word in (*words, Span(len(document.text), len(document.text))):
        if left := document.text[at : word.start].strip():
            raise CorpusError(
                f"document {document.id}: {left[:40]!r} after character {at} belongs to no word, and a format of words "
                "would lose it; add it to the words, or write jsonl"
            )
        at = word.end


def _placed(document: Document, words: Sequence[Span]) -> Iterator[tuple[Entity, tuple[Span, ...]]]:
    ranges = WordRanges(words)
    for entity in document.entities:
        found = tuple(ranges.exact(span) for span in entity.spans)
        fragments = tuple(span for span in found if span is not None)
        if len(fragments) < len(found):
            raise CorpusError(
                f"document {document.id}: {entity.label!r} at {entity.start}-{entity.end} does not fall on word "
                "boundaries; widen such entities with `wingspan convert --lossy`"
            )
        yield entity, fragments
