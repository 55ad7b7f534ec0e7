"""`wingspan split`: train, dev and test parts, or folds, of one corpus; by document, stratified, without leaks."""

from collections import Counter
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.console import Console

from wingspan.cli import app
from wingspan.corpora import split as splitting
from wingspan.corpora.formats import keep_apart, read, write
from wingspan.corpora.groups import too_coarse
from wingspan.files import CorpusError, OnError, Problems
from wingspan.text import corpus_fingerprint
from wingspan.views.console import counted, say, write_json
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
    result = split_corpus(corpus, output, dev, test, folds, seed, format, on_error)
    if json is not None:
        parts = [
            {
                "file": str(part.path),
                "documents": part.documents,
                "entities": part.labels.total(),
                "labels": dict(part.labels.most_common()),
                "fingerprint": part.fingerprint,
            }
            for part in result.parts
        ]
        write_json({"parts": parts, "problems": result.problems, "notes": result.notes}, json)
    if json != Path("-"):
        show(result, Console())


class Part(NamedTuple):
    """A file that was written, with its figures."""

    path: Path
    documents: int
    labels: Counter[str]
    fingerprint: str


class Division(NamedTuple):
    """All parts, the records that did not fit and were left out, and notes."""

    parts: list[Part]
    problems: list[str]
    notes: list[str]


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
    coarse = too_coarse(documents)
    if folds is None:
        parts = splitting.split(documents, {"train": 100 - dev - test, "dev": dev, "test": test}, seed, not coarse)
        planned = [(Path(f"{name}.jsonl"), part) for name, part in parts.items()]
    else:
        planned = []
        held_out = splitting.folds(documents, folds, seed, not coarse)
        for number, fold in enumerate(held_out, 1):
            rest = [document for other in held_out if other is not fold for document in other]
            parts = splitting.split(rest, {"train": 100 - dev, "dev": dev}, seed, not coarse)
            parts["test"] = fold
            planned += [(Path(f"fold-{number}") / f"{name}.jsonl", part) for name, part in parts.items()]
    for name, part in planned:
        if not part:
            raise ValueError(
                f"{corpus}: {name} would be empty, because {counted(len(documents), 'document')} in "
                f"{counted(len(splitting.bundles(documents, not coarse)), 'independent group')} are too few; "
                "give larger shares or fewer parts"
            )
    for name, _ in planned:
        keep_apart(Path(output) / name, [Path(corpus)])
    written = []
    for name, part in planned:
        write(part, Path(output) / name, "jsonl")
        labels = Counter(entity.label for document in part for entity in document.entities)
        written.append(Part(Path(output) / name, len(part), labels, corpus_fingerprint(part)))
    return Division(
        written, problems.messages, [f"{corpus}: {coarse}, and a group may be in several parts"] if coarse else []
    )


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
    for note in division.notes:
        say(console, f"note: {note}")
    if division.problems:
        lines = [f"left out: {len(division.problems):,} records or entities that do not fit", *division.problems[:20]]
        console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)
