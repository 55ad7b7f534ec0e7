"""Spans read by a BiLSTM that starts and ends with the span and sees no word outside it.

The states of a span x_1..x_n are o_t = [f_t ; b_t], its final ones h = [f_n ; b_1]; its vector is the sum of a_t o_t
with a = softmax(o_t . h).  See: SNG, section 3 (the span-level strategy).

Forward states depend only on where a span starts, backward states only on where it ends: spans that share a border
share the pass from it. So two passes serve all spans, and o_t . h = f_t . f_n + b_t . b_1 is two products of small
tables.

Legend: B sentences, L words, W widths, D word size, H states of one direction, M candidates, N listed spans, K cells
(words of listed spans, one span after the other).
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from wingspan.candidates import Candidates
from wingspan.encoders import Encoder, Words
from wingspan.layers.lstm import BiLSTM, enter, walk
from wingspan.layers.tracing import exporting
from wingspan.spans import SpanRepresentation, embed_widths

CELLS = 65_536
"""The most states of a direction in memory at once; beyond that, spans are done in blocks, recomputed in backward."""


class RecurrentSpans(SpanRepresentation):
    """A BiLSTM inside every span, attention on its final states, then a width embedding.

    `hidden_size` is the size of both directions together. `dropout` applies to the words that the BiLSTM reads.
    """

    def __init__(
        self, encoder: Encoder, max_width: int, *, hidden_size: int = 400, width_size: int = 0, dropout: float = 0.0
    ) -> None:
        super().__init__()
        if hidden_size < 2 or hidden_size % 2:
            raise ValueError(f"RecurrentSpans.hidden_size is {hidden_size}; both directions share it: give an even one")
        self.recurrent = BiLSTM(encoder.size, hidden_size // 2)
        self.widths = nn.Embedding(max_width, width_size) if width_size else None
        self.dropout = nn.Dropout(dropout)
        self.size = hidden_size + width_size

    def forward(self, words: Words, candidates: Candidates) -> Tensor:
        """Span vectors.  (B, M, size)"""
        top = self.dropout(words.top)
        width = candidates.width
        if width is None:
            spans = self._listed(top, candidates)
        elif exporting():
            spans = self._grid(*self._entered(top), width).flatten(1, 2)
        else:  # some sentences at a time
            ahead, back = self._entered(top)
            rows = max(1, CELLS // (ahead.shape[1] * width))
            parts = zip(ahead.split(rows), back.split(rows), strict=True)
            spans = torch.cat([run(self._grid, len(ahead) > rows, *part, width) for part in parts]).flatten(1, 2)
        if self.widths is None:
            return spans
        widths = embed_widths(self.widths.weight, candidates.start, candidates.end)
        return torch.cat([spans, widths.to(spans.dtype)], -1)

    def _entered(self, words: Tensor) -> tuple[Tensor, Tensor]:
        """Words at the gates of both directions: each once, however many spans it is in.  (..., D) -> (..., 4 H)"""
        return enter(self.recurrent.forwards, words), enter(self.recurrent.backwards, words)

    def _grid(self, ahead: Tensor, back: Tensor, width: int) -> Tensor:
        """Spans by start and width.  (B, L, 4 H) -> (B, L, W, 2 H)"""
        batch, length, _ = ahead.shape
        everywhere, counts = torch.arange(batch * length, device=ahead.device), [batch * length] * width
        forwards, backwards = (
            torch.stack(walk(lstm, entered.flatten(0, 1), everywhere, counts, direction), 1).unflatten(0, (batch, -1))
            for lstm, entered, direction in self._directions(ahead, back)
        )  # (B, L, W, H): from each first word on, from each last word back
        # the last state of each width times all of them: by first word for one direction, by last for the other
        scores = forwards @ forwards.mT + moved(turned(backwards @ backwards.mT), 1)  # (B, L, W, W)
        narrower = torch.ones(width, width, dtype=torch.bool, device=ahead.device).tril()
        weights = scores.float().masked_fill(~narrower, -torch.inf).softmax(-1).to(scores.dtype)
        return torch.cat([weights @ forwards, moved(turned(moved(weights, -1)) @ backwards, 1)], -1)

    def _listed(self, top: Tensor, candidates: Candidates) -> Tensor:
        """Listed spans of any width, narrow ones first; masked candidates are zero.  (B, L, D) -> (B, M, 2 H)"""
        sentence, cell = candidates.mask.nonzero(as_tuple=True)  # (N,)
        width, order = (candidates.end - candidates.start)[sentence, cell].sort(stable=True)
        sentence, cell = sentence[order], cell[order]
        first = sentence * top.shape[1] + candidates.start[sentence, cell]  # among all words of the batch
        inside = covered(first, width, top.shape[0] * top.shape[1])
        entered = self._entered(top.flatten(0, 1)[inside])  # of a typed corpus' words, few are in a span
        first = (inside.cumsum(0) - 1)[first]  # among these; the words of a span are still neighbors
        blocks = cuts(width.tolist())
        rows = [run(self._spans, len(blocks) > 1, *entered, first[a:z], width[a:z]) for a, z in blocks]
        spans = torch.cat(rows) if rows else entered[0].new_zeros(0, self.recurrent.size)  # (N, 2 H)
        empty = spans.new_zeros(*candidates.mask.shape, self.recurrent.size)
        return empty.index_put((sentence, cell), spans)

    def _spans(self, ahead: Tensor, back: Tensor, first: Tensor, width: Tensor) -> Tensor:
        """Spans by their first words and widths.  (N,) each -> (N, 2 H)"""
        span = torch.repeat_interleave(width)  # (K,) whose word a cell is
        begins = width.cumsum(0) - width
        step = torch.arange(len(span), device=span.device) - begins[span]
        last = width[span] - 1
        steps = step, last - step  # how far a cell is from the border that its direction starts at
        walks = [
            shared(lstm, entered, border, width, direction)
            for (lstm, entered, direction), border in zip(
                self._directions(ahead, back), (first, first + width - 1), strict=True
            )
        ]
        # the last state of each span times all of them, from a table of all products at its border
        products = [(table @ table.mT)[row[span], last, at] for (table, row), at in zip(walks, steps, strict=True)]
        scores = torch.stack(products).sum(0, dtype=torch.float32)  # (K,)
        highest = scores.new_full((len(width),), -torch.inf).scatter_reduce(0, span, scores.detach(), "amax")
        weights = (scores - highest[span]).exp()  # a softmax over the cells of each span
        weights = weights / torch.zeros_like(highest).index_add(0, span, weights)[span]
        shares: dict[str, Any] = {"mode": "sum", "per_sample_weights": weights.to(walks[0][0].dtype)}
        sums = [
            F.embedding_bag(row[span] * table.shape[1] + at, table.flatten(0, 1), begins, **shares)
            for (table, row), at in zip(walks, steps, strict=True)
        ]
        return torch.cat(sums, -1)

    def _directions(self, ahead: Tensor, back: Tensor) -> tuple[tuple[nn.LSTM, Tensor, int], ...]:
        return (self.recurrent.forwards, ahead, 1), (self.recurrent.backwards, back, -1)


def run(part: Callable[..., Tensor], again: bool, *inputs: Tensor | int) -> Tensor:
    """One block; where there are several, its states are recomputed in the backward pass (`again`)."""
    if again and torch.is_grad_enabled():
        spans: Tensor = checkpoint(part, *inputs, use_reentrant=False)
        return spans
    return part(*inputs)


def covered(first: Tensor, width: Tensor, words: int) -> Tensor:
    """Which words are in some span.  (words,)"""
    borders = torch.zeros(words + 1, dtype=torch.long, device=first.device)
    borders.index_add_(0, first, torch.ones_like(first)).index_add_(0, first + width, -torch.ones_like(first))
    return borders.cumsum(0)[:-1] > 0


def cuts(widths: list[int]) -> list[tuple[int, int]]:
    """Sorted widths in blocks of at most `CELLS` cells, each span counted as the widest, or of one span."""
    blocks: list[tuple[int, int]] = []
    first = 0
    for at, width in enumerate(widths):
        if at > first and width * (at + 1 - first) > CELLS:
            blocks.append((first, at))
            first = at
    return [*blocks, (first, len(widths))] if widths else []


def shared(lstm: nn.LSTM, entered: Tensor, border: Tensor, width: Tensor, direction: int) -> tuple[Tensor, Tensor]:
    """States from each border, walked once for all spans that share it, as far as the widest of them.

    -> (borders, W, H), and which row of it each span has  (N,)
    """
    place, which = torch.unique(border, return_inverse=True)
    longest = torch.zeros_like(place).scatter_reduce(0, which, width, "amax")
    longest, order = longest.sort(descending=True)  # so that walks that continue come first
    rank = torch.empty_like(order).scatter(0, order, torch.arange(len(order), device=order.device))
    going = (longest[:, None] > torch.arange(int(longest[0]), device=order.device)).sum(0)  # (W,)
    states = walk(lstm, entered, place[order], going.tolist(), direction)
    table = torch.stack([F.pad(state, (0, 0, 0, len(place) - len(state))) for state in states], 1)
    return table, rank[which]


def turned(weights: Tensor) -> Tensor:
    """Reverses the first `width` entries for the span of each width.  (B, L, W, W)"""
    at = torch.arange(weights.shape[-1], device=weights.device)
    mirror = at[:, None] - at
    return weights.gather(-1, mirror.clamp(min=0).expand_as(weights)).masked_fill(mirror < 0, 0.0)


def moved(cells: Tensor, direction: int) -> Tensor:
    """Spans by (last word, width) as spans by (first word, width), direction 1, or back, -1.  (B, L, W, .)

    Each width is shifted one word further than the one before; cells off the sentence are no spans.
    """
    batch, length, width, _ = cells.shape
    at = torch.arange(length, device=cells.device)[:, None] + direction * torch.arange(width, device=cells.device)
    at = at.clamp(0, length - 1) * width + torch.arange(width, device=cells.device)  # (L, W)
    row = torch.arange(batch, device=cells.device)[:, None] * (length * width) + at.flatten()
    return cells.flatten(0, 2).index_select(0, row.flatten()).view_as(cells)
