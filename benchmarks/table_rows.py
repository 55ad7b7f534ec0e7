"""Helpers of the tables: the lines of result files, Markdown, and numbers as people read them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

RESULTS = Path(__file__).parent / "results"


def rows(name: str, kind: str | None = None) -> list[dict[str, Any]]:
    """The lines of a result file, all of them or one kind."""
    path = RESULTS / f"{name}.jsonl"
    found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [row for row in found if kind is None or row["kind"] == kind]


def markdown(header: str, lines: Iterable[str]) -> str:
    """A Markdown table; the cells of the header and of each line are divided by bars."""
    return "\n".join([f"| {header} |", "|---" * (header.count(" | ") + 1) + "|", *(f"| {line} |" for line in lines)])


FULL_NAMES = {
    "minilm": "all-MiniLM-L6-v2",
    "static:random": "random vectors",
    "base": "a random encoder of base shape",
    "vectors": "hashed with GloVe",
    "tok2vec": "spaCy's tok2vec",
}


def told(text: str, *files: str) -> str:
    """A table, and below it what it was made with: encoder, commit, and seeds where no column has them."""
    made = [row for name in files for row in rows(name)]
    encoders = {Path(row["encoder"]).name for row in made if row.get("encoder")}
    named = {"word vectors" if name.endswith(".npz") else FULL_NAMES.get(name, name) for name in encoders}
    seeds = listed(sorted({row["seed"] for row in made if "seed" in row}))
    commits = dict.fromkeys(f"`{row['commit']}`" for row in made if "commit" in row)
    about = [listed(sorted(named))] if named else []
    about += [f"seeds {seeds}"] if seeds and "| seeds |" not in text and "| runs |" not in text else []
    return f"{text}\n\n{'; '.join([*about, f'commit {listed(list(commits))}'])}."


def listed(values: Sequence[object]) -> str:
    """Some values with commas."""
    return ", ".join(map(str, values))


def spread(values: list[float]) -> str:
    """Mean and sample deviation."""
    return f"{fmean(values):.2f} ± {stdev(values):.2f}" if len(values) > 1 else f"{fmean(values):.2f}"


def chance(p: float) -> str:
    """A p-value, exact around 0.05; no bootstrap of a thousand samples can say 0."""
    if 0.045 <= p < 0.055:
        return f"{p:.3f}"
    return f"{p:.2f}" if p >= 0.005 else "< 0.01"
