"""Pooling: words to spans by learned scores (attention), and pieces to units.

Both ways of scoring give one number per word, whatever the span, so each word is scored once for all its spans.

Legend: B sentences, T tokens, L words or units, W widths, D word size, M candidates.
"""

import math
from typing import Literal

import torch
from torch import Tensor, nn

from wingspan.layers import grid
from wingspan.layers.autocast import at_least_float32

Scoring = Literal["multiplicative", "additive"]


class WordScores(nn.Module):
    """The weight of a word in its spans: u . tanh(W h + b), or u . tanh(W [h ; v] + b) with a learned v.

    See: Zhu et al. 2023, appendix (initial aggregation).
    """

    def __init__(self, size: int, scoring: Scoring) -> None:
        super().__init__()
        if scoring not in ("multiplicative", "additive"):
            raise ValueError(f"attention scores words multiplicative or additive, not {scoring!r}")
        additive = scoring == "additive"
        self.inner = nn.Linear(2 * size if additive else size, size)
        self.direction = vector(size)
        self.other = vector(size) if additive else None

    def forward(self, words: Tensor) -> Tensor:
        """(B, L, D) -> (B, L)"""
        if self.other is None:
            inner = self.inner(words)
        else:  # the part of v is the same for all words
            own, shared = self.inner.weight.split(words.shape[-1], dim=1)
            inner = words @ own.T + (shared @ self.other + self.inner.bias)
        scores: Tensor = torch.tanh(inner) @ self.direction
        return scores


def vector(size: int) -> nn.Parameter:
    """A learned vector with entries of variance 1 / size."""
    bound = math.sqrt(3 / size)
    return nn.Parameter(torch.empty(size).uniform_(-bound, bound))


def attend_listed(words: Tensor, scores: Tensor, held: Tensor) -> Tensor:
    """Weighted means over listed spans; `held` is the mask of the words in each span.  (B, M, L) -> (B, M, D)"""
    weights = at_least_float32(scores).unsqueeze(1).masked_fill(~held, -torch.inf).softmax(-1)
    return weights.to(words.dtype) @ words


def attend_windows(words: Tensor, scores: Tensor, width: int) -> Tensor:
    """Weighted means over all spans of the grid.  (B, L, D), (B, L) -> (B, L, W, D)"""
    narrower = torch.ones(width, width, dtype=torch.bool, device=words.device).tril()
    ahead = grid.windows(at_least_float32(scores).unsqueeze(-1), width).transpose(2, 3)  # (B, L, 1, W)
    weights = ahead.masked_fill(~narrower, -torch.inf).softmax(-1)  # (B, L, W, W)
    return weights.to(words.dtype) @ grid.windows(words, width)


Pooling = Literal["first", "last", "mean", "max"]


def pool_pieces(states: Tensor, unit_of_token: Tensor, units: int, pooling: Pooling, front: int) -> Tensor:
    """Pieces to units; there are `front` tokens before the first piece, and tokens that are no pieces belong to unit L.

    (B, T, D), (B, T) -> (B, L, D)
    """
    batch = states.shape[0]
    if pooling in ("max", "mean"):
        how = "amax" if pooling == "max" else "mean"
        # over all sentences at once: one index per row is ten times faster on a CPU than one per number
        first = torch.arange(0, batch * (units + 1), units + 1, device=states.device)[:, None]
        owner = (unit_of_token + first).flatten().unsqueeze(-1).expand(-1, states.shape[-1])
        room = states.new_zeros(batch * (units + 1), states.shape[-1])  # one more row: special tokens and padding
        pooled = room.scatter_reduce(0, owner, states.flatten(0, 1), how, include_self=False)
        return pooled.view(batch, units + 1, -1)[:, :units]
    none = unit_of_token.new_zeros(batch, units + 1)
    count = none.scatter_add(1, unit_of_token, torch.ones_like(unit_of_token))[:, :units]
    past = count.cumsum(1) + front
    at = past - count if pooling == "first" else past - 1
    return states.gather(1, at.clamp(0, states.shape[1] - 1).unsqueeze(-1).expand(-1, -1, states.shape[-1]))
