"""The number type that prediction computes in."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, get_args

import torch
from torch.nn.attention import sdpa_kernel

from wingspan.layers.autocast import ATTENTION

Precision = Literal["auto", "float32", "bfloat16"]
"""`auto` is bfloat16 on a GPU that computes in it, where it finds the same entities, and float32 elsewhere."""


def number_type(precision: Precision, device: torch.device) -> torch.dtype:
    """The type for a device; an error if the device cannot compute in it."""
    if precision not in get_args(Precision):
        raise ValueError(f"precision is {precision!r}; use {', '.join(get_args(Precision))}")
    able = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    if precision == "bfloat16" and not able:
        raise ValueError(f"precision bfloat16: {device} does not compute in it; use float32, or auto")
    return torch.bfloat16 if able and precision != "float32" else torch.float32


@contextmanager
def computing_in(dtype: torch.dtype, device: torch.device) -> Iterator[None]:
    """While it lasts, products are computed in this type, unless the caller has already chosen one with autocast."""
    if dtype == torch.float32 or torch.is_autocast_enabled(device.type):
        yield
        return
    with torch.autocast(device.type, dtype), sdpa_kernel(ATTENTION):
        yield
