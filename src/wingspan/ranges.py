"""Where `wingspan tune` looks for better settings: ranges that a recipe declares, or the shell gives."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

Scalar = None | bool | int | float | str


@dataclass(frozen=True)
class Between:
    """Any number from low to high; whole numbers where both ends are. `log` looks evenly at orders of magnitude."""

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        """Ends that cannot be ends are said where they are written."""
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ValueError(f"a range goes from a lower to a higher number, not from {self.low} to {self.high}")
        if self.log and self.low <= 0:
            raise ValueError(f"a log range starts above 0, not at {self.low}")

    @property
    def whole(self) -> bool:
        """Whether only whole numbers are meant."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    def holds(self, value: object) -> bool:
        """Whether a value lies in the range."""
        return isinstance(value, int | float) and not isinstance(value, bool) and self.low <= value <= self.high


@dataclass(frozen=True)
class OneOf:
    """One of some values; a list is written as text, as `--set` takes it."""

    values: tuple[Scalar, ...]

    def holds(self, value: object) -> bool:
        """Whether a value is one of them."""
        return value in self.values


@dataclass(frozen=True)
class Times:
    """From so many to so many times the recipe's own value, on a log scale: for settings that go with the encoder."""

    low: float
    high: float

    def around(self, value: object) -> Between:
        """The range around a value."""
        if not isinstance(value, int | float) or value <= 0:
            raise ValueError(f"a range of factors needs a number above 0 to multiply, not {value!r}")
        return Between(self.low * value, self.high * value, log=True)


Range = Between | OneOf | Times

DEFAULT: dict[str, Range] = {
    "train.learning_rate": Times(0.2, 5.0),
    "train.batch_size": OneOf((8, 16, 32)),
    "train.warmup": Between(0.0, 0.2),
    "head.dropout": Between(0.0, 0.5),
}
"""For recipes that declare none; what a recipe does not have is left out."""


def parse_range(text: str) -> Between | OneOf:
    """`1e-5:1e-3:log`, `0:0.5`, `1:4` or `8,16,32`."""
    parts = text.split(":")
    if len(parts) == 1:
        values = tuple(_scalar(part.strip()) for part in text.split(","))
        if len(values) < 2 or "" in values:
            raise ValueError(f"{text!r} is no range; write low:high, low:high:log, or values with commas")
        return OneOf(values)
    try:
        low, high = (json.loads(part) for part in parts[:2])
        if parts[2:] not in ([], ["log"]):
            raise ValueError
        return Between(low + 0, high + 0, log=len(parts) == 3)
    except (ValueError, TypeError) as error:
        said = str(error) if str(error).startswith("a ") else "write low:high, low:high:log, or values with commas"
        raise ValueError(f"{text!r} is no range; {said}") from error


def _scalar(text: str) -> Scalar:
    """A JSON scalar, else a word."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return text
    return value if value is None or isinstance(value, bool | int | float | str) else text
