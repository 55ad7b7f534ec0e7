"""Encoders: sentences to one vector per unit (word or word piece). This file is the contract; siblings implement it."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn

from wingspan.batch import Inputs, Tokenize
from wingspan.encoders.lora import Lora
from wingspan.text import Sentence

__all__ = ["Encoder", "Tokenize", "Words"]


class Words(NamedTuple):
    """The vectors of a batch."""

    top: Tensor  # (B, L, D) one vector per unit
    layers: tuple[Tensor, ...]  # each (B, L, D), lowest first: the top `keep_layers` ones
    sentence: Tensor  # (B, D) one vector for the whole sentence
    mask: Tensor  # (B, L) true for real units


class Encoder(nn.Module, ABC):
    """Sentences to vectors. `blocks` are its Transformer blocks for parts that copy them, or None."""

    size: int
    tokenize: Tokenize
    saved_in: Path | None = None
    """The folder of the saved model that is rebuilt: then its files are read, and nothing is opened by a name."""
    adapters: Lora | None = None  # trained weights beside frozen ones, where not all of the encoder is trained
    keep_layers: int = 0
    """How many of the top layers' outputs to return; one more than the number of blocks adds the embeddings."""

    @property
    def blocks(self) -> nn.ModuleList | None:
        """The Transformer blocks, bottom first, if the encoder has them."""
        return None

    @property
    def distances(self) -> nn.Embedding | None:
        """What all blocks add to attention scores by distance, (buckets, heads), if they do."""
        return None

    def study(self, sentences: Sequence[Sentence], others: Iterable[Sentence]) -> None:  # noqa: B027  most need none
        """Fixes the vocabulary from the training sentences and `others` (dev), before a new model is built."""

    def lines(self) -> list[str]:
        """Lines about this encoder for the run log and the model card."""
        return []

    def adapt(self, *, merged: bool) -> None:  # noqa: B027  most encoders have no adapters
        """Adds adapters, after other parts have copied blocks; `merged`: the weights already contain them."""

    def plain(self) -> AbstractContextManager[None]:
        """While it lasts, adapters are merged into the weights, as in a model folder."""
        return nullcontext()

    def settle(self) -> None:  # noqa: B027  most encoders have no adapters
        """Merges adapters for good: training is over."""

    def lower(self, to: torch.dtype) -> None:
        """Puts the Transformer into bfloat16 or int8 for good, to predict faster on a CPU."""
        raise ValueError("this model has no Transformer that could compute in bfloat16 or int8; use float32")

    @abstractmethod
    def forward(self, inputs: Inputs) -> Words:
        """One vector per unit."""

    def save_files(self, folder: Path) -> None:  # noqa: B027  an encoder without files saves none
        """Writes the files that `rebuild` needs besides weights, such as configuration and tokenizer."""

    @classmethod
    def rebuild(cls, folder: Path, **settings: Any) -> Self:
        """The encoder of a saved model, without weights; its constructor finds the folder in `saved_in`."""
        encoder = cls.__new__(cls)
        encoder.saved_in = folder
        cls.__init__(encoder, **settings)
        return encoder

    @classmethod
    def rebuild_to_predict(cls, folder: Path, **settings: Any) -> Self:
        """The same for a model that is not trained any more, without what only training needs."""
        return cls.rebuild(folder, **settings)
