"""Heads: span vectors to features and class scores. This file is the contract; siblings implement it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import NamedTuple

from torch import Tensor, nn


class Scored(NamedTuple):
    """What a head says about each candidate."""

    features: Tensor | None  # (B, M, F) what the scores are linear in; None where that is the span vector itself
    scores: Tensor  # (B, M, C) raw
    divergence: Tensor | None = None  # (B, M) what a stochastic head charges
    samples: Tensor | None = None  # (K, B, M, C) raw scores of K draws of a stochastic head, in training


class Head(nn.Module, ABC):
    """Constructed as `part(span_size, num_classes, *, settings...)`.

    `entry` is the first linear layer: a span representation may compute it per word, then `finish` does the rest.
    """

    size: int
    """The size F of the features."""
    wants_vectors: bool = False
    """Whether the head does something to span vectors before its entry layer in training, such as dropout."""

    @property
    @abstractmethod
    def entry(self) -> nn.Linear:
        """The first linear layer, which takes span vectors."""

    @abstractmethod
    def finish(self, entered: Tensor) -> Scored:
        """From the entry layer's output to the scores."""

    @abstractmethod
    def forward(self, spans: Tensor) -> Scored:
        """From span vectors to scores, with dropout in training.  (B, M, S)"""


def start_rare(classifier: nn.Linear, chance: float | None) -> None:
    """Makes a new classifier say yes to each class with this chance; entities are rare among spans.

    From one half, the first epochs are spent on learning that. See: Lin et al. 2017, Focal Loss, sections 3.3 and 4.1.
    """
    if chance is None:
        return
    if not 0 < chance < 1:
        raise ValueError(f"head.start_chance is {chance}; it is a chance between 0 and 1")
    nn.init.constant_(classifier.bias, math.log(chance / (1 - chance)))
