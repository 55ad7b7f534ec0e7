"""How span features and class templates lie to each other: norms and cosines.  See: paper 003, section 5.

Tables from collected rows, with numpy alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from wingspan.evaluation.scores import HEADLINES
from wingspan.report.collect import OVERLAPS, Array, Collected, Overlap, What, overlap_kind, overlap_ratio
from wingspan.text import Span
from wingspan.training.journal import read_journal

SMALLEST = 1e-12  # a vector of zeros has no direction; its cosine with anything is 0


@dataclass(frozen=True)
class OverlapCosine:
    """How alike entities and their neighbors of one kind of overlap are."""

    overlap: Overlap
    mean: float
    deviation: float
    pairs: int


def cosine_by_overlap(rows: Collected, what: What = "feature") -> tuple[OverlapCosine, ...]:
    """Cosine of entities and neighboring spans by overlap: none, weak, strong.  See: paper 003, Table 4.

    Overlap is the share of words of either span that both hold: 0, up to 0.5, above 0.5.
    """
    units = directions(rows.of(what))
    entity, neighbor = rows.pairs[:, 0], rows.pairs[:, 1]
    cosines = (units[entity] * units[neighbor]).sum(1)
    spans = [Span(int(start), int(end)) for start, end in zip(rows.word_start, rows.word_end, strict=True)]
    kinds = np.array([overlap_kind(overlap_ratio(spans[e], spans[n])) for e, n in rows.pairs.tolist()], dtype=str)
    return tuple(OverlapCosine(kind, *_mean_and_deviation(cosines[kinds == kind])) for kind in OVERLAPS)


@dataclass(frozen=True)
class Geometry:
    """Norms and cosines of features and templates; None where there are too few classes or rows."""

    norm: float | None
    """The mean length of entities' features."""
    within: float | None
    """The mean cosine of two entities of one type; types count alike."""
    between: float | None
    """Of two entities of different types; pairs of types count alike."""
    against_nothing: float | None
    """Of an entity and a sampled span that is none."""
    template_norm: float | None
    template_cosine: float | None
    """The mean absolute cosine of two templates: 0 where they are orthogonal."""
    template_between: float | None
    """Of the templates of two types."""
    template_against_nothing: float | None
    """Of a type's template and that of "nothing"."""


def geometry(rows: Collected, what: What = "feature") -> Geometry:
    """Norms and cosines of pre-logit features and templates.  See: paper 003, Table 5."""
    values, entities = rows.of(what), rows.entities
    names, matrix = class_cosines(rows, what)
    types = np.array([bool(name) for name in names], dtype=bool)
    norms = np.linalg.norm(values[entities], axis=1)
    template_names = np.array([bool(name) for name in rows.classes], dtype=bool)[: len(rows.templates)]
    templates = np.abs(template_cosines(rows))
    return Geometry(
        norm=_mean(norms),
        within=_mean(np.diagonal(matrix)[types]),
        between=_mean(_above(matrix[np.ix_(types, types)])),
        against_nothing=_mean(matrix[np.ix_(types, ~types)].ravel()),
        template_norm=_mean(np.linalg.norm(rows.templates, axis=1)),
        template_cosine=_mean(_above(templates)),
        template_between=_mean(_above(templates[np.ix_(template_names, template_names)])),
        template_against_nothing=_mean(templates[np.ix_(template_names, ~template_names)].ravel()),
    )


@dataclass(frozen=True)
class ClassNorm:
    """How long the vectors of one class are."""

    label: str
    mean: float
    deviation: float
    rows: int


def norms_by_class(rows: Collected, what: What = "feature") -> tuple[ClassNorm, ...]:
    """The length of the vectors of each type, and of sampled spans that are no entity (label "")."""
    norms = np.linalg.norm(rows.of(what), axis=1)
    groups = groups_by_class(rows)
    return tuple(ClassNorm(name, *_mean_and_deviation(norms[at])) for name, at in groups.items())


def class_cosines(rows: Collected, what: What = "feature") -> tuple[tuple[str, ...], Array]:
    """The mean cosine of two spans of each pair of classes; on the diagonal that of two different spans of one class.

    The last class is "" where spans that are no entities were sampled. A class of one span has no pair: nan.
    """
    units = directions(rows.of(what))
    groups = groups_by_class(rows)
    counts = np.array([len(at) for at in groups.values()], dtype=float)
    sums = np.array([units[at].sum(0) for at in groups.values()]).reshape(len(groups), units.shape[1])
    # the mean over all pairs is the product of sums: no matrix of all rows is needed
    matrix: Array = sums @ sums.T / np.maximum(np.outer(counts, counts), 1.0)
    lengths = np.array([(units[at] ** 2).sum() for at in groups.values()])  # a row with itself is no pair
    own = (sums**2).sum(1) - lengths
    pairs = counts * (counts - 1)
    np.fill_diagonal(matrix, np.where(pairs > 0, own / np.maximum(pairs, 1.0), np.nan))
    return tuple(groups), matrix


def template_cosines(rows: Collected) -> Array:
    """The cosine of each two templates, the rows of the last layer's weights.  (C, C)  See: paper 003, section 5.2."""
    units = directions(rows.templates)
    cosines: Array = units @ units.T
    return cosines


def groups_by_class(rows: Collected) -> dict[str, Array]:
    """The rows of each type that occurs, in the order of classes; last, under "", the sampled spans of none."""
    labels, entities = rows.label, rows.entities
    found = {name: np.flatnonzero(entities & (labels == name)) for name in dict.fromkeys(rows.classes) if name}
    found[""] = np.flatnonzero(~entities & rows.sampled)
    return {name: at for name, at in found.items() if len(at)}


def directions(values: Array) -> Array:
    """Each row with length 1, in float64; rows of zeros stay zeros."""
    wide = values.astype(np.float64)
    units: Array = wide / np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), SMALLEST)
    return units


def _above(matrix: Array) -> Array:
    """What stands above the diagonal."""
    found: Array = matrix[np.triu_indices(len(matrix), 1)]
    return found


def _mean(values: Array) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def _mean_and_deviation(values: Array) -> tuple[float, float, int]:
    """Mean, standard deviation of the sample, and number; nan where there are too few."""
    mean = float(values.mean()) if len(values) else float("nan")
    return mean, float(values.std(ddof=1)) if len(values) > 1 else float("nan"), len(values)


# --- What class chances say about gold spans: right or wrong, how sure, how far off. See: paper 001, section 3.


LEAST_CHANCE = 1e-12  # a chance of zero would make a ratio infinite

Tag = Literal["Up", "Stable", "Down"]


def chance_map(rows: Collected, *, limit: int = 2000, seed: int = 0) -> PointMap:
    """Gold spans by the principal components of their chances, right and wrong marked.  See: paper 001, Figure 4."""
    return span_map(rows, "chance", "pca", limit=limit, seed=seed)


@dataclass(frozen=True)
class TrueChances:
    """The chances that one type's gold spans give to that type, where it is the likeliest class and where not."""

    label: str
    right: Array
    wrong: Array

    @property
    def right_median(self) -> float | None:
        """The middle of the right ones."""
        return float(np.median(self.right)) if len(self.right) else None

    @property
    def wrong_median(self) -> float | None:
        """The middle of the wrong ones."""
        return float(np.median(self.wrong)) if len(self.wrong) else None


def true_chances(rows: Collected) -> tuple[TrueChances, ...]:
    """The chance of the true label, type by type, right and wrong apart.  See: paper 001, Figure 5 (violins)."""
    true = rows.chance[np.arange(len(rows.gold)), rows.gold]
    right = rows.guess == rows.gold
    found = []
    for label in dict.fromkeys(name for name in rows.classes if name):
        own = rows.label == label
        if own.any():
            found.append(TrueChances(label, true[own & right], true[own & ~right]))
    return tuple(found)


@dataclass(frozen=True)
class Discrepancy:
    """How far the chance of what was said is from that of the truth, for one gold span."""

    document: str
    text: str
    label: str
    fold: float
    """log2(chance of what was said / chance of the true label)."""
    desire: float
    """The variance of the class chances / the chance of the true label: the paper's D."""
    tag: Tag
    """Up where what was said has the larger chance, Stable where both are equal, Down else."""


def discrepancies(rows: Collected, guess: Array | None = None) -> tuple[Discrepancy, ...]:
    """Each gold span's place in the "volcano".  See: paper 001, section 3.5 and Figure 6.

    `guess` are the classes that were said, the likeliest ones by default; only others can be Down.
    """
    said = rows.guess if guess is None else guess
    at = np.arange(len(rows.gold))
    true, output = rows.chance[at, rows.gold], rows.chance[at, said]
    known = rows.chance.any(axis=0) if len(rows.chance) else slice(None)  # classes that are never said are none
    variance = rows.chance[:, known].var(axis=1)
    ratio = np.maximum(output, LEAST_CHANCE) / np.maximum(true, LEAST_CHANCE)
    desire = variance / np.maximum(true, LEAST_CHANCE)
    return tuple(
        Discrepancy(
            document=str(rows.document[row]),
            text=str(rows.text[row]),
            label=str(rows.label[row]),
            fold=float(np.log2(ratio[row])),
            desire=float(desire[row]),
            tag="Up" if ratio[row] > 1 else "Stable" if ratio[row] == 1 else "Down",
        )
        for row in np.flatnonzero(rows.entities).tolist()
    )


@dataclass(frozen=True)
class EpochLoss:
    """The mean losses of one epoch, by name, and the dev F1 or accuracy where there is one. Epochs count from 1."""

    epoch: int
    losses: dict[str, float]
    dev: float | None
    figure: str = "F1"
    """What `dev` is: models that type given spans have an accuracy."""


def losses_by_epoch(journal: str | Path) -> tuple[EpochLoss, ...]:
    """The losses of a run from its `journal.jsonl`, phase after phase.  See: paper 001, Figure 3.

    An epoch that a resumed run has gone through again counts once.
    """
    found = {
        (event.get("phase", 0), event["epoch"]): (dict(event["losses"]), *_dev(event))
        for event in read_journal(journal)
        if event["event"] == "epoch"
    }
    return tuple(EpochLoss(number, *found[key]) for number, key in enumerate(sorted(found), 1))


def _dev(event: Mapping[str, Any]) -> tuple[float | None, str]:
    """The figure that chose the best epoch, and its name."""
    found = [(event[key], name) for name in HEADLINES.values() if (key := f"dev_{name.lower()}") in event]
    return found[0] if found else (None, HEADLINES["recognition"])


# --- Span vectors on a plane: principal components with numpy, t-SNE with scikit-learn; how well classes lie apart.


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
