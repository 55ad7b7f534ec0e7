"""A dictionary of the training names: what a model has to beat to have learned more than names."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from wingspan.corpora.word_level import WordRanges, word_spans
from wingspan.corpora.words import split_words
from wingspan.text import Document, Entity, Span

Key = tuple[str, ...]


def memorizer(train: Iterable[Document]) -> Callable[[Document], Document]:
    """Predicts every occurrence of a training name, nested ones too, with the label it had most often.

    Case does not matter. A name that was no entity in most of its training occurrences is left alone.
    """
    train = tuple(train)
    labels: defaultdict[Key, Counter[str]] = defaultdict(Counter)
    for document in train:
        ranges = WordRanges(word_spans(document))
        for entity in document.entities:
            if not entity.discontinuous:
                labels[_key(document, entity.hull, ranges)][entity.label] += 1
    widest = max(map(len, labels), default=0)
    occurrences = Counter(key for document in train for key, _ in _spans(document, widest) if key in labels)
    known = {
        key: min(counts, key=lambda label: (-counts[label], label))
        for key, counts in labels.items()
        if 2 * counts.total() >= occurrences[key]
    }

    def predict(document: Document) -> Document:
        found = (Entity.at(known[key], *span) for key, span in _spans(document, widest) if key in known)
        return replace(document, entities=tuple(found))

    return predict


def _key(document: Document, span: Span, ranges: WordRanges) -> Key:
    """The words of a name: those of its document, or the splitter's where it begins or ends inside of a word."""
    inside = ranges.exact(span)
    if inside is not None:
        return _words(document.text, ranges.words[inside.start : inside.end])
    name = document.text[span.start : span.end]
    return _words(name, split_words(name))


def _words(text: str, offsets: Sequence[Span]) -> Key:
    return tuple(text[start:end].casefold() for start, end in offsets)


def _spans(document: Document, widest: int) -> Iterator[tuple[Key, Span]]:
    """Every span of words up to the widest name, with its words."""
    offsets = word_spans(document)
    words = _words(document.text, offsets)
    for first in range(len(words)):
        for last in range(first, min(first + widest, len(words))):
            yield words[first : last + 1], Span(offsets[first].start, offsets[last].end)
