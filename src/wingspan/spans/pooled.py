"""Spans as a selection of pooled views: first, last, mean, max of their words, the sentence, the width.

See: Ji et al. eq. 13 to 15 (boundary, pooling, hybrid); Nguyen et al. (first, mean, last); Oi and Miwa (ends, width).
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wingspan.candidates import Candidates
from wingspan.encoders import Encoder, Words
from wingspan.layers import grid
from wingspan.spans import SpanRepresentation, embed_widths

VIEWS = ("first", "last", "mean", "max")


class PooledSpans(SpanRepresentation):
    """The chosen views side by side, then the sentence vector, then a width embedding."""

    def __init__(
        self,
        encoder: Encoder,
        max_width: int,
        *,
        views: Sequence[str] = ("first", "last", "max"),
        sentence: bool = False,
        width_size: int = 0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        unknown = [view for view in views if view not in VIEWS]
        if unknown:
            raise ValueError(f"PooledSpans has no view {unknown[0]!r}; use {', '.join(VIEWS)}")
        if not views or len(set(views)) < len(views):
            raise ValueError(f"PooledSpans takes each view once, and at least one; not {', '.join(views) or 'none'}")
        self.views = tuple(views)
        self.sentence = sentence
        self.widths = nn.Embedding(max_width, width_size) if width_size else None
        # on words, not on spans: a word is dropped for all its spans at once, so words can still be projected once
        self.dropout = nn.Dropout(dropout)
        self.size = encoder.size * (len(self.views) + sentence) + width_size

    def forward(self, words: Words, candidates: Candidates) -> Tensor:
        """Span vectors.  (B, M, size)"""
        words = words._replace(top=self.dropout(words.top), sentence=self.dropout(words.sentence))
        parts = [pool(view, words.top, candidates).flatten(1, 2) for view in self.views]
        if self.sentence:
            parts.append(words.sentence[:, None].expand(-1, candidates.start.shape[1], -1))
        if self.widths is not None:
            parts.append(embed_widths(self.widths.weight, candidates.start, candidates.end))
        return torch.cat([part.to(words.top.dtype) for part in parts], -1)

    def project(self, words: Words, candidates: Candidates, linear: nn.Linear) -> Tensor:
        """Each view times its columns of the weight; all but the maximum commute with it, so words go first."""
        words = words._replace(top=self.dropout(words.top), sentence=self.dropout(words.sentence))
        sizes = [words.top.shape[-1]] * (len(self.views) + self.sentence)
        sizes += [] if self.widths is None else [self.widths.embedding_dim]
        columns = iter(torch.split(linear.weight, sizes, dim=1))
        weights = {view: next(columns).T for view in self.views}
        if self.sentence:
            out = F.linear(words.sentence, next(columns), linear.bias)[:, None, None]  # (B, 1, 1, out)
        else:
            out = linear.bias if linear.bias is not None else words.top.new_zeros(linear.out_features)
        if self.widths is not None:
            rows = self.widths.weight @ next(columns).T
            if candidates.width is not None:
                out = out + rows[: candidates.width]
            else:
                out = out + embed_widths(rows, candidates.start, candidates.end).unsqueeze(2)
        early = [pool(view, words.top @ weight, candidates) for view, weight in weights.items() if view != "max"]
        for number, part in enumerate(early):
            out = out + part if number == 0 else out.add_(part)  # writing one vector per span is the main cost
        if "max" in weights and candidates.width is not None:
            out = grid.add_maxima(out, words.top, weights["max"], candidates.width)
        elif "max" in weights:
            out = out + pool("max", words.top, candidates) @ weights["max"]
        return out.flatten(1, 2)  # (B, M, out)


def pool(view: str, words: Tensor, candidates: Candidates) -> Tensor:
    """One view: cumulative on the grid, gathered from a list.  (B, L, D) -> (B, L, W, D), of a list (B, M, 1, D)"""
    if candidates.width is not None:
        dense = {"first": grid.first_words, "last": grid.windows, "mean": grid.mean_words, "max": grid.max_words}
        return dense[view](words, candidates.width)
    if view == "first":
        return grid.pick(words, candidates.start).unsqueeze(2)
    if view == "last":
        return grid.pick(words, candidates.end - 1).unsqueeze(2)
    ranges = grid.range_means if view == "mean" else grid.range_maxima
    return ranges(words, candidates.start, candidates.end).unsqueeze(2)
