"""The cost of the bottleneck: the divergence of each span's Gaussian from the prior.  See: Nguyen et al. 2023 eq. 6."""

from typing import Any, Literal

from torch import Tensor

from wingspan.batch import Gold
from wingspan.layers.autocast import at_least_float32
from wingspan.layers.distributed import share_of
from wingspan.layers.schedules import Moment, warmup
from wingspan.model import States
from wingspan.objectives import Objective, Sizes


class Compression(Objective):
    """The mean divergence over candidates times beta: `constant`, min(1, beta * epoch), or rising in a `warmup`.

    Epochs are counted from 1 over all phases. `within_words` includes spans of pieces that cannot be entities.
    """

    def __init__(
        self,
        sizes: Sizes,
        *,
        beta: float = 3e-6,
        schedule: Literal["constant", "linear", "warmup"] = "linear",
        within_words: bool = False,
    ) -> None:
        super().__init__()
        if not 0 <= beta <= 1:
            raise ValueError(f"beta is {beta}; it is a weight from 0 to 1")
        self.beta = beta
        self.schedule = schedule
        self.within_words = within_words

    def forward(self, states: States, gold: Gold, targets: Any = None) -> Tensor:
        """The weighted divergence."""
        if states.divergence is None:
            raise ValueError("Compression needs a head that compresses; use heads.bottleneck.BottleneckHead")
        assert states.candidates is not None
        mask = states.candidates.mask
        if self.within_words:
            mask = states.candidates.end <= states.inputs.unit_mask.sum(-1, keepdim=True)
        divergence = at_least_float32(states.divergence).masked_fill(~mask, 0.0)
        charged = divergence.sum() / share_of(mask.sum(), divergence)
        return self.weight(states.moment or Moment()) * charged

    def weight(self, moment: Moment) -> float:
        """Beta at a moment of training."""
        if self.schedule == "linear":
            return min(1.0, self.beta * (moment.epoch + 1))
        return self.beta * (warmup(moment) if self.schedule == "warmup" else 1.0)
