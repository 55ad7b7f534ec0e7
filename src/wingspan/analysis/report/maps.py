"""Spans and labels on a plane, to zoom into (000, Figure 2; 001, Figure 4; 003, Figure 4; 004, Figures 3 and 4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from wingspan.analysis import plots
from wingspan.analysis.collected import Collected
from wingspan.analysis.label_rows import LabelRows
from wingspan.analysis.outcomes import chance_map
from wingspan.analysis.projection import PointMap, before_and_after, label_map, span_map
from wingspan.analysis.report.blocks import Block, Points
from wingspan.analysis.report.drawing import available, keep


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
