"""Collected rows about spans, and every table made of them: cosines, norms, chances, maps. numpy alone, no torch.

See: Zhu et al. 2023, section 5 (geometry); SNG, section 3 (chances); Nguyen et al., Oi and Miwa (maps).
"""

from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple
from zipfile import BadZipFile

import numpy as np

from wingspan.evaluation.scores import HEADLINES
from wingspan.text import Span
from wingspan.training.journal import read_journal

Array = np.ndarray[Any, np.dtype[Any]]
VectorKind = Literal["vector", "feature", "latent", "chance"]  # arrays of `Collected`
ProjectionMethod = Literal["pca", "tsne"]
OVERLAPS = ("none", "weak", "strong")
SMALLEST = 1e-12  # a vector of zeros has no direction; a chance of zero would make a ratio infinite
BEFORE_TSNE = 50  # dimensions that are kept for t-SNE, as its authors advise


# Rows about spans, collected once from a model by `collect`, kept as one `.npz` file that is read without unpickling.


@dataclass(frozen=True)
class Collected:
    """Gold spans, their neighbors that are no entities, and sampled spans that are none. N rows, C classes.

    Neighbors overlap an entity or touch it; `pairs` ties them to it. A span with two gold labels has two rows.
    """

    system: str  # the recipe's name
    classes: tuple[str, ...]  # the label of each class; empty for "nothing"
    left_out: int  # gold entities of these sentences without a row: discontinuous, too wide, or of an unknown label
    document: Array  # (N,) ids
    dataset: Array  # (N,) names
    sentence: Array  # (N,) number of the model's input that holds the span
    start: Array  # (N,) in characters of the document, half-open
    end: Array  # (N,)
    word_start: Array  # (N,) in words of the input, half-open
    word_end: Array  # (N,)
    text: Array  # (N,) the span, long ones cut
    gold: Array  # (N,) class ids
    sampled: Array  # (N,) drawn at random from all spans that are no entity
    chance: Array  # (N, C)
    vector: Array  # (N, S) the span representation
    feature: (
        Array  # (N, F) what scores are linear in: Zhu et al. 2023's pre-logit z; the mean of a bottleneck's Gaussian
    )
    latent: Array  # (N, Z) any other vector that was asked for; Z = 0 without
    templates: Array  # (C, F) the last layer's weights; (0, 0) where there is no such layer
    pairs: Array  # (P, 2) rows of an entity and of a neighbor
    corpora: tuple[str, ...] = ()  # the corpus of each class, where a model has several
    meanings: tuple[str, ...] = ()  # likewise: the target's label for each class; empty where it has no counterpart

    @property
    def named(self) -> Array:
        """Which classes are types, not "nothing".  (C,)"""
        return np.array([bool(name) for name in self.classes], dtype=bool)

    @property
    def entities(self) -> Array:
        """Which rows are gold entities.  (N,)"""
        return np.asarray(self.named[self.gold])

    @property
    def guess(self) -> Array:
        """The likeliest class of each row.  (N,)"""
        return np.asarray(self.chance.argmax(1)) if len(self.chance) else np.zeros(0, dtype=np.int64)

    @property
    def label(self) -> Array:
        """The gold label of each row; empty for spans that are no entity.  (N,)"""
        return np.asarray(np.array(self.classes, dtype=str)[self.gold])

    @property
    def meaning(self) -> Array:
        """The gold label of each row in the target's labels, where there are several corpora; else the label.  (N,)"""
        if not self.meanings:
            return self.label
        names = [meaning or name for meaning, name in zip(self.meanings, self.classes, strict=True)]
        return np.asarray(np.array(names, dtype=str)[self.gold])

    @property
    def class_names(self) -> list[str]:
        """The names of the classes in figures: with their corpora where there are several."""
        corpora = [f"{corpus}: " if corpus else "" for corpus in self.corpora or [""] * len(self.classes)]
        return [f"{corpus}{name or 'nothing'}" for corpus, name in zip(corpora, self.classes, strict=True)]

    def of(self, kind: VectorKind) -> Array:
        """One of the arrays of vectors.  (N, .)"""
        values: Array = getattr(self, kind)
        if not values.shape[1]:
            raise ValueError(f"these rows have no {kind}; collect them with one, or look at the feature")
        return values

    def save(self, path: str | Path) -> None:
        """Writes one compressed `.npz`."""
        arrays: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        for name in ("classes", "corpora", "meanings"):
            arrays[name] = np.array(arrays[name], dtype=str)  # text even where it is empty
        with Path(path).open("wb") as file:
            np.savez_compressed(file, **arrays)


def load_collected(path: str | Path) -> Collected:
    """Reads a file of `Collected.save`."""
    try:
        with np.load(path, allow_pickle=False) as file:
            needed = {field.name for field in fields(Collected) if field.default is MISSING}
            if missing := sorted(needed - set(file.files)):
                raise ValueError(f"{path}: no {missing[0]!r} in it; collect the rows again with this version")
            values: dict[str, Any] = {f.name: file[f.name] for f in fields(Collected) if f.name in file.files}
    except (BadZipFile, EOFError) as error:
        raise ValueError(f"{path}: not a file of collected rows, or damaged; collect them again") from error
    for name in ("classes", "corpora", "meanings"):
        values[name] = tuple(str(value) for value in values.get(name, ()))
    return Collected(**values | {"system": str(values["system"]), "left_out": int(values["left_out"])})


# Norms and cosines.  See: Zhu et al. 2023, section 5.


def overlap_ratio(one: Span, other: Span) -> float:
    """The share of words that both spans hold, of those that either holds.  See: Zhu et al., section 5.1 (alpha)."""
    shared = max(0, min(one.end, other.end) - max(one.start, other.start))
    return shared / (one.width + other.width - shared)


def overlap_kind(ratio: float) -> str:
    """None, weak (up to a half) or strong.  See: Zhu et al. 2023, section 5.1."""
    return "none" if ratio == 0 else "weak" if ratio <= 0.5 else "strong"


class OverlapCosine(NamedTuple):
    """How alike entities and their neighbors of one kind of overlap are."""

    overlap: str
    mean: float
    deviation: float
    pairs: int


def cosine_by_overlap(rows: Collected, kind: VectorKind = "feature") -> tuple[OverlapCosine, ...]:
    """Cosine of entities and neighboring spans by overlap: none, weak, strong.  See: Zhu et al. 2023, Table 4."""
    units = directions(rows.of(kind))
    entity, neighbor = rows.pairs.T
    cosines = (units[entity] * units[neighbor]).sum(1)
    spans = [Span(int(start), int(end)) for start, end in zip(rows.word_start, rows.word_end, strict=True)]
    kinds = np.array([overlap_kind(overlap_ratio(spans[e], spans[n])) for e, n in rows.pairs.tolist()], dtype=str)
    return tuple(OverlapCosine(kind, *_mean_and_deviation(cosines[kinds == kind])) for kind in OVERLAPS)


class Geometry(NamedTuple):
    """Norms and cosines of features and templates; None where there are too few classes or rows."""

    norm: float | None  # the mean length of entities' features
    within: float | None  # the mean cosine of two entities of one type; types count alike
    between: float | None  # of two entities of different types; pairs of types count alike
    against_nothing: float | None  # of an entity and a sampled span that is none
    template_norm: float | None
    template_cosine: float | None  # the mean absolute cosine of two templates: 0 where they are orthogonal
    template_between: float | None  # of the templates of two types
    template_against_nothing: float | None  # of a type's template and that of "nothing"


def geometry(rows: Collected, kind: VectorKind = "feature") -> Geometry:
    """Norms and cosines of pre-logit features and templates.  See: Zhu et al. 2023, Table 5."""
    names, matrix = class_cosines(rows, kind)
    types = np.array([bool(name) for name in names], dtype=bool)
    template_types = rows.named[: len(rows.templates)]
    templates = np.abs(template_cosines(rows))
    return Geometry(
        norm=_mean(np.linalg.norm(rows.of(kind)[rows.entities], axis=1)),
        within=_mean(np.diagonal(matrix)[types]),
        between=_mean(_above_diagonal(matrix[np.ix_(types, types)])),
        against_nothing=_mean(matrix[np.ix_(types, ~types)]),
        template_norm=_mean(np.linalg.norm(rows.templates, axis=1)),
        template_cosine=_mean(_above_diagonal(templates)),
        template_between=_mean(_above_diagonal(templates[np.ix_(template_types, template_types)])),
        template_against_nothing=_mean(templates[np.ix_(template_types, ~template_types)]),
    )


class ClassNorm(NamedTuple):
    """The length of the vectors of one class."""

    label: str
    mean: float
    deviation: float
    rows: int


def norms_by_class(rows: Collected, kind: VectorKind = "feature") -> tuple[ClassNorm, ...]:
    """The length of the vectors of each type, and of sampled spans that are no entity (label "")."""
    norms = np.linalg.norm(rows.of(kind), axis=1)
    return tuple(ClassNorm(name, *_mean_and_deviation(norms[at])) for name, at in groups_by_class(rows).items())


def class_cosines(rows: Collected, kind: VectorKind = "feature") -> tuple[tuple[str, ...], Array]:
    """The mean cosine of two spans of each pair of classes; on the diagonal that of two different spans of one class.

    The last class is "" where spans that are no entities were sampled. A class of one span has no pair: nan.
    """
    units = directions(rows.of(kind))
    groups = groups_by_class(rows)
    counts = np.array([len(at) for at in groups.values()], dtype=float)
    sums = np.array([units[at].sum(0) for at in groups.values()]).reshape(len(groups), units.shape[1])
    # the mean over all pairs is the product of sums: no matrix of all rows is needed
    matrix: Array = sums @ sums.T / np.maximum(np.outer(counts, counts), 1.0)
    own = (sums**2).sum(1) - [(units[at] ** 2).sum() for at in groups.values()]  # a row with itself is no pair
    pairs = counts * (counts - 1)
    np.fill_diagonal(matrix, np.where(pairs > 0, own / np.maximum(pairs, 1.0), np.nan))
    return tuple(groups), matrix


def template_cosines(rows: Collected) -> Array:
    """The cosine of each two templates, the rows of the last layer's weights.  (C, C)  See: Zhu et al., section 5.2."""
    units = directions(rows.templates)
    return np.asarray(units @ units.T)


def groups_by_class(rows: Collected) -> dict[str, Array]:
    """The rows of each type that occurs, in the order of classes; last, under "", the sampled spans of none."""
    labels, entities = rows.label, rows.entities
    groups = {name: np.flatnonzero(entities & (labels == name)) for name in dict.fromkeys(rows.classes) if name}
    groups[""] = np.flatnonzero(~entities & rows.sampled)
    return {name: at for name, at in groups.items() if len(at)}


def directions(values: Array) -> Array:
    """Each row with length 1, in float64; rows of zeros stay zeros."""
    wide = values.astype(np.float64)
    return np.asarray(wide / np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), SMALLEST))


def _above_diagonal(matrix: Array) -> Array:
    return np.asarray(matrix[np.triu_indices(len(matrix), 1)])


def _mean(values: Array) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def _mean_and_deviation(values: Array) -> tuple[float, float, int]:
    """Mean, standard deviation of the sample, and number; nan where there are too few."""
    mean = float(values.mean()) if len(values) else float("nan")
    return mean, float(values.std(ddof=1)) if len(values) > 1 else float("nan"), len(values)


# Class chances of gold spans: right or wrong, how sure, how far off.  See: SNG, section 3.


class TrueChances(NamedTuple):
    """The chances that one type's gold spans give to that type, where it is the likeliest class and where not."""

    label: str
    right: Array
    wrong: Array
    right_median: float | None
    wrong_median: float | None


def true_chances(rows: Collected) -> tuple[TrueChances, ...]:
    """The chance of the true label, type by type, right and wrong apart.  See: SNG, Figure 5 (violins)."""
    true = rows.chance[np.arange(len(rows.gold)), rows.gold]
    right = rows.guess == rows.gold
    chances = []
    for label in dict.fromkeys(rows.classes):
        own = rows.label == label
        if label and own.any():
            parts = true[own & right], true[own & ~right]
            medians = (float(np.median(part)) if len(part) else None for part in parts)
            chances.append(TrueChances(label, *parts, *medians))
    return tuple(chances)


class Discrepancy(NamedTuple):
    """How far the chance of the predicted label is from that of the true one, for one gold span."""

    document: str
    text: str
    label: str
    fold: float  # log2(chance of the predicted label / chance of the true label)
    desire: float  # the variance of the class chances / the chance of the true label: the paper's D
    tag: str  # "Up" where the predicted label has the larger chance, "Stable" where both are equal, "Down" otherwise


def discrepancies(rows: Collected, guess: Array | None = None) -> tuple[Discrepancy, ...]:
    """Each gold span in the "volcano"; `guess` are classes other than the likeliest.  See: SNG, Figure 6."""
    at = np.arange(len(rows.gold))
    true = np.maximum(rows.chance[at, rows.gold], SMALLEST)
    predicted = np.maximum(rows.chance[at, rows.guess if guess is None else guess], SMALLEST)
    known = rows.chance.any(axis=0) if len(rows.chance) else slice(None)  # classes that are never predicted
    desire = rows.chance[:, known].var(axis=1) / true
    ratio = predicted / true
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


class EpochLoss(NamedTuple):
    """The mean losses of one epoch, by name, and the dev F1 or accuracy where there is one. Epochs count from 1."""

    epoch: int
    losses: dict[str, float]
    dev: float | None = None
    figure: str = HEADLINES["recognition"]  # the name of `dev`: models that type given spans have an accuracy


def losses_by_epoch(journal: str | Path) -> tuple[EpochLoss, ...]:
    """The losses in a run's `journal.jsonl`; an epoch that was run again counts once.  See: SNG, Figure 3."""
    journaled = (event for event in read_journal(journal) if event["event"] == "epoch")
    events = {(event.get("phase", 0), event["epoch"]): event for event in journaled}
    epochs = []
    for number, key in enumerate(sorted(events), 1):
        event = events[key]
        dev = [(event[f"dev_{name.lower()}"], name) for name in HEADLINES.values() if f"dev_{name.lower()}" in event]
        epochs.append(EpochLoss(number, dict(event["losses"]), *(dev[0] if dev else ())))
    return tuple(epochs)


# Span vectors on a plane: principal components with numpy, t-SNE with scikit-learn; how well classes lie apart.


class PointMap(NamedTuple):
    """Points on a plane with their texts and groups; one entry each."""

    kind: str
    method: ProjectionMethod
    x: Array
    y: Array
    group: Array  # the meaning of colors: the gold label, or the corpus
    mark: Array  # the meaning of shapes: "right" or "wrong", or nothing
    text: Array
    shares: tuple[float, ...] | None  # PCA: the share of the variance of each axis
    silhouette: float | None  # how well groups lie apart before projecting, from -1 to 1; None for fewer than two


def span_map(
    rows: Collected,
    kind: VectorKind = "feature",
    method: ProjectionMethod = "pca",
    *,
    by: Literal["label", "dataset"] = "label",
    only: str | None = None,
    limit: int = 2000,
    seed: int = 0,
) -> PointMap:
    """The gold spans on a plane, `limit` of them at most.

    With several corpora, labels are those of the target where they have a counterpart there.
    See: Zhu et al., Figure 4 (features, PCA); SNG, Figure 4 (chances, PCA); Nguyen et al., Figure 2 (latents, t-SNE;
    vectors and the head's features, t-SNE); Oi and Miwa 2025, Figure 4 (t-SNE of one label `only`, `by` dataset).
    """
    chosen = np.flatnonzero(rows.entities & (rows.meaning == only if only is not None else True))
    if len(chosen) > limit:
        chosen = np.sort(np.random.default_rng(seed).choice(chosen, limit, replace=False))
    groups = (rows.meaning if by == "label" else rows.dataset)[chosen]
    mark = np.where(rows.guess == rows.gold, "right", "wrong")[chosen]
    return _mapped(kind, rows.of(kind)[chosen], groups, mark, rows.text[chosen], method, seed)


def label_map(
    vectors: Array, names: Sequence[str], groups: Sequence[str] | None = None, method: ProjectionMethod = "tsne"
) -> PointMap:
    """Vectors of labels, such as templates, on a plane; groups may be their corpora.  See: Oi and Miwa, Figure 3."""
    texts = np.array(names, dtype=str)
    group = texts if groups is None else np.array(groups, dtype=str)
    return _mapped("label", np.asarray(vectors), group, np.full(len(texts), ""), texts, method, 0)


def _mapped(
    kind: str, values: Array, group: Array, mark: Array, text: Array, method: ProjectionMethod, seed: int
) -> PointMap:
    points, shares = pca(values) if method == "pca" else (tsne(values, seed=seed), None)
    return PointMap(kind, method, points[:, 0], points[:, 1], group, mark, text, shares, silhouette(values, group))


def pca(values: Array, dimensions: int = 2) -> tuple[Array, tuple[float, ...]]:
    """Principal components and the share of variance of each.  (n, D) -> (n, dimensions)"""
    centered = values.astype(np.float64)
    centered = centered - (centered.mean(0) if len(centered) else 0.0)
    left, lengths, axes = np.linalg.svd(centered, full_matrices=False)
    kept = min(dimensions, len(lengths))
    weights = axes[:kept]
    # signs are arbitrary: the largest weight of each axis is made positive, so that figures do not flip
    signs = np.sign(weights[np.arange(kept), np.abs(weights).argmax(1)]) if kept else np.zeros(0)
    points = np.zeros((len(values), dimensions))
    points[:, :kept] = left[:, :kept] * lengths[:kept] * np.where(signs == 0, 1.0, signs)
    shares = np.zeros(dimensions)
    shares[:kept] = lengths[:kept] ** 2 / max((lengths**2).sum(), np.finfo(float).tiny)
    return points, tuple(shares.tolist())


def tsne(values: Array, *, seed: int = 0, perplexity: float = 30.0) -> Array:
    """A t-SNE of the vectors, the same for the same seed.  (n, D) -> (n, 2)  See: van der Maaten and Hinton 2008."""
    try:
        from sklearn.manifold import TSNE
    except ImportError as error:
        raise ImportError("t-SNE needs scikit-learn; install it with: pip install 'wingspan-ner[plots]'") from error
    reduced, _ = pca(values, min(BEFORE_TSNE, *values.shape))
    if len(values) < 4 or not reduced.size or reduced.std() == 0:
        return pca(values)[0]  # too few points, or all the same: there are no neighborhoods to keep
    start = pca(reduced)[0]
    start = start / start[:, 0].std() * 1e-4  # small, as its authors advise
    if not start[:, 1].any():  # points on a line would stay there
        start[:, 1] = np.random.default_rng(seed).normal(scale=1e-5, size=len(start))
    perplexity = min(perplexity, (len(values) - 1) / 3)
    return np.asarray(TSNE(perplexity=perplexity, init=start, random_state=seed).fit_transform(reduced))


def silhouette(values: Array, groups: Sequence[str] | Array) -> float | None:
    """The mean over points of (b - a) / max(a, b): a, the mean distance to the own group; b, to the nearest other one.

    A point alone in its group counts 0. None for a single group, only lone points, or without scikit-learn.
    See: Rousseeuw 1987.
    """
    number = len(np.unique(groups))
    if number < 2 or number == len(values) or find_spec("sklearn") is None:
        return None
    from sklearn.metrics import silhouette_score

    return float(silhouette_score(values.astype(np.float64), groups))
