"""A word as the hashes of its parts: what words that have no vector share with those that have one."""

from __future__ import annotations

from functools import lru_cache
from zlib import crc32

LENGTHS = (3, 4, 5)
LONGEST = 64  # characters of a word that are looked at


@lru_cache(maxsize=200_000)
def buckets_of(word: str, count: int) -> tuple[int, ...]:
    """The buckets of a word's n-grams, its beginning and its end marked; each once."""
    marked = f"<{word[:LONGEST]}>"
    grams = {marked[at : at + n] for n in LENGTHS for at in range(max(1, len(marked) - n + 1))}
    return tuple(sorted({bucket_of(gram, count) for gram in grams}))


def bucket_of(text: str, count: int) -> int:
    """One bucket for a text, the same in every process."""
    return crc32(text.encode("utf-8", "surrogatepass")) % count
