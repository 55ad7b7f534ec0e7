"""`wingspan split`: train, dev and test parts, or folds, of one corpus; by document, stratified, without leaks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from wingspan.cli import app
from wingspan.corpora import split as splitting
from wingspan.corpora.formats import read, write
from wingspan.files import CorpusError, OnError, Problems
from wingspan.text import Document, corpus_fingerprint
from wingspan.views.tables import Sheet


@app.command(epilog="Example: wingspan split corpus.jsonl --dev 10 --test 10 --output parts")
def split(
    corpus: Annotated[Path, typer.Argument(help="The corpus: a file or folder in any format.")],
    output: Annotated[Path, typer.Option(help="Folder for train.jsonl, dev.jsonl and test.jsonl.")],
    dev: Annotated[float, typer.Option(help="Percentage for dev.")] = 10,
    test: Annotated[float, typer.Option(help="Percentage for test; with --folds every fold is test once.")] = 10,
    folds: Annotated[int | None, typer.Option(help="Write this many folds instead, as fold-1/ and so on.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same split.")] = 0,
    format: Annotated[str | None, typer.Option(help="Its format; otherwise found by name or content.")] = None,
    on_error: Annotated[
        OnError, typer.Option(help="At what does not fit: stop, or leave it out and count it.")
    ] = "raise",
    json: Annotated[Path | None, typer.Option(help="Write the figures to this file; - prints them instead.")] = None,
) -> None:
    """Splits a corpus by document, with every label's share in every part, and no text on two sides."""
    from rich.console import Console

    from wingspan.views.console import write_json

    result = split_corpus(corpus, output, dev, test, folds, seed, format, on_error)
    if json is not None:
        write_json(result.to_dict(), json)
    if json != Path("-"):
        show(result, Console())


@dataclass(frozen=True)
class Part:
    """A file that was written, with its figures."""

    path: Path
    documents: int
    labels: Counter[str]
    fingerprint: str

    def to_dict(self) -> dict[str, Any]:
        """The part as plain data."""
        return {
            "file": str(self.path),
            "documents": self.documents,
            "entities": self.labels.total(),
            "labels": dict(self.labels.most_common()),
            "fingerprint": self.fingerprint,
        }


@dataclass(frozen=True)
class Division:
    """All parts, and the records that did not fit and were left out."""

    parts: list[Part]
    problems: list[str]

    def to_dict(self) -> dict[str, Any]:
        """The parts as plain data."""
        return {"parts": [part.to_dict() for part in self.parts], "problems": self.problems}


def split_corpus(
    corpus: str | Path,
    output: str | Path,
    dev: float = 10,
    test: float = 10,
    folds: int | None = None,
    seed: int = 0,
    format: str | None = None,
    on_error: OnError = "raise",
) -> Division:
    """Writes `train.jsonl`, `dev.jsonl` and `test.jsonl` to `output`; shares are percentages of the documents.

    With `folds`, `fold-1/` to `fold-K/` are written: each fold is the test part once, and `dev` percent of the rest is
    its dev part. JSON-lines holds everything that any format has.
    """
    if not (dev >= 0 and test >= 0 and dev + (0 if folds else test) < 100):
        raise ValueError(f"dev {dev:g} and test {test:g} leave nothing to train on; both are percentages from 0 to 100")
    problems = Problems(on_error)
    documents = list(read(corpus, format, problems=problems))
    if not documents:
        raise CorpusError(f"{corpus}: there are no documents in it; check the file, and its format with --format")
    if folds is None:
        parts = splitting.split(documents, {"train": 100 - dev - test, "dev": dev, "test": test}, seed)
        planned = [(Path(f"{name}.jsonl"), part) for name, part in parts.items()]
    else:
        planned = []
        held_out = splitting.folds(documents, folds, seed)
        for number, fold in enumerate(held_out, 1):
            rest = [document for other in held_out if other is not fold for document in other]
            parts = splitting.split(rest, {"train": 100 - dev, "dev": dev}, seed)
            parts["test"] = fold
            planned += [(Path(f"fold-{number}") / f"{name}.jsonl", part) for name, part in parts.items()]
    for name, part in planned:
        if not part:
            raise ValueError(
                f"{corpus}: {name} would be empty, because {len(documents)} documents in "
                f"{len(splitting.bundles(documents))} independent groups are too few; give larger shares or fewer parts"
            )
    return Division([_write(Path(output) / name, part) for name, part in planned], problems.messages)


def _write(path: Path, documents: Sequence[Document]) -> Part:
    write(documents, path, "jsonl")
    labels = Counter(entity.label for document in documents for entity in document.entities)
    return Part(path, len(documents), labels, corpus_fingerprint(documents))


def show(division: Division, console: Console) -> None:
    """One row per file: documents, entities, and the share of each label."""
    overall: Counter[str] = Counter()
    for part in division.parts:
        overall.update(part.labels)
    labels = [label for label, _ in overall.most_common(8)]
    rows = [
        (
            str(part.path),
            f"{part.documents:,}",
            f"{part.labels.total():,}",
            *(f"{100 * part.labels[label] / max(1, part.labels.total()):.1f}%" for label in labels),
        )
        for part in division.parts
    ]
    Sheet("Split", ("file", "documents", "entities", *labels), rows).show(console)
    if division.problems:
        lines = [f"left out: {len(division.problems):,} records or entities that do not fit", *division.problems[:20]]
        console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)
