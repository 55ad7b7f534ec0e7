"""How long scoring, analyzing and comparing take: 50,000 generated sentences, nested and discontinuous entities.

    python benchmarks/evaluation.py --output benchmarks/results/evaluation.jsonl --commit $(git rev-parse --short HEAD)

The targets on two cores: every mode under 10 seconds, an analysis under 20, comparing two systems with 1,000 samples
under 60.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import random
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from wingspan.evaluation.buckets import buckets
from wingspan.evaluation.comparison import compare
from wingspan.evaluation.errors import errors
from wingspan.evaluation.scores import MODES, recognition
from wingspan.text import Document, Entity, Span

LABELS = ("gene", "protein", "cell", "disease", "drug")
VOCABULARY = ["".join(letters) for letters in itertools.product("abcdefgh", repeat=4)]


def entity(rng: random.Random, length: int) -> Entity:
    """One mention; one in twenty has a second fragment."""
    start = rng.randrange(length)
    spans = [Span(start, start + rng.randint(3, 30))]
    if rng.random() < 0.05:
        spans.append(Span(spans[0].end + 4, spans[0].end + 9))
    return Entity(rng.choice(LABELS), tuple(spans))


def corpus(sentences: int, seed: int = 1) -> list[Document]:
    """Sentences of no to five mentions."""
    rng, words = random.Random(seed), random.Random(seed)
    made = (tuple(entity(rng, 150) for _ in range(rng.randint(0, 5))) for _ in range(sentences))
    return [
        Document(str(number), " ".join(words.choices(VOCABULARY, k=40)), entities)
        for number, entities in enumerate(made)
    ]


def answers(gold: list[Document], right: float, seed: int) -> list[Document]:
    """Predictions for nine in ten mentions, of which this share is right and the others are somewhere else."""
    rng = random.Random(seed)
    return [
        Document(
            document.id,
            document.text,
            tuple(e if rng.random() < right else entity(rng, 150) for e in document.entities if rng.random() < 0.9),
        )
        for document in gold
    ]


def measured(sentences: int, samples: int) -> Iterator[dict[str, Any]]:
    """Every mode once, what is wrong and on which entities, one system against another, and three runs of each."""
    gold = corpus(sentences)
    runs = [answers(gold, 0.75 if seed < 3 else 0.76, seed) for seed in range(6)]
    entities = sum(len(document.entities) for document in gold)
    about = {"sentences": sentences, "entities": entities}
    for mode in MODES:
        began = time.perf_counter()
        scores = recognition(gold, runs[0], mode)
        yield {
            "name": f"score, {mode}",
            **about,
            "seconds": time.perf_counter() - began,
            "limit": 10,
            "f1": scores.micro.f1,
        }
    analyses: dict[str, Callable[[], object]] = {
        "errors by kind": lambda: errors(gold, runs[0]),
        "scores by nine attributes, as many training sentences": lambda: buckets(gold, runs[0], training=runs[1]),
    }
    for name, analyze in analyses.items():
        began = time.perf_counter()
        analyze()
        yield {"name": name, **about, "seconds": time.perf_counter() - began, "limit": 20}
    pairs = {"one run each": ([runs[0]], [runs[3]]), "three runs each": (runs[:3], runs[3:])}
    for name, (first, second) in pairs.items():
        began = time.perf_counter()
        result = compare(gold, {"first": first, "second": second}, samples=samples)
        spent = time.perf_counter() - began
        yield {
            "name": f"compare two systems, {name}, {samples:,} samples",
            **about,
            "seconds": spent,
            "limit": 60,
            "p": result.pairs[0].rows.micro.p,
            "verdict": result.verdict,
        }


def main() -> None:
    """Prints and writes one line for each measurement."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sentences", type=int, default=50_000)
    options.add_argument("--samples", type=int, default=1000)
    options.add_argument("--output", type=Path)
    options.add_argument("--commit", default="unknown")
    chosen = options.parse_args()
    versions = {"python": platform.python_version(), "numpy": np.__version__, "cores": os.cpu_count()}
    lines = []
    for row in measured(chosen.sentences, chosen.samples):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # of the process so far
        row |= {"seconds": round(row["seconds"], 2), "peak_mb": round(peak), "versions": versions}
        print(f"{row['name']:58} {row['seconds']:7.2f} s  (limit {row['limit']})  {row['peak_mb']} MB", flush=True)
        lines.append(json.dumps({**row, "commit": chosen.commit}))
    if chosen.output:
        chosen.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
