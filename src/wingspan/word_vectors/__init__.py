"""Word vectors from a file: GloVe, word2vec (text or binary), fastText (text or model), or .npz; plain or gzipped."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from wingspan.word_vectors.cache import open_vectors
from wingspan.word_vectors.table import Vector, WordVectors

__all__ = ["Vector", "WordVectors", "open_vectors", "read_vectors"]


def read_vectors(path: str | Path, words: Iterable[str], size: int) -> dict[str, Vector]:
    """The vectors of these words: of the word as it is written, else of its lower-cased form."""
    source = open_vectors(path)
    if source.size != size:
        raise ValueError(f"{path}: has vectors of {source.size} numbers, not {size}; set embedding_size={source.size}")
    forms = {word: source.form_of(word) for word in set(words)}
    known = {word: form for word, form in forms.items() if form is not None}
    return dict(zip(known, source.of(list(known.values())), strict=True)) if known else {}
