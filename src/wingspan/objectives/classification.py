"""Each candidate span gets a class: one of all (softmax), or any number of them (sigmoid).

See: Ji et al. eq. 18; Nguyen et al. eq. 2 (sigmoid); Zhu et al. and Zhu and Li 2022 (boundary smoothing). The
candidate policy decides which spans take part.
"""

import math
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from wingspan.batch import Found, Gold, Inputs
from wingspan.candidates import Candidates, same_spans
from wingspan.layers.autocast import at_least_float32
from wingspan.layers.corpus import CorpusClasses, Foreign
from wingspan.layers.distributed import share_of
from wingspan.model import States
from wingspan.objectives import CONTESTED, Decisions, Limits, Objective, Sizes, limits, where

Reduction = Literal["cells", "sentences"]
FARTHEST = 64  # spans around a gold one are listed: about twice the square of their distance
LEAST = -1e4  # minus infinity divided by a temperature has no gradient


class Classification(Objective):
    """Cross entropy over candidates; `reduction` averages over cells, or sums per sentence and averages sentences.

    `smoothing` gives this share of a gold span's label to the spans whose borders are up to `smoothing_distance` units
    away, both borders added. `most_labels` limits the labels of a span (sigmoid). For `foreign`, the classes of other
    corpora, see `CorpusClasses`.
    """

    predicts = True
    calibrates = True
    usual_threshold = 0.5
    _steps: Tensor
    _names: tuple[str | None, ...]

    def __init__(
        self,
        sizes: Sizes,
        *,
        link: Literal["softmax", "sigmoid"] = "softmax",
        reduction: Reduction = "cells",
        smoothing: float = 0.0,
        smoothing_distance: int = 1,
        most_labels: int | None = None,
        foreign: Foreign = "never",
    ) -> None:
        super().__init__()
        if not 0 <= smoothing < 1:
            raise ValueError(f"smoothing is {smoothing}; it is a share of each gold label, from 0 to less than 1")
        if not 1 <= smoothing_distance <= FARTHEST:
            raise ValueError(f"smoothing_distance is {smoothing_distance}; give 1 to {FARTHEST}")
        if most_labels is not None and most_labels < 1:
            raise ValueError(f"most_labels is {most_labels}; give at least 1")
        self.smoothing = smoothing
        self.most_labels = most_labels
        self.register_buffer("_steps", neighbors(smoothing_distance), persistent=False)
        self.link = link
        self.reduction = reduction
        self._names = sizes.labels.names()
        self.classes = CorpusClasses(sizes.labels, foreign)

    def forward(self, states: States, gold: Gold, targets: Any = None) -> Tensor:
        """The loss over the candidates that count."""
        assert states.scores is not None
        assert states.candidates is not None
        mask = states.candidates.mask
        if self.smoothing:
            hits = smoothed(states.candidates, gold, states.inputs, self.smoothing, self._steps)
        else:
            hits = same_spans(states.candidates, gold)  # (B, M, E)
        draws = states.scores[None] if states.samples is None else states.samples  # of a stochastic head
        cost = torch.stack([self._cost(scores, states.inputs.dataset, hits, gold) for scores in draws]).mean(0)
        cost = at_least_float32(cost).masked_fill(~mask, 0.0)
        return cost.sum() / share_of(len(cost) if self.reduction == "sentences" else mask.sum(), cost)

    def _cost(self, scores: Tensor, dataset: Tensor, hits: Tensor, gold: Gold) -> Tensor:
        """The cost of each candidate; `hits` are shares of labels where they are smoothed.  (B, M)"""
        scores = at_least_float32(scores)
        if self.link == "sigmoid":  # yes or no for each class that the corpus marks, here or throughout
            target = by_class(hits.to(scores.dtype), gold, scores.shape[-1])
            real = (self.classes.charged(dataset) | (target > 0)).to(scores.dtype)
            cost = F.binary_cross_entropy_with_logits(scores, target.clamp(max=1.0), reduction="none")
            return (cost * real).sum(-1) / real.sum(-1).clamp(min=1)
        nothing = self.classes.nothing_of(dataset)
        chances = self.classes.learned(scores, dataset)
        if not self.smoothing:  # where gold has two labels for one span the first counts (coverage says how often)
            label = self._class(hits, gold, nothing)
            return F.nll_loss(chances.flatten(0, 1), label.flatten(), reduction="none").view_as(label)
        target = by_class(hits, gold, scores.shape[-1])
        total = target.sum(-1, keepdim=True)
        target = target / total.clamp(min=1.0)  # scaled down to 1 if they exceed it; the rest is "nothing"
        target = target.scatter_add(-1, nothing.unsqueeze(-1).expand_as(total), (1.0 - total).clamp(min=0.0))
        return -(target * chances.masked_fill(target == 0, 0.0)).sum(-1)

    def _class(self, hits: Tensor, gold: Gold, nothing: Tensor) -> Tensor:
        """The class of each candidate.  (B, M, E) -> (B, M)"""
        label = gold.label.gather(1, hits.int().argmax(-1))  # the first hit
        return torch.where(hits.any(-1), label, nothing)

    def decisions(self, states: States, gold: Gold) -> Decisions:
        """Softmax: the class of each contested span. Sigmoid: each contested label of a span, its score against 0."""
        assert states.scores is not None
        assert states.candidates is not None
        dataset, keep = states.inputs.dataset, states.candidates.mask
        scores = self.classes.read(states.scores.float(), dataset).clamp(min=LEAST)
        hits = same_spans(states.candidates, gold)
        nothing = self.classes.nothing_of(dataset)  # (B, 1)
        if self.link == "sigmoid":
            contested = keep.unsqueeze(-1) & (scores.sigmoid() >= CONTESTED) & self.classes.possible(dataset)
            yes = scores[contested]
            right = by_class(hits.float(), gold, scores.shape[-1])[contested] > 0
            return Decisions(torch.stack([torch.zeros_like(yes), yes], -1), right.long())
        certain = scores.softmax(-1).gather(-1, nothing.unsqueeze(-1).expand(-1, scores.shape[1], 1)).squeeze(-1)
        contested = keep & (1 - certain >= CONTESTED)
        return Decisions(scores[contested], self._class(hits, gold, nothing)[contested])

    def decode(
        self, states: States, thresholds: Limits = None, temperature: float = 1.0, room: int | None = None
    ) -> Found:
        """Without thresholds the most likely class wins (sigmoid: 0.5); with them, any label that reaches its own."""
        assert states.scores is not None
        assert states.candidates is not None
        dataset = states.inputs.dataset
        scores = self.classes.read(states.scores.float(), dataset)
        keep = states.candidates.mask
        states = states._replace(scores=scores)
        if self.wins_without_thresholds and thresholds is None:
            label = scores.argmax(-1)  # (B, M)
            (rows, cells), total = where(keep & (label != self.classes.nothing_of(dataset)), room)
            # chances of the few spans found, not of the whole grid
            chance = (scores[rows, cells] / temperature).softmax(-1)  # (N, C)
            found = self._found(states, rows, cells, label[rows, cells], chance.amax(-1), temperature)
            return found._replace(total=total)
        chance = self._chances(scores / temperature)
        enough = (chance >= limits(self._names, thresholds, self.usual_threshold, chance)) & self.classes.possible(
            dataset
        )
        most = 1 if self.link == "softmax" else self.most_labels
        if most is not None:  # the likeliest of those that reach their threshold
            best = chance.masked_fill(~enough, -1.0).topk(min(most, chance.shape[-1]), -1).indices
            enough &= torch.zeros_like(enough).scatter(-1, best, True)
        (rows, cells, label), total = where(keep.unsqueeze(-1) & enough, room)
        found = self._found(states, rows, cells, label, chance[rows, cells, label], temperature)
        return found._replace(total=total)

    @property
    def wins_without_thresholds(self) -> bool:
        """Of a softmax the likeliest class wins, however unlikely."""
        return self.link == "softmax"

    def chances(self, states: States, temperature: float) -> Tensor:
        """The chances of all classes of a corpus' block at a temperature, for those who learn from them.  (B, M, C)"""
        assert states.scores is not None
        scores, dataset = states.scores.float() / temperature, states.inputs.dataset
        if self.link == "sigmoid":
            return scores.sigmoid()
        every = torch.ones(len(scores), scores.shape[-1], dtype=torch.bool, device=scores.device)
        return self.classes.within_block(scores, dataset, every).exp()

    def _chances(self, scores: Tensor) -> Tensor:
        return scores.softmax(-1) if self.link == "softmax" else scores.sigmoid()

    def _found(
        self, states: States, rows: Tensor, cells: Tensor, label: Tensor, shown: Tensor, temperature: float
    ) -> Found:
        """The spans found; `shown` is the chance that users see."""
        assert states.candidates is not None
        start, end = states.candidates.start[rows, cells], states.candidates.end[rows, cells]
        scores = [shown]
        if temperature != 1.0:
            assert states.scores is not None
            plain = self._chances(states.scores.float()[rows, cells])  # (N, C)
            scores = [plain.gather(-1, label.unsqueeze(-1)).squeeze(-1), shown]
        return Found(*(part.detach() for part in (rows, start, end, label, *scores)))


def by_class(shares: Tensor, gold: Gold, classes: int) -> Tensor:
    """The share of each class in each candidate.  (B, M, E) -> (B, M, C)"""
    return shares @ F.one_hot(gold.label, classes).to(shares.dtype)


def neighbors(distance: int) -> Tensor:
    """Offsets of both borders to all spans up to a distance: 4d of them at distance d.  (n, 2)"""
    reach = range(-distance, distance + 1)
    return torch.tensor([(i, j) for i in reach for j in reach if 1 <= abs(i) + abs(j) <= distance])


def smoothed(candidates: Candidates, gold: Gold, inputs: Inputs, smoothing: float, steps: Tensor) -> Tensor:
    """The share of each gold span's label in each candidate: most of it in the span itself, the rest in its neighbors.

    The 4d spans at distance d up to D get smoothing / (4 d D) each. The share of impossible spans (empty, or beyond the
    sentence) stays with the gold span; that of spans that are no candidates is lost.  (B, M, E)
    """
    farthest = int(math.sqrt(len(steps) / 2))  # there are 2 D (D + 1) neighbors
    share = smoothing / (4 * farthest * steps.abs().sum(-1))  # (n,)
    start, end = gold.start[..., None] + steps[:, 0], gold.end[..., None] + steps[:, 1]  # (B, E, n)
    first, last = inputs.reach[:, :1, None], inputs.reach[:, 1:, None]
    impossible = (start < first) | (end > last) | (start >= end)
    own = 1.0 - smoothing + (share * impossible).sum(-1)  # (B, E)
    away = (candidates.start[..., None] - gold.start[:, None]).abs()
    away = away + (candidates.end[..., None] - gold.end[:, None]).abs()  # (B, M, E)
    near = torch.where(away <= farthest, smoothing / (4 * farthest * away.clamp(min=1)), 0.0)
    shares: Tensor = torch.where(away == 0, own[:, None], near) * gold.mask[:, None]
    return shares
