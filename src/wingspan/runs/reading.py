"""The corpora of a training, from files or as documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wingspan.corpora import read
from wingspan.text import Document

Corpus = str | Path | Sequence[Document]


@dataclass(frozen=True)
class Corpora:
    """The documents of one training."""

    train: Sequence[Document]
    dev: Sequence[Document] = ()
    test: Sequence[Document] = ()


def gather(train: Any, dev: Corpus | None, test: Corpus | None, format: str | None) -> Corpora:
    """Reads what is given as files."""
    paths: list[Any] = [train] if isinstance(train, str | Path) else list(train)
    if paths and all(isinstance(path, str | Path) for path in paths):
        documents = [document for path in paths for document in documents_of(path, format)]
    else:
        documents = documents_of(paths, format)
    return Corpora(documents, documents_of(dev, format), documents_of(test, format))


def documents_of(corpus: Corpus | None, format: str | None) -> list[Document]:
    """A file's documents, or the documents themselves."""
    if corpus is None:
        return []
    if not isinstance(corpus, str | Path):
        return list(corpus)
    documents = list(read(corpus, format))
    if not documents:
        raise ValueError(f"{corpus}: there are no documents in it; check the file, and its format with --format")
    return documents
