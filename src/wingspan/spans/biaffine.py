"""Spans as all products of a start vector and an end vector: the classic strong baseline.

The vector of span (i, j) is [s_i x e_j ; s_i ; e_j], s x e being all products of an entry of s with an entry of e. A
linear layer over it, one class per row, is exactly the biaffine score s_i' U e_j + w . [s_i ; e_j] + b (Yu et al.
2020), with U the row's part for the products. `project` computes it that way, so the long vector is never stored in
training and prediction.

See: Zhu et al. 2023, Table 2 (biaffine). Legend: H size of start and end vectors.
"""

import torch
from torch import Tensor, nn

from wingspan.candidates import Candidates
from wingspan.encoders import Encoder, Words
from wingspan.layers import grid
from wingspan.spans import SpanRepresentation, embed_widths


class BiaffineSpans(SpanRepresentation):
    """Two small views of each word, as the first and as the last word of a span; then a width embedding."""

    def __init__(
        self, encoder: Encoder, max_width: int, *, hidden: int = 150, width_size: int = 25, dropout: float = 0.2
    ) -> None:
        super().__init__()
        self.starts = nn.Linear(encoder.size, hidden)
        self.ends = nn.Linear(encoder.size, hidden)
        self.widths = nn.Embedding(max_width, width_size) if width_size else None
        self.dropout = nn.Dropout(dropout)
        self.parts = [hidden * hidden, hidden, hidden, width_size]
        self.size = sum(self.parts)

    def forward(self, words: Words, candidates: Candidates) -> Tensor:
        """Span vectors, which are long.  (B, M, H * H + 2 H + width size)"""
        start, end = self._views(words)
        first, last = grid.pick(start, candidates.start), grid.pick(end, candidates.end - 1)
        products = (first.unsqueeze(-1) * last.unsqueeze(-2)).flatten(2)
        views = [products, first, last]
        if self.widths is not None:
            views.append(embed_widths(self.widths.weight, candidates.start, candidates.end).to(first.dtype))
        return torch.cat(views, -1)

    def project(self, words: Words, candidates: Candidates, linear: nn.Linear) -> Tensor:
        """The biaffine form: words times U first, then products of pairs.  (B, M, out)"""
        start, end = self._views(words)
        products, first, last, wide = linear.weight.split(self.parts, dim=1)
        size = start.shape[-1]
        form = products.view(-1, size, size).transpose(0, 1).flatten(1)  # (H, out * H)
        left = (start @ form).view(*start.shape[:2], -1, size)  # (B, L, out, H)
        if candidates.width is not None:
            pairs = grid.windows(end, candidates.width) @ left.transpose(2, 3)  # (B, L, W, out)
            pairs = pairs + (start @ first.T).unsqueeze(2) + grid.windows(end @ last.T, candidates.width)
            out = pairs.flatten(1, 2)
        else:
            chosen = grid.pick(left.flatten(2), candidates.start).unflatten(-1, left.shape[2:])  # (B, M, out, H)
            out = (chosen @ grid.pick(end, candidates.end - 1).unsqueeze(-1)).squeeze(-1)
            out = out + grid.pick(start @ first.T, candidates.start) + grid.pick(end @ last.T, candidates.end - 1)
        if self.widths is not None:
            out = out + embed_widths(self.widths.weight, candidates.start, candidates.end) @ wide.T
        scored: Tensor = out if linear.bias is None else out + linear.bias
        return scored

    def _views(self, words: Words) -> tuple[Tensor, Tensor]:
        top = self.dropout(words.top)
        return self.dropout(torch.relu(self.starts(top))), self.dropout(torch.relu(self.ends(top)))
