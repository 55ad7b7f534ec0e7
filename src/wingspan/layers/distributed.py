"""What losses are divided by where several processes share a batch: the counts of all of them.

The gradients of processes are averaged. So each divides its own sum by its share of the count of all, and the mean of
the quotients is the loss of the whole batch, however unequal the parts are. In one process nothing changes. Every
process has to come by here equally often: a loss that is left out for want of data would let the others wait for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
import torch.distributed as processes
from torch import Tensor

from wingspan.layers.autocast import at_least_float32

_idle: ContextVar[bool] = ContextVar("idle", default=False)


def several() -> bool:
    """Whether other processes have parts of the same batch."""
    return processes.is_available() and processes.is_initialized() and processes.get_world_size() > 1


def share_of(count: Tensor | int, like: Tensor) -> Tensor | float:
    """What a sum is divided by to become a mean: the count, at least 1; of several processes this one's share of all.

    `like` is what is to be divided, or of its kind.
    """
    if not several():
        return count.clamp(min=1) if isinstance(count, Tensor) else max(count, 1)
    total = at_least_float32(torch.zeros((), device=like.device, dtype=like.dtype))
    total = total + (0 if _idle.get() else count)
    processes.all_reduce(total)
    return total.clamp(min=1) / processes.get_world_size() if not _idle.get() else torch.inf


def floored(value: Tensor, least: float) -> Tensor:
    """A mean that costs nothing below a floor (free bits); of several processes the mean of all decides."""
    if not several():
        return value.clamp(min=least)
    return value if bool(mean_of_all(value) >= least) else torch.full_like(value, least)


def mean_of_all(value: Tensor) -> Tensor:
    """The mean of a value over processes, without a way back for gradients."""
    if not several():
        return value
    mean = value.detach().clone()
    processes.all_reduce(mean)
    return mean / processes.get_world_size()


@contextmanager
def idle(nothing_to_do: bool) -> Iterator[None]:
    """An idle process runs a dummy batch with weight 0 so that collectives match."""
    before = _idle.set(nothing_to_do)
    try:
        yield
    finally:
        _idle.reset(before)
