"""Exported models beside the models they were made from: entities, scores, speed, 8 bits, the start of a process.

    python benchmarks/exported.py --model baseline=runs/baseline:test.jsonl --output benchmarks/results/onnx.jsonl \
        --commit $(git rev-parse --short HEAD)

Texts to entities, all included; torch and onnxruntime take turns in one process on one thread. The rate is sentences
per second of processor time, which other processes disturb less than the clock. `--cold` also measures how long a fresh
process takes to its first entity, with an interpreter that has no torch where `--python` names one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import onnxruntime
import torch

import wingspan
from measuring import take_turns, versions
from wingspan.corpora.formats import read
from wingspan.evaluation import recognition
from wingspan.export import compare, export, write_folder
from wingspan.export.graph import in_8_bits
from wingspan.recognizer.exported import EXPORT, GRAPH

COLD = """
import time
from pathlib import Path
hertz = {hertz}
began = float(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]) / hertz
import wingspan
found = wingspan.load({folder!r})({text!r})
print(time.clock_gettime(time.CLOCK_BOOTTIME) - began, len(found.entities))
"""


def main() -> None:
    """One JSON line for each model, added to those of other models."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", action="append", required=True, help="NAME=FOLDER:CORPUS")
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--timed", type=int, default=128, help="sentences that are timed")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--python", default=sys.executable, help="an interpreter for --cold")
    parser.add_argument("--keep", type=Path, help="keep the exported folders here")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--commit", required=True)
    given = parser.parse_args()
    torch.set_num_threads(1)
    for named in given.model:
        name, _, place = named.partition("=")
        folder, _, corpus = place.partition(":")
        with TemporaryDirectory() as there:
            row = measured(given, name, folder, corpus, given.keep or Path(there))
        rows = [json.loads(line) for line in given.output.read_text().splitlines()] if given.output.exists() else []
        rows = [other for other in rows if other["name"] != name] + [row]
        given.output.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        print(row, flush=True)


def measured(given: argparse.Namespace, name: str, folder: str, corpus: str, there: Path) -> dict[str, object]:
    """The figures of one model."""
    gold = list(islice(read(corpus), given.sentences))
    model = wingspan.load(folder, device="cpu")
    exact, small = there / name, there / f"{name}-int8"
    if (exact / EXPORT).is_file():  # kept by an earlier run
        parity = compare(model, wingspan.load(exact), gold)
    else:
        parity = export(model, exact, gold).parity
    small.mkdir(parents=True, exist_ok=True)
    write_folder(model, small, in_8_bits((exact / GRAPH).read_bytes()))
    graph, whole = wingspan.load(small), wingspan.load(exact)
    timed = gold[: given.timed]
    turns = take_turns(lambda: model.predict(timed), lambda: whole.predict(timed), given.rounds)
    fewer = take_turns(lambda: model.predict(timed), lambda: graph.predict(timed), given.rounds)
    found = len([entity for document in model.predict(gold) for entity in document.entities])
    row: dict[str, object] = {
        "name": name,
        "recipe": model.recipe.name,
        "encoder": "hashed" if "Hashed" in str(model.recipe.encoder) else "MiniLM",
        "corpus": Path(corpus).name,
        "sentences": len(gold),
        "found": found,
        "entities": parity.entities,
        "different": parity.different,
        "largest": parity.largest,
        "torch_rate": round(len(timed) / turns["floor_cpu_seconds"], 1),
        "onnx_rate": round(len(timed) / turns["cpu_seconds"], 1),
        "gain": round(1 / turns["ratio_cpu"], 3),
        "gain_wall": round(1 / turns["ratio"], 3),
        "spread": turns["spread"],
        "mb": round((exact / GRAPH).stat().st_size / 2**20, 2),
        "f1": round(recognition(gold, model.predict(gold)).micro.f1, 3),
        "int8": {
            "mb": round((small / GRAPH).stat().st_size / 2**20, 2),
            "gain": round(1 / fewer["ratio_cpu"], 3),
            "f1": round(recognition(gold, graph.predict(gold)).micro.f1, 3),
        },
        "commit": given.commit,
        "onnxruntime": onnxruntime.__version__,
        **versions(),
    }
    if given.cold:
        row["cold_seconds"] = cold(given.python, exact, gold[0].text)
    return row


def cold(python: str, folder: Path, text: str, rounds: int = 5) -> list[float]:
    """Seconds from the start of a process to its first document with entities: the median, and the most."""
    code = COLD.format(hertz=os.sysconf("SC_CLK_TCK"), folder=str(folder), text=text)
    took = []
    for _ in range(rounds):
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
        took.append(float(done.stdout.split()[0]))
    return [round(median(took), 3), round(max(took), 3)]


if __name__ == "__main__":
    main()
