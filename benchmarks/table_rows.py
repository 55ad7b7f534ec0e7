"""What tables are made of: the lines of result files, and numbers as people read them."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

RESULTS = Path(__file__).parent / "results"


def rows(name: str) -> list[dict[str, Any]]:
    """The lines of a result file."""
    path = RESULTS / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def spread(values: list[float]) -> str:
    """Mean and sample deviation."""
    return f"{fmean(values):.2f} ± {stdev(values):.2f}" if len(values) > 1 else f"{fmean(values):.2f}"


def chance(p: float) -> str:
    """A p-value; no bootstrap of a thousand samples can say 0."""
    return f"{p:.2f}" if p >= 0.005 else "< 0.01"
