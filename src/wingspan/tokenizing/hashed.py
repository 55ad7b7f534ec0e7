"""Hashed word, prefix, suffix and shape features: no vocabulary is fitted, and new words share their affixes."""

import json
import zlib
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Self, get_args

from wingspan.batch import Tokenize
from wingspan.corpora.words import kind
from wingspan.files import stored_object, whole
from wingspan.tokenizing.static import VOCABULARY, Case

FEATURES = 10
LONGEST = 64  # characters of a word that are used, so that a 300,000-character "word" costs no more than its affixes


def features(word: str) -> tuple[int, ...]:
    """The hashed features of one word, as 31-bit numbers; the encoder takes them modulo its table."""
    head, tail = word[:LONGEST], word[-LONGEST:]
    low, end = head.lower(), tail.lower()
    pattern = "".join(key for key, _ in groupby(map(kind, head)))
    named = (
        f"w{head}",
        f"l{low}" if len(word) <= LONGEST else "l",
        *(f"p{low[:n]}" for n in (2, 3, 4)),
        *(f"s{end[-n:]}" for n in (2, 3, 4)),
        f"x{pattern}",
        f"n{min(len(word), 12)}{head[:1]}",
    )
    return tuple(zlib.crc32(name.encode("utf-8", "surrogatepass")) & 0x7FFFFFFF for name in named)


class HashedTokenize(Tokenize):
    """Words to feature hashes: each word has `FEATURES` tokens, one after the other."""

    fewest_tokens = FEATURES
    lightness = 3  # the vectors are small; with fewer units, a second thread has nothing to do

    def __init__(self, buckets: int, max_length: int) -> None:
        self.buckets = buckets
        self.max_length = max_length

    def cut(self, words: Sequence[str]) -> list[list[int]]:
        """The features of each word."""
        return [[number % self.buckets for number in features(word)] for word in words]

    def places(self, words: Sequence[str], tokens: Sequence[Sequence[int]]) -> list[int]:
        """A word is one unit, however long."""
        return [1] * len(words)

    def store(self, folder: Path) -> dict[str, Any]:
        """The settings of the constructor."""
        return {"buckets": self.buckets, "max_length": self.max_length}

    @classmethod
    def restore(cls, folder: Path, settings: Mapping[str, Any]) -> Self:
        """From the settings of the constructor."""
        buckets, max_length = (whole(settings.get(name)) for name in ("buckets", "max_length"))
        if not buckets or not max_length:
            raise ValueError("the tokenizer has no buckets and max_length")
        return cls(buckets, max_length)


class ConvolvedTokenize(HashedTokenize):
    """Words to feature hashes, and to the row of their vector if the encoder has vectors (`case` says which)."""

    def __init__(self, buckets: int, max_length: int, case: Case | None) -> None:
        super().__init__(buckets, max_length)
        self.case = case
        self.fewest_tokens = FEATURES + (case is not None)
        self.rows: dict[str, int] = {}

    def learn(self, words: Sequence[str]) -> None:
        """Sets the words that have vectors."""
        self.forget()  # other words have other rows
        self.rows = {word: 1 + at for at, word in enumerate(words)}

    def cut(self, words: Sequence[str]) -> list[list[int]]:
        """The features of each word, and its row, 0 if it has none."""
        hashed = super().cut(words)
        return (
            hashed if self.case is None else [[*own, self._row(word)] for word, own in zip(words, hashed, strict=True)]
        )

    def _row(self, word: str) -> int:
        row = self.rows.get(word) if self.case != "lower" else None
        return row if row is not None else self.rows.get(word.lower(), 0) if self.case != "exact" else 0

    def store(self, folder: Path) -> dict[str, Any]:
        """The settings of the constructor; the words that have vectors are a file."""
        if self.case is not None:
            (folder / VOCABULARY).write_text(json.dumps({"words": list(self.rows)}), encoding="utf-8")
        return {**super().store(folder), "case": self.case}

    @classmethod
    def restore(cls, folder: Path, settings: Mapping[str, Any]) -> Self:
        """From the settings of the constructor and the file."""
        plain, case = HashedTokenize.restore(folder, settings), settings.get("case")
        if case is not None and case not in get_args(Case):
            raise ValueError(f"the tokenizer has no case {str(case)[:40]!r}")
        tokenize = cls(plain.buckets, plain.max_length, case)
        words = stored_object(folder / VOCABULARY).get("words") if case is not None else []
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise ValueError(f"{VOCABULARY} has no words")
        tokenize.learn(words)
        return tokenize
