"""From a batch of sentences to entities in words: read in one piece, and joined of fragments where the recipe does."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from wingspan.batch import Gold, Inputs, entities_found, narrowed
from wingspan.decoding import resolve
from wingspan.joining import Linkable, entities_joined, join_nearest, tempered
from wingspan.labels import LabelSet
from wingspan.model import tensors
from wingspan.objectives import Thresholds, threshold_of
from wingspan.recipe import Learner, Recipe
from wingspan.text import Entity


class Reading(NamedTuple):
    """What was read of a batch, before anything is joined."""

    inputs: Inputs  # arrays, narrowed
    entities: list[list[Entity]]
    linkable: Linkable | None


def read(
    recipe: Recipe,
    labels: LabelSet,
    learner: Learner,
    inputs: Inputs,
    device: torch.device,
    thresholds: Thresholds = None,
    temperature: float = 1.0,
    bar: float | None = None,
    spans: Gold | None = None,
) -> Reading:
    """Entities in one piece, and fragments with a chance of at least the `bar`, by default the recipe's.

    `spans` are those that a model is to type, where it finds none itself.
    """
    reader: Any = learner.objectives[recipe.reader]
    links: Any = learner.objectives["links"] if recipe.read_with == "links" else None
    on_device = tensors(inputs, device), tensors(spans, device)
    states = learner.model(*on_device, spans=reader.reads_spans, features=links is not None)
    given = {} if temperature == 1.0 else {"temperature": temperature}
    inside = narrowed(inputs)
    entities = entities_found(reader.read(states, thresholds, **given), inside, labels)
    if links is None:
        return Reading(inside, entities, None)
    found, left, right, distance = links.found(states, bars_of(recipe, labels, thresholds, bar, temperature))
    return Reading(inside, entities, Linkable(found, left, right, distance, inside.core, temperature))


def joined(
    reading: Reading, recipe: Recipe, labels: LabelSet, thresholds: Thresholds = None, bar: float | None = None
) -> list[list[Entity]]:
    """All entities: with links those in one piece and those joined, by rule what stands close together is one."""
    if reading.linkable is not None:
        bars = bars_of(recipe, labels, thresholds, bar, reading.linkable.temperature)
        more, capped = entities_joined(reading.linkable, reading.inputs, labels, bars)
        if capped:
            warnings.warn("a sentence has more fragments than are joined; see docs/discontinuous.md", stacklevel=2)
        return [[*whole, *parts] for whole, parts in zip(reading.entities, more, strict=True)]
    gap = recipe.joining.most_between
    if not gap:
        return reading.entities
    assert recipe.overlap != "auto", "a trained model's overlap is resolved"
    return [join_nearest(resolve(entities, recipe.overlap), gap) for entities in reading.entities]


def bars_of(
    recipe: Recipe, labels: LabelSet, thresholds: Thresholds, bar: float | None, temperature: float = 1.0
) -> Sequence[float]:
    """The least chance of fragments and links of each class: the threshold of its label, else the recipe's bar.

    Thresholds are about scores that users see: the chance that the temperature makes such a score of is the bar.
    """
    usual = recipe.joining.least_chance if bar is None else bar
    asked = [threshold_of(name, thresholds) for name in labels.names()]
    if temperature != 1.0:  # never and always stay what they are
        asked = [low if low in (None, 0, 1) else tempered(low, 1 / temperature) for low in asked]
    return [usual if low is None else low for low in asked]
