"""`wingspan show`: documents with their entities highlighted, in the terminal or as an HTML page. Imports no torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from wingspan.cli import app
from wingspan.corpora.formats import read
from wingspan.evaluation.matching import pair, realign
from wingspan.text import Document
from wingspan.views import html, terminal
from wingspan.views.html import page, write_page


@app.command(epilog="Example: wingspan show test.jsonl --with predicted.jsonl --first 20 --output test.html")
def show(
    file: Annotated[Path, typer.Argument(help="A corpus or predictions: a file or folder in any format.")],
    predicted: Annotated[
        Path | None, typer.Option("--with", help="Predictions for the same documents, marked right, spurious, missed.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Write an HTML page here instead of printing.")] = None,
    first: Annotated[int, typer.Option(min=0, help="How many documents to show; 0 shows all.")] = 100,
    label: Annotated[list[str] | None, typer.Option(help="Show only this label; may be given several times.")] = None,
    format: Annotated[str | None, typer.Option(help="Format of FILE; otherwise found by name or content.")] = None,
    predicted_format: Annotated[
        str | None, typer.Option(help="Format of the predictions, if it differs from --format.")
    ] = None,
) -> None:
    """Shows documents with their entities: nested ones stacked, fragments joined."""
    from rich.console import Console

    from wingspan.views.console import counted, say

    shown = gather(file, predicted, first=first, labels=label or [], format=format, predicted_format=predicted_format)
    if output is None:
        show_documents(shown, Console())
    else:
        write(shown, output)
        say(Console(), f"{output}: {counted(len(shown.documents), 'document')}")


@dataclass(frozen=True)
class Shown:
    """The documents to show, each beside its gold where predictions were given, and what is known of the rest."""

    name: str
    documents: Sequence[tuple[Document, Document | None]]
    labels: Counter[str]  # of all documents
    left_out: int

    @property
    def remark(self) -> str:
        """How much is not shown."""
        return f"{self.left_out:,} more documents; --first 0 shows all" if self.left_out else ""


def gather(
    path: Path,
    predicted: Path | None = None,
    *,
    first: int = 100,
    labels: Sequence[str] = (),
    format: str | None = None,
    predicted_format: str | None = None,
) -> Shown:
    """Reads the first documents (0: all) and counts the labels of all of them."""
    kept: list[tuple[Document, Document | None]] = []
    counts: Counter[str] = Counter()
    total = 0
    for document, gold in pairs(path, predicted, format, predicted_format):
        total += 1
        sides = [only(labels, side) for side in (document, gold) if side is not None]
        counts.update(entity.label for entity in sides[-1].entities)
        if not first or len(kept) < first:
            kept.append((sides[0], sides[1] if gold is not None else None))
    if not total:
        raise ValueError(f"{path}: there are no documents in it; check the file, and its format with --format")
    known = {entity.label for document, _ in kept for entity in document.entities}
    if labels and not counts and not known:
        raise ValueError(
            f"{path}: no entity has a label {' or '.join(labels)}; `wingspan validate {path}` lists labels"
        )
    counts.update(dict.fromkeys(known - counts.keys(), 0))
    return Shown(path.name, kept, counts, total - len(kept))


def pairs(
    path: Path, predicted: Path | None, format: str | None, predicted_format: str | None
) -> Iterator[tuple[Document, Document | None]]:
    """Documents one by one; with predictions, these with the gold they belong to."""
    if predicted is None:
        yield from ((document, None) for document in read(path, format))
        return
    wanted = list(read(path, format))
    placed = realign(wanted, list(read(predicted, predicted_format or format)))
    for gold, found in pair(wanted, placed.documents, allow_missing=True):
        yield found, gold


def only(labels: Sequence[str], document: Document) -> Document:
    """The document with the entities of these labels; no label means all."""
    if not labels:
        return document
    return replace(document, entities=tuple(entity for entity in document.entities if entity.label in labels))


def show_documents(shown: Shown, console: Console) -> None:
    """Prints the documents."""
    terminal.legend(shown.labels, console)
    for document, gold in shown.documents:
        console.print(f"\n{document.id}", style="dim", markup=False, highlight=False, soft_wrap=True)
        terminal.show(document, console, gold=gold, labels=shown.labels)
    if shown.remark:
        console.print(f"\n... {shown.remark}", style="dim", markup=False, highlight=False, soft_wrap=True)


def write(shown: Shown, path: Path) -> None:
    """Writes the documents as one HTML page without scripts of others, pictures or fonts from anywhere."""
    write_page(path, page(shown.name, body(shown)))


def body(shown: Shown) -> Iterator[str]:
    """The page's content, document by document."""
    yield f"<main>\n<h1>{html.escaped(shown.name)}</h1>\n{html.legend(shown.labels)}\n"
    for document, gold in shown.documents:
        tally = "" if gold is None else html.tally(document, gold)
        text = html.marked(document, gold, shown.labels)
        yield f'<article class="doc"><h2>{html.escaped(document.id)}</h2>\n{text}{tally}</article>\n'
    if shown.remark:
        yield f'<p class="soft">{html.escaped(shown.remark)}</p>\n'
    yield "</main>\n"
