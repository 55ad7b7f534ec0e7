"""How long joining takes at its worst: 200 fragments in one sentence, with various links.

python benchmarks/joining.py --output benchmarks/results/joining.jsonl
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from wingspan.batch import Found, Inputs
from wingspan.decoding import BUCKETS, Linkable, entities_joined
from wingspan.labels import LabelSet

FRAGMENTS = 200
Links = Callable[[int, np.random.Generator], np.ndarray]


def pairs_of(place: Callable[[int, int], bool]) -> Links:
    """Links by a rule for two places."""
    return lambda n, _: np.array([[0.9 * (i < j and place(i, j)) for j in range(n)] for i in range(n)])


def drawn(share: float) -> Links:
    """Links at random."""
    return lambda n, draw: np.triu(draw.random((n, n)) < share, 1) * 0.9


GRAPHS: dict[str, Links] = {
    "none": pairs_of(lambda i, j: False),
    "a chain": pairs_of(lambda i, j: j == i + 1),
    "all with the first": pairs_of(lambda i, j: i == 0),
    "pairs": pairs_of(lambda i, j: i % 2 == 0 and j == i + 1),
    "triples": pairs_of(lambda i, j: i // 3 == j // 3),
    "1 % of pairs": drawn(0.01),
    "10 % of pairs": drawn(0.1),
    "half of the pairs": drawn(0.5),
    "90 % of pairs": drawn(0.9),
    "first half with second half": pairs_of(lambda i, j: i < FRAGMENTS // 2 <= j),
    "all but triples (most cliques a graph can have)": pairs_of(lambda i, j: i // 3 != j // 3),
    "all": pairs_of(lambda i, j: True),
}


def sentence(links: Links, labels: int) -> tuple[Linkable, Inputs, LabelSet]:
    """One sentence of 200 fragments of one word each, a word between them, shared out among the labels."""
    draw = np.random.default_rng(0)
    size = FRAGMENTS // labels
    at = np.arange(size * labels)
    label, place = at // size, at % size
    start = 2 * (place * labels + label)
    scores = np.where(np.stack([links(size, draw) for _ in range(labels)]) > 0, 4.0, -4.0)  # (labels, n, n)
    found = Found(np.zeros_like(at), start, start + 1, 1 + label, 0.5 + draw.random(len(at)) / 2)
    left, right = np.eye(size)[place], np.concatenate([part.T for part in scores])
    core = np.array([[0, 2 * len(at)]])
    words = np.arange(2 * len(at))[None]
    inputs = Inputs(*(words,) * 13)._replace(dataset=np.zeros(1, dtype=np.int64))  # no more is looked at
    names = LabelSet({"main": tuple(f"label {n}" for n in range(labels))})
    return Linkable(found, left, right, np.zeros(BUCKETS), core), inputs, names


def main() -> None:
    """One line for each kind of graph, under one label and under ten."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    rows = []
    for name, links in GRAPHS.items():
        for labels in (1, 10):
            linkable, inputs, names = sentence(links, labels)
            times, entities, capped = [], 0, 0
            for _ in range(given.repeats):
                began = time.perf_counter()
                found, capped = entities_joined(linkable, inputs, names, [0.5] * names.num_classes)
                times.append(1000 * (time.perf_counter() - began))
                entities = len(found[0])
            row = {"links": name, "fragments": FRAGMENTS, "labels": labels, "milliseconds": round(min(times), 2)}
            row |= {"entities": entities, "capped": capped}
            rows.append({**row, "machine": platform.machine(), "python": platform.python_version()})
            print(row, flush=True)
    if given.output:
        given.output.write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    main()
