"""Leaks: documents that `train` drops on every corpus, BioRED in auxiliary corpora (Oi and Miwa 2025), search time.

python benchmarks/leaks.py --data $WINGSPAN_DATA --output benchmarks/results/leaks.jsonl

One JSON line per comparison. Seconds include reading the files; generated documents are compared without reading.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wingspan.corpora.formats import read
from wingspan.corpora.leaks import find_leaks
from wingspan.text import Document

AUXILIARY = ("bc5cdr", "bioid", "gnormplus", "linnaeus", "ncbi-disease", "nlmgene", "species800", "tmvar3")
WORDS = 200
"""Of a generated document, about as many as an abstract has."""

Row = dict[str, Any]


def corpora(data: Path) -> Iterator[Row]:
    """Every corpus with a training file against its own dev and test, and dev against test."""
    for train in sorted(data.rglob("train*.jsonl*")):
        files = {"train": train, **{part: other(train, part) for part in ("dev", "test")}}
        for name, sides in {"dev": ("train", "dev"), "test": ("train", "test"), "dev-test": ("dev", "test")}.items():
            one, two = (files[side] for side in sides)
            if one is not None and two is not None:
                began = time.perf_counter()
                found = find_leaks({sides[0]: read(one)}, {sides[1]: read(two)})
                corpus = str(train.relative_to(data)).removesuffix(".gz").removesuffix(".jsonl").replace("/train", "")
                yield {"kind": "corpus", "corpus": corpus, "sides": name, **measured(began), **found.counts()}


def other(train: Path, part: str) -> Path | None:
    """The file of another part, plain or gzipped."""
    plain = train.with_name(train.name.removesuffix(".gz").replace("train", part, 1))
    return next((path for path in (plain, plain.with_name(f"{plain.name}.gz")) if path.exists()), None)


def biored(data: Path) -> Iterator[Row]:
    """BioRED in the training and dev files of the auxiliary corpora of Oi and Miwa 2025, by document and sentence."""
    for suffix in (".text.jsonl", ".jsonl"):
        files = [
            path for name in AUXILIARY for part in ("train", "dev") for path in data.glob(f"{name}/{part}{suffix}*")
        ]
        for part in ("test", "dev"):
            began = time.perf_counter()
            train = {str(path.relative_to(data)): read(path) for path in sorted(files)}
            found = find_leaks(train, {part: read(data / "biored" / f"{part}{suffix}")})
            yield {"kind": "biored", "files": suffix, "part": part, **measured(began), **found.counts()}


def generated(number: int, against: int, seed: int = 1) -> Row:
    """Documents of random words; a hundredth of those that are searched for are in training with edited words."""
    draw = random.Random(seed)
    vocabulary = ["".join(draw.choices("aeioubcdfglmnprst", k=draw.randint(2, 11))) for _ in range(50_000)]

    def text() -> str:
        return " ".join(draw.choices(vocabulary, k=WORDS))

    known = [Document(f"test-{at}", text()) for at in range(against)]
    copies = against // 100

    def train() -> Iterator[Document]:
        for at in range(number - copies):
            yield Document(f"train-{at}", text())
        for document in known[:copies]:
            words = document.text.split()
            for at in draw.sample(range(WORDS), WORDS // 20):
                words[at] = draw.choice(vocabulary)
            yield Document(document.id, " ".join(words))

    began = time.perf_counter()
    for _ in train():
        pass
    making = time.perf_counter() - began
    before = peak()
    began = time.perf_counter()
    found = find_leaks({"train": train()}, {"test": known})
    row = {"kind": "generated", "train": number, "against": against, "near": found.kinds["near"], "edited": copies}
    row |= {"peak_mb_before": before, **measured(began)}
    return {**row, "seconds": round(row["seconds"] - making, 1)}


def measured(began: float) -> Row:
    """Seconds, and the most memory the process has had."""
    return {"seconds": round(time.perf_counter() - began, 2), "peak_mb": peak(), "python": platform.python_version()}


def peak() -> int:
    """The most memory the process has had, in MB."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main() -> None:
    """Measures the generated documents first, so that the peak is theirs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--documents", type=int, default=300_000)
    parser.add_argument("--against", type=int, default=10_000)
    parser.add_argument("--only", choices=("generated", "corpus", "biored"), help="the others are kept as they are")
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    rows: list[Row] = []
    if given.output.exists():
        rows = [row for row in map(json.loads, given.output.read_text().splitlines()) if row["kind"] != given.only]
    rows = rows if given.only else []
    if given.only in (None, "generated"):
        rows.append(generated(given.documents, given.against))
    if given.only in (None, "corpus"):
        rows += corpora(given.data)
    if given.only in (None, "biored"):
        rows += biored(given.data)
    given.output.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
