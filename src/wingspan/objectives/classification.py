"""Each candidate span gets a class: one of all (softmax), or any number of them (sigmoid).

See: paper 002 eq. 13; paper 000 eq. 2 (sigmoid). Which spans take part is the candidate policy's business.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from wingspan.batch import Found, Gold
from wingspan.candidates import same_spans
from wingspan.model import States
from wingspan.objectives import Objective, Sizes, Thresholds, threshold_of

Reduction = Literal["cells", "sentences"]


class Classification(Objective):
    """Cross entropy over candidates; `reduction` averages over cells, or sums per sentence and averages sentences."""

    predicts = True
    _nothing: Tensor
    _names: tuple[str | None, ...]

    def __init__(
        self, sizes: Sizes, *, link: Literal["softmax", "sigmoid"] = "softmax", reduction: Reduction = "cells"
    ) -> None:
        super().__init__()
        self.link = link
        self.reduction = reduction
        self._names = sizes.labels.names()
        nothing = torch.tensor([sizes.labels.nothing(name) for name in sizes.labels.datasets])
        self.register_buffer("_nothing", nothing, persistent=False)

    def forward(self, states: States, gold: Gold, targets: Any = None) -> Tensor:
        """The loss over the candidates that count."""
        assert states.scores is not None
        assert states.candidates is not None
        mask = states.candidates.mask
        hits = same_spans(states.candidates, gold)  # (B, M, E)
        cost = self._softmax(states, hits, gold) if self.link == "softmax" else self._sigmoid(states, hits, gold)
        cost = cost.float().masked_fill(~mask, 0.0)
        if self.reduction == "sentences":
            return cost.sum() / len(cost)
        return cost.sum() / mask.sum().clamp(min=1)

    def _softmax(self, states: States, hits: Tensor, gold: Gold) -> Tensor:
        """One class per cell; where gold has two labels for one span the first counts (coverage says how often)."""
        assert states.scores is not None
        nothing = self._nothing[states.inputs.dataset][:, None]  # (B, 1)
        label = gold.label.gather(1, hits.int().argmax(-1))  # (B, M); the first hit
        target = torch.where(hits.any(-1), label, nothing)
        return F.cross_entropy(states.scores.float().flatten(0, 1), target.flatten(), reduction="none").view_as(target)

    def _sigmoid(self, states: States, hits: Tensor, gold: Gold) -> Tensor:
        """A yes or no for each class but "nothing".  -> (B, M), the mean over classes"""
        assert states.scores is not None
        classes = states.scores.shape[-1]
        target = hits.float() @ F.one_hot(gold.label, classes).float()  # (B, M, C)
        real = torch.ones(classes, device=target.device)
        real[self._nothing] = 0.0
        cost = F.binary_cross_entropy_with_logits(states.scores.float(), target.clamp(max=1.0), reduction="none")
        return (cost * real).sum(-1) / real.sum().clamp(min=1)

    def read(self, states: States, thresholds: Thresholds = None) -> Found:
        """Without thresholds the most likely class wins (sigmoid: 0.5); with them, any label that reaches its own."""
        assert states.scores is not None
        assert states.candidates is not None
        scores = states.scores.float()
        chance = scores.softmax(-1) if self.link == "softmax" else scores.sigmoid()
        keep = states.candidates.mask
        if self.link == "softmax" and thresholds is None:
            score, label = chance.max(-1)  # (B, M)
            rows, cells = torch.nonzero(keep & (label != self._nothing[states.inputs.dataset][:, None]), as_tuple=True)
            return self._found(states, rows, cells, label[rows, cells], score[rows, cells])
        lowest = [threshold_of(name, thresholds) for name in self._names]
        bar = torch.tensor([0.5 if low is None else low for low in lowest], dtype=chance.dtype, device=chance.device)
        bar[self._nothing] = torch.inf
        enough = chance >= bar
        if self.link == "softmax":  # one label per span: the likeliest of those that reach their bar
            best = chance.masked_fill(~enough, -1.0).argmax(-1, keepdim=True)
            enough &= torch.zeros_like(enough).scatter(-1, best, True)
        rows, cells, label = torch.nonzero(keep.unsqueeze(-1) & enough, as_tuple=True)
        return self._found(states, rows, cells, label, chance[rows, cells, label])

    def _found(self, states: States, rows: Tensor, cells: Tensor, label: Tensor, score: Tensor) -> Found:
        assert states.candidates is not None
        start, end = states.candidates.start[rows, cells], states.candidates.end[rows, cells]
        return Found(*(part.detach().cpu().numpy() for part in (rows, start, end, label, score)))
