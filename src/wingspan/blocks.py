"""Transformer blocks of the BERT shape, run with queries of their own over keys and values of someone else's.

On a GPU small batches wait for launches, not for arithmetic. So the weights of all blocks are cast together, keys and
values of all blocks are one product each, and the mask is made once in the form that attention kernels want.

Legend: B sentences, L words, R blocks of words, N queries, K words of a block, D word size.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from wingspan.casting import Column, cast_together

Pair = tuple[Tensor, Tensor]  # weight and bias
Columns = dict[str, list[Column]]  # by part: weights and biases
Fold = Callable[[Tensor], Tensor]  # (B, L, D) -> (R, K, D): cuts sentences into blocks of words

PARTS = (
    *(f"attention.self.{name}" for name in ("query", "key", "value")),
    *(f"{part}.{name}" for part in ("attention.output", "output") for name in ("dense", "LayerNorm")),
    "intermediate.dense",
)
"""What a block of the BERT shape learns, and nothing else."""

KEYS_AND_VALUES = ("attention.self.key", "attention.self.value")


def bert_shaped(block: Any) -> bool:
    """Whether a block learns what BERT's learn and sees positions in its input alone (RoFormer's also turn by them)."""
    learned = {name.rpartition(".")[0] for name, _ in block.named_parameters()}
    return learned == set(PARTS) and "sinusoidal_pos" not in inspect.signature(block.forward).parameters


class Form(NamedTuple):
    """What is not learned and the same for all blocks of an encoder."""

    heads: int
    activation: Callable[[Tensor], Tensor]
    attention_dropout: float
    dropout: dict[str, float]  # by part
    eps: dict[str, float]  # of the part's layer norm


class Layer(NamedTuple):
    """One block, ready for queries: its weights, and its keys and values of the words."""

    form: Form
    weights: dict[str, Pair]
    key: Tensor  # (R, heads, K, D / heads)
    value: Tensor  # (R, heads, K, D / heads)


def layers_of(
    blocks: Sequence[Any], states: Sequence[Tensor], dtype: torch.dtype, fold: Fold, *, together: bool
) -> list[Layer]:
    """Each block over the words' states below it; `together`: few large calls instead of many small ones."""
    form = form_of(blocks[0])
    made = stacked_layers if together else single_layers
    columns, keys, values = made({part: weights_of(blocks, part) for part in PARTS}, list(states), dtype)
    each = [{part: (weights[i], biases[i]) for part, (weights, biases) in columns.items()} for i in range(len(blocks))]
    keys, values = ([head for one in found for head in split_heads(one, fold, form.heads)] for found in (keys, values))
    return [Layer(form, *one) for one in zip(each, keys, values, strict=True)]


def split_heads(states: Tensor, fold: Fold, heads: int) -> tuple[Tensor, ...]:
    """Blocks of words and heads apart, layer by layer.  (layers, B, L, D) -> layers * (R, heads, K, D / heads)"""
    layers = len(states)
    folded = fold(states.flatten(0, 1))  # (layers * R, K, D)
    return folded.view(layers, -1, folded.shape[1], heads, folded.shape[2] // heads).transpose(2, 3).unbind()


def form_of(block: Any) -> Form:
    """Read off one block."""
    attention, joins = block.attention.self, {"attention.output": block.attention.output, "output": block.output}
    dropout = {name: part.dropout.p for name, part in joins.items()}
    eps = {name: part.LayerNorm.eps for name, part in joins.items()}
    act = block.intermediate.intermediate_act_fn
    return Form(attention.num_attention_heads, act, attention.dropout.p, dropout, eps)


def stacked_layers(columns: Columns, states: list[Tensor], dtype: torch.dtype) -> tuple[Columns, Column, Column]:
    """All weights are cast at once; keys, and values, of all layers are one product.  keys: [(layers, B, L, D)]"""
    below = torch.stack(states).to(dtype)  # (layers, B, L, D)
    words = [column for part in KEYS_AND_VALUES for column in columns[part]]
    others = {part: pair for part, pair in columns.items() if part not in KEYS_AND_VALUES}
    flat = [one for pair in others.values() for column in pair for one in column]
    cast = iter(cast_together(words, flat, dtype))
    keys, values = (project(below, next(cast), next(cast)) for _ in KEYS_AND_VALUES)
    return {part: [[next(cast) for _ in one] for one in pair] for part, pair in others.items()}, [keys], [values]


def single_layers(columns: Columns, states: list[Tensor], dtype: torch.dtype) -> tuple[Columns, Column, Column]:
    """The same one by one: nothing is copied.  keys: layers * [(1, B, L, D)]"""
    columns = {part: [[one.to(dtype) for one in column] for column in pair] for part, pair in columns.items()}
    below = [one.to(dtype) for one in states]
    keys, values = ([*map(F.linear, below, *columns[part])] for part in KEYS_AND_VALUES)
    return columns, [one.unsqueeze(0) for one in keys], [one.unsqueeze(0) for one in values]


def weights_of(blocks: Sequence[Any], part: str) -> list[Column]:
    """The weights and the biases of one part of every block."""
    found = [block.get_submodule(part) for block in blocks]
    return [[one.weight for one in found], [one.bias for one in found]]


def project(states: Tensor, weights: Tensor, biases: Tensor) -> Tensor:
    """Every layer's words through a linear layer of its own, as one product.  (layers, B, L, D)"""
    projected: Tensor = Projection.apply(states.flatten(1, 2), weights, biases)  # type: ignore[no-untyped-call]
    return projected.view_as(states)


class Projection(torch.autograd.Function):
    """A product for each layer whose gradients of weights lie as the weights do.

    torch's own come transposed, and one that lies otherwise makes `casting` copy all of them one by one.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weights: Tensor, biases: Tensor) -> Tensor:
        """(layers, N, D), (layers, D, D), (layers, D) -> (layers, N, D)"""
        ctx.save_for_backward(rows, weights)
        return torch.baddbmm(biases.unsqueeze(1), rows, weights.mT)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Of those that are asked for."""
        (rows, weights), (of_rows, of_weights, of_biases) = ctx.saved_tensors, ctx.needs_input_grad
        return (
            gradient @ weights if of_rows else None,
            gradient.mT @ rows if of_weights else None,
            gradient.sum(1) if of_biases else None,
        )


def attention_bias(held: Tensor, dtype: torch.dtype) -> Tensor:
    """What is added to the scores of words: nothing, or minus infinity.  (R, N, K) -> (R, 1, N, K)

    Its rows lie 16 numbers apart or a multiple of that; otherwise attention would copy it in every layer.
    """
    *front, words = held.shape
    room = held.new_zeros((*front, -(-words // 16) * 16), dtype=dtype)
    return room[..., :words].masked_fill_(~held, -torch.inf).unsqueeze(1)


def run_layer(layer: Layer, spans: Tensor, bias: Tensor, training: bool) -> Tensor:
    """One block with spans as queries, words as keys and values; the residual stream is the spans'.  (R * N, D)

    Spans are rows of one matrix: every axis more would be two more views for each product, forward and back.
    """
    form, weights = layer.form, layer.weights
    shape = len(layer.key), bias.shape[2], form.heads, spans.shape[1] // form.heads  # R, N, heads, D / heads
    query = F.linear(spans, *weights["attention.self.query"]).view(shape).transpose(1, 2)
    read = attend(form, query, layer.key, layer.value, bias, training)
    return digest(form, weights, spans, read, training)


def attend(form: Form, query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, training: bool) -> Tensor:
    """What queries read, as rows.  (R, heads, N, D / heads), (R, heads, K, D / heads) -> (R * N, D)"""
    dropout = form.attention_dropout if training else 0.0
    read = F.scaled_dot_product_attention(query, key, value, attn_mask=bias, dropout_p=dropout)
    return read.transpose(1, 2).reshape(-1, form.heads * query.shape[3])


def digest(form: Form, weights: dict[str, Pair], rows: Tensor, read: Tensor, training: bool) -> Tensor:
    """The block behind attention; `rows`, the residual stream, may be of a finer type than the products.  (N, D)"""
    rows = join(form, weights, "attention.output", rows, read, training)
    wide = form.activation(F.linear(rows.to(read.dtype), *weights["intermediate.dense"]))
    return join(form, weights, "output", rows, wide, training)


def join(form: Form, weights: dict[str, Pair], part: str, rows: Tensor, change: Tensor, training: bool) -> Tensor:
    """Linear layer, dropout, residual connection, layer norm."""
    change = F.dropout(F.linear(change, *weights[f"{part}.dense"]), form.dropout[part], training)
    return F.layer_norm(rows + change, rows.shape[-1:], *weights[f"{part}.LayerNorm"], form.eps[part])


@cache
def compiled_layer(backend: str | Callable[..., Any] = "inductor") -> Callable[..., Tensor]:
    """`run_layer` through `torch.compile`, with sizes left open: a few translations, not one for each batch.

    The first layer has its own, as have grids, lists, and batches of one sentence. After eight in one process torch
    runs what is new without, and says so in its log.
    """
    from torch._dynamo.exc import TorchDynamoException  # takes a second to import

    translated: Callable[..., Tensor] = torch.compile(run_layer, dynamic=True, backend=backend)

    def run(*given: Any) -> Tensor:
        try:
            return translated(*given)
        except TorchDynamoException as error:
            said = " ".join(str(error).strip().splitlines()[:2])  # who says it, and what
            raise ValueError(
                f"DeepSpans.compiled: torch.compile does not work here ({said}); "
                "it needs a C++ compiler, and Triton on a GPU: install them or leave compiled out"
            ) from error

    return run
