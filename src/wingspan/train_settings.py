"""How weights are learned: the settings that every recipe has."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Sampling = Literal["proportion", "uniform", "temperature", "each"]
Batches = Literal["mixed", "single", "turns"]


@dataclass(frozen=True)
class TrainSettings:
    """How weights are learned. `factors` and `decays` multiply the learning rate and the weight decay of parameters by
    the prefix of their name; the longest one that fits counts.
    """

    epochs: int = 20
    batch_size: int = 16
    learning_rate: float = 5e-5
    factors: Mapping[str, float] = field(default_factory=dict)
    schedule: Literal["linear", "cosine", "constant"] = "linear"
    schedule_over: Literal["phase", "run"] = "phase"
    """Whether the learning rate rises and falls once in each phase, or once in the whole run."""
    warmup: float = 0.1
    """The share of all steps in which the learning rate rises."""
    stretch: float = 1.0
    """The learning rate rises and falls as if there were so many times the steps, and so does not come to its end."""
    frozen: Sequence[str] = ()
    """Parameters with one of these in their name stay as they are."""
    weight_decay: float = 0.01
    decays: Mapping[str, float] = field(default_factory=dict)
    decay_bias: bool = False
    adam_eps: float = 1e-8
    correct_bias: bool = True
    """Whether Adam's means are scaled up while they are young; older implementations for BERT did not."""
    clip: float = 1.0
    accumulate: int | Literal["epoch"] = 1
    """How many batches share an optimizer step: the mean of their losses. `epoch`: all batches of one do, the sum."""
    precision: Literal["no", "bf16", "fp16"] = "no"
    budget: int = 16_384
    """The most units (sentences times longest) of one batch."""
    sampling: Sampling = "proportion"
    """How often corpora are drawn: by their sentences, all alike, by sentences ** (1 / temperature), or so that each
    batch has as many of each."""
    temperature: float = 2.0
    batches: Batches = "mixed"
    """Whether a batch mixes corpora or is of a single one; in `turns`, batches that share a step are of several."""
    whole_batches: bool = False
    """Whether batches that are not full are left out: the rest of each corpus, another one in each epoch."""
    patience: int | None = None
    """Stop after so many epochs without a better dev F1, or accuracy where spans are given."""
    checkpoint_steps: int | None = None
    """Also keep a state for `--resume` every so many steps; one is kept after each epoch anyway."""

    def __post_init__(self) -> None:
        """Numbers that cannot work are said before anything is read."""
        for name in ("epochs", "batch_size", "accumulate", "budget", "patience", "checkpoint_steps"):
            value = getattr(self, name)
            if isinstance(value, int) and value < 1:
                raise ValueError(f"train.{name} is {value}; give at least 1")
        for name in ("learning_rate", "weight_decay", "adam_eps", "clip", "warmup"):
            if getattr(self, name) < 0:
                raise ValueError(f"train.{name} is {getattr(self, name)}; give 0 or more")
        if self.stretch < 1:
            raise ValueError(f"train.stretch is {self.stretch}; give 1 or more")
        if self.temperature <= 0:
            raise ValueError(f"train.temperature is {self.temperature}; give a number above 0")
        if self.warmup > 1:
            raise ValueError(f"train.warmup is {self.warmup}; it is a share of all steps, from 0 to 1")

    @property
    def together(self) -> int:
        """The most batches that share an optimizer step."""
        return sys.maxsize if self.accumulate == "epoch" else self.accumulate

    def share(self, batches: int) -> float:
        """How much the loss of each batch counts where so many share an optimizer step."""
        return 1.0 if self.accumulate == "epoch" else 1.0 / batches
