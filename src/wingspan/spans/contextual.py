"""Spans that know their neighbors: a BiLSTM over the spans of one width, around another span representation.

See: Zhu et al. 2023, section 3.3. The spans of each width are a sequence by their starts; all widths run at once.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from wingspan.candidates import Candidates
from wingspan.encoders import Encoder, Words
from wingspan.layers.lstm import BiLSTM
from wingspan.spans import SpanRepresentation


class ContextualSpans(SpanRepresentation):
    """The BiLSTM's states, then a width embedding. Single words have separate weights unless `share_weights`."""

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
