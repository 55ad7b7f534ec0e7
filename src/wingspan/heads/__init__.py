"""Heads: span vectors to features and class scores. This file is the contract; siblings implement it."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn


class Scored(NamedTuple):
    """The head's results for each candidate."""

    features: Tensor | None  # (B, M, F) the input of the last linear layer; None if that is the span vector itself
    scores: Tensor  # (B, M, C) raw
    divergence: Tensor | None = None  # (B, M) the cost of a stochastic head
    samples: Tensor | None = None  # (K, B, M, C) raw scores of K draws of a stochastic head, in training


class Head(nn.Module, ABC):
    """Constructed as `part(span_size, num_classes, *, settings...)`.

    `entry` is the first linear layer, which a span representation may compute per word; `finish` does the rest.
    """

    size: int  # the size F of the features
    wants_vectors: bool = False
    """Whether the head changes span vectors before its entry layer in training, for example by dropout."""

    start_chance: float | None = None
    """The chance of each label before training; None: as the weights are drawn."""

    layers: nn.ModuleList

    @property
    def classifier(self) -> nn.Linear:
        """The last linear layer, which gives the scores."""
        last = self.layers[-1]
        assert isinstance(last, nn.Linear)
        return last

    def expect_nothing(self, classes: Sequence[int]) -> None:
        """Where labels start rare, "nothing" does not: these classes of a softmax start with the rest of the chance."""
        if self.start_chance is not None:
            with torch.no_grad():
                self.classifier.bias[list(classes)] = 0.0

    @property
    def entry(self) -> nn.Linear:
        """The first linear layer, which takes span vectors."""
        first = self.layers[0]
        assert isinstance(first, nn.Linear)
        return first

    @abstractmethod
    def finish(self, entered: Tensor) -> Scored:
        """From the entry layer's output to the scores."""

    @abstractmethod
    def forward(self, spans: Tensor) -> Scored:
        """From span vectors to scores, with dropout in training.  (B, M, S)"""


def start_rare(classifier: nn.Linear, chance: float | None) -> None:
    """Starts a classifier at this chance of each class, because entities are rare among spans.

    From one half, the first epochs would only learn that. See: Lin et al. 2017, Focal Loss, sections 3.3 and 4.1.
    """
    if chance is None:
        return
    if not 0 < chance < 1:
        raise ValueError(f"head.start_chance is {chance}; it is a chance between 0 and 1")
    nn.init.constant_(classifier.bias, math.log(chance / (1 - chance)))
