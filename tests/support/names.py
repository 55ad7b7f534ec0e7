"""Small lexicons, and what the tests of generation start from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from tiny import LABELS, gold_of, sizes, targets_of, vectors, word_inputs

from wingspan.model import States
from wingspan.objectives.generation import Generation
from wingspan.text import Sentence

SPAN = 6


class Listed:
    """A lexicon from a dictionary of lower-cased names."""

    def __init__(self, names: Mapping[str, Sequence[str]]) -> None:
        self.names = names

    def synonyms(self, surface: str, label: str | None = None) -> tuple[str, ...]:
        return tuple(self.names.get(surface.lower(), ()))


class Invented:
    """A lexicon that has two names for everything."""

    def synonyms(self, surface: str, label: str | None = None) -> tuple[str, ...]:
        return (f"other {surface}", f"{label} {surface}")


def generation(sentences: Sequence[Sentence], lexicon=None, **settings) -> Generation:
    """A small objective that has studied these sentences."""
    chosen = {"latent_size": 4, "embedding_size": 3, "hidden": 5, "word_dropout": 0.0, **settings}
    if lexicon is None:
        chosen.setdefault("tasks", ("words",))
    studied = Generation.study(sentences, lexicon, chosen)
    torch.manual_seed(0)
    return Generation(sizes()._replace(span=SPAN, studied=studied), **chosen)


def batch_of(objective: Generation, sentences: Sequence[Sentence]):
    """States with random gold vectors, the gold, and the targets as tensors."""
    inputs = word_inputs(sentences)
    gold = gold_of(sentences, inputs, LABELS)
    torch.manual_seed(3)
    found = torch.randn(*gold.start.shape, SPAN, requires_grad=True)
    return States(inputs, vectors(inputs), gold=found), gold, targets_of(objective, sentences, inputs)
