"""Tensors to scores against the bare encoder on one GPU, with the end-to-end ratio beside it; one JSON line per row.

python benchmarks/throughput_gpu.py --data $WINGSPAN_DATA --corpus genia --output benchmarks/results/throughput.jsonl
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch

from wingspan.corpora import read
from wingspan.model import tensors
from wingspan.recognizer import Recognizer
from wingspan.runs.train import prepare
from wingspan.sampling import batches
from wingspan.text import Document
from wingspan.training.fitting import fit


def seconds(work: Callable[[], object], device: str, rounds: int) -> float:
    """The median time of a piece of work, the device's queue emptied before and after."""
    wait = torch.cuda.synchronize if device == "cuda" else (lambda: None)
    times = []
    for _ in range(rounds):
        wait()
        began = time.perf_counter()
        work()
        wait()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def main() -> None:
    """Measures both sides in turn, in one process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--corpus", default="genia")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    torch.set_float32_matmul_precision("high")
    found = next(path for path in (given.data / given.corpus).glob("test.jsonl*"))
    gold = list(read(found))[: given.sentences]
    texts = [Document(document.id, document.text, words=document.words) for document in gold]
    rows = []
    for width in (8, 16):
        for size in (32, 128):
            for precision in ("tf32", "bf16"):
                rows.append(measure(given, gold, texts, width, size, precision))
    given.output.parent.mkdir(parents=True, exist_ok=True)
    with given.output.open("a") as out:
        out.writelines(json.dumps(row) + "\n" for row in rows)


def measure(
    given: Any, gold: list[Document], texts: list[Document], width: int, size: int, precision: str
) -> dict[str, Any]:
    """One row: the span model's forward pass and the whole prediction, each over the bare encoder's pass."""
    recipe = prepare("bundling/bl-span", given.encoder, {"max_width": width})
    fitted = fit(recipe, gold, seed=1)
    model = Recognizer(fitted.recipe, fitted.labels, fitted.learner.eval(), device=given.device)
    sentences = [sentence for document in texts for sentence in model.segment(document)]
    order = batches([len(sentence.words) for sentence in sentences], size, budget=10**9)
    inputs = [tensors(model.collate.inputs([sentences[i] for i in batch]), given.device) for batch in order]
    find_some(model, inputs, 2.5)
    bare: Any = fitted.learner.model.encoder.model
    context = torch.autocast(given.device, torch.bfloat16) if precision == "bf16" else nullcontext()

    def floor() -> None:
        for batch in inputs:
            bare(input_ids=batch.tokens, attention_mask=batch.token_mask.long())

    def scores() -> None:
        for batch in inputs:
            model.learner.model(batch)

    with torch.inference_mode(), context:
        for work in (floor, scores, floor, scores):
            work()
        if given.device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        low = [seconds(floor, given.device, 1) for _ in range(given.rounds)]
        high = [seconds(scores, given.device, 1) for _ in range(given.rounds)]
        peak = torch.cuda.max_memory_allocated() / 2**20 if given.device == "cuda" else 0.0
        whole = seconds(lambda: model.predict(texts, batch_size=size), given.device, 3)
        entities = sum(len(document.entities) for document in model.predict(texts, batch_size=size))
    row = {
        "name": f"tensors to scores, width {width}, batch {size}, {precision}",
        "device": torch.cuda.get_device_name() if given.device == "cuda" else given.device,
        "ratio": statistics.median(high) / statistics.median(low),
        "seconds": statistics.median(high),
        "floor_seconds": statistics.median(low),
        "end_to_end_seconds": whole,
        "end_to_end_ratio": whole / statistics.median(low),
        "peak_mb": peak,
        "sentences": len(sentences),
        "entities": entities,
        "corpus": given.corpus,
        "commit": given.commit,
        "versions": {"torch": torch.__version__},
    }
    print(
        f"{row['name']}: x{row['ratio']:.2f}, end to end x{row['end_to_end_ratio']:.2f}, {entities} entities",
        flush=True,
    )
    return row


@torch.inference_mode()
def find_some(model: Recognizer, inputs: list[Any], per_sentence: float) -> None:
    """Lifts "nothing" until an untrained head finds as many entities as a trained one: reading then costs the same."""
    margins, sentences = [], 0
    for batch in inputs:
        states = model.learner.model(batch)
        margin = states.scores[..., 1:].amax(-1) - states.scores[..., 0]
        margins.append(margin[states.candidates.mask])
        sentences += len(batch.tokens)
    every = torch.cat(margins)
    head: Any = model.learner.model.scorer.head  # type: ignore[union-attr]
    head.layers[-1].bias[0] += every.topk(round(per_sentence * sentences)).values[-1]


if __name__ == "__main__":
    main()
