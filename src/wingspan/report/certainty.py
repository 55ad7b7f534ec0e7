"""The chapter on scores as chances: reliability, expected calibration error, precision against recall, thresholds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from wingspan.evaluation.calibration import ByLabel, Curve, Reliability, calibration_of, choose, curves
from wingspan.report.blocks import Block, Column, Prose, Row, Section, Subject, Table, anchored, titled
from wingspan.report.plots import INK, available, drawn, lines
from wingspan.text import Document
from wingspan.views.entities import label_colors

MOST_LABELS = 12
"""How many labels have a line of their own in the figure; all are in the table."""
LEAD = (
    "A score is worth something if it says how often an entity is right. In the diagram a calibrated system lies on "
    "the diagonal; the expected calibration error (ECE) is its mean distance from it, in points."
)


def certainty(subject: Subject, figures: Path | None) -> Section:
    """Calibration of every system whose predictions have scores."""
    problems = {name: problem_of(subject.found(name)) for name in subject.names}
    scored = [name for name, problem in problems.items() if not problem]
    blocks: list[Block] = []
    for number, name in enumerate(scored):
        blocks += details(subject, name, number, figures)
    said = tuple(f"{name}: {problem}." for name, problem in problems.items() if problem)
    blocks += [Prose(said)] if said else []
    return Section("calibration", "Calibration", blocks, LEAD)


def problem_of(found: Sequence[Document]) -> str:
    """Why nothing can be said of these scores: formats without scores read as 1, some tools write what is no chance."""
    scores = {entity.score for document in found for entity in document.entities}
    if not scores:
        return "nothing was predicted, so there are no scores to look at"
    if scores == {1.0}:
        return "the predictions have no scores, so nothing can be said here"
    if min(scores) < 0 or max(scores) > 1:
        return f"scores go from {min(scores):g} to {max(scores):g}; only chances from 0 to 1 can be calibrated"
    return ""


def details(subject: Subject, name: str, number: int, figures: Path | None) -> Iterator[Block]:
    """What can be said of one system's scores."""
    found, points = calibration_of(subject.gold, subject.found(name)), curves(subject.gold, subject.found(name))
    if available():
        bins = [one for one in found.overall.bins if one.entities]
        diagram = {"all": ([one.confidence for one in bins], [one.accuracy for one in bins])}
        yield drawn(
            lines(diagram, "score, %", "right, %", diagonal=True, whole=True),
            anchored("reliability-figure", number),
            titled("Reliability diagram", name, subject),
            figures,
        )
        by_size = sorted(points.labels.items(), key=lambda item: -item[1].gold)[:MOST_LABELS]
        shown = {"all": points.overall, **dict(by_size)} if len(by_size) > 1 else {"all": points.overall}
        yield drawn(
            lines(
                {label: (curve.recall, curve.precision) for label, curve in shown.items()},
                "recall, %",
                "precision, %",
                whole=True,
                colors={"all": INK, **label_colors(subject.labels)},
            ),
            anchored("precision-recall-figure", number),
            titled("Precision and recall at every threshold", name, subject),
            figures,
        )
    yield bins_table(found.overall, anchored("reliability", number), titled("Reliability", name, subject))
    yield labels_table(found, points, anchored("calibration-by-label", number), titled("By label", name, subject))


def bins_table(found: Reliability, name: str, caption: str) -> Table:
    """The bins of the diagram."""
    columns = (Column("scores", "text"), Column("entities"), Column("mean score, %"), Column("right, %"))
    rows: list[Row] = [
        (
            f"{one.low:.1f}–{one.high:.1f}",
            one.entities,
            one.confidence,
            one.accuracy,
        )
        for one in found.bins
        if one.entities
    ]
    note = f"ECE {found.error:.2f} points; the worst bin is {found.worst:.2f} points off."
    return Table(name, caption, columns, rows, note=note)


def labels_table(found: ByLabel[Reliability], points: ByLabel[Curve], name: str, caption: str) -> Table:
    """Calibration error, area below the curve, and the threshold with the best F1 on these documents."""
    columns = (
        Column("label", "label"),
        Column("found"),
        Column("ECE"),
        Column("average precision"),
        Column("best threshold", digits=3),
        Column("F1 there"),
    )

    def row(label: str, reliable: Reliability | None, curve: Curve) -> Row:
        best = choose(curve)
        return (
            label,
            reliable.entities if reliable else 0,
            reliable.error if reliable else None,
            curve.average_precision,
            best.threshold if best else None,
            best.f1 if best else None,
        )

    rows = [row(label, found.labels.get(label), curve) for label, curve in points.labels.items()]
    note = "Thresholds are chosen on these very documents, so their F1 is an upper bound; choose them on dev documents."
    return Table(name, caption, columns, rows, totals=[row("all", found.overall, points.overall)], note=note)
