"""The documents to be scored, indexed to find which of them a training document equals, resembles or quotes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from wingspan.corpora.sentences import split_sentences
from wingspan.corpora.words import bare, bare_places, word_offsets
from wingspan.text import Document, Span

SHORTEST = 40  # letters and digits below which equal texts mean nothing: "Methods :", "The authors declare no conflict"
SHORTEST_NEAR = 200  # the same for near-duplicates: two sentences may share most of their words and be about two things
NEAR = 0.5
"""The share of common n-grams from which on two articles are near-duplicates: about one word in twelve may differ."""
NGRAM = 16  # letters and digits in an n-gram, about three words
ANCHOR = 32  # letters and digits at the start of a sentence that are looked up before it is compared as a whole
SAMPLED = 8  # a power of two
"""One n-gram in 8, the same ones in every text, is looked up; the candidates are compared in full."""
BOILERPLATE = 100  # n-grams of more different articles than this are ignored

Hashes = NDArray[np.uint64]
Integers = NDArray[np.int64]
Fragments = tuple[Span, ...]


@dataclass(frozen=True)
class Article:
    """One document, be it one row of a file or several."""

    part: str  # the file of its rows, or another name for them
    id: str
    first: int  # the position of its first row in the part
    rows: tuple[Document, ...]

    @cached_property
    def text(self) -> str:
        """The rows, one per line."""
        return "\n".join(row.text for row in self.rows)

    @cached_property
    def key(self) -> str:
        """Its letters and digits: the same in a file of words, of sentences and of characters."""
        return bare(self.text)

    @cached_property
    def mentions(self) -> list[Fragments]:
        """Its entities as ranges of the key; row by row, in the order of the entities."""
        mentions, before = [], 0
        for row in self.rows:
            if row.entities:
                at = before + bare_places(row.text)
                mentions += [tuple(Span(int(at[s]), int(at[e])) for s, e in entity.spans) for entity in row.entities]
            before += len(bare(row.text))
        return mentions

    @cached_property
    def mention_set(self) -> frozenset[Fragments]:
        """The mentions, for membership tests."""
        return frozenset(self.mentions)

    def sentences(self) -> Iterator[tuple[Span, str]]:
        """Its sentences, declared or found by rules: the range of the key, and the text as written."""
        end = 0
        for row in self.rows:
            for span in row.sentences or split_sentences(row.text, word_offsets(row)):
                text = row.text[span.start : span.end]
                start = self.key.find(letters := bare(text), end)
                if letters and start >= 0:
                    end = start + len(letters)
                    yield Span(start, end), text


def articles(part: str, documents: Iterable[Document]) -> Iterator[Article]:
    """Streams the articles of a part: adjacent rows with one `group` are one article."""
    numbered = enumerate(documents)
    for _, adjacent in groupby(numbered, key=lambda row: row[0] if row[1].group is None else row[1].group):
        (first, document), *others = adjacent
        id = document.id if document.group is None else document.group
        yield Article(part, id, first, (document, *(other for _, other in others)))


class Index:
    """Articles by id, by key, by n-grams and by the beginnings of their sentences."""

    def __init__(self, known: Sequence[Article]) -> None:
        self.articles = known
        self.by_id: dict[str, list[int]] = defaultdict(list)
        self.by_key: dict[str, list[int]] = defaultdict(list)
        self.sentences: list[tuple[int, Span, str]] = []  # number of the article, range of its key, text as written
        anchors: list[Hashes] = []
        for number, article in enumerate(known):
            self.by_id[article.id].append(number)
            if article.key:
                self.by_key[article.key].append(number)
            spans = [(span, text) for span, text in article.sentences() if span.width >= SHORTEST]
            self.sentences += [(number, span, text) for span, text in spans]
            if spans:
                anchors.append(ngram_hash(article.key, ANCHOR)[0][[span.start for span, _ in spans]])
        self.anchors = HashTable(anchors)
        self.long = [key for key in self.by_key if len(key) >= SHORTEST_NEAR]
        self.boilerplate: Hashes = np.zeros(0, np.uint64)
        samples = [self._sample(ngram_hash(key, NGRAM)[0]) for key in self.long]
        hashes, counts = np.unique(np.concatenate([self.boilerplate, *samples]), return_counts=True)
        self.boilerplate = hashes[counts > BOILERPLATE]
        samples = [self._sample(sample) for sample in samples]
        self.sizes = np.array([len(sample) for sample in samples], np.int64)
        self.ngrams = HashTable(samples)
        self.owners = np.repeat(np.arange(len(samples)), self.sizes)

    def near(self, key: str, hashes: Hashes) -> Iterator[tuple[str, float]]:
        """(key of the index, share of common n-grams) of the near-duplicates of a text with these n-grams."""
        if len(key) < SHORTEST_NEAR:
            return
        sample = self._sample(hashes)
        if not len(shared := self.ngrams.find(sample)[1]):
            return
        known, common = np.unique(self.owners[shared], return_counts=True)
        # a sample estimates the share, so half the common n-grams that are needed make a candidate
        likely = 2 * common * (1 + NEAR) >= NEAR * (len(sample) + self.sizes[known])
        for other in (self.long[at] for at in known[likely]):
            if key != other and (share := resemblance(key, other)) >= NEAR:
                yield other, share

    def quoted(self, key: str, hashes: Hashes) -> Iterator[tuple[int, int]]:
        """(position in the text, number of the sentence) for sentences of the index that occur in a text."""
        for start, number in zip(*(side.tolist() for side in self.anchors.find(hashes)), strict=True):
            article, span, _ = self.sentences[number]
            if key.startswith(self.articles[article].key[span.start : span.end], start):
                yield start, number

    def _sample(self, hashes: Hashes) -> Hashes:
        """The n-grams of a text that are looked up, each once, without boilerplate."""
        sample = np.unique(hashes[hashes & np.uint64(SAMPLED - 1) == 0])
        return sample[~np.isin(sample, self.boilerplate)] if len(self.boilerplate) else sample


def resemblance(one: str, other: str) -> float:
    """The share of all n-grams of two texts that both have (Broder 1997), from 0 to 1."""
    mine, theirs = (np.unique(ngram_hash(text, NGRAM)[0]) for text in (one, other))
    common = len(np.intersect1d(mine, theirs, assume_unique=True))
    return common / max(1, len(mine) + len(theirs) - common)


def ngram_hash(text: str, *widths: int) -> tuple[Hashes, ...]:
    """The hash of the n-gram at every position, for each of the widths; these are powers of two, in rising order.

    A hash is a polynomial of the characters modulo 2^64, made by doubling: two neighbors of 8 are one n-gram of 16.
    Then each bit is made to depend on all bits (the end of MurmurHash3), so that any few of them are a hash too.
    """
    hashes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64) + np.uint64(1)
    results, width, factor = [], 1, 0x9E3779B97F4A7C15  # odd, so that multiplying loses nothing
    for target in widths:
        while width < target and len(hashes) > width:
            hashes = hashes[:-width] * np.uint64(factor) + hashes[width:]
            width, factor = 2 * width, factor * factor % 2**64
        mixed = hashes if width == target else hashes[:0]
        mixed = mixed ^ (mixed >> np.uint64(33))
        for number in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
            mixed *= np.uint64(number)
            mixed ^= mixed >> np.uint64(33)
        results.append(mixed)
    return tuple(results)


class HashTable:
    """Where hashes occur in a sequence of them; equal ones may occur several times."""

    def __init__(self, hashes: Sequence[Hashes]) -> None:
        together = np.concatenate([np.zeros(0, np.uint64), *hashes])
        self.order = np.argsort(together, kind="stable")
        self.hashes = together[self.order]
        # a Bloom filter of which at most a sixteenth is set: one look rules out most of what is not there
        self.filter = np.zeros(1 << max(10, (16 * len(together)).bit_length()), np.bool_)
        self.filter[together & np.uint64(len(self.filter) - 1)] = True

    def find(self, hashes: Hashes) -> tuple[Integers, Integers]:
        """Every pair (position in `hashes`, position in the table) of equal hashes."""
        likely = np.flatnonzero(self.filter[hashes & np.uint64(len(self.filter) - 1)])
        first = np.searchsorted(self.hashes, hashes[likely], "left")
        counts = np.searchsorted(self.hashes, hashes[likely], "right") - first
        if not counts.any():  # most texts share nothing
            return first[:0], first[:0]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.repeat(likely, counts), self.order[np.repeat(first, counts) + within]
