"""Objectives: states and targets to a loss; some also predict entities. This file is the contract."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from wingspan.batch import Found, Gold, Inputs
from wingspan.labels import LabelSet, Thresholds, thresholds_of
from wingspan.layers.tracing import cached
from wingspan.layers.word_decoder import Synonyms
from wingspan.model import States
from wingspan.text import Sentence

CONTESTED = 0.1
"""Spans count for calibration if some label has at least this chance; nearly all others are clearly nothing."""


Limits = Thresholds | Tensor
"""Thresholds as users give them, or in a graph a tensor with one of each class."""


class Sizes(NamedTuple):
    """Everything an objective may know about its model."""

    labels: LabelSet
    max_width: int
    overlap: str  # flat, nested or any, as the training gold is
    word: int
    span: int
    feature: int
    studied: Any = None  # the result of the objective's `study`


class Decisions(NamedTuple):
    """The decisions of an objective and the right answers, which a temperature is fitted to."""

    logits: Tensor  # (N, C)
    target: Tensor  # (N,)


class Objective(nn.Module, ABC):
    """Constructed as `part(sizes, *, settings...)`. An objective that `predicts` is saved with the model."""

    predicts: ClassVar[bool] = False
    needs_vectors: ClassVar[bool] = False  # whether the loss needs span vectors, not only scores
    calibrates: ClassVar[bool] = False
    """Whether its scores can be calibrated: it has `decisions`, and `decode` takes a temperature."""
    needs_features: ClassVar[bool] = False
    """Whether features are needed, in training and prediction; some heads leave them out otherwise."""
    needs_gold_vectors: ClassVar[bool] = False  # whether the loss needs the vectors of gold spans (`States.gold`)
    reads_spans: ClassVar[bool] = True  # whether candidates and their scores are needed; a tagger needs only words
    usual_threshold: ClassVar[float] = 0.0  # of a label without one, where others have one

    @property
    def wins_without_thresholds(self) -> bool:
        """Whether without any threshold something else decides than `usual_threshold` for all labels."""
        return False

    @classmethod
    def study(cls, sentences: Sequence[Sentence], lexicon: Synonyms | None, settings: Mapping[str, Any]) -> Any:
        """Facts of the training data that the constructor needs, as plain data; None by default.

        `settings` are the recipe's for this objective. The result comes back in `Sizes.studied`.
        """
        return None

    @classmethod
    def learns_synonyms(cls, settings: Mapping[str, Any]) -> bool:
        """Whether `study` has a use for a lexicon, with the recipe's settings for this objective."""
        return False

    def lines(self) -> list[str]:
        """Lines about this objective for the run log, before the first step."""
        return []

    def targets(self, sentences: Sequence[Sentence], inputs: Inputs) -> Any:
        """The arrays that the loss needs besides the gold spans, made on the CPU. None by default."""
        return None

    def required(self, gold: Gold, targets: Any) -> Gold:
        """The spans that must be among the candidates in training; the gold ones by default."""
        return gold

    @abstractmethod
    def forward(self, states: States, gold: Gold, targets: Any) -> Tensor:
        """The loss, a scalar: a sum divided by `distributed.share_of` the count."""

    def figures(self) -> dict[str, float]:
        """What the journal tells of the last batch of training besides the loss; nothing by default."""
        return {}

    def decode(
        self, states: States, thresholds: Limits = None, temperature: float = 1.0, room: int | None = None
    ) -> Found:
        """The entities that the model finds. The temperature gives the chances that users see (`Found.calibrated`).

        It changes no decision: neither the class that wins nor which of two entities is surer. Thresholds apply to the
        chances that users see. With `room` there are that many rows, whatever was found (see `where`).
        """
        raise TypeError(f"{type(self).__name__} does not decode entities")

    def decisions(self, states: States, gold: Gold) -> Decisions:
        """The decisions of a batch that a temperature is fitted to, chosen without using the gold."""
        raise TypeError(f"{type(self).__name__} has no class scores to calibrate")


def limits(labels: Sequence[str | None], thresholds: Thresholds | Tensor, usual: float, like: Tensor) -> Tensor:
    """The threshold of each class, or the usual one, on the device and in the type of another tensor.

    A tensor has them all already: they are an input of a graph that is exported.
    """
    if isinstance(thresholds, Tensor):
        return thresholds.to(like.dtype)
    return on_device(tuple(thresholds_of(labels, thresholds, usual)), like.dtype, like.device)


@cached(256)
def on_device(values: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Values as a tensor; cached, because a copy to a GPU waits for everything before it."""
    with torch.inference_mode(False):
        return torch.tensor(values, dtype=dtype, device=device)


def where(mask: Tensor, room: int | None) -> tuple[tuple[Tensor, ...], Tensor | None]:
    """The places where a mask is true, one tensor for each dimension.

    How many they are is only known when a GPU has come that far. With `room` nothing waits for it: there are that many
    places, filled up with zeros or cut off, and the true number comes as a tensor.
    """
    if room is None:
        return torch.nonzero(mask, as_tuple=True), None
    return torch.nonzero_static(mask, size=room, fill_value=0).unbind(-1), mask.sum()
