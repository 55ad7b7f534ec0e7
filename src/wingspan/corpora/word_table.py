"""Distinct words, numbered as they are met, with what a tokenizer makes of each: everything after it is gathering."""

from collections.abc import Callable, Sequence
from hashlib import blake2b
from itertools import chain, repeat
from threading import Lock

import numpy as np
from numpy.typing import NDArray

LONGEST = 256  # a longer word is kept as its digest, so that 300,000 characters without a space fill no memory
Key = str | bytes


class WordTable:
    """Grows as words are met; safe to share between threads. A number never changes its meaning.

    `cut` gives the tokens of words, `places` how many places of a window these words take with these tokens, and
    `shape` the shape of one word.
    """

    def __init__(
        self,
        cut: Callable[[Sequence[str]], Sequence[Sequence[int]]],
        places: Callable[[Sequence[str], Sequence[Sequence[int]]], Sequence[int]],
        shape: Callable[[str], int],
    ) -> None:
        self._cut, self._places, self._shape = cut, places, shape
        self._numbers: dict[Key, int] = {}
        self._lock = Lock()
        self._first = GrowingColumn()  # where a word's tokens start among all tokens
        self._count = GrowingColumn()  # how many they are
        self._size = GrowingColumn()
        self._shapes = GrowingColumn()
        self._tokens = GrowingColumn()

    def __len__(self) -> int:
        return len(self._numbers)

    def numbers(self, words: Sequence[str]) -> NDArray[np.int32]:
        """The number of each word; new words are added, all of them in one call of the tokenizer."""
        found = np.fromiter(map(self._numbers.get, words, repeat(-1)), np.int32, len(words))
        missing = np.flatnonzero(found < 0).tolist()
        if missing:  # new words, and words that are kept as their digests
            keys = {at: key_of(words[at]) for at in missing}
            with self._lock:
                new = {key: words[at] for at, key in keys.items() if key not in self._numbers}
                if new:
                    self._add(new)
            found[missing] = [self._numbers[keys[at]] for at in missing]
        return found

    def sizes(self, numbers: NDArray[np.int32]) -> NDArray[np.int64]:
        """How many places of a window each word takes; at least 1."""
        return self._size.rows[numbers]

    def counts(self, numbers: NDArray[np.int32]) -> NDArray[np.int64]:
        """How many tokens each word has; at least 1."""
        return self._count.rows[numbers]

    def shapes(self, numbers: NDArray[np.int32]) -> NDArray[np.int64]:
        """The shape of each word."""
        return self._shapes.rows[numbers]

    def tokens(self, numbers: NDArray[np.int32]) -> NDArray[np.int64]:
        """The tokens of these words, one word after the other."""
        counts = self._count.rows[numbers]
        ends = counts.cumsum()
        # each token is as far from its word's first one here as in the table
        shift = np.repeat(self._first.rows[numbers] - (ends - counts), counts)
        found: NDArray[np.int64] = self._tokens.rows[shift + np.arange(len(shift))]
        return found

    def _add(self, new: dict[Key, str]) -> None:
        words = list(new.values())
        tokens = self._cut(words)
        counts = np.fromiter(map(len, tokens), np.int64, len(words))
        self._first.extend(self._tokens.length + counts.cumsum() - counts)
        self._count.extend(counts)
        self._size.extend(np.asarray(self._places(words, tokens), dtype=np.int64))
        self._shapes.extend(np.fromiter(map(self._shape, words), np.int64, len(words)))
        self._tokens.extend(np.fromiter(chain.from_iterable(tokens), np.int64, int(counts.sum())))
        # last: other threads read without the lock, and a word that they find must have its rows
        self._numbers.update(zip(new, range(len(self._numbers), len(self._numbers) + len(new)), strict=True))


class GrowingColumn:
    """Numbers that more are appended to. Rows that were read stay valid: a full array is replaced, not resized."""

    def __init__(self) -> None:
        self.rows = np.empty(1024, dtype=np.int64)
        self.length = 0

    def extend(self, values: NDArray[np.int64]) -> None:
        """Appends the values."""
        length = self.length + len(values)
        if length > len(self.rows):
            larger = np.empty(max(length, 2 * len(self.rows)), dtype=np.int64)
            larger[: self.length] = self.rows[: self.length]
            self.rows = larger
        self.rows[self.length : length] = values
        self.length = length


def key_of(word: str) -> Key:
    """The word, or its digest if it is long."""
    return word if len(word) <= LONGEST else blake2b(word.encode("utf-8", "surrogatepass"), digest_size=16).digest()
