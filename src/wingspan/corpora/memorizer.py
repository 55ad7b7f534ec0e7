"""A dictionary of the training names: what a model has to beat to have learned more than names."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

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
        for entity in document.entities:
            if not entity.discontinuous:
                labels[_key(document.text, entity.start, entity.end)][entity.label] += 1
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


def _key(text: str, start: int, end: int) -> Key:
    return tuple(text[start + word.start : start + word.end].casefold() for word in split_words(text[start:end]))


def _spans(document: Document, widest: int) -> Iterator[tuple[Key, Span]]:
    """Every span of words up to the widest name, with its words."""
    offsets = document.words if document.words is not None else split_words(document.text)
    words = [document.text[start:end].casefold() for start, end in offsets]
    for first in range(len(words)):
        for last in range(first, min(first + widest, len(words))):
            yield tuple(words[first : last + 1]), Span(offsets[first].start, offsets[last].end)
