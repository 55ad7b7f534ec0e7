"""Running words as numbers in a file: a text is read and split once, however often it is gone through."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

END = -1
AT_ONCE = 1 << 20


class NumberedText:
    """Takes texts one by one, as a context manager; then has their words, counted and as numbers."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = path.open("wb")
        self.numbers: dict[str, int] = {}
        self.num_texts = self.num_words = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.file.close()

    def add(self, words: Sequence[str]) -> None:
        """The next text."""
        numbers = self.numbers
        array("i", [*(numbers.setdefault(word, len(numbers)) for word in words), END]).tofile(self.file)
        self.num_texts += 1
        self.num_words += len(words)

    def counts(self) -> NDArray[np.int64]:
        """How often each word stands in the texts, by its number."""
        total = np.zeros(len(self.numbers), np.int64)
        for some in self._parts():
            total += np.bincount(some[some != END], minlength=len(total))
        return total

    def words(self, min_count: int) -> list[str]:
        """The words that are frequent enough, the most frequent first; of equally frequent ones, the earlier."""
        counts, known = self.counts(), list(self.numbers)
        order = np.argsort(-counts, kind="stable")
        return [known[at] for at in order.tolist() if counts[at] >= min_count]

    def renumbered(self, places: Mapping[str, int]) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int64]]]:
        """The running words under other numbers, and the text of each; others are left out, as if they were not there.

        Word by word: (n,), (n,)
        """
        place = np.array([places.get(word, END) for word in self.numbers] + [END], np.int32)  # last, that of END
        texts = 0
        for some in self._parts():
            ends = np.cumsum(some == END)
            new = place[some]
            kept = new != END
            yield new[kept], (texts + ends)[kept]
            texts += int(ends[-1])

    def _parts(self) -> Iterator[NDArray[np.int32]]:
        if self.path.stat().st_size:
            whole = np.memmap(self.path, np.int32, "r")
            yield from (whole[start : start + AT_ONCE] for start in range(0, len(whole), AT_ONCE))
