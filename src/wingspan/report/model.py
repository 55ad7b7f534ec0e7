"""The chapters on a model: its representation of spans, its recipe and training."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wingspan.report import geometry, plots
from wingspan.report.blocks import Block, Column, Facts, Points, Section, Table, TableCell, numbers
from wingspan.report.geometry import Array, Collected, PointMap, label_map, span_map

if TYPE_CHECKING:
    from wingspan.report.collect import LabelRows

QUANTITIES = (  # of `Geometry`, in its order
    "length of the features",
    "cosine of two spans of one type",
    "cosine of spans of two types",
    "cosine of entities and other spans",
    "length of the types' weights",
    "absolute cosine of the weights of two classes",
    "absolute cosine of the weights of two types",
    "absolute cosine of the weights of a type and of nothing",
)
LEAD = (
    "From gold spans, spans beside them that are no entities, and a sample of others. "
    "Features are what the class scores are linear in."
)
LABEL = Column("label", "label")


def representation(rows: Collected, figures: Path | None, prior: LabelRows | None = None) -> Section:
    """Maps, cosines, norms and chances of the collected spans."""
    blocks = [*maps(rows, figures, prior), *cosines(rows, figures), *chances(rows, figures)]
    return Section("representation", "Representation", blocks, LEAD)


def cosines(rows: Collected, figures: Path | None) -> Iterator[Block]:
    """Cosines and lengths: neighbors (Zhu et al. 2023, Table 4), types and their weights (Zhu et al. 2023, Table 5)."""
    overlaps, norms = geometry.cosine_by_overlap(rows), geometry.norms_by_class(rows)
    beside, by_type = "Cosine of entities and spans beside them", "Length of features by type"
    if plots.available():
        yield plots.drawn(plots.overlap_figure({rows.system: overlaps}), "overlap-cosines-figure", beside, figures)
        yield plots.drawn(plots.norms_figure(norms), "norms-figure", by_type, figures)
    yield Table(
        "overlap-cosines",
        beside,
        (Column("overlap", "text"), *numbers("mean cosine", "sd", digits=3), Column("pairs")),
        [(row.overlap, finite(row.mean), finite(row.deviation), row.pairs) for row in overlaps],
    )
    columns = (Column("quantity", "text"), Column("mean", digits=3))
    quantities = list(zip(QUANTITIES, geometry.geometry(rows), strict=True))
    yield Table("geometry", "Lengths and cosines", columns, quantities)
    yield Table(
        "norms",
        by_type,
        (LABEL, *numbers("mean", "sd", "spans")),
        [(row.label or "nothing", row.mean, finite(row.deviation), row.rows) for row in norms],
    )
    yield heat_map("class-cosines", "Cosines of spans, type by type", *geometry.class_cosines(rows))
    if len(rows.templates):
        matrix = geometry.template_cosines(rows)
        yield heat_map("template-cosines", "Cosines of the types' weights", rows.class_names, matrix)


def heat_map(name: str, caption: str, names: Sequence[str], matrix: Array) -> Table:
    """Cosines of every pair of classes."""
    labels = [each or "nothing" for each in names]
    rows = [(label, *map(finite, values)) for label, values in zip(labels, matrix.tolist(), strict=True)]
    return Table(name, caption, (Column("type", "label"), *numbers(*labels)), rows, shade=True)


def chances(rows: Collected, figures: Path | None) -> Iterator[Block]:
    """How sure the model is of the truth (SNG, Figures 5 and 6)."""
    true, off = geometry.true_chances(rows), geometry.discrepancies(rows)
    if plots.available():
        caption = "The chance of the true label, right and wrong predictions"
        yield plots.drawn(plots.violins_figure(true), "violins", caption, figures)
        yield plots.drawn(plots.volcano_figure(off), "volcano", "How far gold spans are off", figures)
    chance = numbers("median chance", "median chance if wrong", digits=3)
    yield Table(
        "true-chances",
        "The chance of the true label",
        (LABEL, Column("right"), chance[0], Column("wrong"), chance[1]),
        [(row.label, len(row.right), row.right_median, len(row.wrong), row.wrong_median) for row in true],
    )
    yield Table(
        "discrepancies",
        "Gold spans that are farthest off",
        (
            Column("text", "text"),
            LABEL,
            Column("log2(p predicted / p true)"),
            Column("D", about="variance of the class chances / chance of the true label (SNG, section 3.5)"),
            Column("tag", "text"),
            Column("document", "text"),
        ),
        [(*row[1:], row.document) for row in sorted(off, key=lambda row: -row.fold)],
        shown=50,
    )


def finite(value: float) -> TableCell:
    """A number, or nothing where there is none."""
    return None if math.isnan(value) else float(value)


# Spans and labels on a plane, to zoom into (figures of Nguyen, Zhu, Oi and Miwa, SNG).


def maps(rows: Collected, figures: Path | None, prior: LabelRows | None = None) -> Iterator[Block]:
    """Every map that the rows allow; t-SNE needs scikit-learn. `prior` has a conditional autoencoder's rows."""
    if not rows.entities.any():
        return
    yield cloud("features-pca", "Features of entities, PCA", span_map(rows), figures)
    yield cloud("chances-pca", "Class chances of entities, PCA", span_map(rows, "chance"), figures)
    if find_spec("sklearn") is None:
        return
    yield cloud("vectors-tsne", "Span vectors, before the head, t‑SNE", span_map(rows, "vector", "tsne"), figures)
    yield cloud("features-tsne", "Features, after the head, t‑SNE", span_map(rows, "feature", "tsne"), figures)
    if rows.latent.shape[1]:
        yield cloud("latents-tsne", "Latents of entities, t‑SNE", span_map(rows, "latent", "tsne"), figures)
    if len(rows.templates):
        yield cloud("label-rows", "The types' weights, t‑SNE", label_map(rows.templates, rows.class_names), figures)
    if prior is not None:
        yield cloud("prior-rows", "The labels' rows of the conditional autoencoder, t‑SNE", label_map(*prior), figures)
    if len(set(rows.dataset.tolist())) > 1:
        points = span_map(rows, "feature", "tsne", by="dataset")
        yield cloud("features-by-corpus", "Features of entities by corpus, t‑SNE", points, figures)
        ((label, _),) = Counter(rows.meaning[rows.entities].tolist()).most_common(1)
        points = span_map(rows, "feature", "tsne", by="dataset", only=label)
        yield cloud("one-type-across-corpora", f"{label} in every corpus, t‑SNE", points, figures)


def cloud(name: str, caption: str, points: PointMap, figures: Path | None) -> Points:
    """A map to zoom into; PNG and SVG go to the folder."""
    marks = bool((points.mark != "").any())
    if plots.available() and figures is not None:
        plots.drawn(plots.points_figure(points, marks=marks), name, caption, figures)
    first, second = points.shares or (None, None)
    apart = f" (silhouette {points.silhouette:.2f})" if points.silhouette is not None else ""
    return Points(
        name,
        caption + apart,
        points.x.tolist(),
        points.y.tolist(),
        points.group.tolist(),
        points.text.tolist(),
        (points.mark == "right").tolist() if marks else None,
        ("", "") if first is None else (f"first component, {first:.0%}", f"second, {second:.0%}"),
    )


# The recipe and its training.


def training_chapter(
    recipe: Mapping[str, Any], facts: Mapping[str, Any], journal: Path, figures: Path | None
) -> Section:
    """Losses and dev F1 or accuracy by epoch where there is a journal (SNG, Figure 3), facts, and the recipe."""
    blocks: list[Block] = []
    if journal.is_file() and (epochs := geometry.losses_by_epoch(journal)):
        dev = f"dev {epochs[0].figure}"
        if plots.available():
            figure = plots.losses_figure(epochs)
            blocks.append(plots.drawn(figure, "loss-curve", f"Loss and {dev} by epoch", figures))
        names = list(dict.fromkeys(name for epoch in epochs for name in epoch.losses))
        columns = (Column("epoch"), *numbers(*names, digits=4), Column(dev))
        rows = [(epoch.epoch, *(epoch.losses.get(name) for name in names), epoch.dev) for epoch in epochs]
        blocks.append(Table("epochs", f"Losses and {dev} by epoch", columns, rows))
    blocks += [Facts("training", "The training", facts), Facts("recipe", "The recipe", recipe)]
    return Section("model", "Model and training", blocks)
