"""Types of numbers: what autocast asks for, and where half precision has too few digits (sums, logarithms)."""

from __future__ import annotations

import torch
from torch import Tensor


def at_least_float32(values: Tensor) -> Tensor:
    """Half precision as float32; float32 and float64 as they are."""
    return values if values.dtype == torch.float64 else values.float()


def working_type(device: torch.device, otherwise: torch.dtype) -> torch.dtype:
    """Autocast's type where it is on."""
    return torch.get_autocast_dtype(device.type) if torch.is_autocast_enabled(device.type) else otherwise
