"""Vectors in the context of their neighbors: residual convolutions, each over a word and the words beside it.

Cf. the tok2vec layer of spaCy (Miranda et al. 2022). Unlike a recurrent layer it walks along no sentence: all places
are one matrix product.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

PIECES = 2  # linear functions that each output is the maximum of


class Convolutions(nn.Module):
    """(B, L, size) -> (B, L, size); `depth` words to either side are in sight."""

    def __init__(self, size: int, depth: int, dropout: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Maxout(3 * size, size) for _ in range(depth))
        self.dropout = nn.Dropout(dropout)

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """`mask` is true for real places; the others are zero, as what lies beyond a sentence is.  (B, L)"""
        real = mask.unsqueeze(-1)
        vectors = vectors * real
        for layer in self.layers:
            around = F.pad(vectors, (0, 0, 1, 1))
            sight = torch.cat([around[:, :-2], vectors, around[:, 2:]], -1)  # (B, L, 3 * size)
            vectors = (vectors + self.dropout(layer(sight))) * real
        return vectors


class Maxout(nn.Module):
    """The maximum of several linear functions, normalized.  See: Goodfellow et al. 2013, Maxout Networks."""

    def __init__(self, entered: int, size: int) -> None:
        super().__init__()
        self.linear = nn.Linear(entered, PIECES * size)
        self.normalize = nn.LayerNorm(size)

    def forward(self, vectors: Tensor) -> Tensor:
        """(..., entered) -> (..., size)"""
        one, other = self.linear(vectors).chunk(PIECES, -1)
        normal: Tensor = self.normalize(torch.maximum(one, other))
        return normal
