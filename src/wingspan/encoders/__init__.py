"""Encoders: sentences to one vector per unit (word or word piece). This file is the contract; siblings implement it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple, Self

from torch import Tensor, nn

from wingspan.batch import Inputs, Tokenize
from wingspan.encoders.lora import Lora
from wingspan.text import Sentence

__all__ = ["Encoder", "Tokenize", "Words"]


class Words(NamedTuple):
    """What an encoder says about a batch."""

    top: Tensor  # (B, L, D) one vector per unit
    layers: tuple[Tensor, ...]  # each (B, L, D), lowest first: as many of the top ones as `keep_layers` asks for
    sentence: Tensor  # (B, D) one vector for the whole sentence
    mask: Tensor  # (B, L) true for real units


class Encoder(nn.Module, ABC):
    """Sentences to vectors. `blocks` are its Transformer blocks for parts that copy them, or None."""

    size: int
    tokenize: Tokenize
    saved_in: Path | None = None
    """The folder of the saved model that is rebuilt: then its files are read, and nothing is opened by a name."""
    adapters: Lora | None = None
    """What learns beside frozen weights, where not all of the encoder does."""
    keep_layers: int = 0
    """How many of the top layers' outputs are given beside the last; one more than all blocks: the embedding output."""

    @property
    def blocks(self) -> nn.ModuleList | None:
        """The Transformer blocks, bottom first, where the encoder has them."""
        return None

    def study(self, sentences: Sequence[Sentence], others: Iterable[Sentence]) -> None:  # noqa: B027  most need none
        """A look at the training sentences, and at `others` (dev), before a new model is built on the encoder.

        An encoder with a vocabulary fixes it here.
        """

    def lines(self) -> list[str]:
        """What the run log and the model card say about this encoder."""
        return []

    def adapt(self, *, merged: bool) -> None:  # noqa: B027  most encoders have no adapters
        """Puts adapters in, once other parts have copied what they need; `merged`: its weights have them inside."""

    def plain(self) -> AbstractContextManager[None]:
        """As long as it lasts, the encoder's weights are what a model folder holds: adapters are merged."""
        return nullcontext()

    def settle(self) -> None:  # noqa: B027  most encoders have no adapters
        """Merges adapters for good: training is over."""

    @abstractmethod
    def forward(self, inputs: Inputs) -> Words:
        """One vector per unit."""

    def save_files(self, folder: Path) -> None:  # noqa: B027  an encoder without files saves none
        """Writes what a rebuild needs besides weights: configuration and tokenizer."""

    @classmethod
    def rebuild(cls, folder: Path, **settings: Any) -> Self:
        """The encoder of a saved model, without weights; its constructor finds the folder in `saved_in`."""
        encoder = cls.__new__(cls)
        encoder.saved_in = folder
        cls.__init__(encoder, **settings)
        return encoder
