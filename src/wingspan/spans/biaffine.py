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

BASE = 10_000.0  # the slowest turn of RoPE is one radian in this many words


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
        products = (first.unsqueeze(-1) * self._ends(end, candidates).reshape_as(last).unsqueeze(-2)).flatten(2)
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
            pairs = self._ends(end, candidates) @ left.transpose(2, 3)  # (B, L, W, out)
            pairs = pairs + (start @ first.T).unsqueeze(2) + grid.windows(end @ last.T, candidates.width)
            out = pairs.flatten(1, 2)
        else:
            chosen = grid.pick(left.flatten(2), candidates.start).unflatten(-1, left.shape[2:])  # (B, M, out, H)
            out = (chosen @ self._ends(end, candidates).unsqueeze(-1)).squeeze(-1)
            out = out + grid.pick(start @ first.T, candidates.start) + grid.pick(end @ last.T, candidates.end - 1)
        if self.widths is not None:
            out = out + embed_widths(self.widths.weight, candidates.start, candidates.end) @ wide.T
        scored: Tensor = out if linear.bias is None else out + linear.bias
        return scored

    def _ends(self, end: Tensor, candidates: Candidates) -> Tensor:
        """End vectors as starts meet them in products.  (B, L, H) -> (B, L, W, H), of a list (B, M, H)"""
        if candidates.width is None:
            return grid.pick(end, candidates.end - 1)
        return grid.windows(end, candidates.width)

    def _views(self, words: Words) -> tuple[Tensor, Tensor]:
        top = self.dropout(words.top)
        return self.dropout(torch.relu(self.starts(top))), self.dropout(torch.relu(self.ends(top)))


class RotaryBiaffineSpans(BiaffineSpans):
    """The same with rotary positions: in products, end vectors are turned by their distance from the start.

    Turning starts and ends by their own positions would leave the same, as long as nothing but a turn that commutes
    with them were between; U is not such a turn, so the distance goes to one side. See: Su et al. 2021,
    RoFormer, and 2022, Global Pointer.
    """

    def __init__(
        self, encoder: Encoder, max_width: int, *, hidden: int = 150, width_size: int = 25, dropout: float = 0.2
    ) -> None:
        if hidden % 2:
            raise ValueError(f"RotaryBiaffineSpans.hidden is {hidden}; entries turn in pairs: give an even one")
        super().__init__(encoder, max_width, hidden=hidden, width_size=width_size, dropout=dropout)

    def _ends(self, end: Tensor, candidates: Candidates) -> Tensor:
        if candidates.width is None:
            away = candidates.end - 1 - candidates.start  # (B, M)
        else:
            away = torch.arange(candidates.width, device=end.device)
        return turned(super()._ends(end, candidates), away)


def turned(vectors: Tensor, away: Tensor) -> Tensor:
    """Each pair of entries turned by an angle that grows with the distance, fast for the first, slowly for the last.

    Pairs are entry k of the first half and of the second.  (..., H), (...) -> (..., H)
    """
    half = vectors.shape[-1] // 2
    speed = BASE ** (-torch.arange(half, device=vectors.device) / half)  # (H / 2,)
    angle = away.unsqueeze(-1) * speed
    cosine, sine = angle.cos().to(vectors.dtype), angle.sin().to(vectors.dtype)
    one, other = vectors.split(half, -1)
    return torch.cat([one * cosine - other * sine, one * sine + other * cosine], -1)
