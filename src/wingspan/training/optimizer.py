"""Parameter groups by name prefix, and the learning rate of a step."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from wingspan.recipe import TrainSettings


def build_optimizer(module: nn.Module, settings: TrainSettings) -> torch.optim.AdamW:
    """AdamW with one group for each learning rate and weight decay. The longest matching prefix of a name counts."""
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in module.named_parameters():
        if not parameter.requires_grad or any(part in name for part in settings.frozen):
            continue
        # biases and layer norms are vectors; shrinking them towards zero helps nobody
        decay = settings.weight_decay if settings.decay_bias or parameter.dim() > 1 else 0.0
        rate = settings.learning_rate * by_prefix(name, settings.factors)
        groups.setdefault((rate, decay * by_prefix(name, settings.decays)), []).append(parameter)
    prepared: list[dict[str, Any]] = [
        {"params": parameters, "lr": rate, "base_rate": rate, "weight_decay": decay, "base_decay": decay}
        for (rate, decay), parameters in groups.items()
    ]
    return torch.optim.AdamW(prepared, eps=settings.adam_eps, fused=True)


def by_prefix(name: str, factors: Mapping[str, float]) -> float:
    """The factor of the longest prefix of a name; 1 where there is none."""
    matching = [prefix for prefix in factors if name.startswith(prefix)]
    return factors[max(matching, key=len)] if matching else 1.0


def rate_factor(step: int, steps: int, settings: TrainSettings) -> float:
    """What the learning rate is multiplied with at a step: rises over the warm-up, then falls to zero, or stays."""
    steps = round(settings.stretch * steps)
    warmup = max(1, round(settings.warmup * steps))
    if settings.warmup > 0 and step < warmup:
        return (step + 1) / warmup
    if settings.schedule == "constant":
        return 1.0
    done = (step - warmup) / max(1, steps - warmup) if settings.warmup > 0 else step / max(1, steps)
    return 1.0 - done if settings.schedule == "linear" else 0.5 * (1.0 + math.cos(math.pi * done))


def set_rates(optimizer: Any, factor: float) -> None:
    """The schedule is a function of the step alone, so that a resumed run needs no scheduler state."""
    for group in optimizer.param_groups:
        group["lr"] = group["base_rate"] * factor


def leave_uncorrected(optimizer: Any, step: int) -> None:
    """Undoes Adam's correction of young means: rate, epsilon and decay that make step `step` (from 0) the plain one.

    torch divides the first mean by 1 - b1^t and the second by 1 - b2^t; what is left of both is taken out again here.
    """
    for group in optimizer.param_groups:
        first, second = (1.0 - beta ** (step + 1) for beta in group["betas"])
        scale = first / math.sqrt(second)
        group.setdefault("base_eps", group["eps"])
        group["lr"] *= scale
        group["eps"] = group["base_eps"] / math.sqrt(second)
        group["weight_decay"] = group["base_decay"] / scale
