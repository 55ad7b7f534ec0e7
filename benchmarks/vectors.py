"""Word vectors: what training them on GENIA costs and finds, and how long a file of millions of words takes to open.

python benchmarks/vectors.py [--words 1500000] [--data $WINGSPAN_DATA] [--only training] [--commit HASH]

Files to open are invented. Opening is measured in processes of their own, from the import's end to the first vector.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from wingspan.encoders.vectors import MAGIC

RESULTS = Path(__file__).parent / "results" / "vectors.jsonl"
ASKED = ("protein", "IL-2", "cells", "NF-kappaB", "gene", "activation", "glucocorticoid", "HIV-1")
SIZE = 100
OPEN = """
import resource, sys, time
from wingspan.encoders.vectors import open_vectors
began = time.perf_counter()
source = open_vectors(sys.argv[1])
assert source.of(["word7"]).shape == (1, int(sys.argv[2]))
opened = time.perf_counter() - began
began = time.perf_counter()
for at in range(0, len(source), len(source) // 5_000):
    assert f"word{at}" in source
each = (time.perf_counter() - began) / 5_000
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(opened, 1e6 * each, peak)
"""


def text_file(path: Path, words: int) -> None:
    """As GloVe writes them."""
    row = " ".join(f"{number:.5f}" for number in np.random.default_rng(0).standard_normal(SIZE))
    with path.open("w") as out:
        out.writelines(f"word{at} {row}\n" for at in range(words))


def binary_file(path: Path, words: int) -> None:
    """As word2vec writes them."""
    row = np.random.default_rng(0).standard_normal(SIZE).astype("<f4").tobytes() + b"\n"
    with path.open("wb") as out:
        out.write(f"{words} {SIZE}\n".encode())
        out.writelines(f"word{at} ".encode() + row for at in range(words))


def fasttext_file(path: Path, words: int) -> None:
    """A model of fastText with 100,000 buckets."""
    buckets = 100_000
    with path.open("wb") as out:
        out.write(MAGIC + struct.pack("<i12id", 12, SIZE, 5, 5, 1, 5, 1, 1, 2, buckets, 3, 6, 100, 1e-4))
        out.write(struct.pack("<3i2q", words, words, 0, words, -1))
        out.writelines(f"word{at}".encode() + struct.pack("<bqb", 0, 1, 0) for at in range(words))
        out.write(struct.pack("<?2q", False, words + buckets, SIZE))
        rows = np.random.default_rng(0).standard_normal((10_000, SIZE)).astype("<f4").tobytes()
        out.writelines(rows for _ in range((words + buckets) // 10_000))


def opening(words: int) -> Iterator[dict[str, Any]]:
    """One line for each format."""
    makers = {"GloVe text": text_file, "word2vec binary": binary_file, "fastText model": fasttext_file}
    for name, make in makers.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "vectors"
            make(path, words)
            rounds = [opened(path) for _ in range(6)]
            yield {
                "kind": "opening",
                "format": name,
                "words": words,
                "size": SIZE,
                "file_mib": path.stat().st_size / 2**20,
                "first_seconds": rounds[0][0],
                "first_mib": rounds[0][2],
                "later_seconds": median(one[0] for one in rounds[1:]),
                "lookup_microseconds": median(one[1] for one in rounds[1:]),
                "later_mib": median(one[2] for one in rounds[1:]),
            }


def opened(path: Path) -> list[float]:
    """Seconds to the first vector, microseconds for a look-up, peak memory, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", OPEN, str(path), str(SIZE)], capture_output=True, text=True, check=True
    )
    return [float(part) for part in done.stdout.split()]


def training(data: Path) -> Iterator[dict[str, Any]]:
    """GENIA's training text, one thread, as `wingspan vectors` reports it."""
    with tempfile.TemporaryDirectory() as folder:
        out, report = Path(folder) / "genia.npz", Path(folder) / "genia.json"
        asked = [part for word in ASKED for part in ("--nearest", word)]
        options = ["--size", "300", "--epochs", "25", "--threads", "1", "--count", "6", *asked]
        held_out = [part for name in ("dev", "test") for part in ("--against", str(data / "genia" / f"{name}.jsonl"))]
        command = [
            sys.executable,
            "-m",
            "wingspan",
            "vectors",
            str(data / "genia" / "train.jsonl"),
            "--output",
            str(out),
        ]
        subprocess.run([*command, *options, *held_out, "--json", str(report)], check=True)
        figures = json.loads(report.read_text())
    kept = {key: value for key, value in figures.items() if key not in ("texts", "against")}
    yield {"kind": "training", "corpus": "GENIA, train", **kept}


def main() -> None:
    """Appends lines to the results, in place of those of the same kind."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--words", type=int, default=1_500_000)
    options.add_argument("--data", type=Path, default=Path(os.environ.get("WINGSPAN_DATA", "data")))
    options.add_argument("--only", choices=("training", "opening"))
    options.add_argument("--commit", default="")
    options.add_argument("--output", type=Path, default=RESULTS)
    chosen = options.parse_args()
    old = [json.loads(line) for line in chosen.output.read_text().splitlines()] if chosen.output.exists() else []
    about = {"commit": chosen.commit, "python": platform.python_version(), "cores": os.cpu_count()}
    for kind, made in (("training", lambda: training(chosen.data)), ("opening", lambda: opening(chosen.words))):
        if chosen.only in (None, kind):
            new = [{**line, **about} for line in made()]
            old = [line for line in old if line["kind"] != kind] + new
            print(*map(json.dumps, new), sep="\n")
    chosen.output.write_text("".join(json.dumps(line) + "\n" for line in old), encoding="utf-8")


if __name__ == "__main__":
    main()
