"""`wingspan compare`: files of predictions of two or more systems against one gold file. Imports no torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from glob import glob, has_magic
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from wingspan.cli import app
from wingspan.cli.score import documents
from wingspan.evaluation.comparison import Comparison, PairFigures, SystemRow
from wingspan.evaluation.comparison import compare as compare_systems
from wingspan.evaluation.errors import MOVES, plain
from wingspan.evaluation.matching import Mode, realign
from wingspan.evaluation.significance import ConfidenceInterval, Difference
from wingspan.text import Document
from wingspan.views.console import say
from wingspan.views.tables import AVERAGES, Cells, Sheet


@app.command(
    epilog="Example: wingspan compare test.jsonl old.jsonl new.jsonl --json figures.json    "
    "Several seeds: wingspan compare test.jsonl base=runs/base/seed-*.jsonl new=n1.jsonl,n2.jsonl,n3.jsonl"
)
def compare(
    gold: Annotated[Path, typer.Argument(help="The corpus with the right entities, in any format.")],
    systems: Annotated[
        list[str],
        typer.Argument(
            metavar="SYSTEM...",
            help="Two or more: FILE, NAME=FILE, or NAME=FILE,FILE,... for the runs of one system; a pattern "
            "such as NAME=runs/*/test.jsonl stands for all matching files.",
        ),
    ],
    format: Annotated[str | None, typer.Option(help="Format of all files; otherwise found by name or content.")] = None,
    predicted_format: Annotated[
        str | None, typer.Option(help="Format of the systems' files, if it differs from --format.")
    ] = None,
    mode: Annotated[Mode, typer.Option(help="What counts as a match; see docs/scoring.md.")] = "strict",
    samples: Annotated[int, typer.Option(min=1, help="Resamples behind intervals and p-values.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all draws.")] = 1,
    confidence: Annotated[
        float, typer.Option(help="Confidence of the intervals; 1 minus it is the verdict's level.")
    ] = 0.95,
    examples: Annotated[int, typer.Option(min=0, help="Errors of each kind to show; 20 in the JSON.")] = 3,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Gold documents without prediction count as predicted empty.")
    ] = False,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report with errors and buckets here.")] = None,
    train: Annotated[
        Path | None, typer.Option(help="The training corpus, for the report: more attributes, label conflicts.")
    ] = None,
    json: Annotated[Path | None, typer.Option(help="Write the figures to this file; - prints them instead.")] = None,
) -> None:
    """Compares systems on one corpus: intervals, paired significance, errors that moved, and the winner."""
    from wingspan.views.console import write_json

    if train is not None and report is None:
        raise ValueError("--train is for the report; give --report FILE too")
    result = compare_files(
        gold,
        systems,
        format=format,
        predicted_format=predicted_format,
        mode=mode,
        samples=samples,
        seed=seed,
        confidence=confidence,
        allow_missing=allow_missing,
    )
    if json is not None:
        write_json(result.to_dict(), json)
    if json != Path("-"):
        show(result, Console(), examples)
    if report is not None:
        from wingspan.report import ReportOptions, from_documents, report_of
        from wingspan.report.blocks import Subject
        from wingspan.report.html import write_report

        runs = read_systems(name_systems(systems), predicted_format or format)
        training = documents(train, format) if train is not None else None
        subject = Subject.of(result.gold, runs, training, allow_missing=allow_missing)
        sections = from_documents(subject, ReportOptions(comparison=result))
        write_report(report_of(" and ".join(runs), subject, sections, {}, folder=False), report)


def compare_files(
    gold: str | Path,
    systems: Sequence[str],
    *,
    format: str | None = None,
    predicted_format: str | None = None,
    mode: Mode = "strict",
    samples: int = 1000,
    seed: int = 1,
    confidence: float = 0.95,
    allow_missing: bool = False,
) -> Comparison:
    """Reads the files and compares them. A system is FILE, NAME=FILE, or NAME=FILE,FILE,... for its runs.

    Predictions on other words or documents are realigned with the gold texts first, and the notes say so.
    """
    right = documents(gold, format)
    runs = read_systems(name_systems(systems), predicted_format or format)
    realigned = {name: [realign(right, run) for run in each] for name, each in runs.items()}
    result = compare_systems(
        right,
        {name: [run.documents for run in each] for name, each in realigned.items()},
        mode=mode,
        samples=samples,
        seed=seed,
        confidence=confidence,
        allow_missing=allow_missing,
    )
    notes = dict.fromkeys(f"{name}: {note}" for name, each in realigned.items() for run in each for note in run.notes)
    return replace(result, notes=(*notes, *result.notes))


def read_systems(named: dict[str, list[Path]], format: str | None = None) -> dict[str, list[list[Document]]]:
    """The documents of every run of every system."""
    return {name: [documents(path, format) for path in paths] for name, paths in named.items()}


def name_systems(arguments: Sequence[str]) -> dict[str, list[Path]]:
    """The files of each system by its name: the given one, the file's, or the path if two files share a name."""
    parsed = [parse(argument) for argument in arguments]
    short = [name or Path(rest).stem for name, rest, _ in parsed]
    twice = {name for name, count in Counter(short).items() if count > 1}
    named: dict[str, list[Path]] = {}
    for (name, rest, paths), brief in zip(parsed, short, strict=True):
        chosen = name or (rest if brief in twice or len(paths) > 1 else brief)
        if chosen in named:
            raise ValueError(f"two systems are called {chosen!r}; name them, as in OTHER={rest}")
        named[chosen] = paths
    return named


def parse(argument: str) -> tuple[str, str, list[Path]]:
    """One system: its name if it has one, the argument without the name, and the files."""
    if Path(argument).exists():
        return "", argument, [Path(argument)]
    name, equals, rest = argument.partition("=")
    if not equals:
        name, rest = "", argument
    paths = [path for part in rest.split(",") for path in files(part.strip())]
    return name.strip(), rest, paths


def files(named: str) -> Iterator[Path]:
    """A file or folder, or all that match a pattern, sorted by name."""
    if Path(named).exists() and named:
        yield Path(named)
        return
    found = sorted(glob(named, recursive=True)) if has_magic(named) else []
    if not found:
        raise FileNotFoundError(2, "no such file or folder", named)
    yield from map(Path, found)


def show(result: Comparison, console: Console, examples: int = 3) -> None:
    """Prints the figures, then every pair with the errors that moved, last the verdict."""
    figures_sheet(result).show(console)
    for system in result.systems:
        if system.runs > 1:
            say(console, f"{system.name}: {system.runs} runs, micro F1 {system.rows.micro.over_runs}")
    for pair in result.pairs:
        pair_sheet(result, pair).show(console)
        say(console, mentions(pair))
        for move in MOVES:
            for error in pair.errors.listed(move)[:examples]:
                shown = plain(error, result.gold)
                say(console, f"  {move}: {shown['kind']} {shown['label']} {shown['text']!r} in {shown['document']}")
    for note in result.notes:
        say(console, f"Note: {note}.")
    console.print(Text(result.verdict, style="bold"), soft_wrap=True)


def figures_sheet(result: Comparison) -> Sheet:
    """Systems below each other, label by label."""
    percent = f"{100 * result.confidence:g} %"

    def rows(label: str, cells: Sequence[tuple[str, SystemRow]]) -> list[Cells]:
        return [(label,), *((f"  {name}", *map(between, row[:3])) for name, row in cells)]

    each = [(system.name, system.rows) for system in result.systems]
    labels = each[0][1].labels
    return Sheet(
        f"Recognition, {result.mode}, with {percent} intervals ({result.samples:,} bootstrap samples)",
        ("label, system", "precision", "recall", "F1"),
        [row for label in labels for row in rows(label, [(name, found.labels[label]) for name, found in each])],
        [
            *rows(AVERAGES["micro"], [(name, found.micro) for name, found in each]),
            *rows(AVERAGES["macro"], [(name, found.macro) for name, found in each]),
        ],
    )


def pair_sheet(result: Comparison, pair: PairFigures) -> Sheet:
    """One system against another: the change in F1, its p-value, and the errors that moved."""
    return Sheet(
        f"{pair.second} minus {pair.first}, F1; p by {result.test(pair)}",
        ("label", "difference", "p (Holm)", "ahead", *MOVES),
        [
            (label, *gap(row), *(number(pair.errors.count(move, label)) for move in MOVES))
            for label, row in pair.rows.labels.items()
        ],
        [
            (AVERAGES["micro"], *gap(pair.rows.micro), *(number(pair.errors.count(move)) for move in MOVES)),
            (AVERAGES["macro"], *gap(pair.rows.macro)),
        ],
    )


def gap(row: Difference) -> Cells:
    """The cells of a difference."""
    return f"{row.value:+.2f} [{row.low:+.1f}, {row.high:+.1f}]", f"{row.p_holm:.3f}", f"{100 * row.wins:.1f} %"


def mentions(pair: PairFigures) -> str:
    """The number of errors that moved, and whether that may be chance."""
    fixed, broken, both = (number(pair.errors.count(move)) for move in MOVES)
    sure = "mean over pairs of runs" if pair.errors.p is None else f"McNemar p = {pair.errors.p:.2g}"
    return (
        f"Mentions: {fixed} errors of {pair.first} are fixed by {pair.second}, {broken} are new, "
        f"{both} both make ({sure})"
    )


def number(count: float) -> str:
    """A count; a mean over runs with one digit."""
    return f"{count:,.1f}".removesuffix(".0")


def between(figure: ConfidenceInterval) -> str:
    """A figure and its interval."""
    return f"{figure.value:.2f} [{figure.low:.1f}, {figure.high:.1f}]"
