"""Vectors as numpy keeps them: `words`, `vectors`, and `about`, what is known of their training, as JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from wingspan.word_vectors.text_files import LINES, Block


def read_npz(path: Path) -> Iterator[Block]:
    """The file block by block."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            words, vectors = stored["words"].tolist(), stored["vectors"]
    except (OSError, BadZipFile, KeyError, ValueError) as error:
        raise ValueError(f"{path}: no word vectors ({error}); an .npz needs `words` and `vectors`") from error
    if vectors.ndim != 2 or len(vectors) != len(words):
        raise ValueError(
            f"{path}: {len(words):,} words and vectors of shape {vectors.shape}; one row for each word is needed"
        )
    for start in range(0, len(words), LINES):
        yield Block(words[start : start + LINES], vectors[start : start + LINES].astype(np.float32))


def about(path: Path) -> dict[str, Any]:
    """What the file says of its training; empty where it says nothing."""
    with np.load(path, allow_pickle=False) as stored:
        return dict(json.loads(str(stored["about"]))) if "about" in stored else {}


def write_npz(path: Path, words: Sequence[str], vectors: NDArray[Any], known: Mapping[str, Any]) -> None:
    """Writes under a temporary name, then renames."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name[:200]}.{os.getpid()}.part")
    try:
        with part.open("wb") as out:
            np.savez_compressed(out, words=np.array(words), vectors=vectors, about=np.array(json.dumps(known)))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
