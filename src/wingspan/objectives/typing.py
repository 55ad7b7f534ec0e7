"""Types for given spans: cross entropy over the types only, without "nothing".  See: SNG, eq. 5."""

from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from wingspan.batch import Found, Gold
from wingspan.layers.autocast import at_least_float32
from wingspan.layers.distributed import share_of
from wingspan.model import States
from wingspan.objectives import Decisions, Limits, Objective, Sizes, limits, where

IMPOSSIBLE = -1e4  # as a logit: no chance at any temperature, and still a number


class Typing(Objective):
    """One of the corpus' types for each given span; needs candidates `Given`.

    `reduction` is the mean over the spans of a batch, or their sum, with which every span counts the same when the
    gradients of many batches are added.
    """

    predicts = True
    calibrates = True
    _types: Tensor

    def __init__(self, sizes: Sizes, *, reduction: Literal["mean", "sum"] = "mean") -> None:
        super().__init__()
        self.reduction = reduction
        self._names = sizes.labels.names()
        types = torch.from_numpy(sizes.labels.allowed())
        types[:, [at for at, name in enumerate(self._names) if name is None]] = False
        self.register_buffer("_types", types, persistent=False)

    def forward(self, states: States, gold: Gold, targets: Any = None) -> Tensor:
        """The loss over all given spans; a span with two labels counts twice."""
        cost = F.cross_entropy(self.logits(states).flatten(0, 1), gold.label.flatten(), reduction="none")
        cost = cost.masked_fill(~gold.mask.flatten(), 0.0)
        return cost.sum() / share_of(gold.mask.sum() if self.reduction == "mean" else 0, cost)

    def logits(self, states: States) -> Tensor:
        """Scores in full precision, with classes that are no types of the corpus impossible.  (B, M, C)"""
        assert states.scores is not None
        return at_least_float32(states.scores).masked_fill(~self._types[states.inputs.dataset].unsqueeze(1), IMPOSSIBLE)

    def decode(
        self, states: States, thresholds: Limits = None, temperature: float = 1.0, room: int | None = None
    ) -> Found:
        """The chances of all types of each given span, or of those that reach their thresholds; decoding chooses."""
        assert states.candidates is not None
        logits = self.logits(states)
        chance, shown = logits.softmax(-1), (logits / temperature).softmax(-1)
        enough = shown >= limits(self._names, thresholds, self.usual_threshold, shown)
        possible = states.candidates.mask.unsqueeze(-1) & self._types[states.inputs.dataset].unsqueeze(1)
        (rows, cells, label), total = where(possible & enough, room)
        start, end = states.candidates.start[rows, cells], states.candidates.end[rows, cells]
        scores = (chance,) if temperature == 1.0 else (chance, shown)
        parts = (rows, start, end, label, *(score[rows, cells, label] for score in scores))
        return Found(*(part.detach() for part in parts))._replace(total=total)

    def decisions(self, states: States, gold: Gold) -> Decisions:
        """Every given span is a decision."""
        return Decisions(self.logits(states)[gold.mask], gold.label[gold.mask])
