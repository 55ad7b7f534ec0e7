"""Tables about several corpora in one model."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from table_rows import rows, spread

PARTIAL = {
    "full": "both types everywhere",
    "masked": "diseases in one half, chemicals in the other; silence is open",
    "unmasked": "the same halves; silence is taken for nothing",
}


def partial_annotation() -> str:
    """BC5CDR with half of its annotation: what silence is taken for."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows("partial_annotation"):
        found[row["system"]].append(row)
    lines = ["| training annotation | test F1 | precision | recall | seeds |", "|---|---|---|---|---|"]
    for system, title in PARTIAL.items():
        if runs := found[system]:
            figures = [[run["test"][name] for run in runs] for name in ("f1", "precision", "recall")]
            lines.append(f"| {title} | {' | '.join(map(spread, figures))} | {len(runs)} |")
    return "\n".join(lines)
