"""Spans built layer by layer by a second Transformer beside the encoder: the span Transformer (DSpERT).

Layer l lets every span, as a query, read the encoder's states of layer l-1 at its own words. Keys and values are
projected once per word; all spans of all widths are one call of `scaled_dot_product_attention` with a mask of the words
in each span (`layers.bert_blocks`). Long sentences are cut into blocks of starts, so that the mask grows with the
width, not with the length of the sentence.

See: Zhu et al., section 3.2. Legend: B sentences, L words, R blocks of words, N spans of a block, K words of a block.
"""

import copy
import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from wingspan.candidates import Candidates
from wingspan.encoders import Encoder, Words
from wingspan.layers import grid
from wingspan.layers.autocast import working_type
from wingspan.layers.bert_blocks import Fold, attention_bias, distance_bias, form_of, kind_of, layers_of, run_layer
from wingspan.layers.pooling import WordScores, attend_listed
from wingspan.spans import SpanRepresentation, embed_widths

Aggregation = Literal["max", "mean", "multiplicative", "additive"]

BLOCK = 128  # starts per block: few enough to keep attention linear in the length, enough to fill a GPU's tiles


class SpanBlocks(NamedTuple):
    """Spans as the tower sees them: `fold` cuts words into blocks; starts and ends count from a block's first word."""

    fold: Fold  # (B, L, D) -> (R, K, D)
    start: Tensor  # (R, N)
    end: Tensor  # (R, N)
    held: Tensor  # (R, N, K) or (1, N, K): the words in a span
    bias: Tensor  # the same as an attention bias
    cells: tuple[int, Tensor] | None = None  # a grid's width, and (N,) the places of the spans in it


class DeepSpans(SpanRepresentation):
    """The span Transformer over the top `depth` layers of the encoder (None: all of them).

    Its blocks start as copies of the encoder's, or are the encoder's (`share_weights`). A span starts as an
    `aggregation` of its words; single words are the encoder's output unless `build_single`. `size_embedding` adds the
    width to the start; `width_size` appends a width embedding to the result. `checkpointing` recomputes layers in the
    backward pass. Where the encoder's attention knows distances (MPNet), those of a span are its first word's.
    """

    def __init__(
        self,
        encoder: Encoder,
        max_width: int,
        *,
        depth: int | None = None,
        share_weights: bool = False,
        aggregation: Aggregation = "max",
        build_single: bool = False,
        size_embedding: bool = False,
        width_size: int = 0,
        checkpointing: bool = False,
    ) -> None:
        super().__init__()
        blocks = top_blocks(encoder, depth)
        if share_weights and encoder.adapters is not None:
            raise ValueError("DeepSpans.share_weights runs the encoder's blocks, which adapters change; leave one out")
        # shared blocks belong to the encoder: a tuple does not register them a second time
        self.blocks = nn.ModuleList() if share_weights else nn.ModuleList(copy.deepcopy(block) for block in blocks)
        self._shared: tuple[Any, ...] = tuple(blocks) if share_weights else ()
        self.distances = None if share_weights else copy.deepcopy(encoder.distances)
        self._shared_distances: tuple[nn.Embedding | None, ...] = (encoder.distances,) if share_weights else ()
        encoder.keep_layers = max(encoder.keep_layers, len(blocks) + 1)
        if aggregation not in ("max", "mean", "multiplicative", "additive"):
            raise ValueError(f"DeepSpans has no aggregation {aggregation!r}; use max, mean, multiplicative or additive")
        self.aggregation = aggregation
        self.scores: WordScores | None = None
        if aggregation == "multiplicative" or aggregation == "additive":
            self.scores = WordScores(encoder.size, aggregation)
        self.dropout = nn.Dropout(form_of(blocks[0]).dropout["output"])
        self.sizes = nn.Embedding(max_width, encoder.size) if size_embedding else None
        if self.sizes is not None:
            nn.init.zeros_(self.sizes.weight)  # no effect before the first step
        self.widths = nn.Embedding(max_width, width_size) if width_size else None
        self.narrowest = 1 if build_single else 2
        self.checkpointing = checkpointing
        self.size = encoder.size + width_size

    def forward(self, words: Words, candidates: Candidates) -> Tensor:
        """Span vectors.  (B, M, size)"""
        assert words.layers, "keep_layers makes the encoder return them"
        if candidates.width is None:
            spans = self._listed(words, candidates)
        elif words.top.shape[1] <= BLOCK:
            spans = self._packed(words, candidates.width)
        else:
            spans = self._blocked(words, candidates.width)
        if self.widths is None:
            return spans
        if candidates.width is None:
            widths = embed_widths(self.widths.weight, candidates.start, candidates.end)
        else:  # the same rows for every start
            widths = self.widths.weight[: candidates.width].repeat(words.top.shape[1], 1).expand(len(spans), -1, -1)
        return torch.cat([spans, widths.to(spans.dtype)], -1)

    def _listed(self, words: Words, candidates: Candidates) -> Tensor:
        """Candidates of any width, each with a mask over the sentence."""
        start, end = candidates.start, candidates.end
        if self.narrowest == 1:
            return self._build(words, self._apart(words, start, end))
        wide = end - start > 1
        singles = grid.pick(words.top, start)
        if torch.is_grad_enabled() or start.is_cuda:  # counting the wide ones would synchronize with the device
            spans = self._build(words, self._apart(words, start, end))
            return torch.where(wide.unsqueeze(-1), spans, singles.to(spans.dtype))
        wide = wide & candidates.mask
        most = max(int(wide.sum(1).max()), 1)
        first = wide.int().argsort(dim=1, descending=True, stable=True)[:, :most]  # the wide ones of each sentence
        spans = self._build(words, self._apart(words, start.gather(1, first), end.gather(1, first)))
        at = first.unsqueeze(-1).expand_as(spans)
        kept = torch.where(wide.gather(1, first).unsqueeze(-1), spans, singles.gather(1, at).to(spans.dtype))
        return singles.to(spans.dtype).scatter(1, at, kept)

    @staticmethod
    def _apart(words: Words, start: Tensor, end: Tensor) -> SpanBlocks:
        held = grid.inside(start, end, words.top.shape[1])
        return SpanBlocks(same, start, end, held, attention_bias(held, half_of(words)))

    def _packed(self, words: Words, width: int) -> Tensor:
        """The grid of short sentences: only spans that end in the sentence are built, other cells stay zero."""
        batch, length, _ = words.top.shape
        start, end, held, bias, places = sentence_spans(length, self.narrowest, width, words.top.device, half_of(words))
        parts = [words.top] if self.narrowest == 2 else []
        if len(start):
            layout = SpanBlocks(same, start.expand(batch, -1), end.expand(batch, -1), held, bias)
            parts.append(self._build(words, layout._replace(cells=(width, places[-len(start) :]))))
        spans = torch.cat([part.to(parts[-1].dtype) for part in parts], 1)
        return spans.new_zeros(batch, length * width, spans.shape[-1]).index_copy_(1, places, spans)

    def _blocked(self, words: Words, width: int) -> Tensor:
        """The grid of long sentences: blocks of starts, each with the words up to the widest span of its last start."""
        batch, length, size = words.top.shape
        blocks = math.ceil(length / BLOCK)
        step = math.ceil(length / blocks)
        if width < self.narrowest:
            return words.top
        room = (0, 0, 0, blocks * step + width - 1 - length)

        def fold(states: Tensor) -> Tensor:
            return F.pad(states, room).unfold(1, step + width - 1, step).transpose(2, 3).flatten(0, 1)

        start = torch.arange(step, device=words.top.device).repeat_interleave(width - self.narrowest + 1)
        end = start + torch.arange(self.narrowest, width + 1, device=start.device).repeat(step)
        held, rows = grid.inside(start[None], end[None], step + width - 1), (batch * blocks, -1)
        bias = attention_bias(held, half_of(words))
        layout = SpanBlocks(fold, start.expand(rows), end.expand(rows), held, bias)
        spans = self._build(words, layout).view(batch, blocks * step, -1, size)[:, :length]
        if self.narrowest == 2:
            spans = torch.cat([words.top.unsqueeze(2).to(spans.dtype), spans], 2)
        return spans.flatten(1, 2)

    def _build(self, words: Words, blocks: SpanBlocks) -> Tensor:
        """All layers of the tower; the encoder's last states are never read.  -> (R, N, D)"""
        tower = self._shared or tuple(self.blocks)
        below = words.layers[-len(tower) - 1 : -1]
        dtype = half_of(words)
        spans = self._begin(below[0].to(dtype), blocks).to(dtype)
        run: Callable[..., Tensor] = run_layer
        if self.checkpointing and self.training:
            run = partial(checkpoint, run_layer, use_reentrant=False)
        shape, spans = spans.shape, spans.flatten(0, 1)
        distances = self._shared_distances[0] if self._shared else self.distances
        bias = blocks.bias if distances is None else distance_bias(distances.weight, blocks.start, blocks.bias)
        with torch.autocast(words.top.device.type, enabled=False):
            for layer in layers_of(tower, below, dtype, blocks.fold, together=words.top.is_cuda):
                spans = run(layer, spans, bias, self.training)
        return spans.view(shape)

    def _begin(self, states: Tensor, blocks: SpanBlocks) -> Tensor:
        """Spans before the first layer.  (B, L, D) -> (R, N, D)"""
        states = blocks.fold(self.dropout(states))
        if self.scores is not None:
            spans = attend_listed(states, self.scores(states), blocks.held)
        elif self.aggregation == "mean":
            spans = grid.range_means(states, blocks.start, blocks.end)
        elif states.is_cuda and blocks.cells is not None:  # the running maxima of all starts: few launches
            width, places = blocks.cells
            spans = grid.max_words(states, width).flatten(1, 2).index_select(1, places)
        else:
            spans = grid.range_maxima(states, blocks.start, blocks.end, blocks.held)
        return spans if self.sizes is None else spans + embed_widths(self.sizes.weight, blocks.start, blocks.end)


def half_of(words: Words) -> torch.dtype:
    """Autocast's type, used from the start so that no layer has to cast again."""
    return working_type(words.top.device, words.top.dtype)


@lru_cache(maxsize=128)
def sentence_spans(
    length: int, narrowest: int, widest: int, device: torch.device, dtype: torch.dtype
) -> tuple[Tensor, ...]:
    """All spans of a sentence up to some width, width by width; K(2L-K+1)/2 of them for widths 1 to K.

    -> start (N,), end (N,), held (1, N, L), bias (1, 1, N, L) and their places in the grid, single words first.
    """
    with torch.inference_mode(False):  # cached tensors may be used in training later
        at = torch.arange(length, device=device)  # made on the device: a copy would make the caller wait
        starts = [at[: length + 1 - k] for k in range(narrowest, widest + 1)]
        wide = torch.cat([at[:0], *(torch.full_like(start, k) for k, start in enumerate(starts, narrowest))])
        start = torch.cat([at[:0], *starts])
        singles = at * widest if narrowest == 2 else at[:0]
        held = grid.inside(start[None], (start + wide)[None], length)
        places = torch.cat([singles, start * widest + wide - 1])
        return start, start + wide, held, attention_bias(held, dtype), places


def same(states: Tensor) -> Tensor:
    """One block: the whole sentence."""
    return states


def top_blocks(encoder: Encoder, depth: int | None) -> list[Any]:
    """The encoder's top blocks, if the tower can copy them."""
    blocks: list[Any] = list(encoder.blocks or [])
    if not blocks or not all(map(kind_of, blocks)):
        raise ValueError(
            f"DeepSpans copies the Transformer blocks of BERT, RoBERTa, ELECTRA, MPNet, DistilBERT and their kin; "
            f"{type(encoder).__name__} has {'others' if blocks else 'none'}: choose such an encoder, or PooledSpans"
        )
    if depth is not None and not 1 <= depth <= len(blocks):
        raise ValueError(f"DeepSpans.depth is {depth}; this encoder has {len(blocks)} layers: give 1 to {len(blocks)}")
    return blocks[-depth:] if depth is not None else blocks
