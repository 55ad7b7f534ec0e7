"""Paper 002 on real corpora: SeqNER, BL-SeqNER, SpanNER, BL-SpanNER with MiniLM; one JSON line per run.

python benchmarks/bundling.py --data $WINGSPAN_DATA --encoder minilm --corpora ncbi-disease,wnut17 --seeds 1,2,3 \
    --workers 12 --output benchmarks/results/bundling.jsonl

Runs that the output file holds already are not run again. `benchmarks/tables.py` makes the table.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

SYSTEMS = ("span", "bl-span", "seq", "bl-seq")
# Decoding and what the dev sets chose (tune_bundling.sh, results/bundling-tuning.jsonl); all else is the recipe's own.
# Hiding words in training helps on the biomedical corpora and hurts on WNUT17, whose names stand in little context.
HIDDEN = {"encoder.word_dropout": "0.15", "spans.dropout": "0.3", "head.dropout": "0.3"}
CORPORA: dict[str, dict[str, str]] = {
    "genia": {"overlap": "nested", "train.epochs": "8", **HIDDEN},
    "ncbi-disease": {"overlap": "flat", "train.epochs": "12", **HIDDEN},
    "bc5cdr": {"overlap": "flat", "train.epochs": "12", **HIDDEN},
    "wnut17": {"overlap": "flat"},
}


def find_corpus(folder: Path, part: str) -> Path:
    """The token version of a part, plain or gzipped."""
    for name in (f"{part}.jsonl", f"{part}.jsonl.gz"):
        if (folder / name).exists():
            return folder / name
    raise SystemExit(f"{folder}: no {part}.jsonl")


def work(job: dict[str, Any]) -> dict[str, Any]:
    """One training in a process of its own."""
    import torch
    from rich.console import Console

    from wingspan.corpora.statistics import describe
    from wingspan.runs.reading import Corpora, documents_of
    from wingspan.runs.train import Job, prepare, run

    torch.set_num_threads(1)
    torch.set_float32_matmul_precision("high")
    folder = Path(job["data"]) / job["corpus"]
    train, dev, test = (documents_of(find_corpus(folder, part), None) for part in ("train", "dev", "test"))
    if job.get("limit"):
        train, dev, test = train[: job["limit"]], dev[: job["limit"]], test[: job["limit"]]
    recipe = prepare(job["recipe"], job["encoder"], job["settings"])
    began = time.perf_counter()
    corpora = Corpora(train, dev, () if job["dev_only"] else test)
    model, _ = run(Job(recipe, corpora, seed=job["seed"]), Console(quiet=True))
    row = {name: job[name] for name in ("corpus", "recipe", "seed", "encoder", "settings", "commit")}
    row |= {
        "max_width": model.recipe.max_width,
        "overlap": model.recipe.overlap,
        "epochs": model.recipe.train.epochs,
        "dev": model.facts["dev"]["micro"],
        "seconds": round(time.perf_counter() - began, 1),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "versions": model.facts["versions"],
        "fingerprints": {"train": describe(train).fingerprint, "test": describe(test).fingerprint},
        "coverage": model.facts["coverage"],
    }
    if not job["dev_only"]:
        row |= {"test": model.facts["test"]["micro"], "test_labels": model.facts["test"]["labels"]}
    return row


def main() -> None:
    """Runs what is missing, side by side."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--corpora", default="genia,bc5cdr,ncbi-disease,wnut17")
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--set", action="append", default=[], help="key=value, for every run; a list a|b|c tries each")
    parser.add_argument("--dev-only", action="store_true", help="no test scores: for choosing settings")
    parser.add_argument("--limit", type=int, default=0, help="only the first documents: for rehearsals")
    parser.add_argument("--workers", type=int, default=12)
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    done = set()
    if given.output.exists():
        done = {key(json.loads(line)) for line in given.output.read_text().splitlines()}
    jobs = [
        {
            "data": str(given.data),
            "corpus": corpus,
            "recipe": f"bundling/{system}",
            "seed": int(seed),
            "encoder": given.encoder,
            "settings": settings(corpus, system, choice),
            "commit": given.commit,
            "dev_only": given.dev_only,
            "limit": given.limit,
        }
        for corpus in given.corpora.split(",")
        for choice in choices(given.set)
        for seed in given.seeds.split(",")
        for system in given.systems.split(",")
    ]
    jobs = [job for job in jobs if key(job) not in done]
    given.output.parent.mkdir(parents=True, exist_ok=True)
    spawn = multiprocessing.get_context("spawn")
    began = time.perf_counter()
    with ProcessPoolExecutor(given.workers, mp_context=spawn) as pool, given.output.open("a") as out:
        for future in as_completed([pool.submit(work, job) for job in jobs]):
            row = future.result()
            out.write(json.dumps(row) + "\n")
            out.flush()
            test = f" test {row['test']['f1']:.2f}" if "test" in row else ""
            print(
                f"{time.perf_counter() - began:5.0f}s {row['corpus']} {row['recipe']} seed {row['seed']} "
                f"{row['settings']} dev {row['dev']['f1']:.2f}{test} ({row['seconds']:.0f}s)",
                flush=True,
            )


def choices(given: list[str]) -> list[list[str]]:
    """`--set a=1|2 --set b=3` as every combination."""
    combinations: list[list[str]] = [[]]
    for item in given:
        name, values = item.split("=", 1)
        combinations = [[*before, f"{name}={value}"] for before in combinations for value in values.split("|")]
    return combinations


def settings(corpus: str, system: str, choice: list[str]) -> dict[str, str]:
    """What a run sets; a tagger alone has no span part to set."""
    chosen = {**CORPORA.get(corpus, {}), **dict(item.split("=", 1) for item in choice)}
    foreign = ("spans.", "head.") if system == "seq" else ()
    return {name: value for name, value in chosen.items() if not name.startswith(foreign)}


def key(row: dict[str, Any]) -> str:
    """What makes a run the same run."""
    return json.dumps([row[name] for name in ("corpus", "recipe", "seed", "encoder", "settings")])


if __name__ == "__main__":
    main()
