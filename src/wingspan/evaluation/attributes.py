"""Attributes of entities by which scores are broken down: length, density, consistency, role, what the corpus says.

An attribute is a function of a document pair (`Scene`) and one entity, gold or found. What is said of a text (its
length, its density) is said of the sentence in which the entity starts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Any

from wingspan.evaluation.intervals import Interval, steps
from wingspan.evaluation.layout import TextLayout
from wingspan.evaluation.roles import ROLES, Place, Role, nested_roles
from wingspan.evaluation.seen import Seen, surface
from wingspan.text import Document, Entity

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
