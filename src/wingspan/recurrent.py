"""A bidirectional LSTM that does not feel its padding: two one-way LSTMs and a reversal that knows each length.

Packed sequences would do the same, but synchronize with the host and cannot be exported.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class BiLSTM(nn.Module):
    """(B, L, D) -> (B, L, 2 * hidden)."""

    def __init__(self, size: int, hidden: int) -> None:
        super().__init__()
        self.forwards = nn.LSTM(size, hidden, batch_first=True)
        self.backwards = nn.LSTM(size, hidden, batch_first=True)
        self.size = 2 * hidden

    def forward(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """States of both directions side by side; rows past a length are meaningless."""
        mirror = reversal(lengths, vectors.shape[1]).unsqueeze(-1)  # (B, L, 1)
        ahead, _ = self.forwards(vectors)
        back, _ = self.backwards(vectors.gather(1, mirror.expand_as(vectors)))
        return torch.cat([ahead, back.gather(1, mirror.expand_as(back))], -1)


def reversal(lengths: Tensor, longest: int) -> Tensor:
    """Where each place goes when only the first `length` places are turned round.  (B,) -> (B, L)"""
    at = torch.arange(longest, device=lengths.device).expand(len(lengths), -1)
    return torch.where(at < lengths[:, None], lengths[:, None] - 1 - at, at)
