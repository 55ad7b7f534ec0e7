"""The dev scores that `wingspan train auto` decides by, from the results that are kept.

python benchmarks/evidence.py            # writes src/wingspan/training/evidence.json

A recipe's rows on one corpus with one encoder are those of its best settings there (by mean dev F1, of those with three
seeds or more). Where entities are in pieces, the F1 of these counts, since a recipe that ignores them is hardly worse
overall. For long entities only recipes count that have no ceiling on width.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from statistics import mean
from typing import Any

from wingspan.recipes import NAMES, variants
from wingspan.training.choice import KeptRuns, Kind, block_weights

RESULTS = Path(__file__).parent / "results"
TARGET = Path(__file__).parent.parent / "src/wingspan/training/evidence.json"
FILES = (
    *(
        "bundling.jsonl",
        "bundling-tags.jsonl",
        "bundling-mpnet.jsonl",
        "deep_accuracy.jsonl",
        "deep_accuracy-mpnet.jsonl",
        "deep_accuracy-mpnet-second.jsonl",
        "deep_accuracy-mpnet-third.jsonl",
        "compress_generate-mpnet.jsonl",
    ),
    *("compress_generate.jsonl", "compress_generate-second.jsonl"),
    *("discontinuous.jsonl", "discontinuous-bundled.jsonl"),
    *("conditional.jsonl", "conditional-second.jsonl", "conditional-mpnet.jsonl"),
    *("combinations.jsonl", "combinations-mpnet.jsonl"),
)
KINDS: dict[str, Kind] = {
    "ncbi-disease": "flat",
    "bc5cdr": "flat",
    "wnut17": "flat",
    "genia": "nested",
    "litbank": "long",
    "genia-disc": "discontinuous",
    "craft": "discontinuous",
    "ten corpora, without leaks": "several",
}
SIZES = {"minilm": (384, 6), "e5-small": (384, 12), "all-mpnet-base-v2": (768, 12)}
SEEDS = 3  # fewer decide nothing
RECIPES = {f"{name}/{variant}".rstrip("/") for name in NAMES for variant in variants(name)}


def score(row: dict[str, Any]) -> float:
    """The dev F1 of a run; that of discontinuous entities where the corpus has them."""
    if KINDS[row["corpus"]] == "discontinuous":
        return float(next(iter(row["systems"].values()))["dev"]["discontinuous"]["f1"])
    return float(row["dev"]["f1"])


def collect(results: Path = RESULTS) -> list[KeptRuns]:
    """The best settings of each recipe on each corpus with each encoder."""
    runs: defaultdict[tuple[str, str, str], defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for name in FILES:
        for line in (results / name).read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row["recipe"] not in RECIPES:
                continue  # tried in a benchmark, and not in the package
            kind = KINDS.get(row["corpus"])
            if kind is not None and (kind != "long" or "proposals" in row["recipe"]):
                key = row["corpus"], Path(row["encoder"]).name, row["recipe"]
                runs[key][json.dumps([name, row["settings"]])].append(score(row))
    found: list[KeptRuns] = []
    for (corpus, encoder, recipe), settings in sorted(runs.items()):
        enough = [scores for scores in settings.values() if len(scores) >= SEEDS]
        if enough:
            dev = [round(each, 2) for each in max(enough, key=mean)]
            size = block_weights(*SIZES[encoder])
            found.append(
                KeptRuns(kind=KINDS[corpus], corpus=corpus, encoder=encoder, weights=size, recipe=recipe, dev=dev)
            )
    return found


def written(rows: list[KeptRuns]) -> str:
    """JSON with a line for each row."""
    return "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n"


if __name__ == "__main__":
    TARGET.write_text(written(collect()), encoding="utf-8")
    print(f"{TARGET}: {len(collect())} rows")
