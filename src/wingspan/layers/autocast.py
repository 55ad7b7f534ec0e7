"""Types of numbers: what autocast asks for, and where half precision has too few digits (sums, logarithms)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


def at_least_float32(values: Tensor) -> Tensor:
    """Half precision as float32; float32 and float64 as they are."""
    return values if values.dtype == torch.float64 else values.float()


def working_type(device: torch.device, otherwise: torch.dtype) -> torch.dtype:
    """Autocast's type where it is on."""
    return torch.get_autocast_dtype(device.type) if torch.is_autocast_enabled(device.type) else otherwise


# --- Many weights cast to half precision in one launch, where autocast takes one for each, and one more on the way
# back.
#
# On a GPU small batches wait for launches, not for arithmetic: of the launches of a BERT's training step under
# autocast a quarter are casts of its weights and of their gradients. The numbers are autocast's own, but for adapters
# with dropout (PEFT then draws on another type) and weights that several layers share (their gradients are added in
# half precision).


Column = list[Tensor]  # one weight of each block

GROUP = 32  # weights cast together: few launches, and the first gradients can be sent before the last ones are there


def cast_together(stacks: list[Column], others: Column, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """Each stack as one tensor, then the others, all in another type: one launch for all of them."""
    given = [one for column in stacks for one in column] + others
    if given[0].dtype == dtype:  # nothing to cast
        return (*map(torch.stack, stacks), *others)
    cast: tuple[Tensor, ...] = CastTogether.apply(dtype, tuple(map(len, stacks)), *given)  # type: ignore[no-untyped-call]
    return cast


class CastTogether(torch.autograd.Function):
    """Copies of many tensors in another type; their gradients go the same way back."""

    @staticmethod
    def forward(ctx: Any, dtype: torch.dtype, stacks: tuple[int, ...], *values: Tensor) -> tuple[Tensor, ...]:
        """The first `sum(stacks)` values are stacked, so many at a time."""
        ctx.set_materialize_grads(False)  # what was not used has no gradient, as ever
        ctx.stacks, ctx.dtype = stacks, values[0].dtype
        at = [0, *itertools.accumulate(stacks)]
        made = [
            values[i].new_empty((count, *values[i].shape), dtype=dtype) for i, count in zip(at, stacks, strict=False)
        ]
        single = room_for(values[at[-1] :], dtype)
        torch._foreach_copy_([row for stack in made for row in stack.unbind()] + single, values)
        return (*made, *single)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        """Rows of the stacks, then the others."""
        rows: list[Tensor | None] = []
        for gradient, count in itertools.zip_longest(gradients, ctx.stacks):
            rows += [gradient] if count is None else [None] * count if gradient is None else gradient.unbind()
        used = [row for row in rows if row is not None]
        cast = room_for(used, ctx.dtype)
        if used:
            torch._foreach_copy_(cast, used)
        left = iter(cast)
        return (None, None, *(None if row is None else next(left) for row in rows))


def room_for(values: Sequence[Tensor], dtype: torch.dtype) -> list[Tensor]:
    """Tensors of the same shapes in another type, yet to be filled; those of one shape share one piece of memory."""
    places: dict[torch.Size, list[int]] = {}
    for at, value in enumerate(values):
        places.setdefault(value.shape, []).append(at)
    found: dict[int, Tensor] = {}
    for shape, chosen in places.items():
        rows = values[chosen[0]].new_empty((len(chosen), *shape), dtype=dtype).unbind()
        found.update(zip(chosen, rows, strict=True))
    return [found[at] for at in range(len(values))]


def call_with_cast_weights(model: nn.Module, **inputs: Any) -> Any:
    """Calls a model, in training under autocast with the weights that autocast would cast one by one cast together.

    Meanwhile the model has other weights, so predictions, which many threads may make at once, are left to autocast.
    """
    dtype = type_to_learn_in(model)
    if dtype is None:
        return model(**inputs)
    shadows = list(cast_by_autocast(model))
    try:
        for at in range(0, len(shadows), GROUP):
            group = shadows[at : at + GROUP]
            for (part, name, _), half in zip(group, cast_together([], [w for *_, w in group], dtype), strict=True):
                vars(part)[name] = half  # found before the parameter of that name
        return model(**inputs)
    finally:
        for part, name, _ in shadows:
            vars(part).pop(name, None)


def type_to_learn_in(model: nn.Module) -> torch.dtype | None:
    """Autocast's type, where a model learns under it."""
    some = next(model.parameters())
    dtype = working_type(some.device, some.dtype)
    learns = torch.is_grad_enabled() and not torch.compiler.is_compiling()
    return dtype if learns and dtype != some.dtype else None


def cast_by_autocast(model: nn.Module) -> Iterator[tuple[nn.Linear, str, Tensor]]:
    """Weights and biases of linear layers that learn.

    Frozen ones are left to autocast: here they would get gradients that nobody needs.
    """
    for part in model.modules():
        if type(part) is nn.Linear:
            for name in ("weight", "bias"):
                weight = part._parameters.get(name)  # pruned layers and their like compute theirs: no parameter
                if weight is not None and weight.requires_grad and weight.dtype == torch.float32:
                    yield part, name, weight
