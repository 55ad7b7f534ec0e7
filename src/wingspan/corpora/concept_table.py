"""Concepts and their names as a few arrays: no Python object per name, so that they load at once and stay small.

All names stand one after the other in one run of bytes, those of a concept side by side. A term is found by the
checksum of its key among the sorted checksums of all names; the names found are compared, as checksums may coincide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from mmap import mmap
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from wingspan.corpora.concepts import Concept
from wingspan.corpora.term_keys import spelling

Key = Callable[[str], str]


@dataclass(frozen=True)
class Strings:
    """Many strings in one run of UTF-8."""

    text: bytes | mmap
    ends: NDArray[np.int64]  # (N,)

    @classmethod
    def of(cls, strings: Iterable[str]) -> Strings:
        """Packs strings."""
        packed = [string.encode() for string in strings]
        return cls(b"".join(packed), np.cumsum([len(string) for string in packed], dtype=np.int64))

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, number: int) -> str:
        start = self.ends[number - 1] if number else 0
        return self.text[start : self.ends[number]].decode()


@dataclass(frozen=True)
class ConceptTable:
    """C concepts with N names. Names are numbered through; concept c has those from `first[c]` to `first[c + 1]`."""

    ids: Strings  # C of them
    names: Strings  # N of them
    first: NDArray[np.int64]  # (C + 1,)
    checksums: NDArray[np.uint32]  # (N,), sorted
    places: NDArray[np.uint32]  # (N,), the name that has the checksum
    kinds: NDArray[np.uint32]  # (C,), which of `types` the concept has
    types: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, concepts: Iterable[Concept], key: Key) -> ConceptTable:
        """Collects concepts. Those of one id are joined; of names with one spelling the first is kept."""
        names: dict[str, dict[str, str]] = {}
        types: dict[str, dict[str, None]] = {}
        for concept in concepts:
            mine = names.setdefault(concept.id, {})
            for name in concept.names:
                plain = " ".join(name.split())
                if plain:
                    mine.setdefault(spelling(plain), plain)
            types.setdefault(concept.id, {}).update(dict.fromkeys(concept.types))
        packed = Strings.of(name for mine in names.values() for name in mine.values())
        checksums = np.fromiter((checksum(key(packed[number])) for number in range(len(packed))), np.uint32)
        order = np.argsort(checksums, kind="stable")
        kinds: dict[tuple[str, ...], int] = {}
        return cls(
            Strings.of(names),
            packed,
            np.cumsum([0, *(len(mine) for mine in names.values())], dtype=np.int64),
            checksums[order],
            order.astype(np.uint32),
            np.fromiter((kinds.setdefault(tuple(mine), len(kinds)) for mine in types.values()), np.uint32),
            tuple(kinds),
        )

    def __len__(self) -> int:
        return len(self.ids)

    def concept(self, number: int) -> Concept:
        """A concept by its number."""
        names = tuple(self.names[at] for at in range(self.first[number], self.first[number + 1]))
        return Concept(self.ids[number], names, self.types[self.kinds[number]])

    def find(self, wanted: str, key: Key) -> list[int]:
        """The numbers of the concepts that have a name with this key, each once, in the order of their files."""
        value = np.uint32(checksum(wanted))  # of the array's type, or the whole array would be converted
        start, end = np.searchsorted(self.checksums, value, "left"), np.searchsorted(self.checksums, value, "right")
        found = [place for place in self.places[start:end] if key(self.names[int(place)]) == wanted]
        concepts = np.searchsorted(self.first, np.array(found, np.int64), "right") - 1
        return list(dict.fromkeys(concepts.tolist()))


def checksum(key: str) -> int:
    """32 bits that equal keys share."""
    return crc32(key.encode())
