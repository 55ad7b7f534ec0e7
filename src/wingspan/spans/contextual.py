"""Spans that know their neighbors, around another span representation: a BiLSTM over spans of one width, convolutions.

See: Zhu et al. 2023, section 3.3; Yan et al. 2023, CNN-NER. Legend: B sentences, L words, W widths, C channels.
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wingspan.candidates import Candidates
from wingspan.encoders import Encoder, Words
from wingspan.layers.lstm import BiLSTM
from wingspan.spans import SpanRepresentation


class ContextualSpans(SpanRepresentation):
    """The BiLSTM's states, then a width embedding. Single words have separate weights unless `share_weights`.

    The spans of each width are a sequence by their starts; all widths run at once.
    """

    takes_lists = False  # neighbors are only known on the whole grid

    def __init__(
        self,
        encoder: Encoder,
        max_width: int,
        *,
        around: Callable[..., SpanRepresentation],
        hidden_size: int = 400,
        share_weights: bool = False,
        width_size: int = 25,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        if hidden_size < 2 or hidden_size % 2:
            raise ValueError(
                f"ContextualSpans.hidden_size is {hidden_size}; both directions share it: give an even one"
            )
        self.around = around(encoder, max_width)
        self.recurrent = BiLSTM(self.around.size, hidden_size // 2)
        initialize(self.recurrent)
        self.single = None
        if not share_weights:
            self.single = BiLSTM(self.around.size, hidden_size // 2)
            initialize(self.single)
        self.widths = nn.Embedding(max_width, width_size) if width_size else None
        if self.widths is not None:
            bound = math.sqrt(3 / width_size)
            nn.init.uniform_(self.widths.weight, -bound, bound)
        self.dropout = nn.Dropout(dropout)
        self.size = hidden_size + width_size

    def forward(self, words: Words, candidates: Candidates) -> Tensor:
        """Span vectors.  (B, L * W, size)"""
        width = candidates.width
        assert width is not None, "assembling refuses other candidates"
        batch, length, _ = words.top.shape
        spans = self.dropout(self.around(words, candidates)).view(batch, length, width, -1).transpose(1, 2)
        # a sentence of n words has n - k + 1 spans of width k; the rest is padding
        counts = words.mask.sum(-1, keepdim=True) - torch.arange(width, device=spans.device)  # (B, W)
        counts = counts.clamp(min=0)
        if self.single is None:
            states = self._run(self.recurrent, spans, counts)
        else:
            states = self._run(self.single, spans[:, :1], counts[:, :1])
            if width > 1:
                states = torch.cat([states, self._run(self.recurrent, spans[:, 1:], counts[:, 1:])], 1)
        states = states.transpose(1, 2)  # (B, L, W, hidden)
        if self.widths is not None:
            rows = self.widths.weight[:width].to(states.dtype).expand(batch, length, -1, -1)
            states = torch.cat([states, rows], -1)
        return states.flatten(1, 2)

    def _run(self, recurrent: BiLSTM, spans: Tensor, counts: Tensor) -> Tensor:
        """Each width of each sentence as one sequence.  (B, W, L, D) -> (B, W, L, hidden)"""
        states: Tensor = recurrent(spans.flatten(0, 1), counts.flatten())
        return states.view(*spans.shape[:3], -1)


def initialize(recurrent: BiLSTM) -> None:
    """Xavier for each gate, with tanh's gain for the cell gate; biases are 1 for forget gates and 0 otherwise."""
    for name, parameter in recurrent.named_parameters():
        gates = parameter.data.chunk(4)  # input, forget, cell, output
        if "bias" in name:
            parameter.data.zero_()
            gates[1].fill_(1.0)
        else:
            for at, gate in enumerate(gates):
                nn.init.xavier_uniform_(gate, gain=nn.init.calculate_gain("tanh") if at == 2 else 1.0)


class ConvolvedSpans(SpanRepresentation):
    """Other spans in `size` channels R, and `depth` masked 3 x 3 convolutions over the grid of all of them.

    R' = GELU(LayerNorm(R + Conv(R))), again and again; the span vector is the first R plus the last. R is a linear
    layer over the vectors of `around`, and over those of `beside` where there are two kinds. See: Yan et al. 2023
    (CNN-NER), whose R is the biaffine one.

    The neighbors of span (i, j), first and last word, are the spans whose borders are at most one word away.
    """

    takes_lists = False  # neighbors are only known on the whole grid

    def __init__(
        self,
        encoder: Encoder,
        max_width: int,
        *,
        around: Callable[..., SpanRepresentation],
        beside: Callable[..., SpanRepresentation] | None = None,
        size: int = 200,
        depth: int = 2,
        dropout: float = 0.2,
    ) -> None:
        super().__init__()
        if depth < 1:
            raise ValueError(f"ConvolvedSpans.depth is {depth}; give at least 1")
        self.around = around(encoder, max_width)
        self.channels = nn.Linear(self.around.size, size)
        self.beside = None if beside is None else beside(encoder, max_width)
        self.beside_channels = nn.Linear(self.beside.size, size, bias=False) if self.beside is not None else None
        # saved models have the weights of each convolution as those of a linear layer over nine neighbors
        self.convolutions = nn.ModuleList(nn.Linear(9 * size, size) for _ in range(depth))
        self.norms = nn.ModuleList(nn.LayerNorm(size) for _ in range(depth))
        self.dropout = nn.Dropout(dropout)
        self.size = size

    def forward(self, words: Words, candidates: Candidates) -> Tensor:
        """Span vectors.  (B, L * W, C)"""
        width = candidates.width
        assert width is not None, "assembling refuses other candidates"
        real = on_words(words.mask, width).unsqueeze(-1)  # (B, L, W, 1)
        cells: Tensor = self.around.project(words, candidates, self.channels)
        if self.beside is not None and self.beside_channels is not None:  # as if both vectors were one
            cells = cells + self.beside.project(words, candidates, self.beside_channels)
        cells = self.dropout(cells).view(*real.shape[:3], -1).masked_fill(~real, 0.0)  # (B, L, W, C)
        seen = cells
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            assert isinstance(convolution, nn.Linear)
            seen = F.gelu(norm(seen + convolved(seen, convolution))).to(cells.dtype)
            seen = seen.masked_fill(~real, 0.0)
        return (cells + seen).flatten(1, 2)


def on_words(mask: Tensor, width: int) -> Tensor:
    """Which cells of the grid hold nothing but real words; the others are beyond the sentence.  (B, L) -> (B, L, W)"""
    held: Tensor = mask.unsqueeze(2) & F.pad(mask, (0, width - 1)).unfold(1, width, 1)
    return held


def convolved(cells: Tensor, convolution: nn.Linear) -> Tensor:
    """A 3 x 3 convolution by first and last word over a grid by first word and width, zero beyond its borders.

    Neighbor (i + a, j + b) is a rows down and b - a columns to the right. With two zeros after each row, and row after
    row in one line, that is a (W + 1) + b cells further: as in a picture with rows of W + 1. So the line is cut into
    such rows, with the cell before and the one after each; the kernel's first index is a, its second b.
    (B, L, W, C) -> (B, L, W, out)
    """
    _, length, width, channels = cells.shape
    line = F.pad(cells, (0, 0, 0, 2)).flatten(1, 2)  # (B, L (W + 2), C)
    cut = width + 1
    rows = length + (length + cut - 1) // cut  # as many as hold the line
    edges = (cut + 1, rows * cut - line.shape[1] + cut + 1)  # a row above, one below, a cell before and after
    picture = F.pad(line, (0, 0, *edges)).unfold(1, cut + 2, cut)  # (B, rows + 2, C, W + 3)
    kernel = convolution.weight.view(-1, 3, 3, channels).permute(0, 3, 1, 2)
    # with channels last in memory, a CPU is up to 1.8 times as fast
    picture = picture.transpose(1, 2).contiguous(memory_format=torch.channels_last)
    seen = F.conv2d(picture, kernel.contiguous(memory_format=torch.channels_last), convolution.bias)
    seen = seen.permute(0, 2, 3, 1).flatten(1, 2)[:, : line.shape[1]]
    out: Tensor = seen.unflatten(1, (length, width + 2))[:, :, :width]
    return out


class ProjectedSpans(SpanRepresentation):
    """A linear layer (by default of a word's size), ReLU and dropout around other spans.  See: Oi and Miwa eq. 1."""

    def __init__(
        self,
        encoder: Encoder,
        max_width: int,
        *,
        around: Callable[..., SpanRepresentation],
        size: int | None = None,
        dropout: float = 0.2,
    ) -> None:
        super().__init__()
        self.around = around(encoder, max_width)
        self.takes_lists = self.around.takes_lists
        self.size = encoder.size if size is None else size
        self.linear = nn.Linear(self.around.size, self.size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, words: Words, candidates: Candidates) -> Tensor:
        """Span vectors.  (B, M, size)"""
        projected: Tensor = self.dropout(torch.relu(self.around.project(words, candidates, self.linear)))
        return projected
