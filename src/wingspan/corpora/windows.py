"""All windows of a fixed width in many texts at once, each as one number; numpy over code points, no loop over places.

A window's number is a polynomial of its characters modulo 2^64, made by doubling: two windows of 8 side by side are
one of 16. Equal windows have equal numbers; different ones hardly ever do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
