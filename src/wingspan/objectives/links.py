"""Fragments of discontinuous entities, and which of them belong together.

Besides its class as an entity, each candidate has a yes or no for each label: is it a fragment of a discontinuous one?
And it has two small vectors: left(i) · right(j) plus a bias for the distance scores whether j continues the entity of
i. `decoding` joins fragments to entities. None of the five papers has this.
"""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wingspan.batch import Array, Found, Gold, Inputs, in_units, padded_spans
from wingspan.candidates import Candidates, same_spans
from wingspan.candidates.proposed import BUCKETS, bucket
from wingspan.heads import start_rare
from wingspan.layers.autocast import at_least_float32
from wingspan.layers.corpus import CorpusClasses
from wingspan.layers.distributed import share_of
from wingspan.layers.grid import pick
from wingspan.model import States
from wingspan.objectives import Objective, Sizes, on_device, where
from wingspan.text import Sentence


class GoldFragments(NamedTuple):
    """The fragments of the discontinuous gold entities, in units."""

    start: Array  # (B, E)
    end: Array  # (B, E)
    label: Array  # (B, E) class ids; a fragment of two labels is listed twice
    mask: Array  # (B, E)
    linked: Array  # (B, E, E) the two belong to one entity


class Links(Objective):
    """Yes or no for fragments, and yes or no for pairs of them; both are summed, and divided by the number of words.

    A mean over pairs would make each of the few pairs count a thousand times as much as an entity. Training uses the
    pairs among the gold fragments and the candidates that look most like fragments, `most` in all, weighted by the
    chance that both are found as fragments of one label, as in decoding. `pairs` is the weight of their loss.
    """

    predicts = True
    needs_features = True

    def __init__(
        self, sizes: Sizes, *, size: int = 64, pairs: float = 1.0, most: int = 24, start_chance: float = 0.001
    ) -> None:
        super().__init__()
        if most < 2:
            raise ValueError(f"terms.links.objective.most is {most}; a pair needs at least 2")
        self.labels = sizes.labels
        self.pairs = pairs
        self.most = most
        self.size = size
        self.fragment = nn.Linear(sizes.feature, sizes.labels.num_classes)
        nn.init.normal_(self.fragment.weight, std=0.02)
        start_rare(self.fragment, start_chance)
        self.left = nn.Linear(sizes.feature, size + 1)
        self.right = nn.Linear(sizes.feature, size + 1)
        self.distance = nn.Embedding(BUCKETS, 1)
        nn.init.zeros_(self.distance.weight)
        self.classes = CorpusClasses(sizes.labels)

    def targets(self, sentences: Sequence[Sentence], inputs: Inputs) -> GoldFragments:
        """The fragments of each sentence, and which of them belong together."""
        rows: list[list[tuple[int, int, int]]] = []
        links: list[tuple[int, int, int]] = []
        for row, sentence in enumerate(sentences):
            place: dict[tuple[int, int, int], int] = {}
            for entity in sentence.entities:
                label = self.labels.id(sentence.dataset, entity.label) if entity.discontinuous else None
                if label is not None:
                    at = [place.setdefault((*span, label), len(place)) for span in entity.spans]
                    links += [(row, *pair) for pair in combinations(at, 2)]
            rows.append(list(place))
        fragments = in_units(padded_spans(rows), inputs)
        linked = np.zeros((*fragments.mask.shape, fragments.mask.shape[1]), dtype=bool)
        for row, first, second in links:
            linked[row, first, second] = linked[row, second, first] = True
        return GoldFragments(*fragments, linked)

    def required(self, gold: Gold, targets: GoldFragments) -> Gold:
        """Fragments must be candidates too."""
        return Gold(*(torch.cat(pair, 1) for pair in zip(gold, targets[:4], strict=True)))

    def forward(self, states: States, gold: Gold, targets: GoldFragments) -> Tensor:
        """The loss of fragments and of pairs."""
        assert states.features is not None
        assert states.candidates is not None
        mask = possible(states)
        scores = at_least_float32(self.fragment(states.features))  # (B, M, C)
        hits = same_spans(states.candidates, Gold(*targets[:4]))  # (B, M, E)
        of_class = F.one_hot(targets.label, scores.shape[-1]).to(scores.dtype)
        target = (hits.to(scores.dtype) @ of_class).clamp(max=1.0)  # (B, M, C)
        known = self.classes.charged(states.inputs.dataset)  # (B, 1, C)
        cost = F.binary_cross_entropy_with_logits(scores, target, reduction="none") * (known | (target > 0))
        words = share_of(states.inputs.starts.sum(), cost)
        loss: Tensor = (cost.sum(-1) * mask).sum() / words
        scores = scores.detach().masked_fill(~known, -torch.inf)
        pairs = self._pair_costs(states, scores, target, hits, mask, targets.linked)
        return self.pairs * pairs / words + loss

    def _pair_costs(
        self, states: States, scores: Tensor, target: Tensor, hits: Tensor, mask: Tensor, linked: Tensor
    ) -> Tensor:
        """Which of the likeliest fragments belong together; gold fragments count as certain."""
        assert states.features is not None
        assert states.candidates is not None
        rank = scores.amax(-1).masked_fill(~mask, -torch.inf).masked_fill(hits.any(-1), torch.inf)
        best, at = rank.topk(min(self.most, rank.shape[1]), dim=1)  # (B, n)
        start, end = states.candidates.start.gather(1, at), states.candidates.end.gather(1, at)
        scores_of_pairs = self.link_scores(pick(states.features, at), start, end)
        sure = torch.where(pick(hits, at).any(-1, keepdim=True), pick(target, at), pick(scores, at).sigmoid())
        in_order = end[:, :, None] <= start[:, None]
        real = (best > -torch.inf) & mask.gather(1, at)
        weight = (sure @ sure.mT).clamp(max=1.0) * (in_order & real[:, :, None] & real[:, None])  # (B, n, n)
        gold = pick(hits, at).float()  # (B, n, E)
        together = (gold @ linked.float() @ gold.mT).clamp(max=1.0)
        cost = F.binary_cross_entropy_with_logits(scores_of_pairs, together, reduction="none")
        return (cost * weight).sum()

    def link_scores(self, features: Tensor, start: Tensor, end: Tensor) -> Tensor:
        """Raw scores of all pairs of listed candidates, first and second.  (B, n, F) -> (B, n, n)"""
        left, right = self.vectors(features)
        gap = (start[:, None] - end[:, :, None]).clamp(min=0)
        scores: Tensor = at_least_float32(left @ right.mT) + self.distance(bucket(gap + 1)).squeeze(-1)
        return scores

    def vectors(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """The vectors of each candidate as first and second of a link, ending with their bias and a 1.  (..., K)"""
        left, right = self.left(features), self.right(features)
        one = torch.ones_like(left[..., :1])
        left = torch.cat([left[..., :-1] / math.sqrt(self.size), left[..., -1:], one], -1)
        right = torch.cat([right[..., :-1], one, right[..., -1:]], -1)
        return left, right

    def read_fragments(
        self, states: States, thresholds: Sequence[float] | Tensor, room: int | None = None
    ) -> tuple[Found, Tensor, Tensor, Tensor]:
        """The fragments whose chance reaches the threshold of their class, their vectors, and the distance biases."""
        assert states.features is not None
        assert states.candidates is not None
        chance = self.fragment(states.features).float().sigmoid()
        if not isinstance(thresholds, Tensor):  # in a graph they are one
            thresholds = on_device(tuple(thresholds), chance.dtype, chance.device)
        enough = chance >= thresholds
        enough &= self.classes.possible(states.inputs.dataset)
        (rows, cells, label), total = where(possible(states).unsqueeze(-1) & enough, room)
        start, end = states.candidates.start[rows, cells], states.candidates.end[rows, cells]
        left, right = self.vectors(states.features[rows, cells])
        found = Found(rows, start, end, label, chance[rows, cells, label].detach(), total=total)
        return found, left.float().detach(), right.float().detach(), self.distance.weight.float().squeeze(-1).detach()


def possible(states: States) -> Tensor:
    """Mask of the candidates that can be fragments, including those that start after the core and fit.  (B, M)"""
    candidates: Candidates | None = states.candidates
    assert candidates is not None
    if candidates.width is None:
        return candidates.mask
    inputs = states.inputs
    at = torch.arange(inputs.starts.shape[1], device=inputs.starts.device)
    opens = inputs.starts & (at >= inputs.core[:, :1]) & (at < inputs.reach[:, 1:])
    ends = F.pad(inputs.closes, (0, candidates.width - 1)).unfold(1, candidates.width, 1)
    mask: Tensor = (opens[:, :, None] & ends).flatten(1)
    return mask
