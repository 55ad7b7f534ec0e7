"""Spans through a linear layer: around another span representation.  See: paper 004, eq. 1."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from wingspan.candidates import Candidates
from wingspan.encoders import Encoder, Words
from wingspan.spans import SpanRepresentation


class ProjectedSpans(SpanRepresentation):
    """A linear layer, ReLU and dropout; `size` is that of the vectors, as large as a word's by default."""

    def __init__(
        self,
        encoder: Encoder,
        max_width: int,
        *,
        around: Callable[..., SpanRepresentation],
        size: int | None = None,
        dropout: float = 0.2,
    ) -> None:
        super().__init__()
        self.around = around(encoder, max_width)
        self.takes_lists = self.around.takes_lists
        self.size = encoder.size if size is None else size
        self.linear = nn.Linear(self.around.size, self.size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, words: Words, candidates: Candidates) -> Tensor:
        """Span vectors.  (B, M, size)"""
        projected: Tensor = self.dropout(torch.relu(self.around.project(words, candidates, self.linear)))
        return projected
