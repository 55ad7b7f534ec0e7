"""The number type that prediction computes in."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, get_args

import torch
from torch.nn.attention import sdpa_kernel

from wingspan.encoders import Encoder
from wingspan.layers.autocast import ATTENTION

Precision = Literal["auto", "float32", "bfloat16", "int8"]
"""`auto` is bfloat16 on a GPU that computes in it, where it finds almost the same entities, and float32 elsewhere.

On a CPU, bfloat16 and int8 are about the Transformer alone, whose weights are changed for good; they find almost the
same entities in less time (docs/prediction.md), so they are for those who ask for them.
"""


def number_type(precision: str, device: torch.device) -> torch.dtype:
    """The type for a device; an error if the device cannot compute in it."""
    if precision not in get_args(Precision):
        raise ValueError(f"precision is {precision!r}; use {', '.join(get_args(Precision))}")
    if device.type == "cpu":
        return torch.float32  # what is around the Transformer
    able = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    if precision == "int8" or (precision == "bfloat16" and not able):
        raise ValueError(f"precision {precision}: {device} does not compute in it; use float32, or auto")
    return torch.bfloat16 if able and precision != "float32" else torch.float32


def lower(encoder: Encoder, precision: str, device: torch.device) -> None:
    """On a CPU, puts the encoder's Transformer into bfloat16 or int8, if that is asked for."""
    if device.type == "cpu" and precision in ("bfloat16", "int8"):
        encoder.lower(torch.bfloat16 if precision == "bfloat16" else torch.qint8)


@contextmanager
def computing_in(dtype: torch.dtype, device: torch.device) -> Iterator[None]:
    """While it lasts, products are computed in this type, unless the caller has already chosen one with autocast."""
    if dtype == torch.float32 or torch.is_autocast_enabled(device.type):
        yield
        return
    with torch.autocast(device.type, dtype), sdpa_kernel(ATTENTION):
        yield
