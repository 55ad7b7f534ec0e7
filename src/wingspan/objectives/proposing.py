"""Trains the scores by which `candidates.Proposed` picks spans: gold spans above all others of their sentence."""

from __future__ import annotations

from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from wingspan.batch import Gold
from wingspan.model import States
from wingspan.objectives import Objective, Sizes


class Proposing(Objective):
    """A yes or no for every pair of start and end, or the order of gold and others; its weights are the policy's."""

    def __init__(
        self, sizes: Sizes, *, loss: Literal["pairs", "ranking"] = "pairs", positive_weight: float = 1.0
    ) -> None:
        super().__init__()
        self.loss = loss
        self.positive_weight = positive_weight

    def forward(self, states: States, gold: Gold, targets: Any = None) -> Tensor:
        """The loss over all spans that count, whatever their width."""
        assert states.candidates is not None
        scores = states.candidates.proposals
        assert scores is not None, "only Proposed candidates have scores to train"
        hits = gold_pairs(gold, scores.shape[1]) & (scores > -torch.inf)
        return self._pairs(states, scores, hits) if self.loss == "pairs" else self._ranking(scores, hits)

    def _pairs(self, states: States, scores: Tensor, hits: Tensor) -> Tensor:
        """Binary cross entropy, summed and shared out among the words: most pairs are easy, a mean would fade."""
        cost = torch.where(hits, self.positive_weight * F.softplus(-scores), F.softplus(scores))
        mean: Tensor = cost.sum() / states.inputs.starts.sum().clamp(min=1)
        return mean

    def _ranking(self, scores: Tensor, hits: Tensor) -> Tensor:
        """log(1 + sum of exp others) + log(1 + sum of exp -gold): every gold span above zero, all others below."""
        others = scores.masked_fill(hits, -torch.inf).flatten(1)
        golds = (-scores).masked_fill(~hits, -torch.inf).flatten(1)
        cost = F.pad(others, (1, 0)).logsumexp(1) + F.pad(golds, (1, 0)).logsumexp(1)
        return cost.mean()


def gold_pairs(gold: Gold, length: int) -> Tensor:
    """Which pairs of first and last unit are gold.  (B, L, L)"""
    at = gold.start * length + (gold.end - 1).clamp(min=0)
    hits = torch.zeros(len(at), length * length, device=at.device)
    return hits.scatter_add(1, at, gold.mask.float()).view(-1, length, length) > 0
