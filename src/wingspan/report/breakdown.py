"""The chapters that break scores down: by buckets of attributes (papers 002 and 003), and by confidence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from wingspan.evaluation.buckets import NOT_GIVEN, BucketTable, Gap, buckets, gaps
from wingspan.evaluation.calibration import ByLabel, Curve, Reliability, calibration_of, choose, curves
from wingspan.report.blocks import AnyBlock, Column, Prose, Section, Subject, Table, TableRow, anchored, numbers
from wingspan.report.plots import INK, available, bars, drawn, lines
from wingspan.text import Document
from wingspan.views.entities import label_colors

MOST_CURVES = 12  # labels with their own line in the figure; all are in the table
CALIBRATION_LEAD = (
    "A score is worth something if it says how often an entity is right. In the diagram a calibrated system lies on "
    "the diagonal; the expected calibration error (ECE) is its mean distance from it, in points."
)


# Buckets: scores by attributes of the entities, and where systems differ.


def bucket_chapter(
    subject: Subject, figures: Path | None, attributes: Sequence[str] | None = None, quantiles: int | None = None
) -> Section:
    """F1 by every attribute; with several systems also their differences as heat maps."""
    tables = {
        name: buckets(subject.gold, subject.predicted(name), attributes, training=subject.training, quantiles=quantiles)
        for name in subject.names
    }
    standard = subject.names[0]
    compared = gaps(tables, standard)
    if unknown := [gap.attribute for gap in compared if gap.buckets == (NOT_GIVEN,)]:
        raise ValueError(f"{', '.join(unknown)}: nothing in the corpus has this key; check how it is written")
    blocks: list[AnyBlock] = [gaps_table(compared, standard)] if len(tables) > 1 else []
    if available():
        for gap in compared:
            series = {name: _f1(each[gap.attribute], gap.buckets) for name, each in tables.items()}
            caption = f"F1 by {_lower(gap.title)}"
            blocks.append(drawn(bars(gap.buckets, series, "F1"), f"{_anchor(gap.attribute)}-figure", caption, figures))
    blocks += [bucket_table(subject, gap, tables) for gap in compared]
    intervals = "those of the papers" if quantiles is None else f"{quantiles} quantiles of the gold entities"
    lead = (
        "Precision counts predictions by their own attribute, recall counts gold entities by theirs. Intervals are "
        f"{intervals}. {subject.first_runs_only}"
    )
    return Section("buckets", "Buckets", blocks, lead.strip())


def _f1(table: BucketTable, names: Sequence[str]) -> list[float | None]:
    by_name = {row.name: row.f1 for row in table.rows}
    return [by_name.get(name) for name in names]


def gaps_table(compared: Sequence[Gap], standard: str) -> Table:
    """The heat map of differences: each system minus the standard, in every bucket (002, Table 6)."""
    others = [name for name in compared[0].values if name != standard]
    rows: list[TableRow] = []
    for gap in compared:
        for number, bucket in enumerate(gap.buckets):
            values = [gap.values[name][number] for name in others]
            if any(value is not None for value in values):
                rows.append((gap.title, bucket, *values))
    columns = (Column("attribute", "text"), Column("bucket", "text"), *(Column(name, "change") for name in others))
    return Table("bucket-gaps", f"Differences in F1, minus {standard}", columns, rows)


def bucket_table(subject: Subject, gap: Gap, tables: Mapping[str, Mapping[str, BucketTable]]) -> Table:
    """All figures of one attribute."""
    rows: list[TableRow] = [
        (bucket, name, row.precision, row.recall, row.f1, row.gold, row.found)
        for bucket in gap.buckets
        for name, each in tables.items()
        for row in each[gap.attribute].rows
        if row.name == bucket
    ]
    first = (Column("bucket", "text"), Column("system", "text"))
    columns = (*first, *numbers("precision", "recall", "F1", "gold", "found"))
    return subject.table_by_system(_anchor(gap.attribute), f"Scores by {_lower(gap.title)}", columns, rows)


def _anchor(attribute: str) -> str:
    """The name of an attribute's table, for links and files; keys of a corpus may hold anything."""
    return f"buckets-{re.sub(r'[^A-Za-z0-9_]+', '-', attribute)}"


def _lower(title: str) -> str:
    """A title in the middle of a sentence."""
    return title[:1].lower() + title[1:]


# Calibration: scores as chances.


def calibration_chapter(subject: Subject, figures: Path | None) -> Section:
    """Calibration of every system whose predictions have scores."""
    problems = {name: calibration_problem(subject.predicted(name)) for name in subject.names}
    blocks: list[AnyBlock] = []
    for number, name in enumerate(name for name, problem in problems.items() if not problem):
        blocks += _calibration_of(subject, name, number, figures)
    if remarks := tuple(f"{name}: {problem}." for name, problem in problems.items() if problem):
        blocks.append(Prose(remarks))
    return Section("calibration", "Calibration", blocks, CALIBRATION_LEAD)


def calibration_problem(predicted: Sequence[Document]) -> str:
    """Why these scores cannot be calibrated: formats without scores read as 1, some tools write other numbers."""
    scores = {entity.score for document in predicted for entity in document.entities}
    if not scores:
        return "nothing was predicted, so there are no scores to look at"
    if scores == {1.0}:
        return "the predictions have no scores, so nothing can be said here"
    if min(scores) < 0 or max(scores) > 1:
        return f"scores go from {min(scores):g} to {max(scores):g}; only chances from 0 to 1 can be calibrated"
    return ""


def _calibration_of(subject: Subject, name: str, number: int, figures: Path | None) -> Iterator[AnyBlock]:
    """Figures and tables on one system's scores."""
    reliable = calibration_of(subject.gold, subject.predicted(name))
    points = curves(subject.gold, subject.predicted(name))
    bins = [each for each in reliable.overall.bins if each.entities]
    if available():
        diagram = {"all": ([each.confidence for each in bins], [each.accuracy for each in bins])}
        figure = lines(diagram, "score, %", "right, %", diagonal=True, whole=True)
        caption = subject.titled("Reliability diagram", name)
        yield drawn(figure, anchored("reliability-figure", number), caption, figures)
        by_size = sorted(points.labels.items(), key=lambda item: -item[1].gold)[:MOST_CURVES]
        shown = {"all": points.overall, **(dict(by_size) if len(by_size) > 1 else {})}
        series = {label: (curve.recall, curve.precision) for label, curve in shown.items()}
        colors = {"all": INK, **label_colors(subject.labels)}
        figure = lines(series, "recall, %", "precision, %", whole=True, colors=colors)
        caption = subject.titled("Precision and recall at every threshold", name)
        yield drawn(figure, anchored("precision-recall-figure", number), caption, figures)
    rows = [(f"{each.low:.1f}–{each.high:.1f}", each.entities, each.confidence, each.accuracy) for each in bins]
    columns = (Column("scores", "text"), *numbers("entities", "mean score, %", "right, %"))
    note = f"ECE {reliable.overall.error:.2f} points; the worst bin is {reliable.overall.worst:.2f} points off."
    yield Table(anchored("reliability", number), subject.titled("Reliability", name), columns, rows, note=note)
    yield thresholds_table(reliable, points, anchored("calibration-by-label", number), subject.titled("By label", name))


def thresholds_table(reliable: ByLabel[Reliability], points: ByLabel[Curve], name: str, caption: str) -> Table:
    """Calibration error, area below the curve, and the threshold with the best F1 on these documents."""

    def row(label: str, each: Reliability | None, curve: Curve) -> TableRow:
        best = choose(curve)
        threshold, f1 = (best.threshold, best.f1) if best else (None, None)
        entities, error = (each.entities, each.error) if each else (0, None)
        return label, entities, error, curve.average_precision, threshold, f1

    columns = (Column("label", "label"), *numbers("found", "ECE", "average precision"))
    columns += (Column("best threshold", digits=3), Column("F1 there"))
    rows = [row(label, reliable.labels.get(label), curve) for label, curve in points.labels.items()]
    note = "Thresholds are chosen on these very documents, so their F1 is an upper bound; choose them on dev documents."
    return Table(name, caption, columns, rows, totals=[row("all", reliable.overall, points.overall)], note=note)
