"""Candidates: the spans that are represented and scored. This file has the contract and the simple policies.

Everything after the encoder sees `Candidates`: lists of (start, end), or the dense grid in the same shape.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wingspan.batch import Gold, Inputs
from wingspan.encoders import Encoder, Words
from wingspan.layers.tracing import cached, exporting


class Candidates(NamedTuple):
    """Spans in units. `width` is W where the list is the dense grid, start by start: M = L * W."""

    start: Tensor  # (B, M)
    end: Tensor  # (B, M) half-open
    mask: Tensor  # (B, M) true for spans that count
    width: int | None
    proposals: Tensor | None = None  # (B, L, L) scores of first and last unit; minus infinity for impossible spans


class CandidatePolicy(nn.Module, ABC):
    """Chooses candidates. Constructed as `part(encoder, max_width, *, settings...)`; `gold` is given in training only.

    `gives_lists`: candidates are lists, which not every span representation can take. `unlimited`: they can have any
    width. `given`: nothing is chosen; `gold` has the spans, without labels, in prediction too.
    """

    gives_lists: ClassVar[bool] = False
    unlimited: ClassVar[bool] = False
    given: ClassVar[bool] = False

    @abstractmethod
    def forward(self, inputs: Inputs, words: Words, gold: Gold | None = None) -> Candidates:
        """The candidates of a batch."""


class Grid(CandidatePolicy):
    """All spans of up to `max_width` units that start in the core, end in the reach and lie on word borders.

    With `within_words`, spans of pieces that are off the word borders count in training, as examples of no entity.
    """

    def __init__(self, encoder: Encoder, max_width: int, *, within_words: bool = False) -> None:
        super().__init__()
        self.max_width = max_width
        self.within_words = within_words

    def forward(self, inputs: Inputs, words: Words, gold: Gold | None = None) -> Candidates:
        """The dense grid; M = L * W."""
        batch, length = inputs.unit_mask.shape
        width = self.max_width if exporting() else min(self.max_width, length)  # a graph gets rows that are long enough
        start, end = (part.expand(batch, -1) for part in cells(length, width, inputs.unit_mask.device))
        if self.within_words and gold is not None:
            ends = F.pad(inputs.unit_mask, (0, width - 1)).unfold(1, width, 1)  # (B, L, W)
            mask = (inputs.unit_mask[:, :, None] & ends).flatten(1) & counts(start, end, inputs)
        else:
            mask = (inputs.opens[:, :, None] & F.pad(inputs.closes, (0, width - 1)).unfold(1, width, 1)).flatten(1)
        return Candidates(start, end, mask, width)


@cached(512)
def cells(length: int, width: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Starts and ends of the grid, start by start; cached, because on a GPU every call counts.  (L * W,)"""
    with torch.inference_mode(False):  # cached tensors may be used in training later
        start = torch.arange(length, device=device)[:, None].expand(length, width)
        end = start + torch.arange(1, width + 1, device=device)
        return start.flatten(), end.flatten()


class Sampled(CandidatePolicy):
    """In training, the gold spans of any width and up to `negatives` random others; in prediction, the grid.

    See: Ji et al. 2022, section 3.2.2 and eq. 20, and SpERT's sampler: at most 100 per sentence, without replacement.
    """

    gives_lists = True

    def __init__(self, encoder: Encoder, max_width: int, *, negatives: int = 100) -> None:
        super().__init__()
        if negatives < 0:
            raise ValueError(f"candidates.negatives is {negatives}; give 0 or more")
        self.grid = Grid(encoder, max_width)
        self.negatives = negatives

    def forward(self, inputs: Inputs, words: Words, gold: Gold | None = None) -> Candidates:
        """Gold first, then the sample."""
        cells: Candidates = self.grid(inputs, words)
        if gold is None:
            return cells
        assert cells.width is not None
        hits = same_spans(cells, gold).any(-1)  # (B, M)
        free = cells.mask & ~hits
        draw = torch.rand(free.shape, device=free.device).masked_fill(~free, -1.0)
        chance, at = draw.topk(min(self.negatives, draw.shape[1]), dim=1)  # (B, n)
        return Candidates(
            torch.cat([gold.start, cells.start.gather(1, at)], 1),
            torch.cat([gold.end, cells.end.gather(1, at)], 1),
            torch.cat([gold.mask & counts(gold.start, gold.end, inputs) & ~repeated(gold), chance >= 0], 1),
            None,
        )


class Given(CandidatePolicy):
    """The given spans, of any width, one candidate for each label: only types are predicted.  See: SNG."""

    gives_lists = True
    unlimited = True
    given = True

    def __init__(self, encoder: Encoder, max_width: int) -> None:
        super().__init__()

    def forward(self, inputs: Inputs, words: Words, gold: Gold | None = None) -> Candidates:
        """The spans of `gold` in its order."""
        if gold is None:
            raise ValueError("this model types given spans; give it documents with entities, it finds none itself")
        return Candidates(gold.start, gold.end.clamp(min=1), gold.mask, None)


def counts(start: Tensor, end: Tensor, inputs: Inputs) -> Tensor:
    """Mask of the spans that start in the core and end in the reach; others belong to other windows.  (B, M)"""
    inside: Tensor = (start >= inputs.core[:, :1]) & (start < inputs.core[:, 1:]) & (end <= inputs.reach[:, 1:])
    return inside


def repeated(gold: Gold) -> Tensor:
    """Mask of the gold spans that occur earlier with another label: a span is one candidate.  (B, E)"""
    same = (gold.start[:, :, None] == gold.start[:, None]) & (gold.end[:, :, None] == gold.end[:, None])
    before: Tensor = (same & gold.mask[:, None]).tril(-1).any(-1)
    return before


def same_spans(candidates: Candidates, gold: Gold) -> Tensor:
    """Mask of the candidates that are gold spans.  (B, M, E)"""
    same_start = candidates.start[:, :, None] == gold.start[:, None, :]
    same: Tensor = same_start & (candidates.end[:, :, None] == gold.end[:, None, :]) & gold.mask[:, None, :]
    return same
