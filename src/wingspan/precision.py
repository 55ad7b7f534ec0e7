"""Where half precision has too few digits: sums over many numbers, logarithms of chances, divergences."""

from __future__ import annotations

import torch
from torch import Tensor


def at_least_float32(values: Tensor) -> Tensor:
    """Half precision as float32; float32 and float64 as they are."""
    return values if values.dtype == torch.float64 else values.float()
