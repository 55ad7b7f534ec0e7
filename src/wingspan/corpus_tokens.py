"""The name of a sentence's corpus as a token of its own: one more row of the vocabulary for each corpus, which learns.

The rows are kept beside the pretrained table, so that they learn where that one is frozen, quantized or adapted.
See: paper 004, whose released code adds them for one kind of encoder only and never trains them.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class CorpusTokens(nn.Module):
    """Ids from `vocabulary` on are corpora. A row starts as the mean of the pieces of its corpus' name."""

    def __init__(self, table: nn.Module, vocabulary: int, pieces: Sequence[Sequence[int]]) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        with torch.no_grad():
            device = next(table.parameters()).device
            rows = [table(torch.tensor(ids, device=device)).float().mean(0).cpu() for ids in pieces]
        self.rows = nn.Embedding.from_pretrained(torch.stack(rows), freeze=False)

    def forward(self, table: nn.Module, tokens: Tensor) -> Tensor:
        """The embeddings of pieces and corpora.  (B, T) -> (B, T, D)"""
        corpus = tokens - self.vocabulary
        embedded: Tensor = table(tokens.clamp(max=self.vocabulary - 1))
        rows = self.rows(corpus.clamp(min=0)).to(embedded.dtype)
        return torch.where((corpus >= 0).unsqueeze(-1), rows, embedded)
