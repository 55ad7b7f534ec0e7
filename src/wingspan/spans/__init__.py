"""Span representations: unit vectors to one vector per candidate. This file is the contract; siblings implement it."""

from abc import ABC, abstractmethod

import torch.nn.functional as F
from torch import Tensor, nn

from wingspan.candidates import Candidates
from wingspan.encoders import Words


class SpanRepresentation(nn.Module, ABC):
    """One vector for each candidate span.

    Constructed as `part(encoder, max_width, *, settings...)`. `takes_lists` says whether candidates of any width in any
    order are possible, or only the dense grid.
    """

    size: int
    takes_lists: bool = True

    @abstractmethod
    def forward(self, words: Words, candidates: Candidates) -> Tensor:
        """Span vectors.  (B, M, size)"""

    def project(self, words: Words, candidates: Candidates, linear: nn.Linear) -> Tensor:
        """A linear layer over the span vectors; a part that can do it per word, where that is exact, overrides this."""
        projected: Tensor = linear(self(words, candidates))
        return projected


def embed_widths(table: Tensor, start: Tensor, end: Tensor) -> Tensor:
    """The row of each span's width: row 0 is width 1, and spans wider than the table share its last row."""
    return F.embedding((end - start - 1).clamp(0, len(table) - 1), table)
