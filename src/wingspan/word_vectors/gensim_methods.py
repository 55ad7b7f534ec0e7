"""word2vec and fastText by gensim, an extra: `pip install 'wingspan[gensim]'`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray


def train_with_gensim(
    method: str, texts: Iterable[list[str]], *, size: int, window: int, min_count: int, epochs: int, seed: int
) -> tuple[list[str], NDArray[np.float32]]:
    """Skip-gram vectors of words; those of fastText are made up of sub-words, and only the words' are kept."""
    try:
        from gensim.models import FastText, Word2Vec
    except ImportError as error:
        raise ValueError(
            f"--method {method} is gensim's, which is not installed; "
            "pip install 'wingspan[gensim]', or leave --method at glove"
        ) from error
    kind: Any = {"word2vec": Word2Vec, "fasttext": FastText}[method]
    model = kind(
        sentences=texts,
        vector_size=size,
        window=window,
        min_count=min_count,
        epochs=epochs,
        seed=seed,
        sg=1,
        workers=1,  # with more, the order of the steps is up to the threads, and so are the vectors
    )
    return list(model.wv.index_to_key), np.asarray(model.wv.vectors, np.float32)
