"""Word vectors from a file: word2vec or GloVe text, plain or gzipped, or an .npz with `words` and `vectors`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from wingspan.corpora.files import read_lines

Vector = np.ndarray[Any, np.dtype[np.float32]]


def read_vectors(path: str | Path, words: Iterable[str], size: int) -> dict[str, Vector]:
    """The vectors of these words: of the word as it is written, else of its lower-cased form."""
    if not Path(path).is_file():
        raise ValueError(f"{path}: no such file of word vectors; check the path")
    wanted = set(words)
    forms = wanted | {word.lower() for word in wanted}
    found = {word: vector for word, vector in _each(Path(path)) if word in forms}
    other = next((len(vector) for vector in found.values() if len(vector) != size), None)
    if other is not None:
        raise ValueError(f"{path}: has vectors of {other} numbers, not {size}; set embedding_size={other}")
    pairs = ((word, word if word in found else word.lower()) for word in wanted)
    return {word: found[form] for word, form in pairs if form in found}


def _each(path: Path) -> Iterator[tuple[str, Vector]]:
    if path.suffix == ".npz":
        try:
            with np.load(path, allow_pickle=False) as stored:
                yield from zip(stored["words"].tolist(), stored["vectors"].astype(np.float32), strict=True)
        except (OSError, BadZipFile, KeyError, ValueError) as error:
            raise ValueError(f"{path}: no word vectors ({error}); an .npz needs `words` and `vectors`") from error
        return
    for number, line in read_lines(path):
        word, *numbers = line.rstrip().split(" ")
        if number == 1 and len(numbers) == 1:
            continue  # word2vec begins with how many vectors there are, and of what size
        try:
            yield word, np.array(numbers, dtype=np.float32)
        except ValueError:
            raise ValueError(f"{path}:{number}: a word and its numbers are expected, with spaces between") from None
