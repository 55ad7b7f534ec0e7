"""Trains the scores by which `candidates.Proposed` chooses spans: gold above all other spans of a sentence."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from wingspan.batch import Gold
from wingspan.layers.distributed import share_of
from wingspan.model import States
from wingspan.objectives import Objective, Sizes


class Proposing(Objective):
    """A yes or no for every pair of start and end, and the order of gold and other spans within each sentence.

    Together they keep more gold within a budget than either alone. The trained weights belong to the policy, so nothing
    here is saved.
    """

    def __init__(self, sizes: Sizes, *, pairs: float = 1.0, ranking: float = 0.2) -> None:
        super().__init__()
        self.pairs = pairs
        self.ranking = ranking

    def forward(self, states: States, gold: Gold, targets: Any = None) -> Tensor:
        """The loss over all spans that count, whatever their width."""
        assert states.candidates is not None
        scores = states.candidates.proposals
        assert scores is not None, "assembling refuses other candidates than Proposed"
        required = gold if states.required is None else states.required
        hits = gold_pairs(required, scores.shape[1]) & (scores > -torch.inf)
        # per word, not per pair: nearly all pairs are easy, so a mean over pairs would vanish
        words = share_of(states.inputs.starts.sum(), scores)
        pairs = F.softplus(torch.where(hits, -scores, scores)).sum() / words
        return self.pairs * pairs + self.ranking * ranking_loss(scores, hits)


def ranking_loss(scores: Tensor, hits: Tensor) -> Tensor:
    """log(1 + sum exp others) + log(1 + sum exp -gold) of each sentence.  See: Su et al. 2022, arXiv 2208.02955."""
    left_out = torch.stack([hits, ~hits]).flatten(2)  # (2, B, L * L): first the others, then gold
    against = torch.where(hits, -scores, scores).flatten(1).masked_fill(left_out, -torch.inf)
    costs = F.pad(against, (1, 0)).logsumexp(-1).sum(0)  # the 0 before is the 1
    return costs.sum() / share_of(len(costs), costs)


def gold_pairs(gold: Gold, length: int) -> Tensor:
    """Mask of the gold pairs of first and last unit.  (B, L, L)"""
    at = torch.where(gold.mask, gold.start * length + gold.end - 1, length * length)  # padding goes after the last
    hits: Tensor = gold.mask.new_zeros(len(at), length * length + 1).scatter_(1, at, True)
    return hits[:, :-1].view(-1, length, length)
