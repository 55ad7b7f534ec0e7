"""The words and sentences of a text, and where an entity stands among them: what analyses count in."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from functools import cached_property

from wingspan.corpora.segment import Segmenting, marked_words
from wingspan.corpora.sentences import is_one_sentence
from wingspan.corpora.word_level import WordRanges
from wingspan.corpora.words import split_words
from wingspan.text import Document, Entity, Span

_RULES = Segmenting()


class TextLayout:
    """Words and sentences as training sees them: those the document fixes, otherwise those of the rules."""

    def __init__(self, document: Document, keep: Iterable[Entity] = ()) -> None:
        """No sentence that the rules find cuts an entity of the document or one of `keep`."""
        self.document = document
        if document.words is None and document.sentences is None and is_one_sentence(document.text):
            self.ranges = WordRanges(split_words(document.text))
            self.sentences = [Span(0, len(self.ranges.words))]
            return
        hulls = [entity.hull for entity in (*document.entities, *keep)]
        words, self.sentences, start = [], [], 0
        for at, (word, ends) in enumerate(marked_words(document, _RULES, hulls), start=1):
            words.append(word)
            if ends:
                self.sentences.append(Span(start, at))  # in words
                start = at
        if not words:
            self.sentences.append(Span(0, 0))
        self.ranges = WordRanges(words)

    @cached_property
    def words(self) -> list[str]:
        """The words as strings."""
        text = self.document.text
        return [text[start:end] for start, end in self.ranges.words]

    @cached_property
    def _starts(self) -> list[int]:
        """Where the sentences start, in characters."""
        return [self.ranges.words[sentence.start].start for sentence in self.sentences]

    def width(self, entity: Entity) -> int:
        """How many words the fragments touch."""
        return sum(self.ranges.touched(span).width for span in entity.spans)

    def sentence_of(self, entity: Entity) -> int:
        """The number of the sentence in which the entity starts."""
        return max(bisect_right(self._starts, entity.start) - 1, 0) if len(self.sentences) > 1 else 0

    def characters(self, sentence: int) -> Span:
        """A sentence as a range of characters; the only one of a text is the text."""
        if len(self.sentences) == 1:
            return Span(0, len(self.document.text))
        return self.ranges.characters(self.sentences[sentence])
