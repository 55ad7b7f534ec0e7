"""How long scoring takes: 50,000 generated sentences, nested and discontinuous entities, every mode.

    python benchmarks/evaluation.py [--sentences 50000] [--json FILE]

The target is under 10 seconds for a mode; the last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import time
from pathlib import Path

from wingspan.evaluation import MODES, recognition
from wingspan.text import Document, Entity, Span

LABELS = ("gene", "protein", "cell", "disease", "drug")


def entity(rng: random.Random, length: int) -> Entity:
    """One mention; one in twenty has a second fragment."""
    start = rng.randrange(length)
    spans = [Span(start, start + rng.randint(3, 30))]
    if rng.random() < 0.05:
        spans.append(Span(spans[0].end + 4, spans[0].end + 9))
    return Entity(rng.choice(LABELS), tuple(spans))


def corpus(sentences: int, seed: int = 1) -> tuple[list[Document], list[Document]]:
    """Gold, and predictions of which some seven in ten are right."""
    rng = random.Random(seed)
    gold, found = [], []
    for number in range(sentences):
        entities = [entity(rng, 150) for _ in range(rng.randint(0, 5))]
        answers = [e if rng.random() < 0.75 else entity(rng, 150) for e in entities if rng.random() < 0.9]
        gold.append(Document(str(number), "x" * 200, tuple(entities)))
        found.append(Document(str(number), "x" * 200, tuple(answers)))
    return gold, found


def main() -> None:
    """Times every mode once and prints what it found."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sentences", type=int, default=50_000)
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    gold, found = corpus(chosen.sentences)
    entities = sum(len(document.entities) for document in gold)
    print(f"{chosen.sentences} sentences, {entities} gold entities")
    seconds = {}
    for mode in MODES:
        began = time.perf_counter()
        scores = recognition(gold, found, mode)
        seconds[mode] = round(time.perf_counter() - began, 2)
        print(f"{mode:10} {seconds[mode]:6.2f} s   F1 {scores.micro.f1:.2f}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    line = json.dumps({"sentences": chosen.sentences, "entities": entities, "seconds": seconds, "peak_mb": peak})
    print(line)
    if chosen.json:
        chosen.json.write_text(line + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
