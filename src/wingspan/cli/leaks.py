"""`wingspan leaks`: finds documents to be scored, their sentences and their mentions in training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from typer import Argument, Option
from typer.core import TyperCommand

from wingspan.cli import app
from wingspan.cli.options import Json
from wingspan.corpora.formats import read
from wingspan.corpora.leaks import KINDS, DocumentPair, Leaks, find_leaks
from wingspan.files import CorpusError
from wingspan.text import Document
from wingspan.views.console import counted, say, write_json
from wingspan.views.tables import Sheet

SHOWN = 5  # how many pairs of a list are printed; `--json` has all


class TwoSides(TyperCommand):
    """A command whose option `--against` takes all files after it, as in `leaks A B --against C D`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeats the option for each file, unless the training files come after it."""
        before = args[: args.index("--against")] if "--against" in args else []
        if any(
            not argument.startswith("--") and last not in ("--json", "--format")
            for last, argument in pairwise(["", *before])
        ):
            spread: list[str] = []
            option = ""
            for argument in args:
                if argument.startswith("--"):
                    option = argument
                elif option == "--against" and spread[-1] != "--against":
                    spread.append("--against")
                spread.append(argument)
            args = spread
        return super().parse_args(ctx, args)


@app.command(
    cls=TwoSides, epilog="Example: wingspan leaks train.jsonl more.xml --against dev.jsonl test.conll --json leaks.json"
)
def leaks(
    train: Annotated[list[Path], Argument(metavar="TRAIN...", help="Training corpora, in any format.")],
    against: Annotated[list[Path], Option(help="The corpora to be scored on, one or more.")],
    format: Annotated[str | None, Option(help="Format of all; otherwise found by name or content.")] = None,
    json: Json = None,
    fail: Annotated[
        bool, Option("--fail", help="Exit with 1 if a document is in training, exactly or nearly.")
    ] = False,
) -> None:
    """Finds documents, sentences and mentions to be scored on that are in training; exit code 0 if it could look."""
    sides = [{str(path): documents(path, format) for path in paths} for paths in (train, against)]
    result = find_leaks(*sides)
    if json is not None:
        write_json(result.to_dict(), json)
    if json != Path("-"):
        console = Console()
        scored, training = counted(result.against_documents, "document"), result.train_documents
        title = f"{scored} against {counted(training, 'training document')}"
        rows = [(file, *(f"{kinds[kind]:,}" for kind in KINDS)) for file, kinds in result.files.items()]
        total = ("all files", *(f"{result.kinds[kind]:,}" for kind in KINDS))
        Sheet(title, ("in training file", *KINDS), rows, [total]).show(console)
        for line in lines(result):
            say(console, line)
    if fail and result.leaking:
        raise typer.Exit(1)


def documents(path: Path, format: str | None) -> Iterator[Document]:
    """Streams the documents of a file; a file without any raises."""
    empty = True
    for document in read(path, format):
        empty = False
        yield document
    if empty:
        raise CorpusError(f"{path}: there are no documents in it; check the file, and its format with --format")


def lines(leaks: Leaks) -> Iterator[str]:
    """The report in sentences, with the first examples of each list."""
    mentions, sentences = leaks.mentions, leaks.sentences
    yield f"{counted(leaks.documents, 'document')} of {leaks.against_documents:,}: the text is in training."
    if leaks.near:
        yield f"{counted(leaks.kinds['near'], 'document')} more: something nearly equal is in training."
        yield from examples(leaks.near)
    if leaks.kinds["near"] or leaks.documents:
        yield (
            f"They hold {mentions.in_leaking_documents:,} of {counted(mentions.of, 'mention')}; "
            f"{mentions.annotated_in_training:,} are annotated in training too, at the same place."
        )
    if sentences.equal:
        where = counted(sentences.documents, "document")
        yield f"{counted(sentences.equal, 'sentence')} of {sentences.of:,}, in {where}: in other training documents."
    if sentences.covered_documents:
        first = ", ".join(document.id for document in sentences.covered_documents[:SHOWN])
        yield f"{counted(len(sentences.covered_documents), 'document')} in training sentence by sentence: {first}"
    if leaks.shared_ids:
        yield f"{counted(leaks.shared_ids, 'id')} on both sides with another text:"
        yield from examples(leaks.ids)
    if leaks.short:
        yield f"{counted(leaks.short, 'training document')} too short to count: the other side has the same few words."


def examples(pairs: Sequence[DocumentPair]) -> Iterator[str]:
    """The most similar pairs of a list."""
    for pair in sorted(pairs, key=lambda pair: -pair.similarity)[:SHOWN]:
        yield f"  {pair.train.file} {pair.train.id} and {pair.against.file} {pair.against.id}: {pair.similarity:.2f}"
