"""Span vectors on a plane: principal components with numpy, t-SNE with scikit-learn; how well classes lie apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from wingspan.analysis.collected import Array, Collected, What

Method = Literal["pca", "tsne"]
BEFORE_TSNE = 50  # dimensions that are kept for t-SNE: as its authors advise
BLOCK = 512  # rows whose distances are held at once


@dataclass(frozen=True)
class PointMap:
    """Points on a plane with what a figure shows of them; one entry each."""

    what: str
    method: Method
    x: Array
    y: Array
    group: Array
    """What colors stand for: the gold label, or the corpus."""
    mark: Array
    """What shapes stand for: "right" or "wrong", or nothing."""
    text: Array
    shares: tuple[float, float] | None
    """PCA: how much of the variance each axis has."""
    silhouette: float | None
    """How well groups lie apart before projecting, from -1 to 1; None where there are fewer than two."""


def span_map(
    rows: Collected,
    what: What = "feature",
    method: Method = "pca",
    *,
    by: Literal["label", "dataset"] = "label",
    only: str | None = None,
    limit: int = 2000,
    seed: int = 0,
) -> PointMap:
    """The gold spans on a plane, `limit` of them at most.

    With several corpora, labels are those of the target where they have a counterpart there.
    See: paper 003, Figure 4 (features, PCA); paper 000, Figure 2 (latents, t-SNE); paper 004, Figure 4 (t-SNE of one
    label `only`, `by` dataset).
    """
    chosen = np.flatnonzero(rows.entities & (rows.meaning == only if only is not None else True))
    if len(chosen) > limit:
        chosen = np.sort(np.random.default_rng(seed).choice(chosen, limit, replace=False))
    values = rows.of(what)[chosen]
    groups: Array = (rows.meaning if by == "label" else rows.dataset)[chosen]
    mark: Array = np.where(rows.guess == rows.gold, "right", "wrong")[chosen]
    return _mapped(what, values, groups, mark, rows.text[chosen], method, seed)


def before_and_after(rows: Collected, method: Method = "tsne", *, seed: int = 0) -> tuple[PointMap, PointMap]:
    """Gold spans as vectors and as the head's features, such as a bottleneck's.  See: paper 000, Figure 2 e-h."""
    return span_map(rows, "vector", method, seed=seed), span_map(rows, "feature", method, seed=seed)


def label_map(
    vectors: Array, names: Sequence[str], groups: Sequence[str] | None = None, method: Method = "tsne", *, seed: int = 0
) -> PointMap:
    """Vectors of labels on a plane: templates, or the rows of a prior; groups may be their corpora.

    See: paper 004, Figure 3.
    """
    texts = np.array(names, dtype=str)
    chosen = texts if groups is None else np.array(groups, dtype=str)
    return _mapped("label", np.asarray(vectors), chosen, np.full(len(texts), ""), texts, method, seed)


def _mapped(what: str, values: Array, group: Array, mark: Array, text: Array, method: Method, seed: int) -> PointMap:
    shares: tuple[float, float] | None = None
    if method == "pca":
        points, (first, second) = pca(values)
        shares = first, second
    else:
        points = tsne(values, seed=seed)
    return PointMap(what, method, points[:, 0], points[:, 1], group, mark, text, shares, silhouette(values, group))


def pca(values: Array, dimensions: int = 2) -> tuple[Array, tuple[float, ...]]:
    """Principal components and the share of variance of each.  (n, D) -> (n, dimensions)

    Signs are arbitrary; here the largest weight of each axis is positive, so that figures do not flip.
    """
    centered = values.astype(np.float64)
    centered = centered - (centered.mean(0) if len(centered) else 0.0)
    left, lengths, axes = np.linalg.svd(centered, full_matrices=False)
    kept = min(dimensions, len(lengths))
    weights = axes[:kept]
    signs = np.sign(weights[np.arange(kept), np.abs(weights).argmax(1)]) if kept else np.zeros(0)
    points = np.zeros((len(values), dimensions))
    points[:, :kept] = left[:, :kept] * lengths[:kept] * np.where(signs == 0, 1.0, signs)
    total = float((lengths**2).sum())
    shares = [float(length**2) / total if total else 0.0 for length in lengths[:kept]]
    return points, (*shares, *[0.0] * (dimensions - kept))


def tsne(values: Array, *, seed: int = 0, perplexity: float = 30.0) -> Array:
    """A t-SNE of the vectors, the same for the same seed.  (n, D) -> (n, 2)  See: van der Maaten and Hinton 2008."""
    try:
        from sklearn.manifold import TSNE
    except ImportError as error:
        raise ImportError("t-SNE needs scikit-learn; install it with: pip install 'wingspan[plots]'") from error
    reduced, _ = pca(values, min(BEFORE_TSNE, *values.shape))
    spread = reduced.std() if reduced.size else 0.0
    if len(values) < 4 or spread == 0:
        return pca(values)[0]  # too few points, or all the same: there are no neighborhoods to keep
    perplexity = min(perplexity, (len(values) - 1) / 3)
    start = pca(reduced)[0]
    start = start / start[:, 0].std() * 1e-4  # small, as its authors advise
    if not start[:, 1].any():  # points on a line would stay there
        start[:, 1] = np.random.default_rng(seed).normal(scale=1e-5, size=len(start))
    found: Array = TSNE(perplexity=perplexity, init=start, random_state=seed).fit_transform(reduced)
    return found


def silhouette(values: Array, groups: Sequence[str] | Array) -> float | None:
    """The mean over points of (b - a) / max(a, b): a, the mean distance to the own group; b, to the nearest other one.

    A point alone in its group counts 0. None where there is only one group, or nothing but lone points.  See: Rousseeuw
    1987.
    """
    names, group = np.unique(np.asarray(groups, dtype=str), return_inverse=True)
    if len(names) < 2 or len(names) == len(group):
        return None
    wide = values.astype(np.float64)
    squares = (wide**2).sum(1)
    sizes = np.bincount(group)
    member = np.eye(len(names))[group]  # (n, groups)
    total = 0.0
    for at in range(0, len(wide), BLOCK):
        block = slice(at, at + BLOCK)
        distances = np.sqrt(np.maximum(squares[block, None] + squares - 2 * wide[block] @ wide.T, 0.0))
        rows = np.arange(len(distances))
        distances[rows, rows + at] = 0.0  # rounding leaves a little
        sums = distances @ member  # (block, groups)
        own = group[block]
        others = sizes[own] - 1
        inner = sums[rows, own] / np.maximum(others, 1)
        means = sums / sizes
        means[rows, own] = np.inf
        outer = means.min(1)
        widest = np.maximum(inner, outer)
        total += float(np.where((others > 0) & (widest > 0), (outer - inner) / np.maximum(widest, 1e-300), 0.0).sum())
    return total / len(wide)
