"""Commands that work on corpora: `convert`, `validate`, `split`, `leaks`, `show`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from wingspan.cli import app


class OnErrorName(StrEnum):
    """What happens at a record that does not fit."""

    raise_ = "raise"
    skip = "skip"


class OverlapName(StrEnum):
    """Which of overlapping entities stay."""

    keep = "keep"
    outer = "outer"
    inner = "inner"
    none = "none"


@app.command(epilog="Example: wingspan convert annotations/ train.jsonl --from brat")
def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="The corpus: a file or folder in any format.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="Where to write it.")],
    from_format: Annotated[
        str | None, typer.Option("--from", help="Format of IN; otherwise found by name or content.")
    ] = None,
    to_format: Annotated[str | None, typer.Option("--to", help="Format of OUT; otherwise told by its name.")] = None,
    lossy: Annotated[
        bool, typer.Option("--lossy", help="Go on although OUT cannot hold everything; what is lost is counted.")
    ] = False,
    on_error: Annotated[
        OnErrorName, typer.Option(help="At what does not fit: stop, or leave it out and count it.")
    ] = OnErrorName.raise_,
    overlap: Annotated[
        OverlapName, typer.Option(help="Of overlapping entities keep all, the outermost, the innermost, or none.")
    ] = OverlapName.keep,
) -> None:
    """Converts a corpus to another format; nothing is lost silently."""
    from rich.console import Console

    from wingspan.runs import convert as run

    result = run.convert(source, target, from_format, to_format, lossy, on_error.value, overlap.value)
    run.show(result, target, Console())


@app.command(epilog="Example: wingspan validate train.jsonl dev.jsonl --json report.json")
def validate(
    corpora: Annotated[list[Path], typer.Argument(metavar="CORPUS...", help="Files or folders in any format.")],
    format: Annotated[str | None, typer.Option(help="Their format; otherwise found by name or content.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write the figures to this file; - prints them instead.")] = None,
    on_error: Annotated[
        OnErrorName, typer.Option(help="List all problems (skip), or stop at the first one (raise).")
    ] = OnErrorName.skip,
) -> None:
    """Shows what is in a corpus, and every problem with file and line; exit code 1 if there is one."""
    from rich.console import Console

    from wingspan.runs import validate as run
    from wingspan.runs.figures import write_figures

    reports = run.validate(corpora, format, on_error.value)
    if json is not None:
        write_figures({"corpora": [report.to_dict() for report in reports]}, json)
    if json != Path("-"):
        for report in reports:
            run.show(report, Console())
    if any(report.failed for report in reports):
        raise typer.Exit(1)


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
        OnErrorName, typer.Option(help="At what does not fit: stop, or leave it out and count it.")
    ] = OnErrorName.raise_,
    json: Annotated[Path | None, typer.Option(help="Write the figures to this file; - prints them instead.")] = None,
) -> None:
    """Splits a corpus by document, with every label's share in every part, and no text on two sides."""
    from rich.console import Console

    from wingspan.runs import split as run
    from wingspan.runs.figures import write_figures

    result = run.split(corpus, output, dev, test, folds, seed, format, on_error.value)
    if json is not None:
        write_figures(result.to_dict(), json)
    if json != Path("-"):
        run.show(result, Console())


class OnLeakChoice(StrEnum):
    """What becomes of training documents that are in dev or test."""

    drop = "drop"
    stop = "stop"
    allow = "allow"


OnLeak = Annotated[
    OnLeakChoice, typer.Option(help="Training documents that are in dev or test: drop them, stop, or train on them.")
]


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

    from wingspan.runs import leaks as run
    from wingspan.runs.figures import write_figures

    found = run.leaks(train, against, format)
    if json is not None:
        write_figures(found.to_dict(), json)
    if json != Path("-"):
        run.show(found, Console())
    if fail and found.leaking:
        raise typer.Exit(1)


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

    from wingspan.runs import show as run
    from wingspan.runs.speaking import counted, say

    shown = run.gather(
        file, predicted, first=first, labels=label or [], format=format, predicted_format=predicted_format
    )
    if output is None:
        run.show(shown, Console())
    else:
        run.write(shown, output)
        say(Console(), f"{output}: {counted(len(shown.documents), 'document')}")
