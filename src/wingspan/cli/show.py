"""`wingspan show`: documents with their entities highlighted, in the terminal or as an HTML page. Imports no torch."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from wingspan.cli import app
from wingspan.corpora.formats import read
from wingspan.evaluation.matching import pair, realign
from wingspan.text import Document
from wingspan.views import terminal
from wingspan.views.console import counted, say


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
    shown: list[tuple[Document, Document | None]] = []
    counts: Counter[str] = Counter()  # labels of all documents
    total = 0
    for document, gold in pairs(file, predicted, format, predicted_format):
        total += 1
        if label:
            document, gold = only(label, document), gold and only(label, gold)
        counts.update(entity.label for entity in (gold or document).entities)
        if not first or len(shown) < first:
            shown.append((document, gold))
    if not total:
        raise ValueError(f"{file}: there are no documents in it; check the file, and its format with --format")
    counts.update({entity.label: 0 for document, _ in shown for entity in document.entities})
    if label and not counts:
        raise ValueError(f"{file}: no entity has a label {' or '.join(label)}; `wingspan validate {file}` lists labels")
    remark = f"{total - len(shown):,} more documents; --first 0 shows all" if total > len(shown) else ""
    console = Console()
    if output is not None:
        from wingspan.views.html import write_page

        write_page(output, "views/show.html", title=file.name, documents=shown, labels=counts, remark=remark)
        say(console, f"{output}: {counted(len(shown), 'document')}")
        return
    terminal.legend(counts, console)
    for document, gold in shown:
        console.print(f"\n{document.id}", style="dim", markup=False, highlight=False, soft_wrap=True)
        terminal.show(document, console, gold=gold, labels=counts)
    if remark:
        console.print(f"\n... {remark}", style="dim", markup=False, highlight=False, soft_wrap=True)


def pairs(
    path: Path, predicted: Path | None, format: str | None, predicted_format: str | None
) -> Iterator[tuple[Document, Document | None]]:
    """Documents one by one; with predictions, these with the gold they belong to."""
    if predicted is None:
        yield from ((document, None) for document in read(path, format))
        return
    corpus = list(read(path, format))
    placed = realign(corpus, list(read(predicted, predicted_format or format)))
    for gold, document in pair(corpus, placed.documents, allow_missing=True):
        yield document, gold


def only(labels: list[str], document: Document) -> Document:
    """The document with the entities of these labels."""
    return replace(document, entities=tuple(entity for entity in document.entities if entity.label in labels))
