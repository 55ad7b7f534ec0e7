"""The input embeddings of a pretrained model as static vectors: a word is the mean of its pieces, so none is unknown.

Of the model only the tokenizer and one table are kept. No code from its folder is ever run.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from wingspan.base_models import UNLOADABLE, open_named, open_tokenizer, quiet, said
from wingspan.batch import Inputs
from wingspan.encoders import Encoder, Words
from wingspan.pieces import PieceTokenize
from wingspan.recurrent import InContext

TABLE = "vocabulary.json"


class StaticPieces(Encoder):
    """Looks pieces up. `hidden` adds a BiLSTM beside the vectors, without which no word sees another."""

    tokenize: PieceTokenize

    def __init__(
        self,
        *,
        name: str = "minilm",
        trained: bool = False,
        hidden: int = 0,
        dropout: float = 0.0,
        max_length: int = 256,
        revision: str | None = None,
    ) -> None:
        model, tokenizer = open_named(name, revision, torch.float32, None)
        table: Tensor = model.get_input_embeddings().weight.detach().clone()
        self._set_up(table, tokenizer, trained, hidden, dropout, max_length)
        self.name = name

    def _set_up(
        self, table: Tensor, tokenizer: Any, trained: bool, hidden: int, dropout: float, max_length: int
    ) -> None:
        super().__init__()
        self.tokenizer = tokenizer
        self.tokenize = PieceTokenize(tokenizer, max_length, "word", len(table))
        self.table = nn.Embedding.from_pretrained(table, freeze=not trained)
        self.context = InContext(table.shape[1], hidden, dropout)
        self.size = self.context.size
        self.name = ""

    def lines(self) -> list[str]:
        """Where the vectors are from."""
        rows, size = self.table.weight.shape
        state = "trained" if self.table.weight.requires_grad else "frozen"
        origin = f" of {self.name}" if self.name else ""
        return [f"Static vectors: the input embeddings{origin}, {rows:,} pieces of {size} numbers, {state}."]

    def forward(self, inputs: Inputs) -> Words:
        """The mean of each word's pieces, and the mean of all words."""
        mask = inputs.unit_mask
        pieces = self.table(inputs.tokens)  # (B, T, D)
        owner = inputs.unit_of_token.unsqueeze(-1).expand_as(pieces)
        room = pieces.new_zeros(len(pieces), mask.shape[1] + 1, pieces.shape[-1])  # one row more: specials, padding
        own = room.scatter_reduce(1, owner, pieces, "mean", include_self=False)[:, :-1]
        top = self.context(own, mask)
        return Words(top, (), top.sum(1) / mask.sum(-1, keepdim=True).clamp(min=1), mask)

    def save_files(self, folder: Path) -> None:
        """The tokenizer's files, and the shape of the table."""
        self.tokenizer.save_pretrained(folder)
        (folder / TABLE).write_text(json.dumps({"table": list(self.table.weight.shape)}), encoding="utf-8")

    @classmethod
    def rebuild(cls, folder: Path, **settings: Any) -> Self:
        """From the tokenizer's files; the name is only a record of where the table came from."""
        chosen = inspect.signature(cls).bind(**settings)
        chosen.apply_defaults()
        own = {name: value for name, value in chosen.arguments.items() if name not in ("name", "revision")}
        encoder = cls.__new__(cls)
        try:
            rows, size = json.loads((folder / TABLE).read_text(encoding="utf-8"))["table"]
            with quiet():
                tokenizer = open_tokenizer(folder)
            encoder._set_up(torch.zeros(rows, size), tokenizer, **own)
        except (*UNLOADABLE, KeyError, TypeError) as error:
            raise ValueError(f"{folder}: the encoder's files are missing or damaged ({said(error)})") from error
        return encoder
