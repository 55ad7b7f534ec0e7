"""The report as a whole: its chapters from documents alone, and the page's content."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from wingspan import __version__
from wingspan.evaluation.comparison import Comparison, compare
from wingspan.report.blocks import Report, Section, Subject
from wingspan.report.errors import bucket_chapter, calibration_chapter, error_chapter
from wingspan.report.scores import overview, significance, single_overview


@dataclass(frozen=True)
class ReportOptions:
    """Options of the chapters. Figures go to a folder, if there is one; a comparison may have been made already."""

    figures: Path | None = None
    samples: int = 1000
    seed: int = 1
    attributes: Sequence[str] | None = None
    quantiles: int | None = None
    comparison: Comparison | None = None


def from_documents(
    subject: Subject, options: ReportOptions | None = None, step: Callable[[str], object] = lambda name: None
) -> list[Section]:
    """The chapters for which gold and predicted documents are enough. `step` receives the name of each as it starts."""
    options = options or ReportOptions()
    step("scores")
    if len(subject.systems) > 1:
        samples, seed = options.samples, options.seed
        comparison = options.comparison or compare(subject.gold, subject.systems, samples=samples, seed=seed)
        sections = [overview(subject, comparison.systems, comparison.verdict, comparison.notes, comparison.mode)]
        sections.append(significance(comparison, subject))
    else:
        sections = [single_overview(subject, options.samples, options.seed)]
    step("errors")
    sections.append(error_chapter(subject))
    step("buckets")
    sections.append(bucket_chapter(subject, options.figures, options.attributes, options.quantiles))
    step("calibration")
    sections.append(calibration_chapter(subject, options.figures))
    return sections


def report_of(
    title: str, subject: Subject, sections: Sequence[Section], sources: Mapping[str, str], folder: bool = True
) -> Report:
    """The page's content; `sources` are the files it was made from."""
    lead = f"{' and '.join(subject.names)} on {len(subject.gold):,} gold documents."
    written = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    made = {"Wingspan": __version__, **sources, "written": written}
    return Report(title, sections, subject.labels, lead, made, folder)
