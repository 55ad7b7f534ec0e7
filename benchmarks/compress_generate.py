"""Paper 000 on real corpora: the seven settings of its Table 4 with MiniLM; one JSON line per run.

python benchmarks/compress_generate.py run --data DATA --lexicons FOLDER --seeds 1,2,3 --workers 16 \
    --predictions FOLDER --output benchmarks/results/compress_generate.jsonl
python benchmarks/compress_generate.py compare --data DATA --predictions FOLDER \
    --output benchmarks/results/compress_generate-significance.jsonl

The lexicons are diseases.npz and chemicals.npz (`wingspan lexicon`). Runs that the output file holds already are not
run again; after `--time-budget` seconds none is started. `benchmarks/tables.py` makes the tables.
"""

from __future__ import annotations

import argparse
import gzip
import json
import multiprocessing
import time
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from typing import Any

from bundling import choices, find_corpus

SETTINGS = (
    "baseline",
    "supvib-beta-0",
    "supvib",
    "supvib-spanreco",
    "all",
    "all-shared-spread",
    "all-no-sharing",
)
GENERATES = ("supvib-spanreco", "all")
# corpus: folder, label, lexicon
CORPORA = {
    "ncbi-disease": ("ncbi-disease", "Disease", "diseases.npz"),
    "bc5cdr-disease": ("bc5cdr", "Disease", "diseases.npz"),
    "bc5cdr-chemical": ("bc5cdr", "Chemical", "chemicals.npz"),
}
# hiding words and dropping out span vectors was chosen for this encoder on these corpora's dev sets (tune_bundling.sh)
SAME = {
    "overlap": "flat",
    "train.epochs": "8",
    "train.learning_rate": "1.5e-4",
    "encoder.word_dropout": "0.15",
    "spans.dropout": "0.3",
}
ALONE = {"phases.0.epochs": "2"}


def documents_of(data: Path, corpus: str, part: str, limit: int = 0) -> list[Any]:
    """A part of a corpus with the entities of one label."""
    from wingspan.runs.reading import documents_of as read

    folder, label, _ = CORPORA[corpus]
    found = read(find_corpus(data / folder, part), None)
    found = found[:limit] if limit else found
    return [replace(d, entities=tuple(e for e in d.entities if e.label == label)) for d in found]


def work(job: dict[str, Any]) -> dict[str, Any]:
    """One training in a process of its own: scores, BLEU-2 of regenerated dev entities, predictions."""
    import torch
    from rich.console import Console

    from wingspan.analysis.generated import bleu2, examples, regenerate, token_accuracy
    from wingspan.corpora.lexicon import load
    from wingspan.corpora.statistics import describe
    from wingspan.evaluation.scores import recognition
    from wingspan.runs.reading import Corpora
    from wingspan.runs.train import Job, prepare, run

    torch.set_num_threads(1)
    torch.set_float32_matmul_precision("high")
    corpus = job["corpus"]
    train, dev, test = (
        documents_of(Path(job["data"]), corpus, part, job["limit"]) for part in ("train", "dev", "test")
    )
    lexicon = load(Path(job["lexicons"]) / CORPORA[corpus][2])
    began = time.perf_counter()
    recipe = prepare(job["recipe"], job["encoder"], job["settings"])
    corpora = Corpora(train, dev, ())  # the best epoch is chosen on dev, test is predicted below
    model, _ = run(Job(recipe, corpora, seed=job["seed"], lexicon=lexicon, device=job["device"]), Console(quiet=True))
    row = {name: job[name] for name in ("corpus", "recipe", "seed", "encoder", "settings", "commit")}
    for part, gold in (("dev", dev), ("test", test)):
        if part == "test" and job["dev_only"]:
            continue
        found = model.predict(gold, batch_size=64)
        row[part] = recognition(gold, found).to_dict()["micro"]
        if job["predictions"]:
            keep(Path(job["predictions"]), job, part, [[[e.start, e.end] for e in one.entities] for one in found])
    if "generate" in model.recipe.terms:
        pairs = regenerate(model, dev)
        row |= {"bleu2": bleu2(pairs), "token_accuracy": token_accuracy(pairs)}
        if job["predictions"]:
            keep(Path(job["predictions"]), job, "examples", examples({"written": pairs}, 200))
    parts = {"train": train, "dev": dev, "test": test}
    return row | {
        "synonyms": {name: with_synonyms(documents, lexicon) for name, documents in parts.items()},
        "max_width": model.recipe.max_width,
        "seconds": round(time.perf_counter() - began, 1),
        "device": torch.cuda.get_device_name() if model.device.type == "cuda" else "cpu",
        "versions": model.facts["versions"],
        "fingerprints": {name: describe(documents).fingerprint for name, documents in parts.items()},
        "coverage": model.facts["coverage"],
    }


def with_synonyms(documents: list[Any], lexicon: Any) -> float:
    """Percent of entities that the lexicon has synonyms for: Syn_cov of Table 1."""
    found = [bool(lexicon.synonyms(d.text_of(e), e.label)) for d in documents for e in d.entities]
    return 100 * sum(found) / max(1, len(found))


def keep(folder: Path, job: dict[str, Any], part: str, what: Any) -> None:
    """Beside the results: spans found in each document, as [start, end], and what was written for entities."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{job['corpus']}.{job['recipe'].rpartition('/')[2]}.{job['seed']}.{part}.json.gz"
    (folder / name).write_bytes(gzip.compress(json.dumps(what).encode()))


def run_all(given: argparse.Namespace) -> None:
    """Runs what is missing, side by side, the longest first."""
    done = set()
    if given.output.exists():
        done = {key(json.loads(line)) for line in given.output.read_text().splitlines()}
    fixed = {name: str(getattr(given, name) or "") for name in ("data", "lexicons", "predictions")}
    fixed |= {name: getattr(given, name) for name in ("encoder", "commit", "limit", "dev_only", "device")}
    jobs = [
        {
            **fixed,
            "corpus": corpus,
            "recipe": f"compress_generate/{name}",
            "seed": int(seed),
            "settings": settings(name, choice),
        }
        for seed in given.seeds.split(",")
        for name in sorted(given.systems.split(","), key=lambda name: not name.startswith(GENERATES))
        for corpus in given.corpora.split(",")
        for choice in choices(given.set)
    ]
    jobs = [job for job in jobs if key(job) not in done]
    given.output.parent.mkdir(parents=True, exist_ok=True)
    began, failed = time.perf_counter(), 0
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(given.workers, mp_context=spawn) as pool, given.output.open("a") as out:
        running: list[Future[dict[str, Any]]] = [pool.submit(work, job) for job in jobs]
        for future in as_completed(running):
            spent = time.perf_counter() - began
            if given.time_budget and spent > given.time_budget:
                pool.shutdown(wait=False, cancel_futures=True)
            if future.cancelled():
                continue
            if error := future.exception():
                failed += 1
                print(f"{spent:5.0f}s failed: {error}", flush=True)
                continue
            row = future.result()
            out.write(json.dumps(row) + "\n")
            out.flush()
            figures = {name: row[name]["f1"] for name in ("dev", "test") if name in row} | {"bleu2": row.get("bleu2")}
            said = ", ".join(f"{name} {value:.4g}" for name, value in figures.items() if value is not None)
            print(
                f"{spent:5.0f}s {row['corpus']} {row['recipe']} {row['seed']}: {said} ({row['seconds']:.0f}s)",
                flush=True,
            )
    if failed:
        raise SystemExit(f"{failed} runs failed")


def settings(name: str, choice: list[str]) -> dict[str, str]:
    """What a run sets; only settings with autoencoders have a phase of their own for them."""
    chosen = {**SAME, **dict(item.split("=", 1) for item in choice)}
    generates, compresses = name.startswith(GENERATES), name.startswith("supvib") and name != "supvib-beta-0"
    missing = () if generates else ("phases.", "terms.generate", *(() if compresses else ("terms.compress",)))
    return {
        key: value
        for key, value in ({**ALONE, **chosen} if generates else chosen).items()
        if not key.startswith(missing)
    }


def key(row: dict[str, Any]) -> str:
    """What makes a run the same run."""
    return json.dumps([row[name] for name in ("corpus", "recipe", "seed", "encoder", "settings")])


def compare_all(given: argparse.Namespace) -> None:
    """Every setting against the baseline, all seeds together: paired bootstrap and randomization over sentences."""
    from wingspan.evaluation.comparison import compare
    from wingspan.text import Entity, Span

    rows = []
    for corpus, (_, label, _) in CORPORA.items():
        for part in ("dev", "test"):
            gold = documents_of(given.data, corpus, part, given.limit)
            systems: dict[str, list[Any]] = {}
            for name in (*SETTINGS, "supvib-proposals"):
                for path in sorted(given.predictions.glob(f"{corpus}.{name}.*.{part}.json.gz")):
                    spans = json.loads(gzip.decompress(path.read_bytes()))
                    found = [
                        replace(d, entities=tuple(Entity(label, (Span(*span),)) for span in one))
                        for d, one in zip(gold, spans, strict=True)
                    ]
                    systems.setdefault(name, []).append(found)
            if len(systems) < 2:
                continue
            for pair in compare(gold, systems, samples=given.samples).pairs:
                if pair.first == "baseline":
                    micro = pair.rows.micro
                    figures = {
                        "difference": micro.value,
                        "low": micro.low,
                        "high": micro.high,
                        "p": micro.p,
                        "p_holm": micro.p_holm,
                    }
                    rows.append(
                        {
                            "corpus": corpus,
                            "part": part,
                            "system": pair.second,
                            **figures,
                            "seeds": len(systems[pair.second]),
                        }
                    )
                    print(rows[-1], flush=True)
    given.output.write_text("".join(json.dumps(row) + "\n" for row in rows))


def main() -> None:
    """`run` or `compare`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    running = verbs.add_parser("run")
    running.add_argument("--lexicons", type=Path, required=True)
    running.add_argument("--encoder", default="minilm")
    running.add_argument("--corpora", default=",".join(CORPORA))
    running.add_argument("--systems", default=",".join(SETTINGS))
    running.add_argument("--seeds", default="1,2,3")
    running.add_argument("--set", action="append", default=[], help="key=value, for every run; a list a|b|c tries each")
    running.add_argument("--dev-only", action="store_true", help="no test scores: for choosing settings")
    running.add_argument("--workers", type=int, default=16)
    running.add_argument("--time-budget", type=float, default=0, help="seconds after which no run is started")
    running.add_argument("--device")
    running.add_argument("--commit", default="unknown")
    running.add_argument("--predictions", type=Path)
    running.set_defaults(act=run_all)
    comparing = verbs.add_parser("compare")
    comparing.add_argument("--predictions", type=Path, required=True)
    comparing.add_argument("--samples", type=int, default=1000)
    comparing.set_defaults(act=compare_all)
    for verb in (running, comparing):
        verb.add_argument("--data", type=Path, required=True)
        verb.add_argument("--limit", type=int, default=0, help="only the first documents: for rehearsals")
        verb.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    given.act(given)


if __name__ == "__main__":
    main()
