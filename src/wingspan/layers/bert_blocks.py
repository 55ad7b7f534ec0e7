"""Transformer blocks with other queries (spans) than keys and values (words), and BERT's fused for training.

BERT, MPNet and DistilBERT compute the same after different names (`Kind`); MPNet also adds a learned bias by distance
to its attention scores (`distance_bias`).

On a GPU small batches wait for launches, not for arithmetic. So the weights of all blocks are cast together, keys and
values of all blocks are one product each, and the mask is made once in the form that attention kernels expect.

Legend: B sentences, L words, R blocks of words, N queries, K words of a block, D word size.
"""

import inspect
import math
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from wingspan.layers.autocast import Weights, cast_together, type_to_learn_in
from wingspan.layers.tracing import exporting

WeightBias = tuple[Tensor, Tensor]  # weight and bias
PartWeights = dict[str, list[Weights]]  # by part: weights and biases
Fold = Callable[[Tensor], Tensor]  # (B, L, D) -> (R, K, D): cuts sentences into blocks of words

PARTS = (
    *(f"attention.self.{name}" for name in ("query", "key", "value")),
    *(f"{part}.{name}" for part in ("attention.output", "output") for name in ("dense", "LayerNorm")),
    "intermediate.dense",
)
"""The learned parts of a block, all of them, by their names in BERT."""

KEYS_AND_VALUES = ("attention.self.key", "attention.self.value")


class Kind(NamedTuple):
    """Where the blocks of one kind of model have what all blocks have."""

    names: dict[str, str]  # of a part in BERT: its name in this kind, where that differs
    heads: str
    activation: str
    attention_dropout: str
    dropout: dict[str, str]  # by part; a part that is left out has none

    def name(self, part: str) -> str:
        """The name of one of `PARTS` in these blocks."""
        return self.names.get(part, part)


BERT = Kind(
    names={},
    heads="attention.self.num_attention_heads",
    activation="intermediate.intermediate_act_fn",
    attention_dropout="attention.self.dropout.p",
    dropout={"attention.output": "attention.output.dropout.p", "output": "output.dropout.p"},
)
MPNET = Kind(
    names={
        "attention.self.query": "attention.attn.q",
        "attention.self.key": "attention.attn.k",
        "attention.self.value": "attention.attn.v",
        "attention.output.dense": "attention.attn.o",
        "attention.output.LayerNorm": "attention.LayerNorm",
    },
    heads="attention.attn.num_attention_heads",
    activation="intermediate.intermediate_act_fn",
    attention_dropout="attention.attn.dropout.p",
    dropout={"attention.output": "attention.dropout.p", "output": "output.dropout.p"},
)
DISTILBERT = Kind(
    names={
        "attention.self.query": "attention.q_lin",
        "attention.self.key": "attention.k_lin",
        "attention.self.value": "attention.v_lin",
        "attention.output.dense": "attention.out_lin",
        "attention.output.LayerNorm": "sa_layer_norm",
        "intermediate.dense": "ffn.lin1",
        "output.dense": "ffn.lin2",
        "output.LayerNorm": "output_layer_norm",
    },
    heads="attention.n_heads",
    activation="ffn.activation",
    attention_dropout="attention.dropout.p",
    dropout={"output": "ffn.dropout.p"},
)


def kind_of(block: Any) -> Kind | None:
    """The kind of a block, by its learned parts; None if it is of another, or rotates by positions (RoFormer)."""
    learned = {name.rpartition(".")[0] for name, _ in block.named_parameters()}
    if "sinusoidal_pos" in inspect.signature(block.forward).parameters:
        return None
    return next((kind for kind in (BERT, MPNET, DISTILBERT) if learned == {*map(kind.name, PARTS)}), None)


def bert_shaped(block: Any) -> bool:
    """Whether a block is BERT's."""
    return kind_of(block) is BERT


class Form(NamedTuple):
    """The settings that all blocks of an encoder share."""

    heads: int
    activation: Callable[[Tensor], Tensor]
    attention_dropout: float
    dropout: dict[str, float]  # by part
    eps: dict[str, float]  # of the part's layer norm


class Layer(NamedTuple):
    """One block, ready for queries: its weights, and its keys and values of the words."""

    form: Form
    weights: dict[str, WeightBias]
    key: Tensor  # (R, heads, K, D / heads)
    value: Tensor  # (R, heads, K, D / heads)


def layers_of(
    blocks: Sequence[Any], states: Sequence[Tensor], dtype: torch.dtype, fold: Fold, *, together: bool
) -> list[Layer]:
    """Prepares each block with the words' states below it; `together`: few large calls instead of many small ones."""
    form, kind = form_of(blocks[0]), kind_of(blocks[0])
    assert kind is not None, "whoever copies blocks has asked"
    modules = {part: [block.get_submodule(kind.name(part)) for block in blocks] for part in PARTS}
    columns = {part: [[m.weight for m in column], [m.bias for m in column]] for part, column in modules.items()}
    columns, *read = (stacked_layers if together else single_layers)(columns, list(states), dtype)
    each = [{part: (weights[i], biases[i]) for part, (weights, biases) in columns.items()} for i in range(len(blocks))]

    def split_heads(states: Tensor) -> tuple[Tensor, ...]:
        """(layers, B, L, D) -> layers * (R, heads, K, D / heads)"""
        folded = fold(states.flatten(0, 1))  # (layers * R, K, D)
        shape = len(states), -1, folded.shape[1], form.heads, folded.shape[2] // form.heads
        return folded.view(shape).transpose(2, 3).unbind()

    keys, values = ([heads for part in some for heads in split_heads(part)] for some in read)
    return [Layer(form, *parts) for parts in zip(each, keys, values, strict=True)]


def form_of(block: Any) -> Form:
    """Reads the settings off a block."""
    kind = kind_of(block)
    assert kind is not None, "whoever copies blocks has asked"

    def read(path: str) -> Any:
        return attrgetter(path)(block)

    joins = ("attention.output", "output")
    dropout = {part: read(kind.dropout[part]) if part in kind.dropout else 0.0 for part in joins}
    eps = {part: read(kind.name(f"{part}.LayerNorm")).eps for part in joins}
    return Form(read(kind.heads), read(kind.activation), read(kind.attention_dropout), dropout, eps)


def stacked_layers(
    columns: PartWeights, states: list[Tensor], dtype: torch.dtype
) -> tuple[PartWeights, Weights, Weights]:
    """Casts all weights at once; all keys are one product, all values another.  keys: [(layers, B, L, D)]"""
    below = torch.stack(states).to(dtype)  # (layers, B, L, D)
    words = [column for part in KEYS_AND_VALUES for column in columns[part]]
    others = {part: pair for part, pair in columns.items() if part not in KEYS_AND_VALUES}
    flat = [weight for pair in others.values() for column in pair for weight in column]
    cast = iter(cast_together(words, flat, dtype))
    rows = below.flatten(1, 2)
    keys, values = (Projection.apply(rows, next(cast), next(cast)).view_as(below) for _ in KEYS_AND_VALUES)  # type: ignore[no-untyped-call]
    return {part: [[next(cast) for _ in column] for column in pair] for part, pair in others.items()}, [keys], [values]


def single_layers(
    columns: PartWeights, states: list[Tensor], dtype: torch.dtype
) -> tuple[PartWeights, Weights, Weights]:
    """The same layer by layer, without copies.  keys: layers * [(1, B, L, D)]"""
    columns = {part: [[w.to(dtype) for w in column] for column in pair] for part, pair in columns.items()}
    below = [state.to(dtype) for state in states]
    keys, values = ([*map(F.linear, below, *columns[part])] for part in KEYS_AND_VALUES)
    return columns, [key.unsqueeze(0) for key in keys], [value.unsqueeze(0) for value in values]


class Projection(torch.autograd.Function):
    """A product for each layer whose weight gradients have the memory layout of the weights.

    torch's come transposed, and one transposed gradient makes `cast_together` copy all of them one by one.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weights: Tensor, biases: Tensor) -> Tensor:
        """(layers, N, D), (layers, D, D), (layers, D) -> (layers, N, D)"""
        ctx.save_for_backward(rows, weights)
        return torch.baddbmm(biases.unsqueeze(1), rows, weights.mT)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients that are needed."""
        (rows, weights), (of_rows, of_weights, of_biases) = ctx.saved_tensors, ctx.needs_input_grad
        return (
            gradient @ weights if of_rows else None,
            gradient.mT @ rows if of_weights else None,
            gradient.sum(1) if of_biases else None,
        )


def attention_bias(held: Tensor, dtype: torch.dtype) -> Tensor:
    """The mask as an addition to scores: 0, or minus infinity.  (R, N, K) -> (R, 1, N, K)

    Its rows are a multiple of 16 numbers apart; otherwise attention would copy it in every layer.
    """
    if exporting():
        return torch.zeros_like(held, dtype=dtype).masked_fill(~held, -torch.inf).unsqueeze(1)
    *front, words = held.shape
    room = held.new_zeros((*front, aligned(words)), dtype=dtype)
    return room[..., :words].masked_fill_(~held, -torch.inf).unsqueeze(1)


def aligned(words: int) -> int:
    """The next multiple of 16."""
    return -(-words // 16) * 16


def distance_bias(table: Tensor, start: Tensor, bias: Tensor) -> Tensor:
    """Adds what MPNet has learned for each distance; that of a span is its start's, in units.  -> (R, heads, N, K)

    table: (buckets, heads); start: (R, N); bias: (R, 1, N, K), the mask. Rows are aligned as the mask's.
    """
    words = bias.shape[-1]
    at = torch.arange(aligned(words), device=start.device)
    learned = F.embedding(buckets(at - start[: bias.shape[0], :, None], len(table)), table)  # (R, N, aligned, heads)
    room = learned.permute(0, 3, 1, 2).to(bias.dtype, memory_format=torch.contiguous_format)
    return (room + F.pad(bias, (0, room.shape[-1] - words)))[..., :words]


def buckets(distance: Tensor, number: int, farthest: int = 128) -> Tensor:
    """The row of a distance in MPNet's table: near ones have their own, far ones share one on a logarithmic scale."""
    half, size = number // 2, distance.abs()
    own = half // 2
    scale = (half - own) / math.log(farthest / own)
    shared = own + (torch.log(size.clamp(min=1).float() / own) * scale).long()
    return torch.where(size < own, size, shared.clamp(max=half - 1)) + half * (distance > 0)


def run_layer(layer: Layer, spans: Tensor, bias: Tensor, training: bool) -> Tensor:
    """One block with spans as queries and words as keys and values; the residual stream is the spans.  (R * N, D)

    Spans are rows of one matrix: each further axis would cost two more views per product, forward and backward.
    """
    form, weights = layer.form, layer.weights
    shape = layer.key.shape[0], bias.shape[2], form.heads, spans.shape[1] // form.heads  # R, N, heads, D / heads
    query = F.linear(spans, *weights["attention.self.query"]).view(shape).transpose(1, 2)
    read = attend(form, query, layer.key, layer.value, bias, training)
    return digest(form, weights, spans, read, training)


def attend(form: Form, query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, training: bool) -> Tensor:
    """Attention, as rows.  (R, heads, N, D / heads), (R, heads, K, D / heads) -> (R * N, D)"""
    dropout = form.attention_dropout if training else 0.0
    read = F.scaled_dot_product_attention(query, key, value, attn_mask=bias, dropout_p=dropout)
    return read.transpose(1, 2).reshape(-1, form.heads * query.shape[3])


def digest(form: Form, weights: dict[str, WeightBias], rows: Tensor, read: Tensor, training: bool) -> Tensor:
    """The block after attention; `rows`, the residual stream, may be in higher precision than the products.  (N, D)"""
    rows = join(form, weights, "attention.output", rows, read, training)
    wide = form.activation(F.linear(rows.to(read.dtype), *weights["intermediate.dense"]))
    return join(form, weights, "output", rows, wide, training)


def join(form: Form, weights: dict[str, WeightBias], part: str, rows: Tensor, change: Tensor, training: bool) -> Tensor:
    """Linear layer, dropout, residual connection, layer norm."""
    change = F.dropout(F.linear(change, *weights[f"{part}.dense"]), form.dropout[part], training)
    return F.layer_norm(rows + change, rows.shape[-1:], *weights[f"{part}.LayerNorm"], form.eps[part])


# An encoder's blocks of BERT's form in fewer operations: query, key and value are one product.
#
# On a GPU small batches wait for the host, which dispatches the operations of a training step one by one. Here a block
# has a fifth fewer of them than under autocast. The numbers are autocast's: the residual stream is in full precision,
# products are not. Only the gradients of query, key and value are added before they are rounded, not after, and
# embeddings in half precision (ELECTRA may project them) enter a residual stream in full precision.
#
# Legend: B sentences, T tokens, D word size.

FAMILIES = ("bert", "bert-generation", "camembert", "data2vec-text", "electra", "ernie", "roberta", "xlm-roberta")
"""Model types whose blocks were compared with these, to the last bit (tests/layers/test_fused.py)."""

ACTIVATIONS = ("gelu", "relu", "silu")  # autocast does not change their type; it may compute others in full precision
READ = ("attention.self.query", "attention.self.key", "attention.self.value")
DENSE = tuple(part for part in PARTS if part.endswith("dense"))
NORMS = tuple(part for part in PARTS if part.endswith("LayerNorm"))
LEAVES: dict[Any, int] = {nn.Linear: len(READ) + len(DENSE), nn.LayerNorm: len(NORMS), nn.Dropout: 3}  # in a block

GROUP = 3  # blocks whose weights are cast together, so that the first gradients are ready before the last


def call_fused(model: Any, blocks: Sequence[Any], **inputs: Any) -> Any:
    """Calls a model that is trained under autocast with fused forward passes of its `blocks`.

    If a block is not what transformers built (adapters, hooks inside, frozen or computed weights), or is computed
    twice, all of them stay as they are.
    """
    dtype = type_to_learn_in(model)
    if dtype is None or not blocks or inputs.get("output_attentions") or not replaceable(model, blocks):
        return model(**inputs)
    try:
        for at in range(0, len(blocks), GROUP):
            group = blocks[at : at + GROUP]
            for block, weights in zip(group, cast_blocks(group, dtype), strict=True):
                vars(block)["forward"] = forward_of(block, weights)  # found before the method of that name
        return model(**inputs)
    finally:
        for block in blocks:
            vars(block).pop("forward", None)


def replaceable(model: Any, blocks: Sequence[Any]) -> bool:
    """Whether the fused pass computes the same as the model's blocks."""
    config = model.config
    return (
        config.model_type in FAMILIES
        and getattr(config, "_attn_implementation", None) == "sdpa"
        and config.hidden_act in ACTIVATIONS
        and not (getattr(config, "is_decoder", False) or config.output_attentions)
        and all(map(as_built, blocks))
    )


def as_built(block: Any) -> bool:
    """Whether a block is unchanged since transformers built it, and all of it learns. Called in every step."""
    parts, left = [], [block]
    while left:  # `modules()` takes three times as long
        parts.append(left.pop())
        left += [part for part in parts[-1]._modules.values() if part is not None]
    kinds = [type(part) for part in parts]
    if not all(untouched(part, block) for part in parts) or any(kinds.count(k) != n for k, n in LEAVES.items()):
        return False
    attention = block.attention.self
    plain = attention.scaling == attention.attention_head_size**-0.5 and not attention.is_causal
    return bool(plain and not block.gradient_checkpointing)


def untouched(part: Any, block: Any) -> bool:
    """Whether class, forward pass and, within a block, hooks are those of transformers, and all of it learns."""
    if part.training != block.training or not known(type(part)):
        return False
    for weight in part._parameters.values():
        if weight is None or not weight.requires_grad or weight.dtype != torch.float32:
            return False
    own = vars(part).get("forward")
    if own is not None and getattr(own, "__func__", None) is not type(part).forward:  # transformers 5.0 leaves one
        return False
    if part._forward_pre_hooks or part._backward_hooks or part._backward_pre_hooks:
        return part is block
    # after a call for hidden states, transformers leaves hooks that would collect attention weights
    return part is block or all(known(hook) for hook in part._forward_hooks.values())


def known(kind: Any) -> bool:
    """Whether a class or function belongs to transformers, or is a torch class that it builds such blocks from."""
    return kind in LEAVES or str(kind.__module__).startswith("transformers.") or kind in (nn.ReLU, nn.SiLU)


def cast_blocks(blocks: Sequence[Any], dtype: torch.dtype) -> list[dict[str, WeightBias]]:
    """Each block's weights and biases; query, key and value are one, `attention.self`."""
    modules: list[dict[str, Any]] = [{part: block.get_submodule(part) for part in PARTS} for block in blocks]
    stacks = [[getattr(parts[part], name) for part in READ] for parts in modules for name in ("weight", "bias")]
    others = [getattr(parts[part], name) for parts in modules for part in DENSE for name in ("weight", "bias")]
    cast = iter(cast_together(stacks, others, dtype))
    read = [(next(cast).flatten(0, 1), next(cast).flatten()) for _ in blocks]  # (3 * D, D), (3 * D)
    dense = [{part: (next(cast), next(cast)) for part in DENSE} for _ in blocks]
    norms = [{part: (parts[part].weight, parts[part].bias) for part in NORMS} for parts in modules]
    return [{"attention.self": a, **b, **c} for a, b, c in zip(read, dense, norms, strict=True)]


def forward_of(block: Any, weights: dict[str, WeightBias]) -> Callable[..., Tensor]:
    """The fused forward pass of a block; a call outside training under autocast gets the original."""
    form, training, own = form_of(block), block.training, type(block).forward

    def forward(hidden_states: Tensor, attention_mask: Tensor | None = None, *others: Any, **named: Any) -> Tensor:
        learns = torch.is_autocast_enabled(hidden_states.device.type) and torch.is_grad_enabled()
        if not learns or any(other is not None for other in others):
            result: Tensor = own(block, hidden_states, attention_mask, *others, **named)
            return result
        with torch.autocast(hidden_states.device.type, enabled=False):
            return fused(form, weights, hidden_states, attention_mask, training)

    return forward


def fused(form: Form, weights: dict[str, WeightBias], states: Tensor, mask: Tensor | None, training: bool) -> Tensor:
    """One block.  (B, T, D)"""
    batch, length, size = states.shape
    weight, bias = weights["attention.self"]
    if mask is not None and mask.is_floating_point():
        mask = mask.to(weight.dtype)
    rows = states.flatten(0, 1).float()  # (B * T, D)
    read = F.linear(rows.to(weight.dtype), weight, bias).view(batch, length, 3, form.heads, size // form.heads)
    query, key, value = read.permute(2, 0, 3, 1, 4).unbind()  # (B, heads, T, D / heads) each
    read = attend(form, query, key, value, mask, training)
    return digest(form, weights, rows, read, training).view(batch, length, size)
