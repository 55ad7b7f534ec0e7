"""The corpus of `wingspan demo` and of the tests: biomedical-looking English with nested and discontinuous entities.

`tests/support/demo_corpus.py` generated it. Most names of the held-out parts do not occur in training, so that a model
has to learn endings and contexts; a dictionary of the training names finds the smaller half only.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from wingspan.corpora.formats import read
from wingspan.corpora.words import WordRanges, split_words, word_spans
from wingspan.text import Document, Entity, Span

FILE = Path(__file__).with_name("demo.jsonl.gz")


@cache
def corpus() -> tuple[tuple[Document, ...], tuple[Document, ...], tuple[Document, ...]]:
    """The documents for training, development and testing: raw text with entities in characters."""
    documents = tuple(read(FILE, "jsonl"))
    train, dev, test = (tuple(d for d in documents if d.id.startswith(part)) for part in ("train", "dev", "test"))
    return train, dev, test


def memorizer(train: Iterable[Document]) -> Callable[[Document], Document]:
    """The baseline: predicts every occurrence of a training name, nested ones too, with the label it had most often.

    Case does not matter. A name that was no entity in most of its training occurrences is left alone.
    """
    train = tuple(train)
    labels: defaultdict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for document in train:
        ranges = WordRanges(word_spans(document))
        for entity in document.entities:
            if entity.discontinuous:
                continue
            # the words of the name are its document's, or the splitter's where it begins or ends inside a word
            name, inside = document.text_of(entity), ranges.exact(entity.hull)
            key = _words(document.text, ranges.words[slice(*inside)]) if inside else _words(name, split_words(name))
            labels[key][entity.label] += 1
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


def _words(text: str, offsets: Sequence[Span]) -> tuple[str, ...]:
    return tuple(text[start:end].casefold() for start, end in offsets)


def _spans(document: Document, widest: int) -> Iterator[tuple[tuple[str, ...], Span]]:
    """Every span of words up to the widest name, with its words."""
    offsets = word_spans(document)
    words = _words(document.text, offsets)
    for first in range(len(words)):
        for last in range(first, min(first + widest, len(words))):
            yield words[first : last + 1], Span(offsets[first].start, offsets[last].end)
