"""How span features and class templates lie to each other: norms and cosines.  See: paper 003, section 5.

Tables from collected rows, with numpy alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wingspan.analysis.choosing import OVERLAPS, Overlap, overlap_kind, overlap_ratio
from wingspan.analysis.collected import Array, Collected, What
from wingspan.text import Span

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
