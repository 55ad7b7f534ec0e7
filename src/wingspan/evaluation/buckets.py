"""Precision, recall and F1 by attributes of the entities (papers 002 and 003), and the gaps between systems.

Precision counts predictions by their own attribute, recall counts gold by its own. Strict matches only.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, inf
from typing import Any, Literal, NamedTuple, get_args

from wingspan.corpora.overlaps import joined
from wingspan.corpora.segment import Segmenting, marked_words
from wingspan.corpora.sentences import is_one_sentence
from wingspan.corpora.words import WordRanges, split_words, word_strings
from wingspan.evaluation.errors import Errors
from wingspan.evaluation.matching import overlaps, pair
from wingspan.text import Document, Entity, Span, reading_order


class Interval(NamedTuple):
    """From `low` to `high`, both included unless `above` says that `low` is not."""

    low: float
    high: float = inf
    above: bool = False

    def holds(self, value: float) -> bool:
        """Whether a value lies in it."""
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


def steps(*bounds: float) -> tuple[Interval, ...]:
    """[b0, b1], (b1, b2], and so on: what papers write for shares; the last may be infinite."""
    return tuple(
        Interval(low, high, above=at > 0) for at, (low, high) in enumerate(zip(bounds, bounds[1:], strict=False))
    )


def quantile_intervals(values: Sequence[float], parts: int) -> tuple[Interval, ...]:
    """Intervals that share the values out evenly, as far as equal values allow; together they hold every number."""
    if parts < 2:
        raise ValueError(f"{parts} quantiles; give 2 or more")
    if not values:
        return (Interval(-inf),)
    order = sorted(values)
    # nearest rank: the bound is a value that occurs; the largest value is no bound, as nothing would lie above it
    bounds = {order[ceil(part * len(order) / parts) - 1] for part in range(1, parts)} - {order[-1]}
    return steps(-inf, *sorted(bounds), inf)


# --- The words and sentences of a text, and where an entity stands among them: what analyses count in.


_RULES = Segmenting()


class TextLayout:
    """Words and sentences as training sees them: those the document fixes, otherwise those of the rules."""

    def __init__(self, document: Document, keep: Iterable[Entity] = ()) -> None:
        """No sentence that the rules find cuts an entity of the document or one of `keep`."""
        self.document = document
        if document.words is None and document.sentences is None and is_one_sentence(document.text):
            self.ranges = WordRanges(split_words(document.text))
            self.sentences = [Span(0, len(self.ranges.words))]
            return
        hulls = [entity.hull for entity in (*document.entities, *keep)]
        words, self.sentences, start = [], [], 0
        for at, (word, ends) in enumerate(marked_words(document, _RULES, hulls), start=1):
            words.append(word)
            if ends:
                self.sentences.append(Span(start, at))  # in words
                start = at
        if not words:
            self.sentences.append(Span(0, 0))
        self.ranges = WordRanges(words)

    @cached_property
    def words(self) -> list[str]:
        """The words as strings."""
        text = self.document.text
        return [text[start:end] for start, end in self.ranges.words]

    @cached_property
    def _starts(self) -> list[int]:
        """Where the sentences start, in characters."""
        return [self.ranges.words[sentence.start].start for sentence in self.sentences]

    def width(self, entity: Entity) -> int:
        """How many words the fragments touch."""
        return sum(self.ranges.touched(span).width for span in entity.spans)

    def sentence_of(self, entity: Entity) -> int:
        """The number of the sentence in which the entity starts."""
        return max(bisect_right(self._starts, entity.start) - 1, 0) if len(self.sentences) > 1 else 0

    def characters(self, sentence: int) -> Span:
        """A sentence as a range of characters; the only one of a text is the text."""
        if len(self.sentences) == 1:
            return Span(0, len(self.document.text))
        return self.ranges.characters(self.sentences[sentence])


# --- What a training corpus has shown: its words, and the labels each surface had.


@dataclass(frozen=True)
class Seen:
    """The words of a corpus, and how often each surface of an entity had which label."""

    words: frozenset[str] = frozenset()
    labels: dict[str, Counter[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, documents: Iterable[Document]) -> Seen:
        """What the documents show."""
        kept = list(documents)
        words: set[str] = set()
        for document in kept:
            if document.words is None:
                words.update(word_strings(document.text))
            else:
                words.update(document.text[start:end] for start, end in document.words)
        return cls(frozenset(words), labels_of_surfaces(kept))

    def frequency(self, name: str) -> int:
        """How often a surface was an entity, with whatever label."""
        found = self.labels.get(name)
        return found.total() if found else 0

    def consistency(self, name: str, label: str) -> float:
        """The share of a surface's entities that had this label; 0 if it was never seen (Fu et al. 2020, eCon)."""
        found = self.labels.get(name)
        return found[label] / found.total() if found else 0.0


def labels_of_surfaces(documents: Iterable[Document]) -> dict[str, Counter[str]]:
    """How often each surface of an entity had which label."""
    labels: dict[str, Counter[str]] = {}
    for document in documents:
        for entity in document.entities:
            labels.setdefault(surface(document, entity), Counter())[entity.label] += 1
    return labels


def surface(document: Document, entity: Entity) -> str:
    """The entity's text as surfaces are compared: in lower case, with single spaces."""
    return " ".join(document.text_of(entity).lower().split())


# --- The nested role of a span against the gold entities (paper 003, Section 4.5 and Figure 3).


Role = Literal["flat", "nested", "covering", "both"]
ROLES: tuple[Role, ...] = get_args(Role)

Place = tuple[Span, ...]


def nested_roles(gold: Iterable[Entity], spans: Iterable[Entity]) -> dict[Place, Role]:
    """The role of every place in `spans`, whatever its label; gold has the say, whoever asks.

    nested: inside of a gold entity that covers another gold entity. covering: around a gold entity that lies inside of
    another one. Inside means all its characters and not all of the other's, so the gap of a discontinuous entity holds
    nothing.
    """
    known = _places(gold)
    outer: set[int] = set()
    inner: set[int] = set()
    for g, other in overlaps(known, known) if len(known) > 1 else ():
        if _inside(known[g].spans, known[other].spans):
            inner.add(g)
            outer.add(other)
    asked = _places(spans)
    nested: set[int] = set()
    covering: set[int] = set()
    for g, s in overlaps(known, asked) if inner else ():
        if g in outer and _inside(asked[s].spans, known[g].spans):
            nested.add(s)
        if g in inner and _inside(known[g].spans, asked[s].spans):
            covering.add(s)
    return {entity.spans: ROLES[(s in nested) + 2 * (s in covering)] for s, entity in enumerate(asked)}


def _places(entities: Iterable[Entity]) -> list[Entity]:
    """One entity for each place, whatever the labels there."""
    return sorted({entity.spans: entity for entity in entities}.values(), key=reading_order)


def _inside(one: Place, other: Place) -> bool:
    """Whether all characters of one belong to the other, and not the other way round."""
    return one != other and all(any(whole.contains(span) for whole in joined(other)) for span in one)


# --- Attributes of entities by which scores are broken down: length, density, consistency, role, what the corpus
# says.
#
# An attribute is a function of a document pair (`Scene`) and one entity, gold or found. What is said of a text (its
# length, its density) is said of the sentence in which the entity starts.


Value = float | str | None
"""A number, the name of a category, or None where the attribute is not given."""


@dataclass
class Scene:
    """One gold document, the entities a system found in it, and what training has shown."""

    gold: Document
    found: tuple[Entity, ...]
    seen: Seen
    before: int = 0
    """Characters of earlier rows of the same group."""
    whole: int = 0
    """Characters of all rows of the group."""
    _surfaces: dict[Place, str] = field(default_factory=dict)

    @cached_property
    def layout(self) -> TextLayout:
        """Words and sentences. Found entities have no say in them, so that they are the same for every system."""
        return TextLayout(self.gold)

    @cached_property
    def roles(self) -> Mapping[Place, Role]:
        """Nested roles of gold and found places, against the gold."""
        return nested_roles(self.gold.entities, (*self.gold.entities, *self.found))

    @cached_property
    def densities(self) -> list[float]:
        """Gold entities per word, for each sentence."""
        counts = Counter(self.layout.sentence_of(entity) for entity in set(self.gold.entities))
        return [counts[at] / max(sentence.width, 1) for at, sentence in enumerate(self.layout.sentences)]

    @cached_property
    def unknown(self) -> list[float]:
        """The share of words that training does not have, for each sentence."""
        words, known = self.layout.words, self.seen.words
        return [
            sum(word not in known for word in words[sentence.start : sentence.end]) / max(sentence.width, 1)
            for sentence in self.layout.sentences
        ]

    def of_sentence(self, figures: list[float], entity: Entity) -> float:
        """The figure of the sentence in which the entity starts."""
        return figures[self.layout.sentence_of(entity)]

    def surface(self, entity: Entity) -> str:
        """The entity's text as surfaces are compared; two attributes ask for it."""
        if entity.spans not in self._surfaces:
            self._surfaces[entity.spans] = surface(self.gold, entity)
        return self._surfaces[entity.spans]


@dataclass(frozen=True)
class Attribute:
    """A property of entities: its value, and the buckets of its values."""

    name: str
    title: str
    value: Callable[[Scene, Entity], Value]
    intervals: tuple[Interval, ...] = ()
    """Without intervals every value is a bucket."""
    categories: tuple[str, ...] = ()
    """Values in the order of the table; others follow, the most frequent first."""
    needs_training: bool = False


def _position(scene: Scene, entity: Entity) -> float:
    return (scene.before + entity.start) / max(scene.whole, 1)


_COUNTS = (Interval(0, 0), Interval(1, 1), Interval(2, 4), Interval(5, 9), Interval(10))

ATTRIBUTES: dict[str, Attribute] = {
    attribute.name: attribute
    for attribute in (
        # The intervals of the first four are those of 002, Table 5. Nested entities may be more than the words.
        Attribute(
            "entity_length",
            "Entity length (words)",
            lambda scene, entity: scene.layout.width(entity),
            (Interval(1, 1), Interval(2, 2), Interval(3, 4), Interval(5)),
        ),
        Attribute(
            "text_length",
            "Text length (words)",
            lambda scene, entity: scene.layout.sentences[scene.layout.sentence_of(entity)].width,
            (Interval(1, 7), Interval(8, 16), Interval(17, 31), Interval(32)),
        ),
        Attribute(
            "label_consistency",
            "Label consistency with training",
            lambda scene, entity: scene.seen.consistency(scene.surface(entity), entity.label),
            steps(0, 0.1, 0.5, 0.9, 1),
            needs_training=True,
        ),
        Attribute(
            "entity_density",
            "Entity density (entities per word)",
            lambda scene, entity: scene.of_sentence(scene.densities, entity),
            steps(0, 0.01, 0.025, 0.05, inf),
        ),
        Attribute(
            "oov_density",
            "Words unseen in training (share of the text)",
            lambda scene, entity: scene.of_sentence(scene.unknown, entity),
            (Interval(0, 0), *steps(-inf, 0, 0.1, 0.25, 1)[1:]),
            needs_training=True,
        ),
        Attribute(
            "training_frequency",
            "Frequency of the surface in training",
            lambda scene, entity: scene.seen.frequency(scene.surface(entity)),
            _COUNTS,
            needs_training=True,
        ),
        Attribute("nested_role", "Nested role", lambda scene, entity: scene.roles[entity.spans], categories=ROLES),
        Attribute(
            "fragments",
            "Fragments",
            lambda scene, entity: len(entity.spans),
            (Interval(1, 1), Interval(2, 2), Interval(3)),
        ),
        Attribute("position", "Position in the document", _position, steps(0, 0.25, 0.5, 0.75, 1)),
    )
}


def attribute_named(name: str) -> Attribute:
    """One of `ATTRIBUTES`; or what the corpus says, as `entity:KEY` or `document:KEY` of `meta`, dots for inner keys.

    A document's `dataset` and `group` can be named as its keys can. A found entity has what its own file says of it.
    """
    if name in ATTRIBUTES:
        return ATTRIBUTES[name]
    owner, colon, path = name.partition(":")
    if not (colon and path and owner in ("entity", "document")):
        raise ValueError(f"unknown attribute {name!r}; use {', '.join(ATTRIBUTES)}, entity:KEY or document:KEY")
    if owner == "entity":
        return Attribute(name, f"{path} (of the entity)", lambda _, entity: _looked_up(entity.meta, path))
    return Attribute(name, f"{path} (of the document)", lambda scene, _: _of_document(scene.gold, path))


def _of_document(document: Document, path: str) -> Value:
    return _looked_up({"dataset": document.dataset, "group": document.group, **document.meta}, path)


def _looked_up(meta: Any, path: str) -> Value:
    """A value by its path of keys: numbers as they are, everything else as text."""
    for key in path.split("."):
        meta = meta.get(key) if isinstance(meta, Mapping) else None
    if meta is None or (isinstance(meta, int | float) and not isinstance(meta, bool)):
        return meta
    return str(meta)


NOT_GIVEN, OUTSIDE = "not given", "other"
"""The bucket of entities without the attribute, and that of values in none of the intervals."""
FEW_VALUES = 12
"""A number that the corpus gives has a bucket for each of its values up to this many; beyond it, quartiles."""

Figure = Literal["precision", "recall", "f1"]


@dataclass(frozen=True)
class Bucket:
    """Entities of one bucket. A figure is None where there is nothing it could be counted on."""

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
        if precision is None or recall is None:  # one side says nothing of the attribute, so there is no mean
            return None
        return 2 * precision * recall / (precision + recall)

    def to_dict(self) -> dict[str, Any]:
        """Counts and figures."""
        names = ("name", "precision", "recall", "f1", "gold", "gold_right", "found", "found_right")
        return {name: getattr(self, name) for name in names}


class BucketTable(NamedTuple):
    """The buckets of one attribute, in the order of the table."""

    attribute: str
    title: str
    rows: tuple[Bucket, ...]

    def to_dict(self) -> dict[str, Any]:
        """The table as plain data."""
        return {"attribute": self.attribute, "title": self.title, "rows": [row.to_dict() for row in self.rows]}


class Gap(NamedTuple):
    """How far systems are from a standard, bucket by bucket: one block of a heat map (002, Table 6)."""

    attribute: str
    title: str
    buckets: tuple[str, ...]
    values: Mapping[str, tuple[float | None, ...]]


Cells = dict[Value, list[int]]
"""By value of an attribute: gold, right gold, found, right found."""


def buckets(
    gold: Sequence[Document],
    found: Sequence[Document],
    attributes: Iterable[str | Attribute] | None = None,
    *,
    training: Iterable[Document] | None = None,
    quantiles: int | None = None,
    allow_missing: bool = False,
) -> dict[str, BucketTable]:
    """One table for each attribute; without a choice, all of `ATTRIBUTES` (those about training if it is given).

    Intervals are the papers', or so many quantiles of the gold's values, which are the same for every system.
    """
    if attributes is None:
        chosen = [each for each in ATTRIBUTES.values() if training is not None or not each.needs_training]
    else:
        chosen = [attribute_named(each) if isinstance(each, str) else each for each in attributes]
    if training is None and (blind := [each.name for each in chosen if each.needs_training]):
        raise ValueError(f"{', '.join(blind)}: compares with the training corpus; give it (`training`, --train)")
    seen = Seen.of(training or ())
    cells: list[Cells] = [{} for _ in chosen]
    for scene in _scenes(pair(gold, found, allow_missing), seen):
        wanted, given = set(scene.gold.entities), set(scene.found)
        for column, entities, others in ((0, wanted, given), (2, given, wanted)):
            for entity in entities:
                right = entity in others
                for attribute, cell in zip(chosen, cells, strict=True):
                    counts = cell.setdefault(attribute.value(scene, entity), [0, 0, 0, 0])
                    counts[column] += 1
                    counts[column + 1] += right
    return {each.name: _table(each, cell, quantiles) for each, cell in zip(chosen, cells, strict=True)}


def _scenes(pairs: Sequence[tuple[Document, Document]], seen: Seen) -> Iterator[Scene]:
    """Each pair with its place in its group: rows of one article follow each other as they do in the file."""
    sizes: Counter[str] = Counter()
    for wanted, _ in pairs:
        if wanted.group is not None:
            sizes[wanted.group] += len(wanted.text)
    passed: Counter[str] = Counter()
    for wanted, given in pairs:
        group, size = wanted.group, len(wanted.text)
        if group is None:
            yield Scene(wanted, given.entities, seen, 0, size)
        else:
            yield Scene(wanted, given.entities, seen, passed[group], sizes[group])
            passed[group] += size


def _table(attribute: Attribute, cells: Cells, quantiles: int | None) -> BucketTable:
    intervals = _intervals(attribute, cells, quantiles)
    rows: dict[str, list[int]] = {name: [0, 0, 0, 0] for name in _first_rows(attribute, intervals)}
    for value, counts in sorted(cells.items(), key=_order):
        row = rows.setdefault(_name(value, intervals), [0, 0, 0, 0])
        row[:] = [old + new for old, new in zip(row, counts, strict=True)]
    return BucketTable(attribute.name, attribute.title, tuple(Bucket(name, *counts) for name, counts in rows.items()))


def _order(cell: tuple[Value, list[int]]) -> tuple[int, float, str]:
    """Numbers by size, then names by how often they occur, then what is not given."""
    value, counts = cell
    if isinstance(value, str):
        return 1, -counts[0] - counts[2], value
    return (2, 0, "") if value is None else (0, value, "")


def _intervals(attribute: Attribute, cells: Cells, quantiles: int | None) -> tuple[Interval, ...]:
    numbers = [value for value in cells if isinstance(value, int | float)]
    given_by_corpus = not attribute.intervals and not attribute.categories and len(numbers) > FEW_VALUES
    if numbers and (quantiles is not None or given_by_corpus):
        values = [value for value in numbers for _ in range(cells[value][0])]
        return quantile_intervals(values, quantiles or 4)
    return attribute.intervals


def _first_rows(attribute: Attribute, intervals: Sequence[Interval]) -> Iterable[str]:
    return [interval.name for interval in intervals] or attribute.categories


def _name(value: Value, intervals: Sequence[Interval]) -> str:
    if value is None:
        return NOT_GIVEN
    if isinstance(value, str) or not intervals:
        return value if isinstance(value, str) else f"{value:g}"
    return next((interval.name for interval in intervals if interval.holds(value)), OUTSIDE)


def gaps(systems: Mapping[str, Mapping[str, BucketTable]], standard: str, figure: Figure = "f1") -> list[Gap]:
    """Each system's figure minus the standard's, in every bucket (002, Table 6); None where either has no figure."""
    _check(systems, standard)
    found = []
    for name, table in systems[standard].items():
        names = tuple(dict.fromkeys(row.name for tables in systems.values() for row in tables[name].rows))
        figures = {
            system: {row.name: getattr(row, figure) for row in tables[name].rows} for system, tables in systems.items()
        }
        values = {
            system: tuple(_minus(own.get(bucket), figures[standard].get(bucket)) for bucket in names)
            for system, own in figures.items()
        }
        found.append(Gap(name, table.title, names, values))
    return found


def error_rate_gaps(systems: Mapping[str, Errors], standard: str) -> dict[str, dict[str, float]]:
    """Each system's boundary and type error rates minus the standard's (002, Table 7)."""
    _check(systems, standard)
    base = systems[standard]
    return {
        system: {
            "boundary_rate": own.boundary_rate - base.boundary_rate,
            "type_rate": own.type_rate - base.type_rate,
        }
        for system, own in systems.items()
    }


def _minus(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other


def _check(systems: Mapping[str, Any], standard: str) -> None:
    if standard not in systems:
        raise ValueError(f"no system is called {standard!r}; the standard is one of {', '.join(systems)}")
