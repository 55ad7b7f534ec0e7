"""From documents to the inputs of a model and back: sentences, and overlapping windows where a sentence is too long.

Documents are cut in blocks: the words, sentence ends and sizes of all their words are found at once, as arrays. A long
document is read block by block from left to right, so that it takes linear time and a block's memory. This is the only
place where characters become words.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, chain, groupby, pairwise
from operator import itemgetter
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wingspan.corpora.conventions import CONVENTIONS
from wingspan.corpora.sentences import SentenceRules, mark_last_words, mark_sentence_ends
from wingspan.corpora.word_table import WordTable
from wingspan.corpora.words import AUTO, SPLITTERS, word_offsets
from wingspan.text import Document, Entity, Offsets, Sentence, Span, offsets_of

Tables = Callable[[], WordTable]  # the table of an encoder's words, asked for again with each block


@dataclass(frozen=True)
class Segmenting:
    """How documents are cut. `max_length` counts words, or pieces where an encoder has a table of them.

    The overlap is so many words of context on each side of a window's core: at least the widest span, so that a span
    that starts in the core fits into the window.
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
    tables: Tables | None = None,
    gold: bool = True,
    record: Record | None = None,
) -> Iterator[Sentence]:
    """The document's sentences; a long one as windows whose cores partition its words. No context is added.

    With `gold`, no sentence found by rules cuts an entity; prediction uses `gold=False`, so that gold has no influence
    on it. Either way entities are placed where they fit, and `record` is called with the outcome of each.
    """
    rows = segment_rows([document], replace(settings, context="sentence"), tables, gold, record)
    return (sentence for sentence in rows if sentence is not None)


def segment_all(
    documents: Iterable[Document], settings: Segmenting, tables: Tables | None = None, gold: bool = True
) -> Iterator[Sentence]:
    """The sentences of all documents, one after the other, with the context that the settings ask for."""
    return (sentence for sentence in segment_rows(documents, settings, tables, gold) if sentence is not None)


def segment_rows(
    documents: Iterable[Document],
    settings: Segmenting,
    tables: Tables | None = None,
    gold: bool = True,
    record: Record | None = None,
) -> Iterator[Sentence | None]:
    """Like `segment_all`, with None after the last sentence of each document. Reads ahead no further than a block."""
    cutter = _Cutter(settings, tables, gold, record)
    if settings.context == "sentence":
        return cutter.rows(documents)
    return _in_articles(documents, cutter)


def by_document(rows: Iterable[Sentence | None]) -> Iterator[list[Sentence]]:
    """The sentences of each document, from the result of `segment_rows`."""
    sentences: list[Sentence] = []
    for sentence in rows:
        if sentence is not None:
            sentences.append(sentence)
        else:
            yield sentences
            sentences = []


def place(sentence: Sentence, entities: Iterable[Entity]) -> tuple[Entity, ...]:
    """Entities in words of the sentence as entities in characters of its document; scores are kept."""
    return tuple(
        Entity(entity.label, tuple(sentence.characters(span) for span in entity.spans), entity.score, entity.meta)
        for entity in entities
    )


def word_sizes(sentence: Sentence) -> NDArray[np.int64]:
    """How many places of a window each word takes; one where no table says otherwise.  (L,)"""
    if isinstance(sentence.table, WordTable) and sentence.numbers is not None:
        return sentence.table.sizes(sentence.numbers)
    return np.ones(len(sentence.words), dtype=np.int64)


def marked_words(document: Document, settings: Segmenting, keep: Iterable[Span]) -> tuple[Offsets, NDArray[np.bool_]]:
    """The words and whether a sentence ends with each: as the document gives it, otherwise by rules.  (W, 2), (W,)"""
    words = word_offsets(document, settings.splitter)
    block = _Block.of_part(document, words)
    return words, block.ends(settings, lambda _: SentenceRules(document.text, kept=deque(sorted(keep))))


# Blocks: documents in one text, or the next part of a long document

BLOCK_CHARACTERS = 1 << 17  # few enough for the processor's cache, so many that the work for each block hardly counts
BLOCK_DOCUMENTS = 1024  # however short they are
BLOCK_WORDS = 1 << 14  # of a long document whose words are given


NO_WORDS: Offsets = np.zeros((0, 2), dtype=np.int64)


class _Block(NamedTuple):
    """Documents one after the other, and their words."""

    documents: Sequence[Document]
    text: str
    starts: NDArray[np.int64]  # (D,) where each document starts in the text
    words: Offsets  # (W, 2) in characters of the text
    bounds: NDArray[np.int64]  # (D + 1,) the first word of each document, and one past all

    @classmethod
    def of(cls, documents: Sequence[Document], splitter: str) -> _Block:
        """Whole documents with all their words: those that are given, and the splitter's."""
        text = "\n".join(document.text for document in documents)  # no word goes on after a line break
        lengths = (len(document.text) + 1 for document in documents)
        starts = np.fromiter(accumulate(lengths, initial=0), np.int64, len(documents) + 1)
        given = np.array([document.words is not None for document in documents])
        words = NO_WORDS if given.all() else SPLITTERS[splitter](text)
        if given.any():
            known = [offsets_of(document.words) for document in documents if document.words is not None]
            moved = np.concatenate(known) + np.repeat(starts[:-1][given], [len(each) for each in known])[:, None]
            found = words[~given[np.searchsorted(starts, words[:, 0], "right") - 1]]
            words = np.concatenate([found, moved])
            words = words[words[:, 0].argsort(kind="stable")]
        return cls(documents, text, starts[:-1], words, np.searchsorted(words[:, 0], starts))

    @classmethod
    def of_part(cls, document: Document, words: Offsets) -> _Block:
        """Some words of a document, or all of them."""
        return cls([document], document.text, np.zeros(1, dtype=np.int64), words, np.array([0, len(words)]))

    def ends(self, settings: Segmenting, rules_of: Callable[[int], SentenceRules]) -> NDArray[np.bool_]:
        """Whether a sentence ends with each word: as its document gives it, otherwise by rules.  (W,)"""
        if settings.sentences == "whole":
            return mark_last_words(self.bounds)
        by_rules = [document.words is None and document.sentences is None for document in self.documents]
        if any(by_rules):
            ends = mark_sentence_ends(
                self.text, self.words, self.bounds, lambda number: rules_of(number) if by_rules[number] else None
            )
        else:
            ends = mark_last_words(self.bounds)
        borders = [
            offsets_of(document.sentences).ravel() + start
            for document, start in zip(self.documents, self.starts, strict=True)
            if document.sentences
        ]
        if borders:  # words between two given sentences form another one: nothing is left out
            after = np.searchsorted(self.words[:, 0], np.concatenate(borders))
            ends[after[after > 0] - 1] = True
        return ends


def _pools(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Documents for one block each; a long one is alone."""
    pool: list[Document] = []
    characters = 0
    for document in documents:
        if pool and characters + len(document.text) > BLOCK_CHARACTERS:
            yield pool
            pool, characters = [], 0
        pool.append(document)
        characters += len(document.text)
        if characters > BLOCK_CHARACTERS or len(pool) == BLOCK_DOCUMENTS:
            yield pool
            pool, characters = [], 0
    if pool:
        yield pool


def _parts(document: Document, splitter: str) -> Iterator[tuple[Offsets, bool]]:
    """The words of a long document part by part, and whether they are the last."""
    if document.words is not None:
        given = offsets_of(document.words)
        for at in range(0, max(len(given), 1), BLOCK_WORDS):
            yield given[at : at + BLOCK_WORDS], at + BLOCK_WORDS >= len(given)
        return
    at, size = 0, BLOCK_CHARACTERS
    while True:
        past = min(at + size, len(document.text))
        words = SPLITTERS[splitter](document.text[at:past]) + at
        if past == len(document.text):
            yield words, True
            return
        if splitter in CONVENTIONS:  # they look at everything up to the next white space
            past = 1 + max(document.text.rfind(blank, at, past) for blank in " \n\t") or at
            words = words[words[:, 0] < past]
        elif len(words) and words[-1, 1] == past:  # the word may go on
            words, past = words[:-1], int(words[-1, 0])
        if past == at:
            size *= 2
            continue
        yield words, False
        at, size = past, BLOCK_CHARACTERS


@dataclass(frozen=True)
class _Cutter:
    """Cuts documents into sentences without context. Its fields are arguments of `segment_rows`."""

    settings: Segmenting
    tables: Tables | None
    gold: bool
    record: Record | None

    def rows(self, documents: Iterable[Document]) -> Iterator[Sentence | None]:
        """The sentences of each document, and None after them."""
        for pool in _pools(documents):
            if len(pool) == 1 and len(pool[0].text) > BLOCK_CHARACTERS:
                yield from self._by_parts(pool[0])
            else:
                yield from self._at_once(pool)

    def _at_once(self, documents: Sequence[Document]) -> Iterator[Sentence | None]:
        block = _Block.of(documents, self.settings.splitter)
        past = np.flatnonzero(block.ends(self.settings, partial(self._rules, block))) + 1
        borders = [0, *past.tolist()]
        words = self._measured(block)
        before = np.searchsorted(past, block.bounds, "right").tolist()  # sentences before each document
        for document, (first, last), end in zip(documents, pairwise(before), block.bounds[1:].tolist(), strict=True):
            placer = GoldPlacer(document, self.settings.misaligned, self.record)
            for start, stop in pairwise(borders[first : last + 1]):
                if words.sums[stop] - words.sums[start] <= self.settings.max_length:  # most are like this
                    yield words.sentence((start, start, stop, stop), end, placer)
                    continue
                for window in _windows(words.sums, start, stop, 0, self.settings):
                    yield words.sentence(window, end, placer)
            placer.close()
            yield None

    def _by_parts(self, document: Document) -> Iterator[Sentence | None]:
        """Cuts a long document. Words that no window owns yet wait for the next part, with the context before them."""
        placer = GoldPlacer(document, self.settings.misaligned, self.record)
        rules = self._rules(_Block.of_part(document, NO_WORDS), 0)
        held, owned = NO_WORDS, 0
        for new, is_last in _parts(document, self.settings.splitter):
            block = _Block.of_part(document, np.concatenate([held, new]))
            known = max(len(held) - 1, 0)  # so many words end no sentence; about the next one the rules decide now
            ends = _Block.of_part(document, block.words[known:]).ends(self.settings, lambda _: rules)
            borders = [0, *(np.flatnonzero(ends) + known + 1).tolist()]
            words = self._measured(block)
            windows: list[_Window] = []
            for start, end in pairwise(borders):
                windows += _windows(words.sums, start, end, 0 if start else owned, self.settings)
            if windows and not is_last:  # the last one may grow
                first, own, _, _ = windows.pop()
                held, owned = block.words[first:], own - first
            for window in windows:
                yield words.sentence(window, len(block.words), placer)
        placer.close()
        yield None

    def _rules(self, block: _Block, number: int) -> SentenceRules:
        """The rules for a document of the block, which end no sentence inside its gold entities."""
        start = int(block.starts[number])
        hulls = [entity.hull for entity in block.documents[number].entities] if self.gold else ()
        kept = deque(sorted(Span(first + start, last + start) for first, last in hulls))
        return SentenceRules(block.text, sentence_start=start, line_start=start, kept=kept)

    def _measured(self, block: _Block) -> _Words:
        """The words of the block with their sizes, looked up once. Without a table the size of each is 1."""
        text, (starts, ends) = block.text, block.words.T.tolist()
        strings = [text[start:end] for start, end in zip(starts, ends, strict=True)]
        offsets = block.words - np.repeat(block.starts, np.diff(block.bounds))[:, None]
        if self.tables is None:
            return _Words(strings, offsets, range(len(strings) + 1), None, None)
        table = self.tables()
        numbers = table.numbers(strings)
        sums = list(accumulate(table.sizes(numbers).tolist(), initial=0))
        return _Words(strings, offsets, sums, numbers, table)


class _Words(NamedTuple):
    """The words of a block; offsets count in characters of their document."""

    strings: list[str]
    offsets: Offsets  # (W, 2)
    sums: Sequence[int]  # the size of all words before each, and of all
    numbers: NDArray[np.int32] | None  # (W,)
    table: WordTable | None

    def sentence(self, window: tuple[int, int, int, int], document_end: int, placer: GoldPlacer) -> Sentence:
        """The words of a window, and the entities that it owns."""
        first, own, core_end, last = window
        offsets, reach = self.offsets[first:last], Span(0, last - first)
        core = reach if own == first and core_end == last else Span(own - first, core_end - first)
        entities: tuple[Entity, ...] = ()
        if placer.waiting:
            following = Span(*self.offsets[last].tolist()) if last < document_end else None
            entities = placer.place(offsets, core, following)
        numbers = None if self.numbers is None else self.numbers[first:last]
        words = tuple(self.strings[first:last])
        return Sentence(words, entities, core, reach, offsets, placer.document.dataset, numbers, self.table)


class _Window(NamedTuple):
    """Words that are encoded together, and among them the core of words that the window owns."""

    first: int
    own: int
    core_end: int
    last: int


def _windows(sums: Sequence[int], first: int, end: int, owned: int, settings: Segmenting) -> Iterator[_Window]:
    """Divides a sentence among windows of at most `max_length`, with up to `overlap` words around a core.

    Context to the right comes first, because spans that start in the core end there: it gets up to half of the window,
    context to the left up to a quarter, so that the core moves on by at least a quarter. Where the word that does not
    fit is large, the context shrinks; a word larger than a window is alone in one.

    `sums` are the sizes of all words before each. So many words at the beginning are `owned` by an earlier window.
    """
    limit, overlap = settings.max_length, settings.overlap
    own = first + owned
    while sums[end] - sums[first] > limit:
        at = max(bisect_right(sums, sums[first] + limit, first, end) - 1, first + 1)  # the first word that does not fit
        if at == end:
            break
        room = limit - (sums[at + 1] - sums[at])
        core_end = max(bisect_left(sums, sums[at] - min(limit // 2, room), own, at), at - overlap)
        if core_end > own:
            yield _Window(first, own, core_end, at)
            room = min(limit // 4, room - (sums[at] - sums[core_end]))
            own = core_end
        else:  # nothing to own yet: the context to the left makes room
            room -= sums[at] - sums[own]
        first = max(bisect_left(sums, sums[own] - room, first, own), own - overlap)
    yield _Window(first, own, end, end)


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

    @property
    def waiting(self) -> bool:
        """Whether there are entities that no window was asked for yet."""
        return self.next < len(self.document.entities)

    def place(self, words: Offsets, core: Span, following: Span | None) -> tuple[Entity, ...]:
        """The entities whose first word is in the core, in words of the window, those that fit into it."""
        entities = self.document.entities
        start, end = words[core.end - 1].tolist()
        # the first word of an entity is the one it starts in, or, when it is contracted, the first one inside it
        owned_to = start if self.misaligned == "contract" else max(start, end - 1)
        if not self.waiting or entities[self.next].start > owned_to:
            return ()
        starts, ends = words.T.tolist()
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
# See: Zhu et al. 2023, whose inputs are documents; there spans across sentences are negatives, here they
# are no spans at all.


def _in_articles(documents: Iterable[Document], cutter: _Cutter) -> Iterator[Sentence | None]:
    """The sentences of each document with their context, and None after them."""
    articles: deque[object] = deque()  # of the documents that are read ahead; one without a group is one by itself

    def noted() -> Iterator[Document]:
        for row in documents:
            articles.append(object() if row.group is None else (row.dataset, row.group))
            yield row

    def of_article() -> Iterator[tuple[object, Sentence | None]]:
        for sentence in cutter.rows(noted()):
            yield articles[0], sentence
            if sentence is None:
                articles.popleft()

    for _, rows in groupby(of_article(), itemgetter(0)):
        yield from _in_context((sentence for _, sentence in rows), cutter.settings)


class _Held(NamedTuple):
    """A sentence that waits for the text after it, or the end of its row."""

    sentence: Sentence | None
    row: int
    first: int  # the place of its first word in the text
    last: int
    size: int


def _in_context(rows: Iterable[Sentence | None], settings: Segmenting) -> Iterator[Sentence | None]:
    """Delays sentences until enough of the text after them is read."""
    limit, text, row = settings.max_length, _Text(), 0
    held: deque[_Held] = deque()
    for sentence in rows:
        if sentence is None:
            held.append(_Held(None, row, text.length, text.length, limit))
            row += 1
        else:
            first = text.length - sentence.core.start
            sizes = word_sizes(sentence).tolist()
            text.add(sentence, sizes, row)
            held.append(_Held(sentence, row, first, first + len(sizes), sum(sizes)))
        while held and text.reaches(held[0].last, limit - held[0].size):
            yield _widened(held.popleft(), text, settings)
        text.forget((held[0].first if held else text.length) - limit)
    for each in held:
        yield _widened(each, text, settings)


def _widened(held: _Held, text: _Text, settings: Segmenting) -> Sentence | None:
    """The sentence with its context. Each side gets half of the room, and the room that the other has no words for.

    With `context_words`, each side gets at most half of the words that it leaves, no matter how many the other has.
    """
    sentence, row, first, end, size = held
    if sentence is None:
        return None
    room = max(settings.max_length - size, 0)
    after = min(text.size(end, text.length), room)
    before = text.back_from(first, max(room // 2, room - after))
    last = text.on_from(end, room - text.size(before, first))
    if settings.context_words is not None:
        half = max(settings.context_words - (end - first), 0) // 2
        before, last = max(before, first - half), min(last, end + half)
    by = first - before

    def move(span: Span) -> Span:
        return Span(span.start + by, span.end + by)

    parts: list[_Core | Sentence] = [*text.cores(before, first, row), sentence, *text.cores(end, last, row)]
    words = tuple(chain.from_iterable(part.words for part in parts))
    numbers = None
    if isinstance(sentence.table, WordTable):  # the text before may be in an older table
        known = [part.numbers for part in parts if part.table is sentence.table and part.numbers is not None]
        numbers = np.concatenate(known) if len(known) == len(parts) else sentence.table.numbers(words)
    return replace(
        sentence,
        words=words,
        offsets=np.concatenate([part.offsets for part in parts]),
        entities=tuple(Entity(e.label, tuple(map(move, e.spans)), e.score, e.meta) for e in sentence.entities),
        core=move(sentence.core),
        reach=move(sentence.reach),
        numbers=numbers,
    )


class _Core(NamedTuple):
    """Words of the text: the core of a sentence, or a part of it."""

    place: int  # of its first word
    row: int
    words: tuple[str, ...]
    offsets: Offsets
    numbers: NDArray[np.int32] | None
    table: object | None

    def cut(self, start: int, end: int, row: int) -> _Core:
        """Its words from one place to another; words of another row have no offsets in this one."""
        inside = slice(max(start - self.place, 0), end - self.place)
        offsets = self.offsets[inside] if self.row == row else np.zeros_like(self.offsets[inside])
        numbers = None if self.numbers is None else self.numbers[inside]
        return self._replace(words=self.words[inside], offsets=offsets, numbers=numbers)


class _Text:
    """The words of an article as far as they are read and still needed. Places count from its first word.

    The cores of windows partition the words, so one core after the other is the text.
    """

    def __init__(self) -> None:
        self.kept: list[_Core] = []
        self.places: list[int] = []  # of their first words
        self.sums = [0]  # the size of all words before each place, and at the end that of all
        self.forgotten = 0  # how many words are not kept any more

    @property
    def length(self) -> int:
        """How many words were read."""
        return self.forgotten + len(self.sums) - 1

    def add(self, sentence: Sentence, sizes: list[int], row: int) -> None:
        """The words that the sentence owns."""
        core = slice(*sentence.core)
        numbers = None if sentence.numbers is None else sentence.numbers[core]
        self.places.append(self.length)
        self.kept.append(_Core(self.length, row, sentence.words[core], sentence.offsets[core], numbers, sentence.table))
        self.sums += accumulate(sizes[core], initial=self.sums.pop())

    def reaches(self, place: int, size: int) -> bool:
        """Whether words of this size were read after the place."""
        return place <= self.length and self.size(place, self.length) >= size

    def size(self, start: int, end: int) -> int:
        """The size of the words from one place to another."""
        return self.sums[end - self.forgotten] - self.sums[start - self.forgotten]

    def back_from(self, place: int, room: int) -> int:
        """The first place whose words up to this one fit into the room."""
        return bisect_left(self.sums, self.sums[place - self.forgotten] - room) + self.forgotten

    def on_from(self, place: int, room: int) -> int:
        """The last place up to which the words from this one fit into the room."""
        return bisect_right(self.sums, self.sums[place - self.forgotten] + room) - 1 + self.forgotten

    def cores(self, start: int, end: int, row: int) -> list[_Core]:
        """The words from one place to another."""
        if start == end:
            return []
        first, last = bisect_right(self.places, start) - 1, bisect_left(self.places, end)
        return [core.cut(start, end, row) for core in self.kept[first:last]]

    def forget(self, place: int) -> None:
        """Drops the words before a place, when they are many."""
        whole = bisect_right(self.places, place) - 1  # cores before the one of this place
        if whole > max(len(self.places) // 2, 64):
            place = self.places[whole]
            del self.kept[:whole], self.places[:whole], self.sums[: place - self.forgotten]
            self.forgotten = place
