"""The cost of the bottleneck in prediction compared to the linear head: texts to entities, alternating in one process.

python benchmarks/bottleneck_cost.py --data $WINGSPAN_DATA --output benchmarks/results/bottleneck_cost.jsonl

Proposals give the bottleneck fewer spans; `compress_generate.py --systems supvib-proposals` says what F1 they cost.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import torch

from measuring import take_turns, untrained, versions
from throughput import documents_of, predicting

BASELINE = "compress_generate/baseline"
OTHERS = ("compress_generate/supvib", "compress_generate/supvib-proposals")


def main() -> None:
    """Measures, prints, adds JSON lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    folder = Path(os.environ.get("WINGSPAN_ENCODERS", ".")) / "all-MiniLM-L6-v2"
    parser.add_argument("--data", type=Path, default=os.environ.get("WINGSPAN_DATA"), required=False)
    parser.add_argument("--encoder", default=str(folder))
    parser.add_argument("--corpus", default="ncbi-disease")
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--width", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    if given.data is None:
        parser.error("give --data, or set WINGSPAN_DATA")
    torch.set_num_threads(given.threads)
    documents = documents_of(given.data / given.corpus, given.sentences)
    texts = [document.text for document in documents]
    floor = predicting(untrained(BASELINE, given.encoder, documents, given.width, "cpu"), texts, 32)
    for recipe in OTHERS:
        model = untrained(recipe, given.encoder, documents, given.width, "cpu")
        row = take_turns(floor, predicting(model, texts, 32), given.rounds)
        name = f"{given.corpus}: {len(texts)} sentences, {recipe.rpartition('/')[2]}, width {given.width}, batch 32"
        found = sum(len(document.entities) for document in model.predict(texts))
        facts = {"found": found, "threads": given.threads, "versions": versions(), "commit": given.commit}
        print(f"{name}: x{row['ratio']} (cpu x{row['ratio_cpu']}, {row['spread']}), found {found}", flush=True)
        if given.output is not None:
            with given.output.open("a") as out:
                out.write(json.dumps({"name": name, **row, **facts}) + "\n")


if __name__ == "__main__":
    main()
