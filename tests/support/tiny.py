"""Small sentences and batches for the tests of the tensor parts."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from old_collate import piece_units, word_units

from wingspan.batch import Gold, Inputs, gold_spans
from wingspan.candidates import Candidates, Grid
from wingspan.encoders import Words
from wingspan.labels import LabelSet
from wingspan.model import tensors
from wingspan.objectives import Objective, Sizes
from wingspan.text import Entity, Sentence, Span

LABELS = LabelSet({"main": ("Drug", "Gene")})  # classes: 0 nothing, 1 Drug, 2 Gene
DRUG, GENE = 1, 2
ENCODER = SimpleNamespace(size=5, blocks=None)  # all that parts may ask of an encoder when they are made


def sentence(words: str, *entities: tuple[str, int, int], core: tuple[int, int] | None = None, **others) -> Sentence:
    """A sentence of words between spaces; entities as (label, start, end) in words."""
    split = tuple(words.split())
    whole = Span(0, len(split))
    found = tuple(Entity.at(*entity) for entity in entities)
    reach = Span(*others.pop("reach", whole))
    return Sentence(split, found, Span(*core) if core else whole, reach, (), **others)


def of_length(length: int, *entities: tuple[str, int, int], **others) -> Sentence:
    """A sentence of so many words."""
    return sentence(" ".join(f"w{n}" for n in range(length)), *entities, **others)


def word_inputs(sentences: Sequence[Sentence]) -> Inputs:
    """Inputs with words as units, as tensors; no encoder is needed."""
    units = word_units(sentences)
    none = np.zeros((len(sentences), 1), dtype=np.int64)
    return tensors(Inputs(tokens=none, token_mask=none > 0, unit_of_token=none, **units), "cpu")


def piece_inputs(sentences: Sequence[Sentence], counts: Sequence[Sequence[int]]) -> Inputs:
    """Inputs with pieces as units: so many for each word."""
    units = piece_units(sentences, [[(7,) * count for count in row] for row in counts])
    none = np.zeros((len(sentences), 1), dtype=np.int64)
    return tensors(Inputs(tokens=none, token_mask=none > 0, unit_of_token=none, **units), "cpu")


def gold_of(sentences: Sequence[Sentence], inputs: Inputs, labels: LabelSet = LABELS) -> Gold:
    """The gold spans as tensors."""
    return tensors(gold_spans(sentences, arrays_of(inputs), labels), "cpu")


def targets_of(objective: Objective, sentences: Sequence[Sentence], inputs: Inputs | None = None) -> Any:
    """The targets of an objective as tensors; units are words unless there are inputs with others."""
    return tensors(objective.targets(sentences, arrays_of(inputs or word_inputs(sentences))), "cpu")


def arrays_of(inputs: Inputs) -> Inputs:
    """Tensors as the tokenizer's arrays again; sentences without context."""
    return Inputs(*(part.numpy() for part in inputs[:-1]))


def vectors(inputs: Inputs, size: int = 5, seed: int = 0) -> Words:
    """Random vectors for each unit: the same for the same sentence number and place, whatever the padding."""
    batch, length = inputs.unit_mask.shape
    draws = np.random.default_rng(seed).standard_normal((batch, 64, size + 1), dtype=np.float32)
    top = torch.from_numpy(draws[:, :length, :size].copy())
    sentences = torch.from_numpy(draws[:, 0, 1:].copy())
    return Words(top, (), sentences, inputs.unit_mask)


def grid_of(inputs: Inputs, width: int) -> Candidates:
    """All spans of up to so many units."""
    return Grid(ENCODER, width)(inputs, vectors(inputs))


def sizes(overlap: str = "flat", word: int = 5, labels: LabelSet = LABELS) -> Sizes:
    """The sizes that an objective gets."""
    return Sizes(labels, 4, overlap, word, 1, 1)
