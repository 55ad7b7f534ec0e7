"""Words to the rows of a table of word vectors; unknown words to stand-ins, by the hashes of their n-grams."""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, Self, get_args
from zlib import crc32

from wingspan.batch import Tokenize
from wingspan.files import stored_object, whole

Unknown = Literal["zero", "random", "mean", "hashed"]
Case = Literal["exact", "lower", "both"]
VOCABULARY = "vocabulary.json"


class StaticTokenize(Tokenize):
    """Words to rows of the tables, in this order: learned words, the unknown word, buckets, other words."""

    def __init__(self, unknown: Unknown, case: Case, buckets: int, max_length: int) -> None:
        self.unknown, self.case = unknown, case
        self.buckets = buckets if unknown in ("random", "hashed") else 0
        self.max_length = max_length
        self.learn((), ())

    def learn(self, learned: Sequence[str], fixed: Sequence[str]) -> None:
        """Sets the words that have rows."""
        self.num_learned = self.padding = len(learned)
        self.forget()  # other words have other rows
        self.rows = {word: row for row, word in enumerate(learned)}
        self.rows |= {word: len(learned) + 1 + self.buckets + at for at, word in enumerate(fixed)}

    def cut(self, words: Sequence[str]) -> list[tuple[int, ...]]:
        """The rows of each word: one, or several if it is unknown and hashed."""
        return [self._rows_of(word) for word in words]

    def _rows_of(self, word: str) -> tuple[int, ...]:
        row = self.rows.get(word) if self.case != "lower" else None
        if row is None and self.case != "exact":
            row = self.rows.get(word.lower())
        return (row,) if row is not None else tuple(self.num_learned + at for at in self.stand_ins(word))

    def stand_ins(self, word: str) -> tuple[int, ...]:
        """The rows for an unknown word, counted from the row of the unknown word."""
        if self.unknown == "random":
            return (1 + bucket_of(word, self.buckets),)
        if self.unknown == "hashed":
            plain = word if self.case == "exact" else word.lower()
            return tuple(1 + bucket for bucket in buckets_of(plain, self.buckets))
        return (0,)

    def places(self, words: Sequence[str], tokens: Sequence[Sequence[int]]) -> list[int]:
        """A word is one unit, however many rows it has."""
        return [1] * len(words)

    def store(self, folder: Path) -> dict[str, Any]:
        """The settings of the constructor; the words are a file."""
        words = list(self.rows)
        record = {"learned": words[: self.num_learned], "fixed": words[self.num_learned :]}
        (folder / VOCABULARY).write_text(json.dumps(record), encoding="utf-8")
        return {"unknown": self.unknown, "case": self.case, "buckets": self.buckets, "max_length": self.max_length}

    @classmethod
    def restore(cls, folder: Path, settings: Mapping[str, Any]) -> Self:
        """From the settings of the constructor and the file."""
        unknown: Any = settings.get("unknown")
        case: Any = settings.get("case")
        buckets, max_length = (whole(settings.get(name)) for name in ("buckets", "max_length"))
        words = stored_object(folder / VOCABULARY)
        lists = [words.get(name) for name in ("learned", "fixed")]
        if unknown not in get_args(Unknown) or case not in get_args(Case) or buckets is None or not max_length:
            raise ValueError("the tokenizer has no unknown, case, buckets and max_length")
        if not all(isinstance(part, list) and all(isinstance(word, str) for word in part) for part in lists):
            raise ValueError(f"{VOCABULARY} has no words")
        tokenize = cls(unknown, case, buckets, max_length)
        tokenize.learn(lists[0] or (), lists[1] or ())
        return tokenize


LENGTHS = (3, 4, 5)
LONGEST = 64  # characters of a word that are used


@lru_cache(maxsize=200_000)
def buckets_of(word: str, count: int) -> tuple[int, ...]:
    """The buckets of a word's n-grams, with its start and end marked; each once."""
    marked = f"<{word[:LONGEST]}>"
    grams = {marked[at : at + n] for n in LENGTHS for at in range(max(1, len(marked) - n + 1))}
    return tuple(sorted({bucket_of(gram, count) for gram in grams}))


def bucket_of(text: str, count: int) -> int:
    """The bucket of a text, the same in every process."""
    return crc32(text.encode("utf-8", "surrogatepass")) % count
