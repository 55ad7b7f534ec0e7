"""Words with their vectors, without a Python object per word: they may lie in a file that is mapped, not read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from wingspan.corpora.concept_table import Strings

Vector = NDArray[np.float32]
Case = Literal["exact", "lower", "both"]
"""Under which form a word is looked up: as written, lower-cased, or as written and else lower-cased."""


@dataclass(frozen=True)
class WordIndex:
    """Where each word is. A word is found by its checksum among all of them, sorted; then the words are compared."""

    words: Strings  # N of them
    checksums: NDArray[np.uint32]  # (N,), sorted
    places: NDArray[np.uint32]  # (N,), the word that has the checksum

    @classmethod
    def of(cls, words: Strings) -> WordIndex:
        """Sorts the checksums of these words."""
        text, ends = words.text, words.ends.tolist()
        sums = (crc32(text[start:end]) for start, end in zip([0, *ends], ends, strict=False))
        checksums = np.fromiter(sums, np.uint32, len(words))
        order = np.argsort(checksums, kind="stable")
        return cls(words, checksums[order], order.astype(np.uint32))

    def find(self, word: str) -> int | None:
        """The place of a word."""
        try:
            value = np.uint32(crc32(word.encode()))  # of the array's type, or the whole array would be converted
        except UnicodeEncodeError:
            return None  # half a surrogate pair is in no file
        at = int(np.searchsorted(self.checksums, value))
        while at < len(self.checksums) and self.checksums[at] == value:
            if self.words[int(self.places[at])] == word:
                return int(self.places[at])
            at += 1
        return None

    def twice(self) -> tuple[int, int] | None:
        """The first two places that have the same word."""
        found = []
        for at in np.flatnonzero(self.checksums[1:] == self.checksums[:-1]).tolist():
            same = self.places[at : at + 2].tolist()
            if self.words[same[0]] == self.words[same[1]]:
                found.append((min(same), max(same)))
        return min(found, key=lambda pair: pair[1]) if found else None


class WordVectors:
    """The words of a file in its order, usually by frequency, and one vector for each."""

    def __init__(self, index: WordIndex, vectors: NDArray[Any]) -> None:
        self.index = index
        self.vectors = vectors  # (N, size), float32 or float16

    @property
    def size(self) -> int:
        """How many numbers a vector has."""
        return int(self.vectors.shape[1])

    def __len__(self) -> int:
        return len(self.index.words)

    def __contains__(self, word: str) -> bool:
        return self.index.find(word) is not None

    def first(self, count: int) -> list[str]:
        """The first words of the file."""
        return [self.index.words[at] for at in range(min(count, len(self)))]

    def rows(self, places: Sequence[int]) -> Vector:
        """The vectors at these places.  (P, size)"""
        return np.asarray(self.vectors[np.asarray(places, np.int64)], np.float32)

    def of(self, words: Sequence[str]) -> Vector:
        """The vectors of words in forms that have one.  (P, size)"""
        places = [self.index.find(word) for word in words]
        missing = next((word for word, place in zip(words, places, strict=True) if place is None), None)
        if missing is not None:
            raise KeyError(missing)
        return self.rows([place for place in places if place is not None])

    def form_of(self, word: str, case: Case = "both") -> str | None:
        """The form of a word that has a vector; None where none has."""
        forms: Iterable[str] = {"exact": (word,), "lower": (word.lower(),), "both": (word, word.lower())}[case]
        return next((form for form in forms if form in self), None)
