"""The chapter on what a model makes of spans: how far apart, how long, how sure (papers 000, 001, 003 and 004)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from wingspan.analysis import plots
from wingspan.analysis.collected import Array, Collected
from wingspan.analysis.geometry import (
    ClassNorm,
    OverlapCosine,
    class_cosines,
    cosine_by_overlap,
    geometry,
    norms_by_class,
    template_cosines,
)
from wingspan.analysis.label_rows import LabelRows
from wingspan.analysis.outcomes import Discrepancy, TrueChances, discrepancies, true_chances
from wingspan.analysis.report.blocks import Block, Cell, Column, Row, Section, Table
from wingspan.analysis.report.drawing import available, drawn
from wingspan.analysis.report.maps import maps

QUANTITIES = {
    "norm": "length of the features",
    "within": "cosine of two spans of one type",
    "between": "cosine of spans of two types",
    "against_nothing": "cosine of entities and other spans",
    "template_norm": "length of the types' weights",
    "template_cosine": "cosine of a span and its type's weights",
    "template_between": "cosine of the weights of two types",
    "template_against_nothing": "cosine of a type's weights and those of nothing",
}
LEAD = (
    "From the rows in collected.npz: gold spans, spans beside them that are no entities, and a sample of others. "
    "Features are what the class scores are linear in."
)


def representation(rows: Collected, figures: Path | None, prior: LabelRows | None = None) -> Section:
    """Maps, cosines, norms and chances of the collected spans."""
    blocks = [*maps(rows, figures, prior), *cosines(rows, figures), *chances(rows, figures)]
    return Section("representation", "Representation", blocks, LEAD)


def cosines(rows: Collected, figures: Path | None) -> Iterator[Block]:
    """How spans lie to each other: neighbors (003, Table 4), types and their weights (003, Table 5)."""
    overlaps = cosine_by_overlap(rows)
    if available():
        figure = plots.overlap_figure({rows.system: overlaps})
        yield drawn(figure, "overlap-cosines-figure", "Cosine of entities and spans beside them", figures)
        figure = plots.norms_figure(norms_by_class(rows))
        yield drawn(figure, "norms-figure", "Length of features by type", figures)
    yield overlap_table(overlaps)
    yield geometry_table(rows)
    yield norms_table(norms_by_class(rows))
    names, matrix = class_cosines(rows)
    yield heat_map("class-cosines", "Cosines of spans, type by type", names, matrix)
    if len(rows.templates):
        yield heat_map("template-cosines", "Cosines of the types' weights", rows.class_names, template_cosines(rows))


def overlap_table(found: Sequence[OverlapCosine]) -> Table:
    """Cosines of entities and the spans beside them, by overlap."""
    rows: list[Row] = [(row.overlap, finite(row.mean), finite(row.deviation), row.pairs) for row in found]
    columns = (Column("overlap", "text"), Column("mean cosine", digits=3), Column("sd", digits=3), Column("pairs"))
    return Table("overlap-cosines", "Cosine of entities and spans beside them", columns, rows)


def geometry_table(rows: Collected) -> Table:
    """Lengths and cosines of features and of the types' weights."""
    found = asdict(geometry(rows))
    columns = (Column("quantity", "text"), Column("mean", digits=3))
    return Table("geometry", "Lengths and cosines", columns, [(said, found[name]) for name, said in QUANTITIES.items()])


def norms_table(found: Sequence[ClassNorm]) -> Table:
    """How long features are, type by type."""
    rows: list[Row] = [(row.label or "nothing", row.mean, finite(row.deviation), row.rows) for row in found]
    columns = (Column("label", "label"), Column("mean"), Column("sd"), Column("spans"))
    return Table("norms", "Length of features by type", columns, rows)


def heat_map(name: str, caption: str, names: Sequence[str], matrix: Array) -> Table:
    """Cosines of every pair of classes."""
    said = [each or "nothing" for each in names]
    rows: list[Row] = [(label, *map(finite, values)) for label, values in zip(said, matrix.tolist(), strict=True)]
    return Table(name, caption, (Column("type", "label"), *(Column(label) for label in said)), rows, shade=True)


def chances(rows: Collected, figures: Path | None) -> Iterator[Block]:
    """How sure the model is of the truth (001, Figures 5 and 6)."""
    true, off = true_chances(rows), discrepancies(rows)
    if available():
        caption = "The chance of the true label, right and wrong predictions"
        yield drawn(plots.violins_figure(true), "violins", caption, figures)
        yield drawn(plots.volcano_figure(off), "volcano", "How far gold spans are off", figures)
    yield chances_table(true)
    yield discrepancies_table(off)


def chances_table(found: Sequence[TrueChances]) -> Table:
    """The medians of the violins."""
    rows: list[Row] = [(row.label, len(row.right), row.right_median, len(row.wrong), row.wrong_median) for row in found]
    columns = (
        Column("label", "label"),
        Column("right"),
        Column("median chance", digits=3),
        Column("wrong"),
        Column("median chance if wrong", digits=3),
    )
    return Table("true-chances", "The chance of the true label", columns, rows)


def discrepancies_table(found: Sequence[Discrepancy]) -> Table:
    """The points of the "volcano", those on the right first."""
    rows: list[Row] = [
        (row.text, row.label, row.fold, row.desire, row.tag, row.document)
        for row in sorted(found, key=lambda row: -row.fold)
    ]
    columns = (
        Column("text", "text"),
        Column("label", "label"),
        Column("log2(p said / p true)"),
        Column("D", about="variance of the class chances / chance of the true label (paper 001, section 3.5)"),
        Column("tag", "text"),
        Column("document", "text"),
    )
    return Table("discrepancies", "Gold spans that are farthest off", columns, rows, shown=50)


def finite(value: float) -> Cell:
    """A number, or nothing where there is none."""
    return None if math.isnan(value) else float(value)
