"""From documents to the inputs of a model and back: sentences, and overlapping windows where a sentence is too long.

Everything is read once from left to right, so that a document of any length takes linear time and a window's memory.
This is the only place where characters become words.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby, islice, pairwise
from typing import Literal, NamedTuple

from wingspan.corpora.sentences import mark_sentence_ends
from wingspan.corpora.words import AUTO, SPLITTERS
from wingspan.text import Document, Entity, Sentence, Span

Measure = Callable[[Sequence[str]], Sequence[int]]  # words to the number of pieces that an encoder makes of each
Measured = tuple[Span, bool, int]  # a word, whether a sentence ends with it, and its size


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
    splitter: str = AUTO
    context: Literal["sentence", "document"] = "sentence"
    """The context that is encoded with a sentence: none, or the text around it in its document, up to `max_length`."""
    context_words: int | None = None
    """The most words of a sentence and its context together; each side gets half of the remaining words."""

    def __post_init__(self) -> None:
        """Refuses settings that cannot work."""
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
    """The document's sentences; a long one as windows whose cores partition its words.

    With `gold`, no sentence found by rules cuts an entity; prediction uses `gold=False`, so that gold has no influence
    on it. Either way entities are placed where they fit, and `record` is called with the outcome of each.
    """
    return (sentence for sentence, _ in segment_sized(document, settings, measure, gold, record))


def segment_sized(
    document: Document,
    settings: Segmenting,
    measure: Measure | None = None,
    gold: bool = True,
    record: Record | None = None,
) -> Iterator[tuple[Sentence, list[int]]]:
    """Like `segment`, with the size of each word of a sentence."""
    keep = tuple(entity.hull for entity in document.entities) if gold else ()
    words = _measured(document.text, marked_words(document, settings, keep), measure)
    entities = GoldPlacer(document, settings.misaligned, record)
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
    """Each word and whether a sentence ends with it: as the document gives it, otherwise by rules."""
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
    """Given sentences. Words between two of them form another sentence: nothing is left out."""
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
    while block := list(islice(words, 1024)):  # enough to make a call cheap, few enough to keep little in memory
        sizes = measure([text[word.start : word.end] for word, _ in block])
        for (word, ends), size in zip(block, sizes, strict=True):
            yield word, ends, max(int(size), 1)


@dataclass(frozen=True, slots=True)
class _Window:
    """Words that are encoded together, the core of words that it owns, and the word after them."""

    words: list[Span]
    sizes: list[int]
    core: Span
    following: Span | None


def _windows(words: Iterator[Measured], limit: int, overlap: int) -> Iterator[_Window]:
    """Divides the words of each sentence among windows of at most `limit`, with up to `overlap` words around a core.

    Context to the right comes first, because spans that start in the core end there: it gets up to half of the window,
    context to the left up to a quarter, so that the core moves on by at least a quarter. Where the word that does not
    fit is large, the context shrinks; a word larger than a window is alone in one.
    """
    held: list[Span] = []
    sizes: list[int] = []
    total = owned = 0  # owned: how many of the held words belong to earlier windows
    for current, after in pairwise(chain[Measured | None](words, [None])):
        assert current is not None
        word, ends, size = current
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


def _fitting(sizes: Iterable[int], most: int, room: int) -> int:
    """How many of the words, taken in this order, fit into the room; `most` at most."""
    count = 0
    for size in islice(sizes, most):
        if size > room:
            break
        room -= size
        count += 1
    return count


# Gold entities from characters to words

Misaligned = Literal["expand", "contract", "drop", "error"]  # for an entity that starts or ends inside a word
# placed exactly; placed on other borders; left out because of its borders; left out because of a window's
GoldOutcome = Literal["exact", "moved", "misaligned", "cut"]
# called with each entity of a document, its outcome, and the entity in words if it was placed
Record = Callable[[Entity, GoldOutcome, Entity | None], None]


class GoldPlacer:
    """Assigns each entity of a document to the window that owns its first word, from left to right."""

    def __init__(self, document: Document, misaligned: Misaligned, record: Record | None) -> None:
        """Starts before the first word; `record` is called with the outcome of each entity."""
        self.document = document
        self.misaligned = misaligned
        self.record = record
        self.next = 0

    def place(self, words: Sequence[Span], core: Span, following: Span | None) -> tuple[Entity, ...]:
        """The entities whose first word is in the core, in words of the window, those that fit into it."""
        entities = self.document.entities
        last = words[core.end - 1]
        # the first word of an entity is the one it starts in, or, when it is contracted, the first one inside it
        owned_to = last.start if self.misaligned == "contract" else max(last.start, last.end - 1)
        if self.next == len(entities) or entities[self.next].start > owned_to:
            return ()
        starts, ends = [word.start for word in words], [word.end for word in words]
        placed_here: dict[Entity, None] = {}  # two mentions moved to the same words are one
        while self.next < len(entities) and entities[self.next].start <= owned_to:
            entity = entities[self.next]
            self.next += 1
            if self._beyond(entity, following):
                self._tell(entity, "cut")
                continue
            spans, exact = self._in_words(entity, starts, ends)
            if not exact and self.misaligned == "error":
                raise ValueError(self._complaint(entity))
            if not spans or (not exact and self.misaligned == "drop"):
                self._tell(entity, "misaligned")
            elif not core.start <= spans[0].start < core.end:
                self._tell(entity, "cut")
            else:
                placed = Entity(entity.label, spans, entity.score, entity.meta)
                placed_here.setdefault(placed)
                self._tell(entity, "exact" if exact else "moved", placed)
        return tuple(placed_here)

    def close(self) -> None:
        """After the last window: all remaining entities lie after the last word."""
        for entity in self.document.entities[self.next :]:
            if self.misaligned == "error":
                raise ValueError(self._complaint(entity))
            self._tell(entity, "misaligned")
        self.next = len(self.document.entities)

    def _tell(self, entity: Entity, outcome: GoldOutcome, placed: Entity | None = None) -> None:
        if self.record is not None:
            self.record(entity, outcome, placed)

    def _beyond(self, entity: Entity, following: Span | None) -> bool:
        """Whether the entity goes on into words after the window."""
        if following is None:
            return False
        if self.misaligned == "contract":
            return entity.end >= following.end and entity.end > following.start
        return entity.end > following.start

    def _in_words(self, entity: Entity, starts: list[int], ends: list[int]) -> tuple[tuple[Span, ...], bool]:
        """The fragments in words, and whether all borders are borders of words; one without words is left out."""
        fragments: list[Span] = []
        exact = True
        for start, end in entity.spans:
            first, last = bisect_left(starts, start), bisect_right(ends, end) - 1
            on_start = first < len(starts) and starts[first] == start
            on_end = last >= 0 and ends[last] == end
            exact = exact and on_start and on_end and first <= last
            if self.misaligned != "contract":
                first = first if on_start else bisect_right(ends, start)
                last = last if on_end else bisect_left(starts, end) - 1
            if first > last:
                continue
            if fragments and first < fragments[-1].end:  # two fragments in one word have become one
                exact = False
                fragments[-1] = Span(fragments[-1].start, max(last + 1, fragments[-1].end))
            else:
                fragments.append(Span(first, last + 1))
        return tuple(fragments), exact

    def _complaint(self, entity: Entity) -> str:
        return (
            f"document {self.document.id!r}: {entity.label} {self.document.text_of(entity)[:80]!r} at characters"
            f" {entity.start}-{entity.end} does not start and end with a word; correct it, or use misaligned=expand"
        )


# Sentences with the text around them in their document, which is encoded but never predicted. Consecutive rows with the
# same `group` are one document. Context is added to the sentences and windows of `segment`, so that the same entities
# are owned and lost with and without it.
# See: paper 003, whose inputs are documents; there spans across sentences are negatives, here they
# are no spans at all.


def segment_all(
    documents: Iterable[Document], settings: Segmenting, measure: Measure | None = None, gold: bool = True
) -> Iterator[Sentence]:
    """The sentences of all documents, one after the other, with the context that the settings ask for."""
    return (sentence for sentence in segment_rows(documents, settings, measure, gold) if sentence is not None)


def segment_rows(
    documents: Iterable[Document], settings: Segmenting, measure: Measure | None = None, gold: bool = True
) -> Iterator[Sentence | None]:
    """Like `segment_all`, with None after the last sentence of each document. Reads ahead no further than a window."""
    if settings.context == "sentence":
        yield from (piece.sentence for row in documents for piece in _pieces([row], settings, measure, gold))
        return
    # a row without a group is a document by itself
    for _, article in groupby(documents, lambda row: object() if row.group is None else (row.dataset, row.group)):
        pieces = _pieces(article, settings, measure, gold)
        yield from _in_context(pieces, settings.max_length, settings.context_words)


class _Sized(NamedTuple):
    """A sentence of a row and the sizes of its words; no sentence where the row ends."""

    row: int
    sentence: Sentence | None
    sizes: list[int]


def _pieces(article: Iterable[Document], settings: Segmenting, measure: Measure | None, gold: bool) -> Iterator[_Sized]:
    for number, row in enumerate(article):
        for sentence, sizes in segment_sized(row, settings, measure, gold):
            yield _Sized(number, sentence, sizes)
        yield _Sized(number, None, [])


def _in_context(pieces: Iterable[_Sized], limit: int, most: int | None) -> Iterator[Sentence | None]:
    """Delays sentences until enough of the text after them is read."""
    text = _Text()
    held: deque[tuple[_Sized, int]] = deque()  # with the place of its first word in the text
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


def _ready(piece: _Sized, first: int, text: _Text, limit: int) -> bool:
    """Whether the text after the sentence would fill all the remaining room."""
    if piece.sentence is None:
        return True
    end = first + len(piece.sizes)
    return end <= text.length and text.size(end, text.length) >= limit - sum(piece.sizes)


def _widened(piece: _Sized, first: int, text: _Text, limit: int, most: int | None) -> Sentence | None:
    """The sentence with its context. Each side gets half of the room, and the room that the other has no words for.

    With `most`, each side gets at most half of the words that it leaves, no matter how many the other has.
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
    left, right = text.words(before, first, piece.row), text.words(end, last, piece.row)
    sentence, by = piece.sentence, len(left)

    def move(span: Span) -> Span:
        return Span(span.start + by, span.end + by)

    return replace(
        sentence,
        words=(*(word for word, _ in left), *sentence.words, *(word for word, _ in right)),
        offsets=(*(place for _, place in left), *sentence.offsets, *(place for _, place in right)),
        entities=tuple(Entity(e.label, tuple(map(move, e.spans)), e.score, e.meta) for e in sentence.entities),
        core=move(sentence.core),
        reach=move(sentence.reach),
    )


class _Text:
    """The words of an article as far as they are read and still needed. Places count from its first word.

    The cores of windows partition the words, so one core after the other is the text.
    """

    def __init__(self) -> None:
        self.rows: list[tuple[int, str, Span]] = []  # row, word, its characters in the row
        self.sums = [0]  # the size of all words before each place, and at the end that of all
        self.forgotten = 0  # how many words are not kept any more

    @property
    def length(self) -> int:
        """How many words were read."""
        return self.forgotten + len(self.rows)

    def add(self, piece: _Sized) -> None:
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
        """Words and their characters; words of another row have no offsets in this one."""
        kept = self.rows[start - self.forgotten : end - self.forgotten]
        return [(word, place if owner == row else Span(0, 0)) for owner, word, place in kept]

    def forget(self, place: int) -> None:
        """Drops the words before a place, when they are many."""
        gone = place - self.forgotten
        if gone > max(len(self.rows) // 2, 1024):
            del self.rows[:gone], self.sums[:gone]
            self.forgotten = place
