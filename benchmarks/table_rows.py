"""Helpers of the tables: the lines of result files, Markdown, and numbers as people read them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
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
    "MiniLM": "all-MiniLM-L6-v2",
    "static:random": "random vectors",
    "base": "a random encoder of base shape",
    "vectors": "hashed with GloVe",
    "tok2vec": "spaCy's tok2vec",
}


def told(text: str, made: Sequence[Mapping[str, Any]]) -> str:
    """A table, and below it what it was made with: encoder, commits, and seeds where no column has them."""
    encoders = {Path(row["encoder"]).name for row in made if row.get("encoder")}
    named = {"word vectors" if name.endswith(".npz") else FULL_NAMES.get(name, name) for name in encoders}
    about = [listed(sorted(named))] if named else []
    seeds = sorted({row["seed"] for row in made if "seed" in row})
    if seeds and "| seeds |" not in text and "| runs |" not in text:
        about.append(f"seed{'s' if len(seeds) > 1 else ''} {listed(seeds)}")
    compared = [row for row in made if "against" in row]
    for what, some in (("commit", [row for row in made if "against" not in row]), ("compared with commit", compared)):
        commits = dict.fromkeys(f"`{row['commit']}`" for row in some if row.get("commit"))
        about += [f"{what} {listed(list(commits))}"] if commits else []
    return f"{text}\n\n{'; '.join(about)}." if about else text


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
