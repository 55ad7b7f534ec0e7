"""Which spans are represented and scored: the whole grid, gold with sampled negatives, the best of any width, or given
ones.

Everything after the encoder sees `Candidates`: lists of (start, end), or the dense grid in the same shape.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import lru_cache
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wingspan.batch import Gold, Inputs
from wingspan.encoders import Encoder, Words
from wingspan.pairs import BUCKETS, gated_sums, pairs
from wingspan.precision import at_least_float32


class Candidates(NamedTuple):
    """Spans in units. `width` is W where the list is the dense grid, start by start: M = L * W."""

    start: Tensor  # (B, M)
    end: Tensor  # (B, M) half-open
    mask: Tensor  # (B, M) true for spans that count
    width: int | None
    proposals: Tensor | None = None  # (B, L, L) scores of first and last unit; minus infinity where no span can be


class CandidatePolicy(nn.Module, ABC):
    """Chooses candidates. Constructed as `part(encoder, max_width, *, settings...)`; `gold` is given in training only.

    `gives_lists`: not every span representation can take lists. `unlimited`: spans of any width can be chosen.
    `given`: nothing is chosen, so `gold` has the spans, not their labels, in prediction too.
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
        length = inputs.unit_mask.shape[1]
        width = min(self.max_width, length)
        start, end = (part.expand(len(inputs.unit_mask), -1) for part in cells(length, width, inputs.unit_mask.device))
        if self.within_words and gold is not None:
            ends = F.pad(inputs.unit_mask, (0, width - 1)).unfold(1, width, 1)  # (B, L, W)
            mask = (inputs.unit_mask[:, :, None] & ends).flatten(1) & counts(start, end, inputs)
        else:
            mask = (inputs.opens[:, :, None] & F.pad(inputs.closes, (0, width - 1)).unfold(1, width, 1)).flatten(1)
        return Candidates(start, end, mask, width)


@lru_cache(maxsize=512)
def cells(length: int, width: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Starts and ends of the grid, start by start. Kept, because on a GPU each call that is saved counts.  (L * W,)"""
    with torch.inference_mode(False):  # what is kept may take part in training later
        start = torch.arange(length, device=device)[:, None].expand(length, width)
        end = start + torch.arange(1, width + 1, device=device)
        return start.flatten(), end.flatten()


class Sampled(CandidatePolicy):
    """In training, the gold spans of any width and up to `negatives` others, drawn anew each time; else the grid.

    See: paper 002, section 3.2.2 and eq. 20, and SpERT's sampler: at most 100 per sentence, without replacement.
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


class Proposed(CandidatePolicy):
    """The best spans of any width, `budget` of them for each word of a sentence, by a cheap score of start and end.

    score(i, j) = left(i) · right(j) + mean of inside(i..j) · (left gate(i) + right gate(j)) + left bias(i) + right
    bias(j) + a bias for the width, for all pairs at once. In training the gold spans are added; `objectives.proposing`
    trains the scores. `threshold` (a chance) leaves out unlikely spans in prediction, so that easy sentences cost less
    than their budget. `max_width` is no limit here.
    """

    gives_lists = True
    unlimited = True

    def __init__(
        self,
        encoder: Encoder,
        max_width: int,
        *,
        budget: float = 1.0,
        threshold: float | None = None,
        size: int = 64,
        inside_size: int = 16,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        if not budget > 0:
            raise ValueError(f"candidates.budget is {budget}; give more than 0 spans for each word")
        if threshold is not None and not 0 <= threshold < 1:
            raise ValueError(f"candidates.threshold is {threshold}; it is a chance, from 0 to less than 1")
        self.budget = budget
        self.threshold = threshold
        self.sizes = (size, inside_size, 1)
        self.dropout = nn.Dropout(dropout)
        self.left = nn.Linear(encoder.size, sum(self.sizes))
        self.right = nn.Linear(encoder.size, sum(self.sizes))
        self.inside = nn.Linear(encoder.size, inside_size) if inside_size else None
        self.widths = nn.Embedding(BUCKETS, 1)
        nn.init.zeros_(self.widths.weight)

    def forward(self, inputs: Inputs, words: Words, gold: Gold | None = None) -> Candidates:
        """The best spans, best first; gold that is not among them after them."""
        best = self.best(inputs, words, self.budget)
        if gold is None:
            return best if self.threshold is None else likely(best, self.threshold)
        known = same_spans(best, gold) & best.mask[:, :, None]  # (B, K, E)
        new = gold.mask & counts(gold.start, gold.end, inputs) & ~repeated(gold) & ~known.any(1)
        pairs = zip(best[:3], (gold.start, gold.end, new), strict=True)
        start, end, mask = (torch.cat(pair, 1) for pair in pairs)
        return Candidates(start, end, mask, None, best.proposals)

    def best(self, inputs: Inputs, words: Words, budget: float) -> Candidates:
        """The best `budget` spans for each word, and the scores they were chosen by."""
        scores = self.score(inputs, words)
        return choose(scores.detach(), inputs, budget)._replace(proposals=scores)

    def score(self, inputs: Inputs, words: Words) -> Tensor:
        """Raw scores of all spans, in float32: half precision has too few digits to rank them.  (B, L, L)"""
        with torch.autocast(words.top.device.type, enabled=False):
            top = self.dropout(at_least_float32(words.top))
            left, left_gate, left_bias = self.left(top).split(self.sizes, -1)  # (B, L, .)
            right, right_gate, right_bias = self.right(top).split(self.sizes, -1)
            width, steps, _ = pairs(top.shape[1], top.device)
            one, scale = torch.ones_like(left_bias), math.sqrt(self.sizes[0])
            scores = torch.cat([left / scale, left_bias, one], -1) @ torch.cat([right, one, right_bias], -1).mT
            scores = scores + self.widths(steps).squeeze(-1)
            if self.inside is not None:
                scores = scores + gated_sums(self.inside(top), left_gate, right_gate) / width
        real: Tensor = scores.masked_fill(~possible(inputs), -torch.inf)
        return real


class Given(CandidatePolicy):
    """The spans that are given, of any width, one candidate for each label of a span: what is left to say is its type.

    See: paper 001, whose system never looks at any other span.
    """

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


def possible(inputs: Inputs) -> Tensor:
    """Which pairs of first and last unit are spans that count.  (B, L, L)"""
    _, _, in_order = pairs(inputs.unit_mask.shape[1], inputs.unit_mask.device)
    spans: Tensor = inputs.opens[:, :, None] & inputs.closes[:, None] & in_order
    return spans


def choose(scores: Tensor, inputs: Inputs, budget: float) -> Candidates:
    """The best spans, `budget` for each word of the core and at least one; ties go to no one in particular."""
    length = scores.shape[1]
    most = min(max(math.ceil(budget * length - 1e-4), 1), length * length)  # for all rows: no count leaves the device
    best, at = scores.flatten(1).topk(most, dim=1)  # (B, K)
    quota = (inputs.opens.sum(1, keepdim=True) * budget - 1e-4).ceil().clamp(min=1)  # (B, 1)
    mask = (torch.arange(most, device=scores.device) < quota) & (best > -torch.inf)
    return Candidates(at // length, at % length + 1, mask, None)


def likely(best: Candidates, threshold: float) -> Candidates:
    """Without the spans whose chance is below the threshold. It waits for the device, so it is for prediction only."""
    scores = best.proposals
    assert scores is not None
    chance = scores.flatten(1).gather(1, best.start * scores.shape[1] + best.end - 1).sigmoid()
    mask = best.mask & (chance >= threshold)
    longest = max(int(mask.sum(1).max()), 1)
    start, end, mask = (part[:, :longest] for part in (best.start, best.end, mask))
    return Candidates(start, end, mask, None, scores)


def counts(start: Tensor, end: Tensor, inputs: Inputs) -> Tensor:
    """Which spans start in the core and end in the reach: others belong to another window.  (B, M)"""
    inside: Tensor = (start >= inputs.core[:, :1]) & (start < inputs.core[:, 1:]) & (end <= inputs.reach[:, 1:])
    return inside


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
