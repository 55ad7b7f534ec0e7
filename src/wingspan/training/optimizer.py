"""Parameter groups by name prefix, and the learning rate of a step."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn

from wingspan.recipe import TrainSettings


def build_optimizer(module: nn.Module, settings: TrainSettings) -> torch.optim.AdamW:
    """AdamW with one group for each learning rate and weight decay. The longest matching prefix of a name counts."""
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in module.named_parameters():
        if not parameter.requires_grad:
            continue
        matching = [prefix for prefix in settings.factors if name.startswith(prefix)]
        factor = settings.factors[max(matching, key=len)] if matching else 1.0
        # biases and layer norms are vectors; shrinking them towards zero helps nobody
        decay = settings.weight_decay if settings.decay_bias or parameter.dim() > 1 else 0.0
        groups.setdefault((settings.learning_rate * factor, decay), []).append(parameter)
    prepared: list[dict[str, Any]] = [
        {"params": parameters, "lr": rate, "base_rate": rate, "weight_decay": decay}
        for (rate, decay), parameters in groups.items()
    ]
    return torch.optim.AdamW(prepared, eps=settings.adam_eps, fused=True)


def rate_factor(step: int, steps: int, settings: TrainSettings) -> float:
    """What the learning rate is multiplied with at a step: rises over the warm-up, then falls to zero, or stays."""
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
