"""`wingspan validate`: the contents of a corpus, and its problems."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from wingspan.cli import app
from wingspan.cli.options import LabelNames
from wingspan.corpora.formats import Format, detect, format_named, reader_of
from wingspan.corpora.formats.tagged import label_names
from wingspan.corpora.statistics import FINDINGS, Statistics, describe
from wingspan.files import CorpusError, OnError, Problems
from wingspan.views.console import write_json
from wingspan.views.tables import Sheet


@app.command(epilog="Example: wingspan validate train.jsonl dev.jsonl --json report.json")
def validate(
    corpora: Annotated[list[Path], typer.Argument(metavar="CORPUS...", help="Files or folders in any format.")],
    format: Annotated[str | None, typer.Option(help="Their format; otherwise found by name or content.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write the figures to this file; - prints them instead.")] = None,
    on_error: Annotated[
        OnError, typer.Option(help="List all problems (skip), or stop at the first one (raise).")
    ] = "skip",
    labels: LabelNames = None,
) -> None:
    """Shows what is in a corpus, and every problem with file and line; exit code 1 if there is one."""
    reports = validate_corpora(corpora, format, on_error, label_names(labels) if labels is not None else None)
    if json is not None:
        figures = [
            {
                "corpus": report.path,
                "format": report.format,
                "valid": not report.problems,
                **asdict(report.statistics),
                "problems": report.problems,
                "notes": report.notes,
            }
            for report in reports
        ]
        write_json({"corpora": figures}, json)
    if json != Path("-"):
        for report in reports:
            show(report, Console())
    if any(report.problems for report in reports):  # suspicious annotations do not count
        raise typer.Exit(1)


SHOWN = 20  # problems printed per corpus; `--json` has all


@dataclass
class CorpusReport:
    """One corpus: its figures, the records that do not fit, and the reader's notes."""

    path: str
    format: str
    statistics: Statistics
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def validate_corpora(
    corpora: Sequence[str | Path],
    format: str | Format | None = None,
    on_error: OnError = "skip",
    labels: Sequence[str] | None = None,
) -> list[CorpusReport]:
    """One report per corpus. With `on_error="raise"` the first problem raises. `labels` name tags that are numbers."""
    reports = []
    for path in map(Path, corpora):
        problems = Problems(on_error)
        report = CorpusReport(str(path), str(format or "?"), Statistics())
        try:
            chosen = format_named(format or detect(path))
            report.format = chosen.name
            report.statistics = describe(reader_of(chosen, labels)(path, problems))
            if not report.statistics.documents and not problems.messages:
                problems.add(path, None, "there are no documents in it; check the file, and its format with --format")
        except CorpusError as error:  # this file cannot be read any further, the others can
            if on_error == "raise":
                raise
            problems.messages.append(str(error))
        for name, finding in report.statistics.findings.items():
            if FINDINGS[name] and finding.count:
                problems.add(path, None, f"{finding.count} entities have {name}: {'; '.join(finding.examples)}")
        report.problems, report.notes = problems.messages, list(dict.fromkeys(problems.notes))
        reports.append(report)
    return reports


def show(report: CorpusReport, console: Console) -> None:
    """A table of the figures, then labels, suspicious annotations, and problems with file and line."""
    figures = report.statistics
    rows = [(key.replace("_", " "), f"{value:,}") for key, value in vars(figures).items() if isinstance(value, int)]
    Sheet(f"{report.path} ({report.format})", ("", "count"), rows).show(console)
    if figures.labels:
        Sheet("Labels", ("label", "entities"), [(label, f"{n:,}") for label, n in figures.labels.items()]).show(console)
    lengths = [("entities", figures.mention_words), ("documents", figures.text_words)]
    known = [(name, values) for name, values in lengths if values]
    if known:
        lengths_of = [(name, *(f"{length:,}" for length in values.values())) for name, values in known]
        Sheet("Lengths in words", ("", *known[0][1]), lengths_of).show(console)
    suspicious = [(name, finding) for name, finding in figures.findings.items() if finding.count]
    if suspicious:
        counts = [(name, f"{finding.count:,}") for name, finding in suspicious]
        Sheet("Worth a look", ("", "count"), counts).show(console)
    lines = [f"  {name}: {'; '.join(finding.examples)}" for name, finding in suspicious]
    if figures.fingerprint:
        lines.append(f"fingerprint {figures.fingerprint}")
    lines += [f"note: {note}" for note in report.notes[:SHOWN]]
    lines += [f"problem: {message}" for message in report.problems[:SHOWN]]
    if len(report.problems) > SHOWN:
        lines.append(f"... and {len(report.problems) - SHOWN:,} problems more; --json FILE has all of them")
    count = len(report.problems)
    lines.append(f"{report.path}: {count or 'no'} problem{'' if count == 1 else 's'}")
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
