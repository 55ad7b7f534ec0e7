"""Precision under autocast: float32 where half precision has too few digits, and casting weights together."""

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.attention import SDPBackend


def at_least_float32(values: Tensor) -> Tensor:
    """Half precision as float32; float32 and float64 as they are."""
    return values if values.dtype == torch.float64 else values.float()


def working_type(device: torch.device, otherwise: torch.dtype) -> torch.dtype:
    """Autocast's type if it is on."""
    return torch.get_autocast_dtype(device.type) if torch.is_autocast_enabled(device.type) else otherwise


ATTENTION = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
"""All but cuDNN's, which makes a plan for each new shape of a batch: 3 ms, longer than the whole attention takes."""

# Many weights are cast to half precision in one launch, where autocast takes one for each and one more in backward.
#
# On a GPU small batches wait for launches, not for arithmetic, and a quarter of the launches of a BERT's training step
# under autocast are casts of its weights and their gradients. The numbers are autocast's.

Weights = list[Tensor]  # one weight of each block


def cast_together(stacks: list[Weights], others: Weights, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """Each stack as one tensor, then the others, all cast in one launch."""
    weights = [weight for column in stacks for weight in column] + others
    if weights[0].dtype == dtype:  # nothing to cast
        return (*map(torch.stack, stacks), *others)
    cast: tuple[Tensor, ...] = CastTogether.apply(dtype, tuple(map(len, stacks)), *weights)  # type: ignore[no-untyped-call]
    return cast


class CastTogether(torch.autograd.Function):
    """Casts many tensors at once, and their gradients back."""

    @staticmethod
    def forward(ctx: Any, dtype: torch.dtype, stacks: tuple[int, ...], *values: Tensor) -> tuple[Tensor, ...]:
        """`stacks` are the lengths of the stacks, which come first; the other values stay single."""
        ctx.set_materialize_grads(False)  # unused values have no gradient
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
    """Empty tensors of the same shapes in another type; those of one shape share memory."""
    places: dict[torch.Size, list[int]] = {}
    for at, value in enumerate(values):
        places.setdefault(value.shape, []).append(at)
    empty: dict[int, Tensor] = {}
    for shape, chosen in places.items():
        rows = values[chosen[0]].new_empty((len(chosen), *shape), dtype=dtype).unbind()
        empty.update(zip(chosen, rows, strict=True))
    return [empty[at] for at in range(len(values))]


def type_to_learn_in(model: nn.Module) -> torch.dtype | None:
    """Autocast's type if a model is trained under it."""
    some = next(model.parameters())
    dtype = working_type(some.device, some.dtype)
    learns = torch.is_grad_enabled() and not torch.compiler.is_compiling()
    return dtype if learns and dtype != some.dtype else None
