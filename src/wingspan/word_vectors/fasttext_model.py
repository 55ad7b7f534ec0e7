"""fastText's own models (.bin): vectors of words and of their character n-grams, which make up any word at all.

The matrix is mapped where it lies, so that a model of several gigabytes is open at once.
Cf. Bojanowski et al. 2017, Enriching Word Vectors with Subword Information; the layout is that of version 12.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import NamedTuple

import numpy as np

from wingspan.word_vectors.table import Case, Vector, WordIndex, WordVectors

MAGIC = struct.pack("<i", 793712314)
WORD, LABEL = 0, 1
END_OF_SENTENCE = "</s>"
LONGEST = 256  # characters of a word that are looked at


class Layout(NamedTuple):
    """Where the numbers lie in a model's file, and what they are of: everything a second opening needs."""

    size: int
    num_words: int
    buckets: int
    shortest: int  # of the n-grams, in characters
    longest: int
    start: int  # of the matrix, in bytes


def read_layout(path: Path) -> tuple[Layout, list[str]]:
    """Reads what stands before the numbers; the words, by frequency."""
    if path.suffix == ".gz":
        raise ValueError(f"{path}: a fastText model is mapped, which a packed file cannot be; unpack it with gunzip")
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as held:
        try:
            return _layout(path, held)
        except (struct.error, IndexError) as error:
            raise ValueError(f"{path}: ends before its vectors do; the file was cut off: fetch it again") from error


def _layout(path: Path, held: mmap) -> tuple[Layout, list[str]]:
    _, version, size, *_, shortest, longest, _ = struct.unpack_from("<14i", held)
    if version not in (11, 12):
        raise ValueError(f"{path}: a fastText model of version {version}, not 12; save it with a current fastText")
    _, num_words, num_labels, _, pruned = struct.unpack_from("<3i2q", held, 64)  # a threshold stands before
    words, at = [], 92
    for number in range(num_words + num_labels):
        end = held.find(b"\0", at)
        if end < 0 or held[end + 9] != (WORD if number < num_words else LABEL):
            raise ValueError(f"{path}: entry {number + 1:,} is no word; the file is damaged, fetch it again")
        try:
            words.append(held[at:end].decode())
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: the word {held[at:end]!r} is no UTF-8; train it on UTF-8 text") from error
        at = end + 10  # a count of 8 bytes and a kind
    if pruned > 0 or held[at]:
        raise ValueError(f"{path}: a quantized fastText model, which has no vectors left; use the .bin file")
    rows, columns = struct.unpack_from("<2q", held, at + 1)
    if columns != size or len(held) < at + 17 + 4 * rows * columns:
        raise ValueError(f"{path}: ends before its {rows:,} vectors do; the file was cut off: fetch it again")
    buckets = rows - num_words if longest else 0
    return Layout(size, num_words, buckets, shortest, longest, at + 17), words[:num_words]


class FastTextVectors(WordVectors):
    """The vectors of a model: a word's is the mean of its own row and those of its n-grams."""

    def __init__(self, path: Path, index: WordIndex, layout: Layout) -> None:
        shape = (layout.num_words + layout.buckets, layout.size)
        super().__init__(index, np.memmap(path, np.dtype("<f4"), "r", layout.start, shape))
        self.layout = layout

    def rows(self, places: Sequence[int]) -> Vector:
        """The vectors of the words at these places.  (P, size)"""
        return np.stack([self._mean(self.index.words[at], [at]) for at in map(int, places)])

    def of(self, words: Sequence[str]) -> Vector:
        """The vectors of any words of which the model knows a part.  (P, size)"""
        places = ((word, self.index.find(word)) for word in words)
        return np.stack([self._mean(word, [] if place is None else [place]) for word, place in places])

    def form_of(self, word: str, case: Case = "both") -> str | None:
        """The form of a word that the model has, else the word itself, made up of its parts."""
        known = super().form_of(word, case)
        made_up = word.lower() if case == "lower" else word
        return known if known is not None or not self.n_grams(made_up) else made_up

    def n_grams(self, word: str) -> list[int]:
        """The rows of a word's n-grams."""
        layout = self.layout
        if not layout.buckets or word == END_OF_SENTENCE:
            return []
        marked = f"<{word[:LONGEST]}>"
        grams = [
            marked[start : start + length]
            for start in range(len(marked))
            for length in range(layout.shortest, layout.longest + 1)
            if start + length <= len(marked) and not (length == 1 and start in (0, len(marked) - 1))
        ]
        return [layout.num_words + fnv(gram.encode("utf-8", "replace")) % layout.buckets for gram in grams]

    def _mean(self, word: str, rows: list[int]) -> Vector:
        return np.asarray(self.vectors[[*rows, *self.n_grams(word)]].mean(0), np.float32)


def fnv(text: bytes) -> int:
    """fastText's hash: FNV-1a over signed bytes."""
    value = 2166136261
    for byte in text:
        signed = byte | 0xFFFFFF00 if byte > 127 else byte
        value = ((value ^ signed) * 16777619) & 0xFFFFFFFF
    return value
