"""Objectives: states and targets to a loss; some also read entities back. This file is the contract."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from torch import Tensor, nn

from wingspan.batch import Found, Gold, Inputs
from wingspan.labels import LabelSet
from wingspan.layers.word_decoder import Synonyms
from wingspan.model import States
from wingspan.text import Sentence

Thresholds = float | Mapping[str, float] | None

CONTESTED = 0.1
"""Spans count for calibration where some label has at least this chance; nearly all of them are clearly nothing."""


class Sizes(NamedTuple):
    """All an objective may know of the model it serves."""

    labels: LabelSet
    max_width: int
    overlap: str  # flat, nested or any, as the training gold is
    word: int
    span: int
    feature: int
    studied: Any = None  # what the objective's `study` found in the training data


class Decisions(NamedTuple):
    """What a reader had to decide, and the right answers: what a temperature is fitted to."""

    logits: Tensor  # (N, C)
    target: Tensor  # (N,)


class Objective(nn.Module, ABC):
    """Constructed as `part(sizes, *, settings...)`. What `predicts` is saved with the model and can read entities."""

    predicts: ClassVar[bool] = False
    needs_vectors: ClassVar[bool] = False
    """Whether the loss is about span vectors, not only scores."""
    calibrates: ClassVar[bool] = False
    """Whether its scores can be calibrated: it has `decisions`, and `decode` takes a temperature."""
    needs_features: ClassVar[bool] = False
    """Whether features are looked at, in training and reading; some heads leave them out where nobody asks."""
    needs_gold_vectors: ClassVar[bool] = False
    """Whether the loss is about the vectors of gold spans (`States.gold`)."""
    reads_spans: ClassVar[bool] = True
    """Whether candidates and their scores are looked at; a tagger needs words only, so spans are left out."""

    @classmethod
    def study(cls, sentences: Sequence[Sentence], lexicon: Synonyms | None, settings: Mapping[str, Any]) -> Any:
        """What has to be known of the training data before the objective is built, as plain data; None by default.

        `settings` are the recipe's for this objective. What is returned comes back in `Sizes.studied`.
        """
        return None

    def lines(self) -> list[str]:
        """What the run log says about this objective before the first step."""
        return []

    def targets(self, sentences: Sequence[Sentence], inputs: Inputs) -> Any:
        """The CPU face: what the loss needs besides the gold spans, as arrays. None by default."""
        return None

    def wanted(self, gold: Gold, targets: Any) -> Gold:
        """The spans that must be among the candidates in training; the gold ones by default."""
        return gold

    @abstractmethod
    def forward(self, states: States, gold: Gold, targets: Any) -> Tensor:
        """The loss, a scalar: a sum, divided by `normalizers.share_of` what was counted."""

    def decode(self, states: States, thresholds: Thresholds = None, temperature: float = 1.0) -> Found:
        """The entities the model finds. The temperature makes the chances that users see, see `Found.calibrated`.

        It changes no decision: which class wins and which of two entities is surer is as without it. Thresholds are
        about the chances that users see.
        """
        raise TypeError(f"{type(self).__name__} does not decode entities")

    def decisions(self, states: States, gold: Gold) -> Decisions:
        """The decisions of a batch that a temperature is fitted to, chosen without a look at the gold."""
        raise TypeError(f"{type(self).__name__} has no class scores to calibrate")


def threshold_of(label: str | None, thresholds: Thresholds) -> float | None:
    """What score a label must reach; None where nothing was asked."""
    if thresholds is None or isinstance(thresholds, float | int):
        return thresholds
    return thresholds.get(label or "")
