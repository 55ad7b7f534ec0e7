"""`wingspan compare`: predictions of two or more systems, or models, against one gold file. Models need torch."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from glob import glob, has_magic
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from wingspan.box import NAME, installed_model
from wingspan.cli import app
from wingspan.cli.options import AllowMissing, GoldCorpus, Json, is_model
from wingspan.cli.score import documents
from wingspan.evaluation.comparison import Comparison, PairFigures, SystemRow
from wingspan.evaluation.comparison import compare as compare_systems
from wingspan.evaluation.errors import MOVES, plain
from wingspan.evaluation.matching import Mode, realign
from wingspan.evaluation.significance import Difference
from wingspan.text import Document
from wingspan.views.console import say, write_json
from wingspan.views.tables import AVERAGES, Cells, Sheet


@app.command(
    epilog="Example: wingspan compare test.jsonl old.jsonl new.jsonl --json figures.json    "
    "Several seeds: wingspan compare test.jsonl base=runs/base/seed-*.jsonl new=n1.jsonl,n2.jsonl,n3.jsonl"
)
def compare(
    gold: GoldCorpus,
    systems: Annotated[
        list[str],
        typer.Argument(
            metavar="SYSTEM...",
            help="Two or more: FILE or MODEL, NAME=FILE, or NAME=FILE,FILE,... for the runs of one system; a pattern "
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
    allow_missing: AllowMissing = False,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report with errors and buckets here.")] = None,
    train: Annotated[
        Path | None, typer.Option(help="The training corpus, for the report: more attributes, label conflicts.")
    ] = None,
    json: Json = None,
) -> Comparison:
    """Compares systems on one corpus: intervals, paired significance, errors that moved, and the winner."""
    if train is not None and report is None:
        raise ValueError("--train is for the report; give --report FILE too")
    right = documents(gold, format)
    runs = read_systems(name_systems(systems), right, predicted_format or format)
    # predictions on other words or documents are put onto the gold texts first, and the notes say so
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
    result = replace(result, notes=(*notes, *result.notes))
    if json is not None:
        write_json(result.to_dict(), json)
    if json != Path("-"):
        show(result, Console(), examples)
    if report is not None:
        from wingspan.report import ReportOptions, from_documents, report_of
        from wingspan.report.blocks import Subject
        from wingspan.report.html import write_report

        training = documents(train, format) if train is not None else None
        subject = Subject.of(result.gold, runs, training, allow_missing=allow_missing)
        sections = from_documents(subject, ReportOptions(comparison=result))
        write_report(report_of(" and ".join(runs), subject, sections, {}, folder=False), report)
    return result


def read_systems(
    named: dict[str, list[Path]], gold: Sequence[Document], format: str | None = None
) -> dict[str, list[list[Document]]]:
    """The documents of every run of every system; a model predicts those of the gold."""
    return {
        name: [predicted_by(path, gold) if is_model(path) else documents(path, format) for path in paths]
        for name, paths in named.items()
    }


def predicted_by(model: Path, gold: Sequence[Document]) -> list[Document]:
    """The gold documents as the model sees them."""
    from wingspan.recognizer import Recognizer

    return Recognizer.from_pretrained(model).predict(list(gold))


def name_systems(arguments: Sequence[str]) -> dict[str, list[Path]]:
    """The files of each system by its name: the given one, the file's, or the path if two files share a name."""
    parsed = []
    for argument in arguments:
        name, equals, rest = argument.partition("=")
        if Path(argument).exists():
            parsed.append(("", argument, [Path(argument)]))
        else:
            name, rest = (name, rest) if equals else ("", argument)
            parsed.append((name.strip(), rest, [path for part in rest.split(",") for path in files(part.strip())]))
    short = Counter(name or Path(rest).stem for name, rest, _ in parsed)
    named: dict[str, list[Path]] = {}
    for name, rest, paths in parsed:
        stem = Path(rest).stem
        chosen = name or (rest if short[stem] > 1 or len(paths) > 1 else stem)
        if chosen in named:
            raise ValueError(f"two systems are called {chosen!r}; name them, as in OTHER={rest}")
        named[chosen] = paths
    return named


def files(named: str) -> list[Path]:
    """A file or folder or the installed model, or all that match a pattern, sorted by name."""
    if named == NAME:
        return [installed_model()]
    if named and Path(named).exists():
        return [Path(named)]
    matching = sorted(glob(named, recursive=True)) if has_magic(named) else []
    if not matching:
        raise FileNotFoundError(2, "no such file or folder", named)
    return list(map(Path, matching))


def show(result: Comparison, console: Console, examples: int = 3) -> None:
    """Prints the figures, then every pair with the errors that moved, last the verdict."""
    figures_sheet(result).show(console)
    for system in result.systems:
        if system.runs > 1:
            say(console, f"{system.name}: {system.runs} runs, micro F1 {system.rows.micro.over_runs}")
    for pair in result.pairs:
        show_pair(result, pair, console)
        for move in MOVES:
            for error in pair.errors.listed(move)[:examples]:
                shown = plain(error, result.gold)
                say(console, f"  {move}: {shown['kind']} {shown['label']} {shown['text']!r} in {shown['document']}")
    for note in result.notes:
        say(console, f"Note: {note}.")
    console.print(Text(result.verdict, style="bold"), soft_wrap=True)


def figures_sheet(result: Comparison) -> Sheet:
    """Systems below each other, label by label."""

    def rows(title: str, figures: list[SystemRow]) -> list[Cells]:
        """A title, then the figures of each system."""
        cells = [[f"{figure.value:.2f} [{figure.low:.1f}, {figure.high:.1f}]" for figure in row[:3]] for row in figures]
        return [(title,), *((f"  {system.name}", *row) for system, row in zip(result.systems, cells, strict=True))]

    each = [system.rows for system in result.systems]

    return Sheet(
        f"Recognition, {result.mode}, with {100 * result.confidence:g} % intervals "
        f"({result.samples:,} bootstrap samples)",
        ("label, system", "precision", "recall", "F1"),
        [row for label in each[0].labels for row in rows(label, [found.labels[label] for found in each])],
        [
            *rows(AVERAGES["micro"], [found.micro for found in each]),
            *rows(AVERAGES["macro"], [found.macro for found in each]),
        ],
    )


def show_pair(result: Comparison, pair: PairFigures, console: Console) -> None:
    """Prints one system against another: the change in F1, its p-value, and the errors that moved."""

    def gap(row: Difference) -> Cells:
        return f"{row.value:+.2f} [{row.low:+.1f}, {row.high:+.1f}]", f"{row.p_holm:.3f}", f"{100 * row.wins:.1f} %"

    def counts(label: str | None = None) -> list[str]:
        """Errors that moved; means over runs have one digit."""
        return [f"{pair.errors.count(move, label):,.1f}".removesuffix(".0") for move in MOVES]

    Sheet(
        f"{pair.second} minus {pair.first}, F1; p by {result.test(pair)}",
        ("label", "difference", "p (Holm)", "ahead", *MOVES),
        [(label, *gap(row), *counts(label)) for label, row in pair.rows.labels.items()],
        [(AVERAGES["micro"], *gap(pair.rows.micro), *counts()), (AVERAGES["macro"], *gap(pair.rows.macro))],
    ).show(console)
    fixed, broken, both = counts()
    sure = "mean over pairs of runs" if pair.errors.p is None else f"McNemar p = {pair.errors.p:.2g}"
    say(
        console,
        f"Mentions: {fixed} errors of {pair.first} are fixed by {pair.second}, {broken} are new, "
        f"{both} both make ({sure})",
    )
