"""A bidirectional LSTM unaffected by padding: two one-way LSTMs and a reversal that respects each length.

Packed sequences would do the same, but synchronize with the host and cannot be exported.
"""

from collections.abc import Iterable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wingspan.layers.tracing import exporting


class BiLSTM(nn.Module):
    """(B, L, D) -> (B, L, 2 * hidden)."""

    def __init__(self, size: int, hidden: int) -> None:
        super().__init__()
        self.forwards = nn.LSTM(size, hidden, batch_first=True)
        self.backwards = nn.LSTM(size, hidden, batch_first=True)
        self.size = 2 * hidden

    def forward(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """States of both directions side by side; rows past a length are meaningless."""
        if exporting():
            return both_directions(self, vectors, lengths)
        at = torch.arange(vectors.shape[1], device=lengths.device).expand(len(lengths), -1)
        mirror = torch.where(at < lengths[:, None], lengths[:, None] - 1 - at, at).unsqueeze(-1)  # (B, L, 1)
        ahead, _ = self.forwards(vectors)
        back, _ = self.backwards(vectors.gather(1, mirror.expand_as(vectors)))
        return torch.cat([ahead, back.gather(1, mirror.expand_as(back))], -1)


def both_directions(part: BiLSTM, vectors: Tensor, lengths: Tensor) -> Tensor:
    """The same as one node of an ONNX graph, which has its own way with lengths and the order of gates."""

    def column(name: str) -> Tensor:
        """A weight of both LSTMs; input, output, forget, cell, where torch has input, forget, cell, output."""
        gates = (getattr(lstm, name).chunk(4) for lstm in (part.forwards, part.backwards))
        return torch.stack([torch.cat([taken, shown, kept, new]) for taken, kept, new, shown in gates])

    bias = torch.cat([column("bias_ih_l0"), column("bias_hh_l0")], -1)
    hidden, (batch, length, _) = part.size // 2, vectors.shape
    states = torch.onnx.ops.symbolic(
        "LSTM",
        (vectors.transpose(0, 1), column("weight_ih_l0"), column("weight_hh_l0"), bias, lengths.int()),
        {"hidden_size": hidden, "direction": "bidirectional"},
        dtype=vectors.dtype,
        shape=(length, 2, batch, hidden),
    )
    return states.permute(2, 0, 1, 3).flatten(2)


class InContext(nn.Module):
    """Vectors beside the states of a BiLSTM over them; alone if `hidden` is 0.  (B, L, D) -> (B, L, size)"""

    def __init__(self, size: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.recurrent = BiLSTM(size, hidden) if hidden else None
        self.dropout = nn.Dropout(dropout)
        self.size = size + 2 * hidden

    def forward(self, own: Tensor, mask: Tensor) -> Tensor:
        """`mask` is true for real places; the others are zero.  (B, L)"""
        own = self.dropout(own)
        if self.recurrent is not None:
            own = torch.cat([own, self.dropout(self.recurrent(own, mask.sum(-1)))], -1)
        return own * mask.unsqueeze(-1)


def enter(lstm: nn.LSTM, vectors: Tensor) -> Tensor:
    """The contribution of vectors to an LSTM's gates, which does not depend on its state.  -> (..., 4 H)"""
    weight, _, bias, another = lstm.all_weights[0]
    return F.linear(vectors, weight, bias + another)


def walk(lstm: nn.LSTM, entered: Tensor, place: Tensor, going: Sequence[int], direction: int) -> list[Tensor]:
    """Many walks along one row of entered vectors, each from its place, forwards (1) or backwards (-1).

    At each step only the first `going` walks continue; a walk beyond the row stays at its end.
    (P, 4 H), (N,) -> the states after each step, (going, H)
    """
    _, recurrent, _, _ = lstm.all_weights[0]
    states: list[Tensor] = []
    cell: Tensor | None = None
    places = [place[:count] + direction * step for step, count in enumerate(going)]
    for count, gates in zip(going, rows_of(entered, places, going), strict=True):
        if states:  # before the first step the state is zero
            gates = gates + states[-1][:count] @ recurrent.T
        taken, kept, new, shown = gates.chunk(4, -1)
        fresh = torch.sigmoid(taken) * torch.tanh(new)
        cell = fresh if cell is None else torch.sigmoid(kept) * cell[:count] + fresh
        states.append(torch.sigmoid(shown) * torch.tanh(cell))
    return states


def rows_of(table: Tensor, places: Sequence[Tensor], counts: Sequence[int]) -> Iterable[Tensor]:
    """The rows at lists of `counts` places; a place beyond the table is its end.  (P, D), (N,) -> (N, D) each"""
    ends = [place.clamp(0, table.shape[0] - 1) for place in places]
    few = sum(counts) < len(counts) * table.shape[0]
    if not (few and torch.is_grad_enabled()):
        return (table.index_select(0, place) for place in ends)  # no more of them in memory than needed
    # at once: the gradient of each choice is as large as the table, which is more than all that is chosen
    every: tuple[Tensor, ...] = table.index_select(0, torch.cat(ends)).split(list(counts))
    return every
