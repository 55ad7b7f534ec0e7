"""Which spans are represented and scored: the whole grid, or gold spans with sampled negatives.

Everything after the encoder sees `Candidates`: lists of (start, end), or the dense grid in the same shape.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor, nn

from wingspan.batch import Gold, Inputs


class Candidates(NamedTuple):
    """Spans in units. `width` is W where the list is the dense grid, start by start: M = L * W."""

    start: Tensor  # (B, M)
    end: Tensor  # (B, M) half-open
    mask: Tensor  # (B, M) true for spans that count
    width: int | None


class CandidatePolicy(nn.Module, ABC):
    """Chooses candidates. `gold` is given in training only."""

    @abstractmethod
    def forward(self, inputs: Inputs, gold: Gold | None) -> Candidates:
        """The candidates of a batch."""


class Grid(CandidatePolicy):
    """All spans of up to `max_width` units that start in the core, end in the reach and lie on word borders."""

    def __init__(self, max_width: int) -> None:
        super().__init__()
        self.max_width = max_width

    def forward(self, inputs: Inputs, gold: Gold | None = None) -> Candidates:
        """The dense grid; M = L * W."""
        batch, length = inputs.unit_mask.shape
        width = min(self.max_width, length)
        start = torch.arange(length, device=inputs.unit_mask.device)[:, None].expand(length, width)
        end = start + torch.arange(1, width + 1, device=start.device)  # (L, W)
        last = (end - 1).clamp(max=length - 1)
        mask = (inputs.starts[:, :, None] & inputs.ends[:, last]).flatten(1)  # (B, L * W)
        start, end = start.flatten(), end.flatten()
        mask = mask & (start >= inputs.core[:, :1]) & (start < inputs.core[:, 1:]) & (end <= inputs.reach[:, 1:])
        return Candidates(start.expand(batch, -1), end.expand(batch, -1), mask, width)


class Sampled(CandidatePolicy):
    """In training, the gold spans of any width and up to `negatives` others, drawn anew each time; else the grid.

    See: paper 002, section 3.3, and SpERT's sampler: at most 100 negatives per sentence, without replacement.
    """

    def __init__(self, max_width: int, *, negatives: int = 100) -> None:
        super().__init__()
        self.grid = Grid(max_width)
        self.negatives = negatives

    def forward(self, inputs: Inputs, gold: Gold | None) -> Candidates:
        """Gold first, then the sample."""
        cells: Candidates = self.grid(inputs)
        if gold is None:
            return cells
        assert cells.width is not None
        hits = same_spans(cells, gold).any(-1)  # (B, M)
        free = cells.mask & ~hits
        draw = torch.rand(free.shape, device=free.device).masked_fill(~free, -1.0)
        chance, at = draw.topk(min(self.negatives, draw.shape[1]), dim=1)  # (B, n)
        counts = (gold.start >= inputs.core[:, :1]) & (gold.start < inputs.core[:, 1:])
        counts = counts & (gold.end <= inputs.reach[:, 1:]) & ~repeated(gold)
        return Candidates(
            torch.cat([gold.start, cells.start.gather(1, at)], 1),
            torch.cat([gold.end, cells.end.gather(1, at)], 1),
            torch.cat([gold.mask & counts, chance >= 0], 1),
            None,
        )


def repeated(gold: Gold) -> Tensor:
    """Which gold spans stand before already, under another label: one span is one candidate.  (B, E)"""
    same = (gold.start[:, :, None] == gold.start[:, None]) & (gold.end[:, :, None] == gold.end[:, None])
    before: Tensor = (same & gold.mask[:, None]).tril(-1).any(-1)
    return before


def same_spans(candidates: Candidates, gold: Gold) -> Tensor:
    """Which candidate is which gold span.  (B, M, E)"""
    same_start = candidates.start[:, :, None] == gold.start[:, None, :]
    same: Tensor = same_start & (candidates.end[:, :, None] == gold.end[:, None, :]) & gold.mask[:, None, :]
    return same
