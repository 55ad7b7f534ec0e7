"""`wingspan leaks`: what of the documents that are to be scored stands in training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperCommand

from wingspan.cli import app
from wingspan.corpora.formats import read
from wingspan.corpora.leaks import KINDS, Leaks, Pair, find_leaks
from wingspan.files import CorpusError
from wingspan.text import Document
from wingspan.views.console import counted, say
from wingspan.views.tables import Sheet


class TwoSides(TyperCommand):
    """A command whose option `--against` takes all that follows, as in `leaks A B --against C D`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Names the option once for each file, unless the training files come behind it."""
        before = args[: args.index("--against")] if "--against" in args else []
        options = [argument.startswith("--") for argument in before]
        if any(
            not option and last != "--json" and last != "--format"
            for option, last in zip(options, ["", *before], strict=False)
        ):
            spread: list[str] = []
            taking = False
            for argument in args:
                if argument.startswith("--"):
                    taking = argument == "--against"
                elif taking and spread[-1] != "--against":
                    spread.append("--against")
                spread.append(argument)
            args = spread
        return super().parse_args(ctx, args)


@app.command(
    cls=TwoSides, epilog="Example: wingspan leaks train.jsonl more.xml --against dev.jsonl test.conll --json leaks.json"
)
def leaks(
    train: Annotated[list[Path], typer.Argument(metavar="TRAIN...", help="Training corpora, in any format.")],
    against: Annotated[list[Path], typer.Option(help="The corpora to be scored on; several may follow.")],
    format: Annotated[str | None, typer.Option(help="Format of all; otherwise found by name or content.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write the figures to this file; - prints them instead.")] = None,
    fail: Annotated[
        bool, typer.Option("--fail", help="Exit with 1 if a document is, or nearly is, in training.")
    ] = False,
) -> None:
    """Finds documents, sentences and mentions to be scored on that are in training; exit code 0 if it could look."""
    from rich.console import Console

    from wingspan.views.console import write_json

    found = leaks_between_files(train, against, format)
    if json is not None:
        write_json(found.to_dict(), json)
    if json != Path("-"):
        show(found, Console())
    if fail and found.leaking:
        raise typer.Exit(1)


SHOWN = 5
"""How many pairs of a list are printed; `--json` has all."""


def leaks_between_files(train: Sequence[str | Path], against: Sequence[str | Path], format: str | None = None) -> Leaks:
    """Compares training files, read as a stream, with files that are to be scored; each may have its own format."""
    sides = [{str(path): documents(path, format) for path in side} for side in (train, against)]
    return find_leaks(*sides)


def documents(path: str | Path, format: str | None) -> Iterator[Document]:
    """The documents of a file one by one; a file without any is a mistake."""
    empty = True
    for document in read(path, format):
        empty = False
        yield document
    if empty:
        raise CorpusError(f"{path}: there are no documents in it; check the file, and its format with --format")


def show(found: Leaks, console: Console) -> None:
    """Documents by training file and kind, then what they have in common besides."""
    rows = [(file, *(f"{kinds[kind]:,}" for kind in KINDS)) for file, kinds in found.files.items()]
    overall = ("all files", *(f"{found.kinds[kind]:,}" for kind in KINDS))
    title = (
        f"{counted(found.against_documents, 'document')} against {counted(found.train_documents, 'training document')}"
    )
    Sheet(title, ("in training file", *KINDS), rows, [overall]).show(console)
    for line in lines(found):
        say(console, line)


def lines(found: Leaks) -> Iterator[str]:
    """The report in sentences, with the first examples of each list."""
    mentions, sentences = found.mentions, found.sentences
    yield f"{counted(found.documents, 'document')} of {found.against_documents:,}: the text is in training."
    if found.near:
        yield f"{counted(found.kinds['near'], 'document')} more: something nearly equal is in training."
        yield from examples(found.near)
    if found.kinds["near"] or found.documents:
        yield (
            f"They hold {mentions.in_documents:,} of {counted(mentions.total, 'mention')}; "
            f"{mentions.annotated:,} are annotated in training too, at the same place."
        )
    if sentences.equal:
        where = counted(sentences.documents, "document")
        yield f"{counted(sentences.equal, 'sentence')} of {sentences.total:,}, in {where}: in other training documents."
    if sentences.covered:
        first = ", ".join(place.id for place in sentences.covered[:SHOWN])
        yield f"{counted(len(sentences.covered), 'document')} in training sentence by sentence: {first}"
    if found.shared_ids:
        yield f"{counted(found.shared_ids, 'id')} on both sides with another text:"
        yield from examples(found.ids)
    if found.short:
        yield f"{counted(found.short, 'training document')} too short to count: the other side has the same few words."


def examples(pairs: Sequence[Pair]) -> Iterator[str]:
    """The first pairs of a list, those that are most alike first."""
    for pair in sorted(pairs, key=lambda pair: -pair.similarity)[:SHOWN]:
        yield f"  {pair.train.file} {pair.train.id} and {pair.against.file} {pair.against.id}: {pair.similarity:.2f}"
