"""The side of an evaluation, ready to be asked: which of its articles a training article is, nearly is, or quotes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from wingspan.corpora.articles import Article
from wingspan.corpora.windows import Laid, Numbers, Places, Postings, window_numbers
from wingspan.text import Span

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
