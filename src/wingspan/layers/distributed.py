"""Divisors of losses when several processes share a batch: counts over all processes.

The gradients of processes are averaged. So each process divides its sum by its share of the total count, and the mean
of the quotients is the loss of the whole batch, however unequal the parts are. In one process nothing changes. Every
process must call these functions equally often: one that skips a loss would leave the others waiting forever.
"""

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
    """The divisor that turns a sum (`like`) into a mean: the count, at least 1, or this process' share of the total."""
    if not several():
        return count.clamp(min=1) if isinstance(count, Tensor) else max(count, 1)
    total = at_least_float32(torch.zeros((), device=like.device, dtype=like.dtype))
    total = total + (0 if _idle.get() else count)
    processes.all_reduce(total)
    return total.clamp(min=1) / processes.get_world_size() if not _idle.get() else torch.inf


def floored(value: Tensor, least: float) -> Tensor:
    """A mean clamped from below (free bits); with several processes, the mean over all decides."""
    if not several():
        return value.clamp(min=least)
    return value if bool(mean_of_all(value) >= least) else torch.full_like(value, least)


def mean_of_all(value: Tensor) -> Tensor:
    """The mean of a value over processes, without gradients."""
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
