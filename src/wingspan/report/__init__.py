"""The report as a whole: which chapters there are, from documents alone or with what else is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from wingspan.evaluation.comparison import Comparison, compare
from wingspan.report.blocks import Report, Section, Subject
from wingspan.report.breakdown import breakdown
from wingspan.report.certainty import certainty
from wingspan.report.differences import differences
from wingspan.report.mistakes import mistakes
from wingspan.report.scores import overview, said, single

Step = Callable[[str], None]
"""Told what is being worked on, for whoever waits."""


@dataclass(frozen=True)
class Asked:
    """What a report shall hold. Figures go to a folder, if one is given; a comparison may have been made already."""

    figures: Path | None = None
    samples: int = 1000
    seed: int = 1
    attributes: Sequence[str] | None = None
    quantiles: int | None = None
    comparison: Comparison | None = None


def from_documents(subject: Subject, asked: Asked | None = None, step: Step = lambda _: None) -> list[Section]:
    """The chapters for which gold and predicted documents are enough."""
    asked = asked or Asked()
    step("scores")
    if len(subject.systems) > 1:
        comparison = asked.comparison or compare(subject.gold, subject.systems, samples=asked.samples, seed=asked.seed)
        sections = [overview(subject, comparison.systems, comparison.verdict, comparison.notes, comparison.mode)]
        sections.append(differences(comparison, subject))
    else:
        only = single(subject, asked.samples, asked.seed)
        sections = [overview(subject, [only], said(only), [])]
    step("errors")
    sections.append(mistakes(subject))
    step("buckets")
    sections.append(breakdown(subject, asked.figures, asked.attributes, asked.quantiles))
    step("calibration")
    sections.append(certainty(subject, asked.figures))
    return sections


def report_of(
    title: str, subject: Subject, sections: Sequence[Section], sources: Mapping[str, str], folder: bool = True
) -> Report:
    """The page's content; `sources` are the files it was made from."""
    systems = " and ".join(subject.names)
    lead = f"{systems} on {len(subject.gold):,} gold documents."
    made = {
        "Wingspan": version("wingspan"),
        **sources,
        "written": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }
    return Report(title, sections, subject.labels, lead, made, folder)
