"""Documents into what a model sees: sentences, and overlapping windows where a sentence is too long; and back.

What stands around a sentence is added in `corpora.context`, where it is asked for.

Everything is read once from left to right, so that a document of any length takes linear time and a window's memory.
This is the only place where characters become words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from wingspan.corpora.align import Gold, Misaligned, Record
from wingspan.corpora.sentences import mark_sentence_ends
from wingspan.corpora.words import SPLITTERS
from wingspan.text import Document, Entity, Sentence, Span

Measure = Callable[[Sequence[str]], Sequence[int]]
"""Words to the number of pieces that an encoder makes of each."""

Measured = tuple[Span, bool, int]
"""A word, whether a sentence ends with it, and its size."""

# How many words are measured in one call: enough to make the call cheap, few enough to keep nothing big in memory.
_BLOCK = 1024


@dataclass(frozen=True)
class Segmenting:
    """How documents are cut. `max_length` counts words, or pieces where a measure is given; `overlap` counts words.

    The overlap is context on each side of a window's core: at least the widest span, so that a span that starts in the
    core fits into the window.
    """

    max_length: int = 256
    overlap: int = 32
    misaligned: Misaligned = "expand"
    sentences: Literal["split", "whole"] = "split"
    splitter: str = "words"
    context: Literal["sentence", "document"] = "sentence"
    """What is encoded with a sentence: nothing else, or what stands around it in its document, up to `max_length`."""
    context_words: int | None = None
    """The most words of a sentence and its context together; each side of it gets half of what is left."""

    def __post_init__(self) -> None:
        """Says at once what cannot work."""
        if self.max_length < 1:
            raise ValueError(f"max_length is {self.max_length}; a window holds at least 1")
        if self.overlap < 0:
            raise ValueError(f"overlap is {self.overlap}; give 0 or more words")
        if self.misaligned not in ("expand", "contract", "drop", "error"):
            raise ValueError(f"misaligned is {self.misaligned!r}; use expand, contract, drop or error")
        if self.sentences not in ("split", "whole"):
            raise ValueError(f"sentences is {self.sentences!r}; use split or whole")
        if self.context_words is not None and self.context_words < 1:
            raise ValueError(f"context_words is {self.context_words}; give at least 1")
        if self.context not in ("sentence", "document"):
            raise ValueError(f"context is {self.context!r}; use sentence or document")
        if self.splitter not in SPLITTERS:
            raise ValueError(f"unknown splitter {self.splitter!r}; use one of {', '.join(SPLITTERS)}")


def segment(
    document: Document,
    settings: Segmenting,
    measure: Measure | None = None,
    gold: bool = True,
    record: Record | None = None,
) -> Iterator[Sentence]:
    """The document's sentences, each by itself; a long one as windows whose cores share its words out.

    With `gold`, no sentence found by rules cuts an entity; prediction says `gold=False`, so that gold has no part in
    what is predicted. Either way entities are placed where they fit; `record` hears what became of each of them.
    """
    return (sentence for sentence, _ in segment_sized(document, settings, measure, gold, record))


def segment_sized(
    document: Document,
    settings: Segmenting,
    measure: Measure | None = None,
    gold: bool = True,
    record: Record | None = None,
) -> Iterator[tuple[Sentence, list[int]]]:
    """The same, with the size of each word of a sentence."""
    keep = tuple(entity.hull for entity in document.entities) if gold else ()
    words = _measured(document.text, marked_words(document, settings, keep), measure)
    entities = Gold(document, settings.misaligned, record)
    for window in _windows(words, settings.max_length, settings.overlap):
        sentence = Sentence(
            words=tuple(document.text[start:end] for start, end in window.words),
            entities=entities.place(window.words, window.core, window.following),
            core=window.core,
            reach=Span(0, len(window.words)),
            offsets=tuple(window.words),
            dataset=document.dataset,
        )
        yield sentence, window.sizes
    entities.close()


def place(sentence: Sentence, entities: Iterable[Entity]) -> tuple[Entity, ...]:
    """Entities in words of the sentence as entities in characters of its document; scores are kept."""
    return tuple(
        Entity(entity.label, tuple(sentence.characters(span) for span in entity.spans), entity.score, entity.meta)
        for entity in entities
    )


def marked_words(document: Document, settings: Segmenting, keep: Iterable[Span]) -> Iterator[tuple[Span, bool]]:
    """Each word and whether a sentence ends with it, by what the document fixes, otherwise by rules."""
    given = document.words
    words = given if given is not None else SPLITTERS[settings.splitter](document.text)
    if settings.sentences == "whole":
        return _ending_at(words, ())
    if document.sentences is not None:
        return _ending_at(words, document.sentences)
    if given is not None:
        return _ending_at(words, ())
    return mark_sentence_ends(document.text, words, keep)


def _ending_at(words: Iterable[Span], sentences: Iterable[Span]) -> Iterator[tuple[Span, bool]]:
    """Sentences that the source fixes. Words between two of them are a sentence of their own: nothing is left out."""
    borders = iter(sorted({border for span in sentences for border in span}))
    border = next(borders, None)
    previous: Span | None = None
    for word in words:
        crossed = False
        while border is not None and border <= word.start:
            border, crossed = next(borders, None), True
        if previous is not None:
            yield previous, crossed
        previous = word
    if previous is not None:
        yield previous, True


def _measured(text: str, words: Iterator[tuple[Span, bool]], measure: Measure | None) -> Iterator[Measured]:
    """Each word with its size. A word without pieces counts one, as it takes one place among the model's words."""
    if measure is None:
        for word, ends in words:
            yield word, ends, 1
        return
    while block := list(islice(words, _BLOCK)):
        sizes = measure([text[word.start : word.end] for word, _ in block])
        for (word, ends), size in zip(block, sizes, strict=True):
            yield word, ends, max(int(size), 1)


@dataclass(frozen=True, slots=True)
class _Window:
    """Words that are seen at once, those of them that are owned, and the word that comes after them."""

    words: list[Span]
    sizes: list[int]
    core: Span
    following: Span | None


def _windows(words: Iterator[Measured], limit: int, overlap: int) -> Iterator[_Window]:
    """Shares the words of each sentence out among windows of at most `limit`, with up to `overlap` words around a core.

    Context to the right comes first, because spans that start in the core end there: it gets up to half of the window,
    context to the left up to a quarter, so that the core moves on by at least a quarter. Where the word that does not
    fit is large, the context shrinks; a word larger than a window stands alone.
    """
    held: list[Span] = []
    sizes: list[int] = []
    total = owned = 0  # owned: how many of the held words belong to earlier windows
    for (word, ends, size), after in _with_next(words):
        if held and total + size > limit:
            right = _fitting(reversed(sizes[owned:]), overlap, min(limit // 2, limit - size))
            core_end = len(held) - right
            if core_end > owned:
                yield _Window(held, sizes, Span(owned, core_end), word)
                room = min(limit // 4, limit - size - sum(sizes[core_end:]))
                owned = _fitting(reversed(sizes[:core_end]), overlap, room)
                first = core_end - owned
            else:  # nothing to own yet: the context to the left makes room
                room = limit - size - sum(sizes[owned:])
                first = owned - _fitting(reversed(sizes[:owned]), overlap, room)
                owned -= first
            held, sizes = held[first:], sizes[first:]
            total = sum(sizes)
        held.append(word)
        sizes.append(size)
        total += size
        if ends:
            yield _Window(held, sizes, Span(owned, len(held)), after[0] if after else None)
            held, sizes, total, owned = [], [], 0, 0


def _with_next(words: Iterable[Measured]) -> Iterator[tuple[Measured, Measured | None]]:
    """Each word beside the one after it."""
    current: Measured | None = None
    for following in words:
        if current is not None:
            yield current, following
        current = following
    if current is not None:
        yield current, None


def _fitting(sizes: Iterable[int], most: int, room: int) -> int:
    """How many of the words, taken in this order, fit into the room; `most` at most."""
    count = 0
    for size in islice(sizes, most):
        if size > room:
            break
        room -= size
        count += 1
    return count
