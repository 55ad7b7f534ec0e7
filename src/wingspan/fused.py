"""An encoder's blocks of the BERT shape in fewer operations: query, key and value are one product.

On a GPU small batches wait for the host, which dispatches the operations of a training step one by one. Here a block
has a fifth fewer of them than under autocast. The numbers are autocast's own: the residual stream is in full precision,
products are not. Only the gradients of query, key and value are added before they are rounded, not after, and
embeddings that come in half precision (ELECTRA may project them) enter a stream that does not.

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

FAMILIES = ("bert", "bert-generation", "camembert", "data2vec-text", "electra", "ernie", "roberta", "xlm-roberta")
"""Those whose blocks were compared with these, to the last bit (tests/test_fused.py)."""

ACTIVATIONS = ("gelu", "relu", "silu")  # autocast leaves them as they are; others it may compute in full precision
READ = ("attention.self.query", "attention.self.key", "attention.self.value")
DENSE = tuple(part for part in PARTS if part.endswith("dense"))
NORMS = tuple(part for part in PARTS if part.endswith("LayerNorm"))
LEAVES: dict[Any, int] = {nn.Linear: len(READ) + len(DENSE), nn.LayerNorm: len(NORMS), nn.Dropout: 3}  # in a block

GROUP = 3  # blocks whose weights are cast together: as in `casting`, the first gradients are there before the last ones


def call_fused(model: Any, blocks: Sequence[Any], **inputs: Any) -> Any:
    """Calls a model that learns under autocast with other forward passes of these blocks, which are its own.

    Where a block is not what transformers built (adapters, hooks inside, frozen or computed weights), or is computed
    twice, all of them stay as they are: `call_with_cast_weights`.
    """
    dtype = type_to_learn_in(model)
    if dtype is None or not blocks or inputs.get("output_attentions") or not replaceable(model, blocks):
        return call_with_cast_weights(model, **inputs)
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
    """Whether what is computed here is what the model's blocks compute."""
    config = model.config
    return (
        config.model_type in FAMILIES
        and config._attn_implementation == "sdpa"
        and config.hidden_act in ACTIVATIONS
        and not (getattr(config, "is_decoder", False) or config.output_attentions)
        and all(map(as_built, blocks))
    )


def as_built(block: Any) -> bool:
    """Whether a block is what transformers made of it, and all of it learns. It is asked in every step."""
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
    """Whether no class, no forward pass and, within a block, no hook is anyone else's, and all of it learns."""
    if part.training != block.training or not known(type(part)):
        return False
    for weight in part._parameters.values():
        if weight is None or not weight.requires_grad or weight.dtype != torch.float32:
            return False
    own = vars(part).get("forward")
    if own is not None and getattr(own, "__func__", None) is not type(part).forward:  # transformers 5.0 leaves its own
        return False
    if part._forward_pre_hooks or part._backward_hooks or part._backward_pre_hooks:
        return part is block
    # once it was asked for hidden states, transformers has hooks of its own that wait to be asked for attention weights
    return part is block or all(known(hook) for hook in part._forward_hooks.values())


def known(kind: Any) -> bool:
    """Whether a class or function is of transformers, or one of torch's that it builds such blocks of."""
    return kind in LEAVES or str(kind.__module__).startswith("transformers.") or kind in (nn.ReLU, nn.SiLU)


def cast_blocks(blocks: Sequence[Any], dtype: torch.dtype) -> list[dict[str, Pair]]:
    """Each block's weights and biases: those of query, key and value in one, as `attention.self`."""
    found: list[Parts] = [{part: block.get_submodule(part) for part in PARTS} for block in blocks]
    stacks = [[getattr(parts[part], name) for part in READ] for parts in found for name in ("weight", "bias")]
    others = [getattr(parts[part], name) for parts in found for part in DENSE for name in ("weight", "bias")]
    cast = iter(cast_together(stacks, others, dtype))
    read = [(next(cast).flatten(0, 1), next(cast).flatten()) for _ in blocks]  # (3 * D, D), (3 * D)
    dense = [{part: (next(cast), next(cast)) for part in DENSE} for _ in blocks]
    norms = [{part: (parts[part].weight, parts[part].bias) for part in NORMS} for parts in found]
    return [{"attention.self": a, **b, **c} for a, b, c in zip(read, dense, norms, strict=True)]


def forward_of(block: Any, weights: dict[str, Pair]) -> Callable[..., Tensor]:
    """A block's forward pass; its own for anyone who calls it meanwhile without learning under autocast."""
    form, training, own = form_of(block), block.training, type(block).forward

    def forward(hidden_states: Tensor, attention_mask: Tensor | None = None, *others: Any, **named: Any) -> Tensor:
        learns = torch.is_autocast_enabled(hidden_states.device.type) and torch.is_grad_enabled()
        if not learns or any(other is not None for other in others):
            result: Tensor = own(block, hidden_states, attention_mask, *others, **named)
            return result
        with torch.autocast(hidden_states.device.type, enabled=False):
            return fused(form, weights, hidden_states, attention_mask, training)

    return forward


def fused(form: Form, weights: dict[str, Pair], states: Tensor, mask: Tensor | None, training: bool) -> Tensor:
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
