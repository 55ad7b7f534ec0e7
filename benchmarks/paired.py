"""Differences of F1 with their intervals: each system against the first, paired over documents and seeds.

python benchmarks/paired.py --data DATA --corpus genia --commit COMMIT --output RESULTS.jsonl \\
    "Baseline=FOLDER/genia-compress_generate-baseline" "All=FOLDER/genia-compress_generate-all"

A system is a name and the beginning of its prediction files, as `training_runs.keep` writes them. Lines are appended.
Predictions on test (labels, offsets, scores; no text) of runs with a base-size encoder and of `combinations.py` are in
benchmarks/predictions, behind the encoder's name, so that a later run can be paired with them.
"""

from __future__ import annotations

import argparse
import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from training_runs import gold


def runs_of(start: str, part: str, right: list[Any]) -> list[list[Any]]:
    """The gold documents with what each seed's model found in them."""
    from wingspan.text import Entity, Span

    runs = []
    for path in sorted(Path(start).parent.glob(f"{Path(start).name}-[0-9]-{part}.jsonl.gz")):
        rows = dict(map(json.loads, gzip.decompress(path.read_bytes()).decode().splitlines()))
        runs.append(
            [
                replace(d, entities=tuple(Entity(label, (Span(s, e),), score) for label, s, e, score in rows[d.id]))
                for d in right
            ]
        )
    if not runs:
        raise SystemExit(f"{start}: there are no predictions of {part}")
    return runs


def main() -> None:
    """One line for each system but the first."""
    from wingspan.evaluation.comparison import compare
    from wingspan.evaluation.scores import recognition

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("systems", nargs="+", metavar="NAME=START")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--label")
    parser.add_argument("--part", default="test")
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    right = gold(given.data / given.corpus, given.part, given.label)
    runs = {name: runs_of(start, given.part, right) for name, start in (s.rsplit("=", 1) for s in given.systems)}
    scores = {name: [round(recognition(right, each).micro.f1, 3) for each in runs[name]] for name in runs}
    first, *others = runs
    with given.output.open("a") as out:
        for other in others:  # one pair at a time: no correction for pairs that nobody asked for
            difference = (
                compare(right, {first: runs[first], other: runs[other]}, samples=given.samples).pairs[0].rows.micro
            )
            row = {
                "corpus": given.corpus,
                "part": given.part,
                "system": other,
                "against": first,
                "seeds": [len(runs[other]), len(runs[first])],
                "f1": [scores[other], scores[first]],
                "difference": round(difference.value, 3),
                "low": round(difference.low, 3),
                "high": round(difference.high, 3),
                "p": round(difference.p, 4),
                "samples": given.samples,
                "commit": given.commit,
            }
            out.write(json.dumps(row) + "\n")
            print(row, flush=True)


if __name__ == "__main__":
    main()
