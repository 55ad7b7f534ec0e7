"""Runs the trainings of a plan in parallel processes; one JSON line per run, none run twice.

Many small trainings share a GPU better behind CUDA's multi-process service: on an H200, `nvidia-cuda-mps-control -d`
made twelve of them half as fast again. Eighteen with a base-size encoder did not fit into its 140 GB.
"""

from __future__ import annotations

import argparse
import gzip
import json
import multiprocessing
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

Job = dict[str, Any]
Row = dict[str, Any]
KEY = ("corpus", "recipe", "seed", "encoder", "settings")
"""The identity of a run."""


def arguments(about: str | None) -> argparse.ArgumentParser:
    """The options that all plans share."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--set", action="append", default=[], help="key=value, for every run; a list a|b|c tries each")
    parser.add_argument("--dev-only", action="store_true", help="no test scores: for choosing settings")
    parser.add_argument("--limit", type=int, default=0, help="only the first documents: for rehearsals")
    parser.add_argument("--workers", type=int, default=12)
    parser.add_argument("--time-budget", type=float, default=0, help="seconds after which no run is started")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--predictions", type=Path, help="folder for the predictions of dev and test")
    parser.add_argument("--output", type=Path, required=True)
    return parser


def find_corpus(folder: Path, part: str, text: bool = False) -> Path:
    """The token version of a part, or the one with whole texts, plain or gzipped."""
    stem = f"{part}.text" if text else part
    for name in (f"{stem}.jsonl", f"{stem}.jsonl.gz"):
        if (folder / name).exists():
            return folder / name
    raise SystemExit(f"{folder}: no {stem}.jsonl")


def gold(folder: Path, part: str, label: str | None = None, limit: int = 0, text: bool = False) -> list[Any]:
    """The documents of a part, with the entities of one label or of all."""
    from wingspan.training.corpora import documents_of

    documents = documents_of(find_corpus(folder, part, text), None)[: limit or None]
    if label is None:
        return documents
    return [replace(d, entities=tuple(e for e in d.entities if e.label == label)) for d in documents]


def train(
    job: Job, arrange: Callable[[dict[str, Any]], Any] | None = None, recipe: Any = None
) -> tuple[Row, Any, dict[str, Any]]:
    """One training: its row, the model, and the documents by part. `arrange` makes corpora of these documents.

    `recipe` is that of a job whose name is not one of the package's.
    """
    import torch
    from rich.console import Console

    from wingspan.text import corpus_fingerprint
    from wingspan.training.corpora import Corpora
    from wingspan.training.run import TrainingJob, prepare, run

    torch.set_num_threads(1)
    torch.set_float32_matmul_precision("high")
    folder = Path(job["data"]) / job.get("folder", job["corpus"])
    version = (job.get("label"), job["limit"], job.get("text", False))
    parts = {part: gold(folder, part, *version) for part in ("train", "dev", "test")}
    recipe = prepare(recipe or job["recipe"], job["encoder"], job["settings"])
    began = time.perf_counter()
    corpora = arrange(parts) if arrange is not None else Corpora(*parts.values())
    if job["dev_only"]:
        corpora = replace(corpora, test=())
    # the papers' tables are on the splits as they were published, leaks and all, unless a plan asks otherwise
    how = {"lexicon": job.get("lexicon"), "on_leak": job.get("on_leak", "allow")}
    curve: list[list[float]] = []  # epoch, dev F1 or accuracy
    watched = TrainingJob(recipe, corpora, seed=job["seed"], watch=partial(note, curve), **how)
    model, _ = run(watched, Console(quiet=True))
    row = {name: job[name] for name in (*KEY, "commit")}
    row |= {
        "max_width": model.recipe.max_width,
        "overlap": model.recipe.overlap,
        "epochs": model.recipe.train.epochs,
        "dev": overall(model.facts["dev"]),
        "curve": curve,
        "seconds": round(time.perf_counter() - began, 1),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "versions": model.facts["versions"],
        "fingerprints": {part: corpus_fingerprint(parts[part]) for part in ("train", "test")},
        "coverage": model.facts["coverage"],
        "leaks": {name: model.facts["leaks"][name] for name in ("on_leak", "leaking_train_documents")},
    }
    if not job["dev_only"]:
        row |= {"test": overall(model.facts["test"]), "test_labels": model.facts["test"]["labels"]}
    if job.get("predictions"):
        for part in ("dev", "test"):  # of a choice on dev, those of test are scored when it is made, by paired.py
            keep(Path(job["predictions"]), row, part, model.predict(parts[part], batch_size=64))
    return row, model, parts


def note(curve: list[list[float]], progress: Any) -> None:
    """Notes the dev score of an epoch that has ended."""
    if progress.scores is not None:
        found = progress.scores.to_dict()
        curve.append([progress.position.epoch, round(headline({**found, **overall(found)}), 3)])


def overall(scores: Row) -> Row:
    """The figures of all labels together, of either protocol."""
    if scores["protocol"] == "typing":
        return {name: scores[name] for name in ("protocol", "accuracy", "correct", "total")}
    figures: Row = scores["micro"]
    return figures


def headline(figures: Row) -> float:
    """F1, or the accuracy where spans were given."""
    return float(figures["accuracy"] if figures.get("protocol") == "typing" else figures["f1"])


def keep(folder: Path, row: Row, part: str, documents: Iterable[Any]) -> None:
    """Writes entities without the texts, which belong to the corpus."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{row['corpus']}-{row['recipe'].replace('/', '-')}-{row['seed']}-{part}.jsonl.gz"
    with gzip.open(folder / name, "wt", encoding="utf-8") as out:
        for document in documents:
            entities = [[e.label, e.start, e.end, round(e.score, 4)] for e in document.entities]
            out.write(json.dumps([document.id, entities]) + "\n")


def plain(job: Job) -> Row:
    """A training and its row."""
    return train(job)[0]


def run_jobs(given: argparse.Namespace, jobs: list[Job], work: Callable[[Job], Row] = plain) -> None:
    """Does the jobs that the output file does not have yet."""
    done = set()
    if given.output.exists():
        done = {key(json.loads(line)) for line in given.output.read_text().splitlines()}
    shared = {
        "data": str(given.data),
        "commit": given.commit,
        "dev_only": given.dev_only,
        "limit": given.limit,
        "predictions": str(given.predictions) if given.predictions else None,
    }
    jobs = [{**shared, **job} for job in {key(job): job for job in jobs}.values() if key(job) not in done]
    given.output.parent.mkdir(parents=True, exist_ok=True)
    spawn = multiprocessing.get_context("spawn")
    began, failed = time.perf_counter(), 0
    with ProcessPoolExecutor(given.workers, mp_context=spawn) as pool, given.output.open("a") as out:
        waiting = {pool.submit(work, job): job for job in jobs}
        for future in as_completed(waiting):
            if given.time_budget and time.perf_counter() - began > given.time_budget:
                pool.shutdown(wait=False, cancel_futures=True)
            if future.cancelled():
                continue
            job = waiting[future]
            name = f"{job['corpus']} {job['recipe']} seed {job['seed']}"
            error = future.exception()
            if error is not None:
                failed += 1
                print(f"{time.perf_counter() - began:5.0f}s {name} FAILED: {error!r}"[:600], flush=True)
                continue
            row = future.result()
            out.write(json.dumps(row) + "\n")
            out.flush()
            test = f" test {headline(row['test']):.2f}" if "test" in row else ""
            scores = f"dev {headline(row['dev']):.2f}{test} ({row['seconds']:.0f}s)"
            print(f"{time.perf_counter() - began:5.0f}s {name} {scores}", flush=True)
    if failed:
        raise SystemExit(f"{failed} of {len(jobs)} runs failed; run the same command again for these")


def choices(given: list[str]) -> list[dict[str, str]]:
    """`--set a=1|2 --set b=3` as every combination."""
    combinations: list[dict[str, str]] = [{}]
    for item in given:
        name, values = item.split("=", 1)
        combinations = [{**before, name: value} for before in combinations for value in values.split("|")]
    return combinations


def key(row: dict[str, Any]) -> str:
    """The identity of a run, as text."""
    return json.dumps([row[name] for name in KEY])
