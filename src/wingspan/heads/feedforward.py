"""Zero or more hidden layers, then one score per class."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wingspan.heads import Head, Scored, start_rare


class FeedForwardHead(Head):
    """A linear classifier, or a small feed-forward network before it.

    `hidden` are the sizes of hidden layers; `shares` are relative sizes: (1, 0.5) for Oi and Miwa 2025's h and h / 2.
    Weights start from a normal distribution of this `spread`, biases from 0; with None both are as PyTorch draws them.
    `start_chance` is the chance of every label before training.
    See: Ji et al. eq. 16 (linear); Zhu et al. section 3.3 (one hidden layer of 300); Oi and Miwa section 3.
    """

    def __init__(
        self,
        span_size: int,
        num_classes: int,
        *,
        hidden: Sequence[int] = (),
        shares: Sequence[float] = (),
        dropout: float = 0.1,
        input_dropout: float = 0.0,
        spread: float | None = 0.02,
        start_chance: float | None = None,
    ) -> None:
        super().__init__()
        if hidden and shares:
            raise ValueError("head.hidden and head.shares both say how large hidden layers are; give one of them")
        if any(int(share * span_size) < 1 for share in shares):
            raise ValueError(f"head.shares {list(shares)}: of {span_size} nothing is left; give larger ones")
        sizes = [span_size, *hidden, *(int(share * span_size) for share in shares), num_classes]
        layers = [nn.Linear(a, b) for a, b in zip(sizes, sizes[1:], strict=False)]
        if spread is not None:
            for layer in layers:
                nn.init.normal_(layer.weight, std=spread)
                nn.init.zeros_(layer.bias)
        start_rare(layers[-1], start_chance)
        self.start_chance = start_chance
        self.layers = nn.ModuleList(layers)
        self.dropout = nn.Dropout(dropout)
        self.input_dropout = nn.Dropout(input_dropout)
        self.wants_vectors = input_dropout > 0
        self.size = sizes[-2]

    def forward(self, spans: Tensor) -> Scored:
        """Dropout, then all layers.  (B, M, S)"""
        return self.finish(self.entry(self.input_dropout(spans)))

    def finish(self, entered: Tensor) -> Scored:
        """The layers after the first."""
        features = None
        for layer in self.layers[1:]:
            # in place in prediction, where a vector for each span of the grid is the largest there is
            features = self.dropout(F.relu(entered, inplace=not torch.is_grad_enabled()))
            entered = layer(features)
        return Scored(features, entered)
