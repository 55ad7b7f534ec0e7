"""Which words stand near each other, and how often: counted in bounded memory, whatever the length of the text.

Pairs are numbers, counted chunk by chunk as sorted arrays. What does not fit into memory waits on disk until all sorted
arrays are merged, range by range.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

PAIRS_OF_BLOCK = 75_000
NARROWEST = 1024

Keys = NDArray[np.int64]
Sums = NDArray[np.float64]


class Layout(NamedTuple):
    """How a pair of words becomes a number: pairs of one block, `width` words by `width` words, follow each other."""

    num_words: int
    width: int

    @classmethod
    def of(cls, num_words: int, num_pairs: int) -> Layout:
        """Blocks of many pairs each, for so many pairs at the most, but 10 times 10 of them where words allow.

        A step on a block costs as much as its pairs, and as much as its words; none should cost alone.
        """
        side = min(max(10, isqrt(num_pairs // PAIRS_OF_BLOCK)), max(10, num_words // NARROWEST))
        return cls(num_words, -(-num_words // side))

    @property
    def blocks(self) -> int:
        """How many blocks lie side by side."""
        return -(-self.num_words // self.width)

    def keys(self, rows: NDArray[Any], columns: NDArray[Any]) -> Keys:
        """The numbers of pairs."""
        block = (rows // self.width).astype(np.int64) * self.blocks + columns // self.width
        keys: Keys = block * self.width**2 + (rows % self.width) * self.width + columns % self.width
        return keys

    def block(self, number: int) -> tuple[int, int]:
        """The keys of a block, from and to."""
        return number * self.width**2, (number + 1) * self.width**2


class Counts(NamedTuple):
    """How often pairs stand together, sorted by their numbers."""

    keys: Keys  # (N,)
    sums: Sums  # (N,)


def pairs_within(
    words: NDArray[np.int32], texts: NDArray[np.int64], window: int, layout: Layout, start: int = 0
) -> Counts:
    """The pairs of running words in both orders; a pair at distance d counts 1/d. None reaches into another text.

    Only pairs whose second word stands at `start` or later are counted. See: Pennington et al. 2014, section 4.2.
    """
    keys, sums = [], []
    for distance in range(1, window + 1):
        second = max(start, distance)
        same = texts[second:] == texts[second - distance : len(texts) - distance]
        left, right = words[second - distance : len(words) - distance][same], words[second:][same]
        keys += [layout.keys(left, right), layout.keys(right, left)]
        sums.append(np.full(2 * len(left), 1 / distance))
    return summed(np.concatenate(keys), np.concatenate(sums))


def summed(keys: Keys, sums: Sums) -> Counts:
    """Sorted, each key once."""
    if not len(keys):
        return Counts(keys, sums)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    return Counts(keys[first], np.add.reduceat(sums[order], first))


class PairCounter:
    """Collects pairs. At most about `most` of them are in memory."""

    def __init__(self, layout: Layout, window: int, folder: Path, most: int) -> None:
        self.layout, self.window, self.folder = layout, window, folder
        self.most = max(most, 1000)
        self.held: list[Counts] = []
        self.runs: list[Counts] = []
        self.words, self.texts = np.empty(0, np.int32), np.empty(0, np.int64)  # the last ones of those before

    def add(self, words: NDArray[np.int32], texts: NDArray[np.int64]) -> None:
        """Counts the next running words; `texts` says which text each is from."""
        step = max(1, self.most // (2 * self.window))
        for start in range(0, len(words), step):
            before = len(self.words)
            self.words = np.concatenate([self.words, words[start : start + step]])
            self.texts = np.concatenate([self.texts, texts[start : start + step]])
            self.held.append(pairs_within(self.words, self.texts, self.window, self.layout, before))
            self.words, self.texts = self.words[-self.window :], self.texts[-self.window :]
            if sum(len(one.keys) for one in self.held) > self.most:
                self._make_room()

    def _make_room(self) -> None:
        merged = merged_in_memory(self.held)
        self.held = [merged]
        if len(merged.keys) > self.most // 2:
            self.runs.append(written([merged], self.folder / f"run{len(self.runs)}"))
            self.held = []

    def counts(self) -> Counts:
        """All pairs: in memory where nothing had to be stored, else in a file that is mapped."""
        last = merged_in_memory(self.held)
        return merged_on_disk([*self.runs, last], self.folder / "all", self.most) if self.runs else last


def merged_in_memory(some: Sequence[Counts]) -> Counts:
    """Several sorted counts as one."""
    if len(some) == 1:
        return some[0]
    keys = [np.empty(0, np.int64), *(one.keys for one in some)]
    return summed(np.concatenate(keys), np.concatenate([np.empty(0), *(one.sums for one in some)]))


def merged_on_disk(runs: Sequence[Counts], path: Path, most: int) -> Counts:
    """Several sorted counts as one in a file: range by range of keys, so that no more than about `most` are held."""
    every = max(1, most // (4 * len(runs)))
    sample = np.unique(np.concatenate([run.keys[::every] for run in runs]))
    borders = sample[2 * len(runs) :: 2 * len(runs)]  # between two of them no run has many keys
    places = [np.concatenate([[0], np.searchsorted(run.keys, borders), [len(run.keys)]]) for run in runs]

    def part(number: int) -> Counts:
        slices = [slice(place[number], place[number + 1]) for place in places]
        return merged_in_memory([Counts(run.keys[at], run.sums[at]) for run, at in zip(runs, slices, strict=True)])

    return written(map(part, range(len(borders) + 1)), path)


def written(parts: Iterable[Counts], path: Path) -> Counts:
    """Parts that follow each other, in files that are mapped."""
    keys, sums = path.with_suffix(".keys"), path.with_suffix(".sums")
    with keys.open("wb") as key_file, sums.open("wb") as sum_file:
        for part in parts:
            part.keys.tofile(key_file)
            part.sums.tofile(sum_file)
    return Counts(np.memmap(keys, np.int64, "r"), np.memmap(sums, np.float64, "r"))
