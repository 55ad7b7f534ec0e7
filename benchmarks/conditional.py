"""Oi and Miwa 2025 on its ten corpora with MiniLM: Single, Multi, Multi+CVAE, with and without leaks; ablations.

python benchmarks/conditional.py --data DATA --seeds 1,2,3 --workers 16 --output benchmarks/results/conditional.jsonl
python benchmarks/conditional.py --data DATA --plan ablations --output benchmarks/results/conditional.jsonl ...
python benchmarks/conditional.py --data DATA --encoder MPNET --systems multi,multi-cvae --leaks without --only-target \
    --set train.learning_rate=5e-5 --set train.precision=bf16 --set train.budget=4096 --set terms.cvae.weight=1e-6 ...

A leaking document is one of an auxiliary corpus' training or dev files whose id is that of a BioRED dev or test
document; `without leaks` trains without these. Runs that the output file holds already are not run again;
`benchmarks/tables.py` makes the tables.
"""

from __future__ import annotations

import argparse
import time
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from training_runs import KEY, Job, Row, arguments, choices, keep, note, run_jobs

ROOT = Path(__file__).parent.parent
EXAMPLE = ROOT / "examples" / "biomedical"
TARGET = "biored"
# the version of a corpus whose rows name their documents
VERSION = {"bc5cdr": ".text", "ncbi-disease": ".subtypes"}
PARTS = ("train", "dev", "test")
# one pass over BioRED is 68 batches, one over all corpora 1,270
SAME = {"train.batch_size": "64", "train.learning_rate": "1.5e-4", "max_width": "10", "overlap": "flat"}
SEVERAL = {"train.epochs": "2", "train.sampling": "temperature", **SAME}
ONE = {"train.epochs": "24", **SAME}
WEIGHT = 3.0
"""How much more often than by the root of their number BioRED's sentences are drawn: some eight passes in a run."""
CORE = ("single", "multi", "multi-cvae")
ABLATIONS = ("fixed", "unshared", "shared-label", "random", "multi-shared-label", "single-cvae")
WEIGHTS = ("1e-5", "1e-3", "1e-2")


def find(data: Path, corpus: str, part: str) -> Path | None:
    """The file of a part, plain or gzipped."""
    for suffix in (".jsonl", ".jsonl.gz"):
        path = data / corpus / f"{part}{VERSION.get(corpus, '')}{suffix}"
        if path.exists():
            return path
    return None


def declared() -> dict[str, tuple[str, ...]]:
    """The corpora and their labels, in the order of the example."""
    table = tomllib.loads((EXAMPLE / "corpora.toml").read_text(encoding="utf-8"))
    return {corpus["name"]: tuple(corpus["labels"]) for corpus in table["corpora"]}


def read_parts(data: Path, corpus: str, limit: int) -> dict[str, list[Any]]:
    """The documents of a corpus, part by part."""
    from wingspan.corpora.formats import read

    found = {}
    for part in PARTS:
        path = find(data, corpus, part)
        documents = [] if path is None else list(read(path))[: limit or None]
        found[part] = [replace(document, dataset=corpus) for document in documents]
    return found


def article(document: Any) -> str:
    """The id of the article that a row is of."""
    return str(document.group or document.id)


def plan_of(job: Job) -> tuple[Any, set[str]]:
    """The corpora of a run, and the BioRED test articles that auxiliary training files hold."""
    from wingspan.corpora.label_map import read_label_map
    from wingspan.training.multi_corpus import CorporaPlan, OneOfSeveral, in_target_labels

    label_map = read_label_map(EXAMPLE / "label_map.tsv")
    data, corpora, leaking = Path(job["data"]), [], set()
    parts = {name: read_parts(data, name, job["limit"]) for name in declared()}
    evaluated = {article(document) for part in ("dev", "test") for document in parts[TARGET][part]}
    tested = {article(document) for document in parts[TARGET]["test"]}
    for name, labels in declared().items():
        own = parts[name]
        if name != TARGET:
            training = [*own["train"], *own["dev"]]
            leaking |= {article(document) for document in training} & tested
            if job["leaks"] == "without":
                training = [document for document in training if article(document) not in evaluated]
            corpora.append(OneOfSeveral(name, labels, labels, tuple(training), (), tuple(own["test"])))
        else:
            files = (tuple(own[part]) for part in PARTS)
            corpora.append(OneOfSeveral(name, labels, labels, *files, role="target", weight=WEIGHT))
    if job["several"] and job["recipe"].endswith("/multi-shared-label"):
        order = corpora[0].labels
        mapped = [corpora[0], *(in_target_labels(corpus, label_map, order) for corpus in corpora[1:])]
        return CorporaPlan(tuple(mapped), "shared", label_map), leaking
    return CorporaPlan(tuple(corpora), "own", label_map), leaking


def work(job: Job) -> Row:
    """One training: scores of BioRED, of its leaking and its other test documents, and of the other corpora's tests."""
    import torch
    from rich.console import Console

    from wingspan.corpora.statistics import describe
    from wingspan.evaluation.scores import recognition
    from wingspan.training.corpora import Corpora
    from wingspan.training.run import TrainingJob, figures_of, prepare, run

    torch.set_num_threads(1)
    torch.set_float32_matmul_precision("high")
    plan, leaking = plan_of(job)
    target = plan.target
    # only the target's test is scored while training: the others are read once, at the end, in their own labels
    lean = replace(plan, corpora=tuple(c if c.role == "target" else replace(c, test=()) for c in plan.corpora))
    corpora = Corpora(target.train, target.dev, target.test)
    if job["several"]:
        corpora = Corpora(lean.training, target.dev, target.test, lean)
    recipe = prepare(job["recipe"], job["encoder"], job["settings"])
    began = time.perf_counter()
    # what leaks is taken out above, where it is to be
    curve: list[list[float]] = []
    watched = TrainingJob(recipe, corpora, seed=job["seed"], on_leak="allow", watch=partial(note, curve))
    model, _ = run(watched, Console(quiet=True))
    trained = time.perf_counter() - began
    found = model.predict(target.test, batch_size=64)
    row = {name: job[name] for name in (*KEY, "commit", "leaks")}
    row |= {
        "dev": model.facts["dev"]["micro"],
        "test": model.facts["test"]["micro"],
        "curve": curve,
        "figures": figures_of(model.learner),  # of the last batch
        "test_labels": model.facts["test"]["labels"],
        "leaking_articles": len(leaking),
        "leaking": part_of(target.test, found, leaking, recognition),
        "others": part_of(target.test, found, {article(d) for d in target.test} - leaking, recognition),
        "training_documents": {c.name: len(c.train) for c in plan.corpora if job["several"] or c.role == "target"},
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "versions": model.facts["versions"],
        "fingerprints": {"test": describe(target.test).fingerprint},
    }
    if job.get("predictions"):
        keep(Path(job["predictions"]), {**row, "corpus": TARGET}, "test", found)
    if job["several"] and job["other_tests"]:
        row["corpora"] = {
            corpus.name: recognition(
                corpus.test, model.predict(corpus.test, batch_size=64, dataset=corpus.name)
            ).micro.to_dict()
            for corpus in plan.corpora
            if corpus.role != "target" and corpus.test
        }
    return row | {"train_seconds": round(trained, 1), "seconds": round(time.perf_counter() - began, 1)}


def part_of(gold: Sequence[Any], found: Sequence[Any], articles: set[str], score: Any) -> dict[str, Any]:
    """Micro scores of some articles; None where there is none."""
    pairs = [(right, guess) for right, guess in zip(gold, found, strict=True) if article(right) in articles]
    if not pairs:
        return {}
    scores: dict[str, Any] = score([right for right, _ in pairs], [guess for _, guess in pairs]).micro.to_dict()
    return scores


def jobs_of(given: argparse.Namespace) -> list[Job]:
    """The runs of a plan, seed by seed, the longest first."""
    found = []
    for seed in given.seeds.split(","):
        names: list[tuple[str, str, dict[str, str]]] = []
        if given.plan == "core":
            names = [(name, leaks, {}) for name in ("multi-cvae", "multi") for leaks in ("with", "without")]
            names.append(("single", "none", {}))
        else:
            names = [(name, "without", {}) for name in ABLATIONS if name != "single-cvae"]
            names += [("multi-cvae", "without", {"terms.cvae.weight": weight}) for weight in WEIGHTS]
            names.append(("single-cvae", "none", {}))
        wanted = given.systems.split(",") if given.systems else [name for name, _, _ in names]
        for name, leaks, settings in names:
            several = not name.startswith("single")
            if name not in wanted or (several and leaks != (given.leaks or leaks)):
                continue
            for choice in choices(given.set):
                if not name.endswith("cvae"):  # what a system does not have is not set
                    choice = {key: value for key, value in choice.items() if not key.startswith("terms.cvae")}
                found.append(
                    {
                        "corpus": f"ten corpora, {leaks} leaks" if several else TARGET,
                        "recipe": f"conditional/{name}",
                        "seed": int(seed),
                        "encoder": given.encoder,
                        "settings": {**(SEVERAL if several else ONE), **settings, **choice},
                        "leaks": leaks,
                        "several": several,
                        "other_tests": given.plan == "core" and not given.only_target,
                    }
                )
    return found


def main() -> None:
    """Runs what is missing, side by side."""
    parser = arguments(__doc__)
    parser.add_argument("--plan", choices=("core", "ablations"), default="core")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--systems", help="some of the plan's systems, by commas")
    parser.add_argument(
        "--leaks", choices=("with", "without"), help="only the runs on several corpora with or without leaks"
    )
    parser.add_argument("--only-target", action="store_true", help="no scores on the other corpora's test sets")
    given = parser.parse_args()
    run_jobs(given, jobs_of(given), work)


if __name__ == "__main__":
    main()
