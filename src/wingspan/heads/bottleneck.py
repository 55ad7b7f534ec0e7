"""A variational information bottleneck before the classifier.  See: Nguyen et al. 2023 eq. 6; Mahabadi et al. 2021."""

from collections.abc import Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wingspan.heads import Head, Scored, start_rare
from wingspan.layers.autocast import at_least_float32

SMALLEST = 1e-8  # spreads are clamped to this before the logarithm


class BottleneckHead(Head):
    """Hidden layers, then a Gaussian; scores are linear in `samples` draws from it, in prediction in its mean.

    The divergence is from a prior, learned or standard normal. By default the Gaussian has half the size of the span
    vector, and two hidden layers 7/8 and 3/4 of it. `start_chance` is the chance of every label before training.
    """

    def __init__(
        self,
        span_size: int,
        num_classes: int,
        *,
        hidden: Sequence[int] | None = None,
        size: int | None = None,
        samples: int = 5,
        prior: Literal["learned", "standard"] = "learned",
        start_chance: float | None = None,
    ) -> None:
        super().__init__()
        if samples < 1:
            raise ValueError(f"head.samples is {samples}; give at least 1")
        self.size = span_size // 2 if size is None else size
        second = (span_size + self.size) // 2
        sizes = [span_size, *((second + span_size) // 2, second)] if hidden is None else [span_size, *hidden]
        if len(sizes) < 2:
            raise ValueError("head.hidden is empty; give the sizes of one hidden layer or more")
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:], strict=False))
        self.mean = nn.Linear(sizes[-1], self.size)
        self.spread = nn.Linear(sizes[-1], self.size)
        self.classify = nn.Linear(self.size, num_classes)
        start_rare(self.classify, start_chance)
        self.start_chance = start_chance
        self.samples = samples
        self.prior = prior
        if prior == "learned":
            self.prior_mean = nn.Parameter(torch.randn(self.size))
            self.prior_spread = nn.Parameter(torch.randn(self.size))  # before softplus

    @property
    def classifier(self) -> nn.Linear:
        """Above the Gaussian, so no hidden layer."""
        return self.classify

    def forward(self, spans: Tensor) -> Scored:
        """All layers; the features are the mean.  (B, M, S)"""
        return self._scored(self.entry(spans))

    def finish(self, entered: Tensor) -> Scored:
        """The layers after the first; in prediction, mean and classifier are one layer, without features."""
        if self.training or torch.is_grad_enabled():
            return self._scored(entered)
        weight = self.classify.weight @ self.mean.weight  # (C, last hidden size)
        bias = self.classify.weight @ self.mean.bias + self.classify.bias
        return Scored(None, F.linear(self._hidden(entered), weight, bias))

    def _hidden(self, entered: Tensor) -> Tensor:
        hidden = torch.relu(entered)
        for layer in self.layers[1:]:
            hidden = torch.relu(layer(hidden))
        return hidden

    def _scored(self, entered: Tensor) -> Scored:
        hidden = self._hidden(entered)
        mean = self.mean(hidden)  # (B, M, F)
        if not (self.training or torch.is_grad_enabled()):
            return Scored(mean, self.classify(mean))
        raw = self.spread(hidden)
        with torch.autocast(mean.device.type, enabled=False):
            spread = F.softplus(at_least_float32(raw))
            center, width = self.prior_of(mean.device)
            width = width.clamp(min=SMALLEST)  # the divergence of diagonal Gaussians, in nats
            distance = (spread.square() + (center - at_least_float32(mean)).square()) / width.square() - 1.0
            divergence = 0.5 * (distance + 2.0 * (width.log() - spread.clamp(min=SMALLEST).log())).sum(-1)  # (B, M)
        if not self.training:
            return Scored(mean, self.classify(mean), divergence)
        draws = mean + spread * torch.randn(self.samples, *mean.shape, device=mean.device)  # (K, B, M, F)
        return Scored(mean, self.classify(mean), divergence, self.classify(draws))

    def prior_of(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """Mean and spread of the prior.  (F,), (F,)"""
        if self.prior == "standard":
            return torch.zeros(self.size, device=device), torch.ones(self.size, device=device)
        return at_least_float32(self.prior_mean), F.softplus(at_least_float32(self.prior_spread))
