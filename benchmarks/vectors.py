"""Word vectors: training them on GENIA, and the time it takes to open a file of a million words.

python benchmarks/vectors.py [--words 1000000] [--data $WINGSPAN_DATA] [--only training] [--commit HASH]

The files to open are generated. Opening is measured in fresh processes, from after the imports to the first vector.
All times are CPU times, because the machine may be shared.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
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
QUERIES = ("protein", "IL-2", "cells", "NF-kappaB", "gene", "activation", "glucocorticoid", "HIV-1")
SIZE = 100
OPEN = """
import resource, sys, time
from wingspan.encoders.vectors import open_vectors
began = time.process_time()
source = open_vectors(sys.argv[1])
assert source.of(["word7"]).shape == (1, int(sys.argv[2]))
opened = time.process_time() - began
began = time.process_time()
for at in range(0, len(source), len(source) // 5_000):
    assert f"word{at}" in source
each = (time.process_time() - began) / 5_000
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(opened, 1e6 * each, peak)
"""


def text_file(path: Path, words: int) -> None:
    """Writes GloVe text."""
    row = " ".join(f"{number:.5f}" for number in np.random.default_rng(0).standard_normal(SIZE))
    with path.open("w") as out:
        out.writelines(f"word{at} {row}\n" for at in range(words))


def binary_file(path: Path, words: int) -> None:
    """Writes word2vec's binary format."""
    row = np.random.default_rng(0).standard_normal(SIZE).astype("<f4").tobytes() + b"\n"
    with path.open("wb") as out:
        out.write(f"{words} {SIZE}\n".encode())
        out.writelines(f"word{at} ".encode() + row for at in range(words))


def fasttext_file(path: Path, words: int) -> None:
    """Writes a fastText model with 100,000 buckets."""
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
                "later_seconds": median(seconds for seconds, _, _ in rounds[1:]),
                "lookup_microseconds": median(lookup for _, lookup, _ in rounds[1:]),
                "later_mib": median(mib for _, _, mib in rounds[1:]),
            }


def opened(path: Path) -> list[float]:
    """CPU seconds to the first vector, microseconds per look-up and peak memory in MiB, in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-c", OPEN, str(path), str(SIZE)], capture_output=True, text=True, check=True
    )
    return [float(part) for part in done.stdout.split()]


def training(data: Path) -> Iterator[dict[str, Any]]:
    """`wingspan vectors` on GENIA's training text with one thread, and the CPU time of the whole command."""
    with tempfile.TemporaryDirectory() as folder:
        out, report = Path(folder) / "genia.npz", Path(folder) / "genia.json"
        queries = [part for word in QUERIES for part in ("--nearest", word)]
        options = ["--size", "300", "--epochs", "25", "--count", "6", *queries]
        text = str(data / "genia" / "train.jsonl")
        command = [sys.executable, "-m", "wingspan", "vectors", text, "--output", str(out), "--json", str(report)]
        subprocess.run([*command, *options], check=True)
        seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        figures = {key: value for key, value in json.loads(report.read_text()).items() if key != "texts"}
    yield {"kind": "training", "corpus": "GENIA, train", **figures, "seconds": seconds}


def main() -> None:
    """Replaces the results of the kinds that were measured."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--words", type=int, default=1_000_000)
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
