"""Precision, recall and F1 by attributes of the entities (Ji et al. 2022 and Zhu et al.), and the gaps between systems.

Precision counts predictions by their own attribute, recall counts gold by its own. Strict matches only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, inf
from typing import Any, Literal, NamedTuple, get_args

from wingspan.corpora.overlaps import joined
from wingspan.corpora.words import word_strings
from wingspan.evaluation.errors import Errors
from wingspan.evaluation.matching import SentenceIndex, overlaps, pair
from wingspan.text import Document, Entity, Span, reading_order


class BucketRange(NamedTuple):
    """A range of values from `low` to `high`; with `above`, without `low` itself."""

    low: float
    high: float = inf
    above: bool = False

    def holds(self, value: float) -> bool:
        """Whether a value lies in the range."""
        return (self.low < value if self.above else self.low <= value) and value <= self.high

    @property
    def name(self) -> str:
        """As tables print it: 2, 3–4, ≥ 5, [0, 0.1], (0.1, 0.5], > 0.5, ≤ 3, all."""
        low, high = f"{self.low:g}", f"{self.high:g}"
        if (self.low, self.high) == (-inf, inf):
            return "all"
        if self.high == inf:
            return f"{'>' if self.above else '≥'} {low}"
        if self.low == -inf:
            return f"≤ {high}"
        if self.low == self.high:
            return low
        if not self.above and float(self.low).is_integer() and float(self.high).is_integer():
            return f"{low}–{high}"
        return f"{'(' if self.above else '['}{low}, {high}]"


def steps(*bounds: float) -> tuple[BucketRange, ...]:
    """[b0, b1], (b1, b2], and so on, as papers write shares; the last bound may be infinite."""
    return tuple(
        BucketRange(low, high, above=at > 0) for at, (low, high) in enumerate(zip(bounds, bounds[1:], strict=False))
    )


def counts_from(*starts: float) -> tuple[BucketRange, ...]:
    """Ranges of whole numbers that begin at these; the last one has no end."""
    return tuple(BucketRange(low, high - 1) for low, high in zip(starts, (*starts[1:], inf), strict=True))


def quantile_ranges(values: Sequence[float], parts: int) -> tuple[BucketRange, ...]:
    """Ranges with equally many values each, as far as equal values allow; together they hold every number."""
    if parts < 2:
        raise ValueError(f"{parts} quantiles; give 2 or more")
    if not values:
        return (BucketRange(-inf),)
    order = sorted(values)
    # nearest rank: every bound is a value that occurs; the largest is left out, since nothing lies above it
    bounds = {order[ceil(part * len(order) / parts) - 1] for part in range(1, parts)} - {order[-1]}
    return steps(-inf, *sorted(bounds), inf)


@dataclass(frozen=True)
class TrainingSurfaces:
    """The words of a training corpus, and how often each surface of an entity had which label."""

    words: frozenset[str] = frozenset()
    labels: dict[str, Counter[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, documents: Iterable[Document]) -> TrainingSurfaces:
        """Words and surfaces of these documents."""
        kept = list(documents)
        words: set[str] = set()
        for document in kept:
            if document.words is None:
                words.update(word_strings(document.text))
            else:
                words.update(document.text[start:end] for start, end in document.words)
        return cls(frozenset(words), labels_of_surfaces(kept))

    def frequency(self, name: str) -> int:
        """How often a surface was an entity, with any label."""
        return self.labels.get(name, Counter()).total()

    def consistency(self, name: str, label: str) -> float:
        """The share of a surface's entities that had this label; 0 if it was never seen (Fu et al. 2020, eCon)."""
        labels = self.labels.get(name)
        return labels[label] / labels.total() if labels else 0.0


def labels_of_surfaces(documents: Iterable[Document]) -> dict[str, Counter[str]]:
    """How often each surface of an entity had which label."""
    labels: dict[str, Counter[str]] = {}
    for document in documents:
        for entity in document.entities:
            labels.setdefault(surface(document, entity), Counter())[entity.label] += 1
    return labels


def surface(document: Document, entity: Entity) -> str:
    """The entity's text in lower case with single spaces, so that surfaces can be compared."""
    return " ".join(document.text_of(entity).lower().split())


NestedRole = Literal["flat", "nested", "covering", "both"]
ROLES: tuple[NestedRole, ...] = get_args(NestedRole)


def nested_roles(gold: Iterable[Entity], spans: Iterable[Entity]) -> dict[tuple[Span, ...], NestedRole]:
    """The nested role of all `spans` against the gold entities, whatever the labels.

    nested: inside a gold entity that covers another gold entity. covering: around a gold entity that lies inside
    another one. Inside means all its characters and not all of the other's, so the gap of a discontinuous entity holds
    nothing. See: Zhu et al. 2023, Section 4.5 and Figure 3.
    """
    known = _one_per_span(gold)
    outer: set[int] = set()
    inner: set[int] = set()
    for g, other in overlaps(known, known) if len(known) > 1 else ():
        if _inside(known[g].spans, known[other].spans):
            inner.add(g)
            outer.add(other)
    others = _one_per_span(spans)
    nested: set[int] = set()
    covering: set[int] = set()
    for g, s in overlaps(known, others) if inner else ():
        if g in outer and _inside(others[s].spans, known[g].spans):
            nested.add(s)
        if g in inner and _inside(known[g].spans, others[s].spans):
            covering.add(s)
    return {entity.spans: ROLES[(s in nested) + 2 * (s in covering)] for s, entity in enumerate(others)}


def _one_per_span(entities: Iterable[Entity]) -> list[Entity]:
    """One entity for all labels of the same spans."""
    return sorted({entity.spans: entity for entity in entities}.values(), key=reading_order)


def _inside(one: tuple[Span, ...], other: tuple[Span, ...]) -> bool:
    """Whether all characters of one belong to the other, and not the other way around."""
    return one != other and all(any(whole.contains(span) for whole in joined(other)) for span in one)


# Attributes: functions of a document pair (`Scene`) and one entity, gold or found. Attributes of a text, such as its
# length and density, are those of the sentence in which the entity starts.


Value = float | str | None
"""A number, the name of a category, or None if the attribute is not given."""


@dataclass
class Scene:
    """One gold document, the entities a system found in it, and the training surfaces."""

    gold: Document
    found: tuple[Entity, ...]
    training: TrainingSurfaces
    before: int = 0
    """Characters of earlier rows of the same group."""
    whole: int = 0
    """Characters of all rows of the group."""

    @cached_property
    def index(self) -> SentenceIndex:
        """Words and sentences, the same for every system: found entities do not change them."""
        return SentenceIndex(self.gold)

    @cached_property
    def roles(self) -> Mapping[tuple[Span, ...], NestedRole]:
        """Nested roles of gold and found spans, against the gold."""
        return nested_roles(self.gold.entities, (*self.gold.entities, *self.found))

    @cached_property
    def densities(self) -> list[float]:
        """Gold entities per word, for each sentence."""
        counts = Counter(self.index.sentence_of(entity) for entity in set(self.gold.entities))
        return [counts[at] / max(sentence.width, 1) for at, sentence in enumerate(self.index.sentences)]

    @cached_property
    def unknown(self) -> list[float]:
        """The share of words unseen in training, for each sentence."""
        words, known = self.index.words, self.training.words
        return [
            sum(word not in known for word in words[sentence.start : sentence.end]) / max(sentence.width, 1)
            for sentence in self.index.sentences
        ]


@dataclass(frozen=True)
class Attribute:
    """A property of entities, and the buckets of its values."""

    name: str
    title: str
    value: Callable[[Scene, Entity], Value]
    ranges: tuple[BucketRange, ...] = ()
    """Without ranges every value is a bucket."""
    categories: tuple[str, ...] = ()
    """Values in the order of the table; other values follow, most frequent first."""
    needs_training: bool = False


# The ranges of the first four are those of Ji et al. 2022, Table 5. There may be more nested entities than words.
ATTRIBUTES: dict[str, Attribute] = {
    attribute.name: attribute
    for attribute in (
        Attribute(
            "entity_length",
            "Entity length (words)",
            lambda scene, entity: scene.index.width(entity),
            counts_from(1, 2, 3, 5),
        ),
        Attribute(
            "text_length",
            "Text length (words)",
            lambda scene, entity: scene.index.sentences[scene.index.sentence_of(entity)].width,
            counts_from(1, 8, 17, 32),
        ),
        Attribute(
            "label_consistency",
            "Label consistency with training",
            lambda scene, entity: scene.training.consistency(surface(scene.gold, entity), entity.label),
            steps(0, 0.1, 0.5, 0.9, 1),
            needs_training=True,
        ),
        Attribute(
            "entity_density",
            "Entity density (entities per word)",
            lambda scene, entity: scene.densities[scene.index.sentence_of(entity)],
            steps(0, 0.01, 0.025, 0.05, inf),
        ),
        Attribute(
            "oov_density",
            "Words unseen in training (share of the text)",
            lambda scene, entity: scene.unknown[scene.index.sentence_of(entity)],
            (BucketRange(0, 0), *steps(-inf, 0, 0.1, 0.25, 1)[1:]),
            needs_training=True,
        ),
        Attribute(
            "training_frequency",
            "Frequency of the surface in training",
            lambda scene, entity: scene.training.frequency(surface(scene.gold, entity)),
            counts_from(0, 1, 2, 5, 10),
            needs_training=True,
        ),
        Attribute("nested_role", "Nested role", lambda scene, entity: scene.roles[entity.spans], categories=ROLES),
        Attribute("fragments", "Fragments", lambda scene, entity: len(entity.spans), counts_from(1, 2, 3)),
        Attribute(
            "position",
            "Position in the document",
            lambda scene, entity: (scene.before + entity.start) / max(scene.whole, 1),
            steps(0, 0.25, 0.5, 0.75, 1),
        ),
    )
}


def attribute_named(name: str) -> Attribute:
    """One of `ATTRIBUTES`, or `entity:KEY` or `document:KEY` for what `meta` holds, with dots for inner keys.

    `dataset` and `group` are keys of documents too. A found entity has the `meta` of its own file.
    """
    if name in ATTRIBUTES:
        return ATTRIBUTES[name]
    owner, colon, path = name.partition(":")
    if not (colon and path and owner in ("entity", "document")):
        raise ValueError(f"unknown attribute {name!r}; use {', '.join(ATTRIBUTES)}, entity:KEY or document:KEY")
    if owner == "entity":
        return Attribute(name, f"{path} (of the entity)", lambda _, entity: _look_up(entity.meta, path))
    return Attribute(
        name,
        f"{path} (of the document)",
        lambda scene, _: _look_up({"dataset": scene.gold.dataset, "group": scene.gold.group, **scene.gold.meta}, path),
    )


def _look_up(meta: Any, path: str) -> Value:
    """A value by its path of keys: a number as it is, anything else as text."""
    for key in path.split("."):
        meta = meta.get(key) if isinstance(meta, Mapping) else None
    if meta is None or (isinstance(meta, int | float) and not isinstance(meta, bool)):
        return meta
    return str(meta)


NOT_GIVEN, OUTSIDE = "not given", "other"
"""The bucket of entities without the attribute, and the bucket of values in none of the ranges."""
FEW_VALUES = 12
"""A number from `meta` has a bucket for each value up to this many values, and quartiles beyond."""


@dataclass(frozen=True)
class Bucket:
    """Entities of one bucket. A figure is None where there is nothing to count."""

    name: str
    gold: int = 0
    gold_right: int = 0
    found: int = 0
    found_right: int = 0

    @property
    def precision(self) -> float | None:
        """The share of found entities that are right, in percent."""
        return 100 * self.found_right / self.found if self.found else None

    @property
    def recall(self) -> float | None:
        """The share of gold entities that were found, in percent."""
        return 100 * self.gold_right / self.gold if self.gold else None

    @property
    def f1(self) -> float | None:
        """The harmonic mean. A bucket with gold and nothing found has 0, not None."""
        precision, recall = self.precision, self.recall
        if not precision and not recall:
            return None if precision is None and recall is None else 0.0
        if precision is None or recall is None:  # one side lacks the attribute, so there is no mean
            return None
        return 2 * precision * recall / (precision + recall)


class BucketTable(NamedTuple):
    """The buckets of one attribute, in the order of the table."""

    attribute: str
    title: str
    rows: tuple[Bucket, ...]


class Gap(NamedTuple):
    """The distance of systems from a standard, bucket by bucket: one block of a heat map (Ji et al. 2022, Table 6)."""

    attribute: str
    title: str
    buckets: tuple[str, ...]
    values: Mapping[str, tuple[float | None, ...]]


ValueCounts = dict[Value, list[int]]
"""By value of an attribute: gold, right gold, found, right found."""


def buckets(
    gold: Sequence[Document],
    found: Sequence[Document],
    attributes: Iterable[str | Attribute] | None = None,
    *,
    training: Iterable[Document] | None = None,
    quantiles: int | None = None,
) -> dict[str, BucketTable]:
    """One table for each attribute; by default all of `ATTRIBUTES`, and those about training only if it is given.

    Ranges are the papers', or quantiles of the gold's values, which are the same for every system.
    """
    if attributes is None:
        chosen = [each for each in ATTRIBUTES.values() if training is not None or not each.needs_training]
    else:
        chosen = [attribute_named(each) if isinstance(each, str) else each for each in attributes]
    if training is None and (blind := [each.name for each in chosen if each.needs_training]):
        raise ValueError(f"{', '.join(blind)}: compares with the training corpus; give it (`training`, --train)")
    surfaces = TrainingSurfaces.of(training or ())
    cells: list[ValueCounts] = [{} for _ in chosen]
    pairs = pair(gold, found)
    sizes: Counter[str] = Counter()  # rows of one group follow each other as in the file
    for reference, _ in pairs:
        sizes[reference.group or ""] += len(reference.text)
    passed: Counter[str] = Counter()
    for reference, prediction in pairs:
        scene = Scene(reference, prediction.entities, surfaces, 0, len(reference.text))
        if reference.group is not None:
            scene.before, scene.whole = passed[reference.group], sizes[reference.group]
            passed[reference.group] += len(reference.text)
        gold_set, found_set = set(scene.gold.entities), set(scene.found)
        for column, entities, others in ((0, gold_set, found_set), (2, found_set, gold_set)):
            for entity in entities:
                right = entity in others
                for attribute, cell in zip(chosen, cells, strict=True):
                    counts = cell.setdefault(attribute.value(scene, entity), [0, 0, 0, 0])
                    counts[column] += 1
                    counts[column + 1] += right
    return {each.name: _table(each, cell, quantiles) for each, cell in zip(chosen, cells, strict=True)}


def _table(attribute: Attribute, cells: ValueCounts, quantiles: int | None) -> BucketTable:
    ranges = attribute.ranges
    numbers = [value for value in cells if isinstance(value, int | float)]
    given_by_corpus = not ranges and not attribute.categories and len(numbers) > FEW_VALUES
    if numbers and (quantiles is not None or given_by_corpus):
        ranges = quantile_ranges([value for value in numbers for _ in range(cells[value][0])], quantiles or 4)

    def order(value: Value) -> tuple[int, float, str]:
        """Numbers by size, then names by frequency, then missing values."""
        if isinstance(value, str):
            return 1, -cells[value][0] - cells[value][2], value
        return (2, 0, "") if value is None else (0, value, "")

    rows: dict[str, list[int]] = {name: [0, 0, 0, 0] for name in [each.name for each in ranges] or attribute.categories}
    for value in sorted(cells, key=order):
        if value is None:
            name = NOT_GIVEN
        elif isinstance(value, str) or not ranges:
            name = value if isinstance(value, str) else f"{value:g}"
        else:
            name = next((each.name for each in ranges if each.holds(value)), OUTSIDE)
        row = rows.setdefault(name, [0, 0, 0, 0])
        row[:] = [old + new for old, new in zip(row, cells[value], strict=True)]
    return BucketTable(attribute.name, attribute.title, tuple(Bucket(name, *counts) for name, counts in rows.items()))


def gaps(
    systems: Mapping[str, Mapping[str, BucketTable]], standard: str, figure: Literal["precision", "recall", "f1"] = "f1"
) -> list[Gap]:
    """Each system's figure minus the standard's, in every bucket (Ji et al., Table 6); None if one has none."""
    _check(systems, standard)
    result = []
    for name, table in systems[standard].items():
        names = tuple(dict.fromkeys(row.name for tables in systems.values() for row in tables[name].rows))
        base = {row.name: getattr(row, figure) for row in table.rows}
        values = {}
        for system, tables in systems.items():
            own = {row.name: getattr(row, figure) for row in tables[name].rows}
            values[system] = tuple(
                None if own.get(bucket) is None or base.get(bucket) is None else own[bucket] - base[bucket]
                for bucket in names
            )
        result.append(Gap(name, table.title, names, values))
    return result


def error_rate_gaps(systems: Mapping[str, Errors], standard: str) -> dict[str, dict[str, float]]:
    """Each system's boundary and type error rates minus the standard's (Ji et al. 2022, Table 7)."""
    _check(systems, standard)
    return {
        system: {rate: getattr(own, rate) - getattr(systems[standard], rate) for rate in ("boundary_rate", "type_rate")}
        for system, own in systems.items()
    }


def _check(systems: Mapping[str, Any], standard: str) -> None:
    if standard not in systems:
        raise ValueError(f"no system is called {standard!r}; the standard is one of {', '.join(systems)}")
