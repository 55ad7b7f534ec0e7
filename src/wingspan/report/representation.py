"""The chapter on what a model makes of spans: how far apart, how long, how sure (papers 000, 001, 003 and 004)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

from wingspan.report import plots
from wingspan.report.blocks import Block, Cell, Column, Points, Row, Section, Table
from wingspan.report.collect import Array, Collected, LabelRows
from wingspan.report.geometry import (
    ClassNorm,
    Discrepancy,
    OverlapCosine,
    PointMap,
    TrueChances,
    before_and_after,
    chance_map,
    class_cosines,
    cosine_by_overlap,
    discrepancies,
    geometry,
    label_map,
    norms_by_class,
    span_map,
    template_cosines,
    true_chances,
)
from wingspan.report.plots import available, drawn, keep

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


# --- Spans and labels on a plane, to zoom into (000, Figure 2; 001, Figure 4; 003, Figure 4; 004, Figures 3 and 4).


def maps(rows: Collected, figures: Path | None, prior: LabelRows | None = None) -> Iterator[Block]:
    """Every map that the rows allow; those by t-SNE need scikit-learn. `prior` has a conditional autoencoder's rows."""
    if not rows.entities.any():
        return
    yield cloud("features-pca", "Features of entities, PCA", span_map(rows), figures)
    yield cloud("chances-pca", "Class chances of entities, PCA", chance_map(rows), figures)
    if find_spec("sklearn") is None:
        return
    before, after = before_and_after(rows)
    yield cloud("vectors-tsne", "Span vectors, before the head, t‑SNE", before, figures)
    yield cloud("features-tsne", "Features, after the head, t‑SNE", after, figures)
    if rows.latent.shape[1]:
        yield cloud("latents-tsne", "Latents of entities, t‑SNE", span_map(rows, "latent", "tsne"), figures)
    if len(rows.templates):
        yield cloud("label-rows", "The types' weights, t‑SNE", label_map(rows.templates, rows.class_names), figures)
    if prior is not None:
        found = label_map(prior.values, prior.names, prior.meanings)
        yield cloud("prior-rows", "The labels' rows of the conditional autoencoder, t‑SNE", found, figures)
    if len(set(rows.dataset.tolist())) > 1:
        found = span_map(rows, "feature", "tsne", by="dataset")
        yield cloud("features-by-corpus", "Features of entities by corpus, t‑SNE", found, figures)
        ((label, _),) = Counter(rows.meaning[rows.entities].tolist()).most_common(1)
        found = span_map(rows, "feature", "tsne", by="dataset", only=label)
        yield cloud("one-type-across-corpora", f"{label} in every corpus, t‑SNE", found, figures)


def cloud(name: str, caption: str, found: PointMap, figures: Path | None) -> Points:
    """A map to zoom into; PNG and SVG go to the folder."""
    marks = bool((found.mark != "").any())
    if available() and figures is not None:
        keep(plots.points_figure(found, marks=marks), name, figures)
    first, second = found.shares or (None, None)
    axes = ("" if first is None else f"first component, {first:.0%}", "" if second is None else f"second, {second:.0%}")
    apart = f" (silhouette {found.silhouette:.2f})" if found.silhouette is not None else ""
    return Points(
        name,
        caption + apart,
        found.x.tolist(),
        found.y.tolist(),
        found.group.tolist(),
        found.text.tolist(),
        (found.mark == "right").tolist() if marks else None,
        axes,
    )
