"""An encoder's blocks of the BERT shape in fewer operations: query, key and value are one product.

On a GPU small batches wait for the host, which starts some 400 operations for each block of a training step under
autocast; here they are 300. The numbers are autocast's own: the residual stream is in full precision, products are not.
Only the gradients of query, key and value are added before they are rounded, not after.

Legend: B sentences, T tokens, D word size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wingspan.blocks import PARTS, Form, Pair, attend, digest, form_of
from wingspan.casting import call_with_cast_weights, cast_together, type_to_learn_in

Parts = dict[str, Any]  # linear layers and layer norms

READ = ("attention.self.query", "attention.self.key", "attention.self.value")
DENSE = tuple(part for part in PARTS if part.endswith("dense"))
NORMS = tuple(part for part in PARTS if part.endswith("LayerNorm"))

GROUP = 3  # blocks whose weights are cast together: as in `casting`, the first gradients are there before the last ones


def call_fused(model: Any, blocks: Sequence[Any], **inputs: Any) -> Any:
    """Calls a model that learns under autocast with other forward passes of these blocks, which are its own.

    Blocks that are not as they were built (adapters, frozen weights, computed ones), or that are computed twice, stay
    as they are: `call_with_cast_weights`. Hooks on what lies inside of blocks are not called.
    """
    dtype = type_to_learn_in(model)
    parts = [{part: block.get_submodule(part) for part in PARTS} for block in blocks] if dtype is not None else []
    if dtype is None or not blocks or not replaceable(model, blocks, parts):
        return call_with_cast_weights(model, **inputs)
    form = form_of(blocks[0])
    before = [vars(block).get("forward") for block in blocks]  # transformers may have put something there
    try:
        for at in range(0, len(blocks), GROUP):
            cast = cast_blocks(parts[at : at + GROUP], dtype)
            for block, weights in zip(blocks[at : at + GROUP], cast, strict=True):
                vars(block)["forward"] = forward_of(form, weights, block.training)
        return model(**inputs)
    finally:
        for block, forward in zip(blocks, before, strict=True):
            vars(block).pop("forward", None)
            if forward is not None:
                vars(block)["forward"] = forward


def replaceable(model: Any, blocks: Sequence[Any], parts: Sequence[Parts]) -> bool:
    """Whether every part is a plain layer that learns, and attention is that of torch."""
    config = model.config
    return (
        config._attn_implementation == "sdpa"
        and not getattr(config, "is_decoder", False)
        and not any(getattr(block, "gradient_checkpointing", False) for block in blocks)
        and all(map(plain, (part for found in parts for part in found.values())))
    )


def plain(part: nn.Module) -> bool:
    """A linear layer or layer norm of torch whose weight and bias are parameters in full precision that learn."""
    weights = [part._parameters.get(name) for name in ("weight", "bias")]
    learn = all(one is not None and one.requires_grad and one.dtype == torch.float32 for one in weights)
    return learn and type(part) in (nn.Linear, nn.LayerNorm)


def cast_blocks(blocks: Sequence[Parts], dtype: torch.dtype) -> list[dict[str, Pair]]:
    """Each block's weights and biases: those of query, key and value in one, as `attention.self`."""
    stacks = [[getattr(block[part], name) for part in READ] for block in blocks for name in ("weight", "bias")]
    others = [getattr(block[part], name) for block in blocks for part in DENSE for name in ("weight", "bias")]
    cast = iter(cast_together(stacks, others, dtype))
    read = [(next(cast).flatten(0, 1), next(cast).flatten()) for _ in blocks]  # (3 * D, D), (3 * D)
    dense = [{part: (next(cast), next(cast)) for part in DENSE} for _ in blocks]
    norms = [{part: (block[part].weight, block[part].bias) for part in NORMS} for block in blocks]
    return [{"attention.self": a, **b, **c} for a, b, c in zip(read, dense, norms, strict=True)]


def forward_of(form: Form, weights: dict[str, Pair], training: bool) -> Callable[..., Tensor]:
    """A block's forward pass."""

    def forward(hidden_states: Tensor, attention_mask: Tensor | None = None, *_: Any, **__: Any) -> Tensor:
        batch, length, size = hidden_states.shape
        weight, bias = weights["attention.self"]
        with torch.autocast(hidden_states.device.type, enabled=False):
            rows = hidden_states.flatten(0, 1).float()  # (B * T, D); ELECTRA's projected embeddings come in half
            read = F.linear(rows.to(weight.dtype), weight, bias).view(batch, length, 3, form.heads, size // form.heads)
            query, key, value = read.permute(2, 0, 3, 1, 4).unbind()  # (B, heads, T, D / heads) each
            read = attend(form, query, key, value, attention_mask, training)
            return digest(form, weights, rows, read, training).view(batch, length, size)

    return forward
