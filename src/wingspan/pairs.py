"""All pairs of first and last unit, as matrices: their widths, and what lies between them.

Legend: B sentences, L units, G size of a gate.
"""

from __future__ import annotations

from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor


def gated_sums(inside: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """The sum over each span, times left(start) + right(end).  (B, L, G) -> (B, L, L)

    A sum is a difference of two running sums, so that all of it is one matrix product.
    """
    last = inside.cumsum(1)  # up to and with a unit
    first = F.pad(last, (0, 0, 1, 0))[:, :-1]  # before it
    one, left_own, right_own = (
        torch.ones_like(left[..., :1]),
        (left * first).sum(-1, True),
        (right * last).sum(-1, True),
    )
    return torch.cat([left, first, left_own, one], -1) @ torch.cat([last, -right, -one, right_own], -1).mT


BUCKETS = 24  # half octaves: widths up to 4,096 units are told apart


@lru_cache(maxsize=64)
def pairs(length: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Of all pairs of first and last unit: the width, its bucket, whether they are in order; kept as `cells` are.

    (L, L) each
    """
    with torch.inference_mode(False):
        at = torch.arange(length, device=device)
        width = (at - at[:, None] + 1).clamp(min=1)
        return width, bucket(width), at[:, None] <= at


def bucket(width: Tensor) -> Tensor:
    """Widths on a logarithmic scale, two steps for each doubling; 0 for width 1."""
    return (2 * width.clamp(min=1).float().log2() + 1e-4).long().clamp(max=BUCKETS - 1)
