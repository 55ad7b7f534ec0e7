"""How good suggested label maps are: ten corpora against Oi and Miwa 2025's Table 7; CrossNER for the threshold.

python benchmarks/label_map.py --data $WINGSPAN_DATA --output benchmarks/results/label_map.jsonl

CrossNER's five domains share some labels. There the right answer is known without anybody's table: the label of the
same name, and "no counterpart" where that label was taken out of the target. The labels' names are not used there.
The threshold of confidence is one half; CrossNER shows what that is worth where nothing was looked at before.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from wingspan.cli.label_map import compare_with
from wingspan.corpora.formats import read
from wingspan.corpora.label_map import read_label_map
from wingspan.corpora.label_map.suggest import CONFIDENT, Suggestion, suggest
from wingspan.corpora.statistics import describe
from wingspan.text import Document

ROOT = Path(__file__).parent.parent
REFERENCE = ROOT / "examples" / "biomedical" / "label_map.tsv"
TARGET = "biored"
# the training files; NLM-Chem has none, so that its test file stands in
FILES = {
    "bc5cdr": "train.jsonl",
    "bioid": "train.jsonl.gz",
    "gnormplus": "train.jsonl.gz",
    "linnaeus": "train.jsonl.gz",
    "ncbi-disease": "train.subtypes.jsonl.gz",
    "nlmchem": "test.jsonl.gz",
    "nlmgene": "train.jsonl.gz",
    "species800": "train.jsonl.gz",
    "tmvar3": "train.jsonl.gz",
}
DOMAINS = ("politics", "science", "music", "literature", "ai")
WITNESSES: dict[str, tuple[str, ...]] = {
    "all evidence": ("names", "model", "label"),
    "shared names": ("names",),
    "names classified by spelling": ("model",),
    "names of the labels alone": ("label",),
}
LEAST = 20
"""Mentions of a label on both sides of CrossNER; with fewer there is nothing to judge by."""


def biomedical(data: Path) -> list[dict[str, Any]]:
    """Suggestions from all evidence and from each kind alone, beside the paper's table."""
    target = list(read(data / TARGET / "train.jsonl"))
    corpora = {name: list(read(data / name / file)) for name, file in FILES.items()}
    reference = read_label_map(REFERENCE)
    rows = []
    for name, kinds in WITNESSES.items():
        began = time.perf_counter()
        found = suggest(target, corpora, kinds=kinds)
        trained = [one for one in found if one.corpus != "nlmchem"]
        rows.append(
            {
                "kind": "biomedical",
                "witnesses": name,
                "threshold": CONFIDENT,
                **compare_with(reference, found),
                "with_training_data": compare_with(reference, trained),
                "suggestions": [one.to_dict() for one in found] if len(kinds) > 1 else [],
                "seconds": round(time.perf_counter() - began, 1),
                "fingerprint": describe(target).fingerprint,
            }
        )
    return rows


def crossner(data: Path) -> list[dict[str, Any]]:
    """The same label in two domains, and the same with the label taken out of the target; names of labels unheard."""
    domains = {name: domain(data / "crossner" / name) for name in DOMAINS}
    rows = []
    for target, (documents, counts) in domains.items():
        for source, (others, own) in domains.items():
            shared = [label for label in counts if min(counts[label], own.get(label, 0)) >= LEAST]
            if source == target:
                continue
            for one in suggest(documents, {source: others}, kinds=("names", "model")):
                if one.label in shared:
                    rows.append(judged(one, target, one.label))
            for label in shared:
                without = [without_label(document, label) for document in documents]
                alone = [only_label(document, label) for document in others]
                (one,) = suggest(without, {source: alone}, kinds=("names", "model"))
                rows.append(judged(one, target, None))
    return rows


def judged(one: Suggestion, target: str, right: str | None) -> dict[str, Any]:
    """A suggestion and whether it is right."""
    return {
        "kind": "crossner",
        "corpus": one.corpus,
        "target_corpus": target,
        "label": one.label,
        "suggested": one.target,
        "right": right,
        "confidence": one.confidence,
    }


def domain(folder: Path) -> tuple[list[Document], dict[str, int]]:
    """All documents of a domain, and how often each label occurs; "misc" is what is left over and means nothing."""
    found = [document for part in ("train", "dev", "test") for document in read(folder / f"{part}.jsonl")]
    counts: dict[str, int] = {}
    for document in found:
        for entity in document.entities:
            counts[entity.label] = counts.get(entity.label, 0) + 1
    return found, {label: count for label, count in counts.items() if label != "misc"}


def without_label(document: Document, label: str) -> Document:
    """The document as if nobody had marked the label."""
    return replace(document, entities=tuple(entity for entity in document.entities if entity.label != label))


def only_label(document: Document, label: str) -> Document:
    """The document with the entities of one label."""
    return replace(document, entities=tuple(entity for entity in document.entities if entity.label == label))


def worth(rows: Sequence[dict[str, Any]], threshold: float) -> tuple[int, int]:
    """How many suggestions reach a threshold, and how many of these are right."""
    sure = [row for row in rows if row["confidence"] >= threshold]
    return len(sure), sum(row["suggested"] == row["right"] for row in sure)


def main() -> None:
    """Writes one line for each set of witnesses and for each judged suggestion of CrossNER."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, required=True)
    options.add_argument("--output", type=Path, required=True)
    options.add_argument("--commit", default="unknown")
    options.add_argument("--only", choices=("biomedical", "crossner"))
    given = options.parse_args()
    rows = []
    if given.only != "biomedical":
        rows += crossner(given.data)
        for tenths in range(3, 10):
            count, right = worth(rows, tenths / 10)
            print(f"CrossNER, from {tenths / 10}: {count} of {len(rows)}, {right} right", flush=True)
    if given.only != "crossner":
        for row in biomedical(given.data):
            rows.append(row)
            some = row["with_training_data"]
            print(
                f"{row['witnesses']}: {row['right']} of {row['labels']} right; confident {row['confident']},", end=" "
            )
            print(f"{row['confident_right']} right; without nlmchem {some['confident']}, {some['confident_right']}")
            for one in row["disagreements"]:
                print("   ", one)
    given.output.write_text("".join(json.dumps({**row, "commit": given.commit}) + "\n" for row in rows))


if __name__ == "__main__":
    main()
