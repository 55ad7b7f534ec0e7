"""The words nearest to a word, by the angle between vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wingspan.word_vectors.table import WordVectors

ROWS = 16_384


def nearest(source: WordVectors, words: Sequence[str], count: int = 10) -> dict[str, list[tuple[str, float]]]:
    """For each word that has a vector its nearest neighbors with their cosines, nearest first."""
    forms = {word: source.form_of(word) for word in words}
    known = {word: form for word, form in forms.items() if form is not None}
    if not known:
        return {}
    wanted = unit(source.of(list(known.values())))  # (W, D)
    cosines = np.empty((len(known), len(source)), np.float32)
    for start in range(0, len(source), ROWS):
        rows = source.rows(range(start, min(start + ROWS, len(source))))
        cosines[:, start : start + ROWS] = wanted @ unit(rows).T
    best = np.argsort(-cosines, axis=1, kind="stable")[:, : count + 1]
    found = {}
    for row, (word, form) in enumerate(known.items()):
        near = [(source.index.words[int(at)], float(cosines[row, at])) for at in best[row]]
        found[word] = [pair for pair in near if pair[0] != form][:count]
    return found


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Vectors of length 1; those of length 0 stay it."""
    lengths = np.sqrt(np.square(vectors).sum(1, keepdims=True))
    scaled: NDArray[np.float32] = vectors / np.maximum(lengths, np.float32(1e-12))
    return scaled
