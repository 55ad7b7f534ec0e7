"""The running words of texts and corpora, as often as they are asked for: nothing is held in memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from wingspan.corpora import read
from wingspan.corpora.files import read_lines
from wingspan.corpora.words import SPLITTERS

HELD_OUT = re.compile(r"(^|[._-])(test|dev|valid|validation|eval)([._-]|$)", re.IGNORECASE)


@dataclass(frozen=True)
class RunningWords:
    """Files of plain text, where a line is a text, and corpora, where a document is one."""

    paths: Sequence[Path]
    lower_case: bool = False
    splitter: str = "words"
    format: str | None = None

    def __post_init__(self) -> None:
        """Says at once what cannot work."""
        if self.splitter not in SPLITTERS:
            raise ValueError(f"unknown splitter {self.splitter!r}; use one of {', '.join(SPLITTERS)}")

    def __iter__(self) -> Iterator[list[str]]:
        return (words for path in self.paths for words in self.of(path))

    def of(self, path: Path) -> Iterator[list[str]]:
        """The texts of one file as words."""
        split = SPLITTERS[self.splitter]
        for text, given in self._texts(path):
            plain = (text[start:end] for start, end in (given if given is not None else split(text)))
            yield [word.lower() for word in plain] if self.lower_case else list(plain)

    def _texts(self, path: Path) -> Iterator[tuple[str, Iterable[tuple[int, int]] | None]]:
        if self.format is None and path.name.removesuffix(".gz").endswith(".txt"):
            yield from ((line, None) for _, line in read_lines(path))
        else:
            yield from ((document.text, document.words) for document in read(path, self.format))


def looks_held_out(path: Path) -> bool:
    """Whether a file is named as test or dev text."""
    return bool(HELD_OUT.search(path.name))


def print_of(words: Sequence[str]) -> bytes:
    """What equal texts share, whatever their case."""
    return blake2b(" ".join(words).lower().encode("utf-8", "replace"), digest_size=12).digest()
