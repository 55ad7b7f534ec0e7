"""The best spans of any width, by a cheap score of their first and last unit."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wingspan.batch import Gold, Inputs
from wingspan.candidates import CandidatePolicy, Candidates, counts, repeated, same_spans
from wingspan.encoders import Encoder, Words
from wingspan.layers.autocast import at_least_float32
from wingspan.layers.tracing import cached, exporting


class Proposed(CandidatePolicy):
    """The best spans of any width, `budget` per word of a sentence, by a cheap score of start and end.

    score(i, j) = left(i) · right(j) + mean of inside(i..j) · (left gate(i) + right gate(j)) + left bias(i) + right
    bias(j) + a bias for the width, for all pairs at once. In training the gold spans are added; `objectives.proposing`
    trains the scores. `threshold` (a chance) leaves out unlikely spans in prediction, so that easy sentences cost less
    than their budget. `max_width` is ignored.
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
        """The best spans, best first, followed by the gold spans that are not among them."""
        best = self.best(inputs, words, self.budget)
        if gold is None:
            return best if self.threshold is None else likely(best, self.threshold)
        known = same_spans(best, gold) & best.mask[:, :, None]  # (B, K, E)
        new = gold.mask & counts(gold.start, gold.end, inputs) & ~repeated(gold) & ~known.any(1)
        pairs = zip(best[:3], (gold.start, gold.end, new), strict=True)
        start, end, mask = (torch.cat(pair, 1) for pair in pairs)
        return Candidates(start, end, mask, None, best.proposals)

    def best(self, inputs: Inputs, words: Words, budget: float) -> Candidates:
        """The best `budget` spans per word, with the scores of all spans."""
        scores = self.score(inputs, words)
        return choose(scores.detach(), inputs, budget)._replace(proposals=scores)

    def score(self, inputs: Inputs, words: Words) -> Tensor:
        """Raw scores of all spans, in float32: half precision has too few digits to rank them.  (B, L, L)"""
        with torch.autocast(words.top.device.type, enabled=False):
            top = self.dropout(at_least_float32(words.top))
            left, left_gate, left_bias = self.left(top).split(self.sizes, -1)  # (B, L, .)
            right, right_gate, right_bias = self.right(top).split(self.sizes, -1)
            width, steps, _ = pairs(top.shape[1], top.device)
            ones, scale = torch.ones_like(left_bias), math.sqrt(self.sizes[0])
            scores = torch.cat([left / scale, left_bias, ones], -1) @ torch.cat([right, ones, right_bias], -1).mT
            scores = scores + self.widths(steps).squeeze(-1)
            if self.inside is not None:
                scores = scores + gated_sums(self.inside(top), left_gate, right_gate) / width
        real: Tensor = scores.masked_fill(~possible(inputs), -torch.inf)
        return real


def possible(inputs: Inputs) -> Tensor:
    """Mask of the pairs of first and last unit that are spans.  (B, L, L)"""
    _, _, in_order = pairs(inputs.unit_mask.shape[1], inputs.unit_mask.device)
    spans: Tensor = inputs.opens[:, :, None] & inputs.closes[:, None] & in_order
    return spans


def choose(scores: Tensor, inputs: Inputs, budget: float) -> Candidates:
    """The best spans, `budget` per word of the core and at least one; ties are broken arbitrarily."""
    length = scores.shape[1]
    # for all rows, so that no count has to leave the device
    most = min(max(math.ceil(budget * length - 1e-4), 1), length * length)
    best, at = scores.flatten(1).topk(most, dim=1)  # (B, K)
    quota = (inputs.opens.sum(1, keepdim=True) * budget - 1e-4).ceil().clamp(min=1)  # (B, 1)
    mask = (torch.arange(most, device=scores.device) < quota) & (best > -torch.inf)
    start = at // length
    return Candidates(start, at - start * length + 1, mask, None)


def likely(best: Candidates, threshold: float) -> Candidates:
    """Drops spans whose chance is below the threshold. It synchronizes with the device: for prediction only."""
    scores = best.proposals
    assert scores is not None
    chance = scores.flatten(1).gather(1, best.start * scores.shape[1] + best.end - 1).sigmoid()
    mask = best.mask & (chance >= threshold)
    if exporting():
        return best._replace(mask=mask)
    longest = max(int(mask.sum(1).max()), 1)
    start, end, mask = (part[:, :longest] for part in (best.start, best.end, mask))
    return Candidates(start, end, mask, None, scores)


def gated_sums(inside: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """The sum over each span, times left(start) + right(end).  (B, L, G) -> (B, L, L)"""
    # a sum is a difference of two running sums, so everything is one matrix product
    last = inside.cumsum(1)  # up to and with a unit
    first = F.pad(last, (0, 0, 1, 0))[:, :-1]  # before it
    left_own, right_own = (left * first).sum(-1, True), (right * last).sum(-1, True)
    ones = torch.ones_like(left_own)
    return torch.cat([left, first, left_own, ones], -1) @ torch.cat([last, -right, -ones, right_own], -1).mT


BUCKETS = 24  # half octaves: widths up to 4,096 units are distinguished


@cached(64)
def pairs(length: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """The width of all pairs of first and last unit, its bucket, and whether they are in order; cached.  (L, L) each"""
    with torch.inference_mode(False):
        at = torch.arange(length, device=device)
        width = (at - at[:, None] + 1).clamp(min=1)
        return width, bucket(width), at[:, None] <= at


def bucket(width: Tensor) -> Tensor:
    """Widths on a logarithmic scale, two steps for each doubling; 0 for width 1."""
    return (2 * width.clamp(min=1).float().log2() + 1e-4).long().clamp(max=BUCKETS - 1)
