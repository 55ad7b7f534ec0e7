"""Intervals of an attribute: those a paper fixed, or quantiles of what the gold holds."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, inf
from typing import NamedTuple


class Interval(NamedTuple):
    """From `low` to `high`, both included unless `above` says that `low` is not."""

    low: float
    high: float = inf
    above: bool = False

    def holds(self, value: float) -> bool:
        """Whether a value lies in it."""
        return (self.low < value if self.above else self.low <= value) and value <= self.high

    @property
    def name(self) -> str:
        """As tables print it: 2, 3–4, ≥ 5, [0, 0.1], (0.1, 0.5], > 0.5, ≤ 3, all."""
        low, high = f"{self.low:g}", f"{self.high:g}"
        if (self.low, self.high) == (-inf, inf):
            return "all"
        if self.high == inf:
            return f"{'>' if self.above else '≥'} {low}"
        if self.low == -inf:
            return f"≤ {high}"
        if self.low == self.high:
            return low
        if not self.above and float(self.low).is_integer() and float(self.high).is_integer():
            return f"{low}–{high}"
        return f"{'(' if self.above else '['}{low}, {high}]"


def steps(*bounds: float) -> tuple[Interval, ...]:
    """[b0, b1], (b1, b2], and so on: what papers write for shares; the last may be infinite."""
    return tuple(
        Interval(low, high, above=at > 0) for at, (low, high) in enumerate(zip(bounds, bounds[1:], strict=False))
    )


def quantile_intervals(values: Sequence[float], parts: int) -> tuple[Interval, ...]:
    """Intervals that share the values out evenly, as far as equal values allow; together they hold every number."""
    if parts < 2:
        raise ValueError(f"{parts} quantiles; give 2 or more")
    if not values:
        return (Interval(-inf),)
    order = sorted(values)
    # nearest rank: the bound is a value that occurs; the largest value is no bound, as nothing would lie above it
    bounds = {order[ceil(part * len(order) / parts) - 1] for part in range(1, parts)} - {order[-1]}
    return steps(-inf, *sorted(bounds), inf)
