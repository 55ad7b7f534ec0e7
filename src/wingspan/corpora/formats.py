"""What a corpus format is, and what happens to a record that does not fit.

A format module has one constant, `FORMAT`. Readers yield documents and hand every problem to `Problems`, which raises
at the first one or counts them, as the user chose.
"""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal

from wingspan.text import Document

OnError = Literal["raise", "skip"]


class CorpusError(ValueError):
    """A file that cannot be read as it is: one sentence with file, line and fix."""


@dataclass
class Problems:
    """Collects what does not fit. With `on_error="raise"` the first problem ends the reading."""

    on_error: OnError = "raise"
    messages: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, path: Path | str, line: int | None, message: str) -> None:
        """A record or entity is left out. `message` says what is wrong and how to mend it, without a final stop."""
        where = f"{path}:{line}" if line is not None else str(path)
        sentence = f"{where}: {message}"
        if self.on_error == "raise":
            raise CorpusError(sentence)
        self.messages.append(sentence)

    def note(self, path: Path | str, message: str) -> None:
        """Something worth knowing that loses nothing, such as the tagging scheme that was detected."""
        self.notes.append(f"{path}: {message}")


@dataclass(frozen=True)
class Holds:
    """What a format can express. `convert` lists what a target cannot hold before it writes anything."""

    nested: bool = True
    discontinuous: bool = True
    same_span_labels: bool = True
    exact_text: bool = True
    """Whether white space between words survives."""
    documents_without_words: bool = True
    """Whether plain text without given words can be written (False: the words are made by the splitter)."""
    words: bool = False
    """Whether given word boundaries survive."""
    sentences: bool = False
    groups: bool = False
    meta: bool = False
    """Whether unknown keys of documents and entities survive."""
    scores: bool = False
    entity_meta: bool | None = None
    """Whether unknown keys of entities survive, where that differs from those of documents."""
    document_keys: frozenset[str] = frozenset()
    """Keys in the `meta` of documents that survive where not all do."""
    entity_keys: frozenset[str] = frozenset()
    """Keys in the `meta` of entities that survive where not all do."""
    ids: bool = True
    """Whether document ids survive (False: they are made from the file's name and the document's place)."""
    datasets: bool = False
    """Whether the name of the dataset survives."""


@dataclass(frozen=True)
class Format:
    """One file format: how to read it, how to write it, what it can hold."""

    name: str
    read: Callable[[Path, Problems], Iterator[Document]]
    write: Callable[[Iterable[Document], Path], None] | None
    suffixes: tuple[str, ...]
    holds: Holds
    unit: Literal["code points", "utf-16", "words"] = "code points"
    inclusive_ends: bool = False
    description: str = ""
    changes: Callable[[Document], Counter[str]] | None = None
    """What writing and reading one document changes although `holds` has its key: description -> how many."""


def open_text(path: Path) -> IO[str]:
    """A text file, plain or gzipped, with its line ends as they are and no byte order mark."""
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open("rt", encoding="utf-8-sig", newline="")
