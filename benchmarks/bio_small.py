"""The model in the box on the test sets of the corpora it was trained on, in BioRED's labels; one JSON line a model.

    python benchmarks/bio_small.py scores --model wingspan-bio-small --name shipped \\
        --output benchmarks/results/bio_small.jsonl
    python benchmarks/bio_small.py scores --model wingspan-bio-small --name int8 --precision int8 ...
    python benchmarks/bio_small.py scores --model runs/bio-small --name full ...
    python benchmarks/bio_small.py robustness --model wingspan-bio-small --name shipped ...
    python benchmarks/bio_small.py costs --model wingspan-bio-small --name torch --encoder-folder ENCODER ...
    python benchmarks/bio_small.py failures --model wingspan-bio-small --show 30

`scores`: strict F1 with a 95 % interval over documents, the error of calibration with the model's temperature and
without it, on each test set as users get it (BioRED's guidelines) and, where the model knows the corpus, with its own
(`--dataset`). No training document of the model is in any of these test sets: `wingspan train` dropped them.
`robustness`: the perturbation suite on BioRED's test set. `costs`: size, loading, rate and memory, beside the bare
encoder, by turns in one process. `failures`: gold and found of documents with most errors, to look at.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

CORPORA = ("biored", "bc5cdr", "ncbi-disease", "nlmgene", "gnormplus", "linnaeus", "species800", "tmvar3", "bioid")
MODELS = Path(__file__).parents[1] / "models"
REGRESSION = Path(__file__).parents[1] / "examples" / "biomedical" / "regression.jsonl"
UNSEEN = 17  # seed of perturbations; with that of the student's own copies, it had seen a third of the invented names
Row = dict[str, Any]


def test_sets(names: Sequence[str]) -> dict[str, tuple[list[Any], frozenset[str]]]:
    """The test documents of each corpus in BioRED's labels, and which of these labels the corpus has."""
    from wingspan.training.multi_corpus import read_corpora

    plan = read_corpora(MODELS / "corpora.toml")
    return {c.name: (list(c.test), frozenset(c.labels)) for c in plan.corpora if c.name in names}


def scored(gold: Sequence[Any], found: Sequence[Any], labels: frozenset[str]) -> Row:
    """Strict figures in the labels that the gold has, with an interval over documents."""
    from wingspan.evaluation.calibration import calibration_of
    from wingspan.evaluation.scores import recognition
    from wingspan.evaluation.significance import system_intervals, tabulate
    from wingspan.evaluation.transfer import only

    found = [only(document, labels) for document in found]
    scores = recognition(gold, found)
    (((_, _, interval), *_),), _ = system_intervals(tabulate(gold, [found]), [[0]])
    return {
        **scores.micro.to_dict(),
        "interval": [interval.low, interval.high],
        "labels": {label: counts.f1 for label, counts in scores.labels.items()},
        "calibration_error": calibration_of(gold, found).overall.error,
    }


def scores(given: argparse.Namespace) -> Row:
    """F1 on every test set and on the regression set."""
    import wingspan

    model = wingspan.load(given.model, device=given.device, precision=given.precision)
    return {"mb": megabytes(given.model), **tested(model, given.corpora.split(","), None, given.only_users)}


def megabytes(model: str) -> float:
    """The size of a model's files."""
    from wingspan.box import located

    files = (file for file in located(model).rglob("*") if file.suffix in (".json", ".safetensors", ".onnx"))
    return sum(file.stat().st_size for file in files if "state" not in file.parts and file.name != "leaks.json") / 1e6


def tested(model: Any, corpora: Sequence[str], few: int | None, only_users: bool) -> Row:
    """The figures of a model on every test set, or a few of its documents, and on the regression set.

    With `only_users`, nothing but what users get: without other guidelines, and not without the calibration.
    """
    from wingspan.corpora.formats import read

    calibration = None if only_users else model.calibration
    row: Row = {"parameters": model.engine.parameters, "tests": {}}
    for name, (gold, labels) in test_sets(corpora).items():
        gold = gold[:few]
        plain = [replace(document, dataset="main") for document in gold]
        tests: Row = {"as_users": scored(gold, model.predict(plain), labels)}
        if not only_users and name in getattr(model.engine.tokenize, "by_corpus", {}) and name != "biored":
            tests["own_guidelines"] = scored(gold, model.predict(plain, dataset=name), labels)
        if calibration is not None:
            model.calibration = None
            bare = scored(gold, model.predict(plain), labels)
            tests["uncalibrated"] = {key: bare[key] for key in ("f1", "calibration_error")}
            model.calibration = calibration
        row["tests"][name] = tests
        print(name, {kind: round(figures["f1"], 2) for kind, figures in tests.items()}, flush=True)
    gold = list(read(REGRESSION))
    labels = frozenset(entity.label for document in gold for entity in document.entities)
    row["regression"] = scored(gold, model.predict(gold), labels)
    print("regression", round(row["regression"]["f1"], 2), flush=True)
    return row


def robustness(given: argparse.Namespace) -> Row:
    """What each perturbation of BioRED's test set costs."""
    import wingspan
    from wingspan.report import errors

    model = wingspan.load(given.model, device=given.device, precision=given.precision)
    gold, _ = test_sets(["biored"])["biored"]
    drops = errors.robustness(model, [replace(document, dataset="main") for document in gold], seed=UNSEEN)
    return {
        "perturbed_with": UNSEEN,
        "clean": drops[0].clean.micro.f1,
        "perturbed": {drop.perturbation: drop.scores.micro.f1 for drop in drops},
    }


LOADING = """
import resource, sys, time
began = time.perf_counter()
import wingspan
model = wingspan.load(sys.argv[1], device="cpu")
loaded = time.perf_counter() - began
model.predict("BRCA1 mutations raise the risk of breast cancer.")
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(loaded, time.perf_counter() - began, peak)
"""


def costs(given: argparse.Namespace) -> Row:
    """Size, seconds to load and to the first entity in a fresh process, sentences a second beside a bare encoder."""
    import torch

    import wingspan
    from measuring import Bare, take_turns, versions

    torch.set_num_threads(2)
    began = [sys.executable, "-c", LOADING, given.model]
    starts = [subprocess.run(began, capture_output=True, text=True, check=True).stdout.split() for _ in range(3)]
    load, first, peak = (median(map(float, column)) for column in zip(*starts, strict=True))
    model = wingspan.load(given.model, device="cpu")
    gold, _ = test_sets(["biored"])["biored"]
    texts = [document.text for document in gold]
    sentences = [" ".join(sentence.words) for sentence in model.segment(gold)]
    bare = Bare(str(given.encoder_folder), "cpu", torch.float32)
    ordered = bare.ordered(sentences)
    turns = take_turns(lambda: bare(ordered, 32), lambda: model.predict(texts), given.rounds)
    return {
        "mb": megabytes(given.model),
        "load_seconds": load,
        "first_entity_seconds": first,
        "first_entity_peak_mb": peak,
        "sentences": len(sentences),
        "sentences_per_second": len(sentences) / turns["seconds"],
        "bare_encoder": given.encoder_folder.name,
        "threads": 2,
        **turns,
        "versions": versions(),
    }


def failures(given: argparse.Namespace) -> None:
    """Shows what is missed and what is wrong in the test sentences, to be read."""
    import wingspan

    model = wingspan.load(given.model, device=given.device)
    gold, _ = test_sets(["biored"])["biored"]
    found = model.predict([replace(document, dataset="main", entities=()) for document in gold])
    shown = 0
    for right, guess in zip(gold, found, strict=True):
        expected, given_spans = set(keys(right)), set(keys(guess))
        for key in sorted(expected ^ given_spans, key=lambda key: key[1])[:2]:
            (label, start, end), kind = key, "missed" if key in expected else "wrong"
            print(
                f"{right.id} {kind:6} {label:9} …{right.text[max(0, start - 50) : start]}[{right.text[start:end]}]"
                f"{right.text[end : end + 40]}…".replace("\n", " ")
            )
            shown += 1
        if shown >= given.show:
            return


def keys(document: Any) -> list[tuple[str, int, int]]:
    """Its entities as label, start and end."""
    return [(entity.label, *entity.hull) for entity in document.entities]


def main() -> None:
    """Measures one thing and writes its line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("scores", "robustness", "costs", "failures"))
    parser.add_argument("--model", required=True)
    parser.add_argument("--name", default="", help="what the model is: shipped, full, half, int8, torch, onnx")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--corpora", default=",".join(CORPORA))
    parser.add_argument("--only-users", action="store_true", help="only the scores that users get: three times as fast")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="auto", help="of prediction; a GPU's is bfloat16 by default")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--encoder-folder", type=Path, help="the bare encoder that `costs` compares with")
    parser.add_argument("--show", type=int, default=30)
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    if given.kind == "failures":
        failures(given)
        return
    row = {"kind": given.kind, "name": given.name, "seed": given.seed, "commit": given.commit}
    row |= {"scores": scores, "robustness": robustness, "costs": costs}[given.kind](given)
    print(json.dumps(row)[:2000])
    if given.output is not None:
        with given.output.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
