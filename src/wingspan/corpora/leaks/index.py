"""The side of an evaluation, ready to be asked: which of its articles a training article is, nearly is, or quotes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from wingspan.corpora.sentences import split_sentences
from wingspan.corpora.words import bare, bare_places, word_spans
from wingspan.text import Document, Span

T = TypeVar("T")

SHORTEST = 40
"""Letters and digits below which equal texts mean nothing: "Methods :", "The authors declare no conflict"."""
SHORTEST_NEAR = 200
"""The same for texts that are nearly equal: two sentences may share most of their words and be about two things."""
NEAR = 0.5
"""From which share of common windows on two articles are nearly the same: about one word in twelve may differ."""
WINDOW = 16
"""Letters and digits in a window, about three words."""
ANCHOR = 32
"""How many letters and digits of a sentence are looked for before it is compared as a whole."""
SAMPLED = 8
"""One window in so many, the same ones in every text, are looked up; the candidates are compared in full."""
BOILERPLATE = 100
"""Windows of more different articles than this tell nothing about any of them."""
BLOCK = 1 << 18
"""How many characters are worked on at once."""


@dataclass(frozen=True, slots=True)
class KnownSentence:
    """A sentence of the index: whose it is, its range of the article's key, and as it is written."""

    article: int
    span: Span
    written: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A sentence of the index that stands in the article number `article` of a block, from `place` on."""

    article: int
    place: int
    sentence: int


class Index:
    """Articles by id, by text, by windows and by the beginnings of their sentences."""

    def __init__(self, known: Sequence[Article]) -> None:
        self.articles = known
        self.by_id: dict[str, list[int]] = defaultdict(list)
        self.by_key: dict[str, list[int]] = defaultdict(list)
        for at, article in enumerate(known):
            self.by_id[article.id].append(at)
            if article.key:
                self.by_key[article.key].append(at)
        self.long = [key for key in self.by_key if len(key) >= SHORTEST_NEAR]
        numbers, owners = _each_once(*_collected(self.long, WINDOW, _sampled))
        times = np.unique(numbers, return_counts=True)
        self.boilerplate: Numbers = times[0][times[1] > BOILERPLATE]
        rare = ~np.isin(numbers, self.boilerplate)
        self.windows = Postings.of(numbers[rare], owners[rare])
        self.sizes = np.bincount(owners[rare], minlength=len(self.long))
        self.sentences = [
            KnownSentence(at, span, written)
            for at, article in enumerate(known)
            for span, written in article.sentences()
            if span.width >= SHORTEST
        ]
        starts = [self.letters(sentence)[:ANCHOR] for sentence in self.sentences]
        self.anchors = Postings.of(*_collected(starts, ANCHOR, _first))

    def letters(self, sentence: KnownSentence) -> str:
        """The letters and digits of a sentence."""
        return self.articles[sentence.article].key[sentence.span.start : sentence.span.end]

    def near(self, laid: Laid, numbers: Numbers, keys: Sequence[str]) -> Iterator[tuple[int, str, float]]:
        """(number in the block, key of the index, share of common windows) for texts that are nearly the same."""
        if not self.long:
            return
        sampled, owners = _sampled(laid, numbers)
        involved = np.zeros(len(keys), np.bool_)
        involved[owners[self.windows.pairs(sampled)[0]]] = True
        sampled, owners = _each_once(sampled[involved[owners]], owners[involved[owners]])
        if len(self.boilerplate):
            rare = ~np.isin(sampled, self.boilerplate)
            sampled, owners = sampled[rare], owners[rare]
        sizes = np.bincount(owners, minlength=len(keys))
        asked, known = self.windows.pairs(sampled)
        pairs, common = np.unique(owners[asked] * len(self.long) + known, return_counts=True)
        first, second = np.divmod(pairs, len(self.long))
        # equal shares of a sample are what they are in full, give or take: half as many as needed make a candidate
        likely = 2 * common * (1 + NEAR) >= NEAR * (sizes[first] + self.sizes[second])
        for one, other in zip(first[likely].tolist(), second[likely].tolist(), strict=True):
            mine, theirs = keys[one], self.long[other]
            if len(mine) >= SHORTEST_NEAR and mine != theirs and (share := resemblance(mine, theirs)) >= NEAR:
                yield one, theirs, share

    def quoted(self, laid: Laid, numbers: Numbers, keys: Sequence[str]) -> Iterator[Hit]:
        """Where sentences of the index stand in the texts of a block."""
        places, sentences = self.anchors.pairs(numbers)
        owners = laid.owners(places)
        starts = places - laid.bounds[owners]
        for owner, start, sentence in zip(owners.tolist(), starts.tolist(), sentences.tolist(), strict=True):
            if keys[owner].startswith(self.letters(self.sentences[sentence]), start):
                yield Hit(owner, start, sentence)


def resemblance(one: str, other: str) -> float:
    """The share of all windows of two texts that both have (Broder 1997), from 0 to 1."""
    mine, theirs = (np.unique(window_numbers(Laid.out([text]), WINDOW)[0]) for text in (one, other))
    common = len(np.intersect1d(mine, theirs, assume_unique=True))
    return common / max(1, len(mine) + len(theirs) - common)


def blocks(items: Iterable[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    """What is worked on at once: so many items that their sizes come to `BLOCK`."""
    block: list[T] = []
    total = 0
    for item in items:
        block.append(item)
        total += size(item)
        if total >= BLOCK:
            yield block
            block, total = [], 0
    if block:
        yield block


def _sampled(laid: Laid, numbers: Numbers) -> tuple[Numbers, Places]:
    """Windows that are looked up, and the texts they are from."""
    places = laid.inside(np.flatnonzero(numbers % np.uint64(SAMPLED) == 0), WINDOW)
    return numbers[places], laid.owners(places)


def _each_once(numbers: Numbers, owners: Places) -> tuple[Numbers, Places]:
    """Each pair of a window and a text once."""
    order = np.lexsort((numbers, owners))
    owners, numbers = owners[order], numbers[order]
    again = (owners[1:] == owners[:-1]) & (numbers[1:] == numbers[:-1])
    once = np.concatenate([np.ones(min(1, len(owners)), np.bool_), ~again])
    return numbers[once], owners[once]


def _collected(
    texts: Sequence[str], width: int, choose: Callable[[Laid, Numbers], tuple[Numbers, Places]]
) -> tuple[Numbers, Places]:
    """Chosen windows of many texts and whose they are, worked out block by block."""
    numbers: list[Numbers] = [np.zeros(0, np.uint64)]
    owners: list[Places] = [np.zeros(0, np.int64)]
    before = 0
    for block in blocks(texts, len):
        laid = Laid.out(block)
        chosen, of = choose(laid, *window_numbers(laid, width))
        numbers.append(chosen)
        owners.append(of + before)
        before += len(block)
    return np.concatenate(numbers), np.concatenate(owners)


def _first(laid: Laid, numbers: Numbers) -> tuple[Numbers, Places]:
    """The first window of each text; none of them is shorter."""
    return numbers[laid.bounds[:-1]], np.arange(len(laid.bounds) - 1)


# --- All windows of a fixed width in many texts at once, each as one number; numpy over code points, no loop over
# places.
#
# A window's number is a polynomial of its characters modulo 2^64, made by doubling: two windows of 8 side by side are
# one of 16. Equal windows have equal numbers; different ones hardly ever do.


Numbers = NDArray[np.uint64]
Places = NDArray[np.int64]

_FACTOR = 0x9E3779B97F4A7C15  # odd, so that multiplying loses nothing
_MIXERS = (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53))


@dataclass(frozen=True)
class Laid:
    """Texts one behind the other, as code points, with the place where each begins and the last one ends."""

    codes: NDArray[np.uint32]
    bounds: Places  # (texts + 1,)

    @classmethod
    def out(cls, texts: Sequence[str]) -> Laid:
        """The texts in a row."""
        codes = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
        return cls(codes, np.concatenate([[0], np.cumsum([len(text) for text in texts], dtype=np.int64)]))

    def owners(self, places: Places) -> Places:
        """Which text each place belongs to."""
        return np.searchsorted(self.bounds, places, side="right") - 1

    def inside(self, places: Places, width: int) -> Places:
        """The places where a window of this width ends in the text it begins in."""
        return places[places + width <= self.bounds[self.owners(places) + 1]]


def window_numbers(laid: Laid, *widths: int) -> tuple[Numbers, ...]:
    """The number of the window at every place, for each of the widths; these are powers of two, in rising order.

    Windows that reach into the next text have a number too: `Laid.inside` tells them apart.
    """
    numbers = laid.codes.astype(np.uint64) + np.uint64(1)
    found, width, factor = [], 1, _FACTOR
    for wanted in widths:
        while width < wanted and len(numbers) > width:
            numbers = numbers[:-width] * np.uint64(factor) + numbers[width:]
            width, factor = 2 * width, factor * factor % 2**64
        found.append(numbers if width == wanted else numbers[:0])
    return tuple(mixed(numbers) for numbers in found)


def mixed(numbers: Numbers) -> Numbers:
    """Numbers of which each bit depends on all bits of what was given (the end of MurmurHash3): any few of them do."""
    numbers = numbers ^ (numbers >> np.uint64(33))
    for factor in _MIXERS:
        numbers *= factor
        numbers ^= numbers >> np.uint64(33)
    return numbers


@dataclass(frozen=True)
class Sieve:
    """Lets all numbers of a set pass and few others: one look into a small table for each."""

    table: NDArray[np.bool_]

    @classmethod
    def of(cls, numbers: Numbers) -> Sieve:
        """A table of which at most a sixteenth is set."""
        size = 1 << max(10, int(16 * len(numbers)).bit_length())
        table = np.zeros(size, dtype=np.bool_)
        table[numbers & np.uint64(size - 1)] = True
        return cls(table)

    def passes(self, numbers: Numbers) -> NDArray[np.bool_]:
        """Which ones may be in the set."""
        passed: NDArray[np.bool_] = self.table[numbers & np.uint64(len(self.table) - 1)]
        return passed


@dataclass(frozen=True)
class Postings:
    """Which owners have which number: sorted numbers, and the owners of each in a row."""

    numbers: Numbers  # sorted, each once
    bounds: Places  # (numbers + 1,)
    owners: Places
    sieve: Sieve

    @classmethod
    def of(cls, numbers: Numbers, owners: Places) -> Postings:
        """From pairs in any order; the same pair twice counts twice."""
        order = np.argsort(numbers, kind="stable")
        unique, starts = np.unique(numbers[order], return_index=True)
        return cls(unique, np.append(starts, len(numbers)).astype(np.int64), owners[order], Sieve.of(unique))

    def pairs(self, numbers: Numbers) -> tuple[Places, Places]:
        """Every (place in `numbers`, owner of an equal number)."""
        asked = np.flatnonzero(self.sieve.passes(numbers))
        at = np.searchsorted(self.numbers, numbers[asked])
        there = at < len(self.numbers)
        asked, at = asked[there], at[there]
        equal = self.numbers[at] == numbers[asked]
        asked, at = asked[equal], at[equal]
        counts = self.bounds[at + 1] - self.bounds[at]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.repeat(asked, counts), self.owners[np.repeat(self.bounds[at], counts) + within]


# --- Rows of a file as the documents they come from: rows with one `group` that stand together are one article.


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
