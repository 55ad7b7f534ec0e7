"""Spans as weighted means of their words: multiplicative or additive attention.  See: Zhu et al., Table 3 (shallow)."""

import torch
from torch import Tensor, nn

from wingspan.candidates import Candidates
from wingspan.encoders import Encoder, Words
from wingspan.layers.grid import inside
from wingspan.layers.pooling import Scoring, WordScores, attend_listed, attend_windows
from wingspan.spans import SpanRepresentation, embed_widths


class AttentiveSpans(SpanRepresentation):
    """A softmax over the words of each span, then a width embedding."""

    def __init__(
        self,
        encoder: Encoder,
        max_width: int,
        *,
        scoring: Scoring = "multiplicative",
        width_size: int = 0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.scores = WordScores(encoder.size, scoring)
        self.widths = nn.Embedding(max_width, width_size) if width_size else None
        self.dropout = nn.Dropout(dropout)
        self.size = encoder.size + width_size

    def forward(self, words: Words, candidates: Candidates) -> Tensor:
        """Span vectors.  (B, M, size)"""
        top = self.dropout(words.top)
        spans = weighted(top, self.scores(top), candidates)
        if self.widths is None:
            return spans
        widths = embed_widths(self.widths.weight, candidates.start, candidates.end)
        return torch.cat([spans, widths.to(spans.dtype)], -1)

    def project(self, words: Words, candidates: Candidates, linear: nn.Linear) -> Tensor:
        """A weighted mean commutes with a linear layer, so words are projected first."""
        top = self.dropout(words.top)
        size = top.shape[-1]
        out = weighted(top @ linear.weight[:, :size].T, self.scores(top), candidates)
        if self.widths is not None:
            out = out + embed_widths(self.widths.weight, candidates.start, candidates.end) @ linear.weight[:, size:].T
        return out if linear.bias is None else out + linear.bias


def weighted(words: Tensor, scores: Tensor, candidates: Candidates) -> Tensor:
    """Weighted means of the words of each candidate.  (B, L, D), (B, L) -> (B, M, D)"""
    if candidates.width is not None:
        return attend_windows(words, scores, candidates.width).flatten(1, 2)
    return attend_listed(words, scores, inside(candidates.start, candidates.end, words.shape[1]))
