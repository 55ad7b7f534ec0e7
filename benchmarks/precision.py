"""What bfloat16 and int8 save on a CPU, and what they cost in F1: models with a pretrained encoder, two threads.

    python benchmarks/precision.py --encoder-folder $WINGSPAN_ENCODERS/all-MiniLM-L6-v2 \
        --model ncbi-disease=runs/ncbi --model bc5cdr=runs/bc5cdr --data $WINGSPAN_DATA \
        --output benchmarks/results/precision.jsonl --commit $(git rev-parse --short HEAD)

The ratio is that of texts to entities in each precision to the fast tokenizer plus the bare encoder in float32, over
the same sentences in turns in one process, in processor time. F1 is strict, on the whole test set.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from transformers import AutoModel, AutoTokenizer

from measuring import take_turns, versions
from wingspan.corpora.formats import read
from wingspan.evaluation import recognition
from wingspan.recognizer import Recognizer

PRECISIONS = ("float32", "bfloat16", "int8")
BATCH = 32


def main() -> None:
    """One JSON line for each model and precision."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--encoder-folder", required=True)
    parser.add_argument("--model", action="append", required=True, help="CORPUS=FOLDER")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sentences", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--commit", required=True)
    given = parser.parse_args()
    torch.set_num_threads(2)
    tokenizer = AutoTokenizer.from_pretrained(given.encoder_folder)
    bare = AutoModel.from_pretrained(given.encoder_folder, dtype=torch.float32, add_pooling_layer=False).eval()
    with given.output.open("w", encoding="utf-8", buffering=1) as file:  # a row outlives what stops the next
        for named in given.model:
            corpus, folder = named.split("=", 1)
            gold = list(read(given.data / corpus / "test.jsonl"))
            words = [[d.text[s:e] for s, e in d.words] for d in gold[: given.sentences]]
            ordered = sorted(words, key=len, reverse=True)

            @torch.inference_mode()
            def floor(ordered: list[list[str]] = ordered) -> None:
                for at in range(0, len(ordered), BATCH):
                    group = ordered[at : at + BATCH]
                    bare(**tokenizer(group, is_split_into_words=True, padding=True, return_tensors="pt"))

            exact = None
            for precision in PRECISIONS:
                model = Recognizer.from_pretrained(folder, device="cpu", precision=precision)
                turns = take_turns(floor, lambda m=model, w=words: m.predict(w, is_split_into_words=True), given.rounds)
                found = model.predict(gold)
                exact = found if exact is None else exact
                same = sum(a.entities == b.entities for a, b in zip(exact, found, strict=True))
                row = {
                    "corpus": corpus,
                    "recipe": model.recipe.name,
                    "precision": precision,
                    "ratio": turns["ratio_cpu"],
                    "ratio_wall": turns["ratio"],
                    "sentences": len(words),
                    "f1": round(recognition(gold, found).micro.f1, 3),
                    "same_documents": round(100 * same / len(gold), 2),
                    "documents": len(gold),
                    "commit": given.commit,
                    **versions(),
                }
                print(json.dumps(row), flush=True)
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
