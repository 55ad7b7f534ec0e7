"""Words as numbers for decoders that write: frequent words first, so that an adaptive softmax is quick and good."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

SPECIALS = ("<pad>", "<start>", "<end>", "<unknown>")
PAD, START, END, UNKNOWN = range(len(SPECIALS))


class Vocabulary:
    """Specials first, then the words in the order given."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = (*SPECIALS, *words)
        self._ids = {word: at for at, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def ids(self, words: Iterable[str]) -> list[int]:
        """The number of each word; words that are not known share one."""
        return [self._ids.get(word, UNKNOWN) for word in words]

    def text(self, ids: Iterable[int]) -> list[str]:
        """The words behind numbers, up to the end."""
        found = []
        for at in ids:
            if at == END:
                break
            found.append(self.words[at])
        return found


def by_frequency(counts: Counter[str], rare_first: bool = False) -> list[str]:
    """The most frequent words first, or last; words that are as frequent by the alphabet."""
    ordered = sorted(counts, key=lambda word: (-counts[word], word))
    return ordered[::-1] if rare_first else ordered


def padded(rows: Sequence[Sequence[int]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Rows of numbers as one array; at least one row and one column.  (N, T)"""
    longest = max([len(row) for row in rows] + [1])
    table = np.full((max(len(rows), 1), longest), PAD, dtype=np.int64)
    for at, row in enumerate(rows):
        table[at, : len(row)] = row
    return table
