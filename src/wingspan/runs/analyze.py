"""`wingspan analyze`: a model on a corpus, or predictions against gold, as a folder with a report in HTML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from wingspan.analysis.report.blocks import Report, Table
from wingspan.analysis.report.building import Asked, Step, from_documents, report_of
from wingspan.analysis.report.page import write_report, write_tables
from wingspan.analysis.report.subject import Subject
from wingspan.evaluation.comparison import Comparison
from wingspan.runs.compare import name_systems, read_systems
from wingspan.runs.score import documents


@dataclass(frozen=True)
class Settings:
    """What is asked for besides the files."""

    format: str | None = None
    predicted_format: str | None = None
    samples: int = 1000
    seed: int = 1
    attributes: Sequence[str] | None = None
    quantiles: int | None = None
    allow_missing: bool = False
    skip: Sequence[str] = ()

    def chapters(self, output: Path) -> Asked:
        """What the chapters on documents are told."""
        return Asked(output / "figures", self.samples, self.seed, self.attributes, self.quantiles)


def analyze_documents(
    gold: Path, predicted: Sequence[str], output: Path, train: Path | None, settings: Settings, console: Console
) -> Report:
    """Gold and predicted documents are enough for most chapters; a system is FILE, NAME=FILE or NAME=FILE,FILE,..."""
    named = name_systems(predicted)
    with steps(console) as step:
        step("reading")
        subject = Subject.of(
            documents(gold, settings.format),
            read_systems(named, settings.predicted_format or settings.format),
            documents(train, settings.format) if train else None,
            allow_missing=settings.allow_missing,
        )
        forget_the_last(output)
        sections = from_documents(subject, settings.chapters(output), step)
        sources = {"gold": gold.name, **{name: ", ".join(path.name for path in paths) for name, paths in named.items()}}
        report = report_of(f"{gold.stem}: {', '.join(named)}", subject, sections, sources)
        step("writing")
        write(report, output)
    return report


def forget_the_last(output: Path) -> None:
    """Removes what an earlier report left in the folder, its page first; predictions stay, for they may be an input."""
    page = output / "report.html"
    if page.is_file():
        page.unlink()
        left = [path for kind in ("tables/*.csv", "figures/*.svg", "figures/*.png") for path in output.glob(kind)]
        for path in (output / "collected.npz", *left):
            path.unlink(missing_ok=True)


def write(report: Report, output: Path) -> None:
    """The tables, then the page: a folder with a report.html is complete."""
    write_tables(report, output / "tables")
    write_report(report, output / "report.html")


def write_comparison(
    comparison: Comparison, predicted: Sequence[str], path: Path, train: Path | None, settings: Settings
) -> None:
    """The report of `wingspan compare --report`: one file."""
    found = read_systems(name_systems(predicted), settings.predicted_format or settings.format)
    training = documents(train, settings.format) if train else None
    subject = Subject.of(comparison.gold, found, training, allow_missing=settings.allow_missing)
    sections = from_documents(subject, Asked(comparison=comparison))
    write_report(report_of(" and ".join(found), subject, sections, {}, folder=False), path)


def figures_of(report: Report) -> dict[str, Any]:
    """Every table of the report as plain data."""
    return {
        block.name: {
            "caption": block.caption,
            "columns": [column.name for column in block.columns],
            "rows": [list(row) for row in (*block.rows, *block.totals)],
        }
        for block in report.blocks()
        if isinstance(block, Table)
    }


@contextmanager
def steps(console: Console) -> Iterator[Step]:
    """Says what is being worked on, on a terminal only."""
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status("starting") as status:
        yield lambda name: status.update(name)
