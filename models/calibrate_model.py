"""Calibrates a model of several corpora on the dev sets of all of them: one temperature, one threshold for each type.

    python models/calibrate_model.py runs/bio-small

Documents are predicted as users' are, in the target's labels. A corpus says nothing about types that it does not
annotate: a span without annotation may be of these, and what is found of them is neither right nor wrong. Dev documents
that are in any of the test sets are left out. Only `calibration.json` and `facts.json` of the folder change.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from wingspan.checkpoint import write_json
from wingspan.evaluation.calibration import (
    COLDEST,
    WARMEST,
    Calibration,
    Floats,
    calibration_of,
    choose_thresholds,
    softmax,
)
from wingspan.evaluation.scores import recognition
from wingspan.evaluation.transfer import only
from wingspan.model_folder import CALIBRATION, FACTS
from wingspan.recognizer import Recognizer
from wingspan.text import Document, corpus_fingerprint
from wingspan.training.corpora import handle_leaks
from wingspan.training.finish import decisions, sentence_batches
from wingspan.training.multi_corpus import CorporaPlan, read_corpora

HERE = Path(__file__).parent
LOWEST = 0.05  # no lower threshold is chosen
TEMPERATURES = np.geomspace(COLDEST, WARMEST, 400)


Found = dict[str, list[Document]]
"""What was found in the dev documents of each corpus."""


class DevSet(NamedTuple):
    """Dev documents of a corpus in the target's labels, and which of these the corpus annotates."""

    gold: Sequence[Document]
    labels: frozenset[str]


def dev_sets(plan: CorporaPlan) -> dict[str, DevSet]:
    """The dev documents of each corpus that are neither trained on nor in any test set, as texts of the target.

    Ids get the name of the corpus: one document may be in several corpora.
    """
    held_out = [document for corpus in plan.corpora for document in corpus.held_out["dev"]]
    clean = handle_leaks(held_out, {corpus.name: corpus.test for corpus in plan.corpora}, "drop").documents
    found: dict[str, DevSet] = {}
    for corpus in plan.corpora:
        own = [document for document in clean if document.dataset == corpus.name]
        gold = [replace(d, id=f"{corpus.name} {d.id}", dataset=plan.target.name) for d in own]
        if gold:
            found[corpus.name] = DevSet(gold, frozenset(corpus.annotates))
    return found


def fit_temperature(model: Recognizer, sets: Mapping[str, DevSet]) -> Calibration:
    """The temperature that makes what the corpora say likeliest."""
    target = model.labels.target
    decided, answers = list[Floats](), list[npt.NDArray[np.bool_]]()
    for gold, annotated in sets.values():
        for rows in sentence_batches(model, gold, 32):
            logits, right = decisions(model, rows)
            decided.append(logits)
            answers.append(possible_classes(model, right, set(model.labels.types[target]) - annotated))
    logits, possible = np.concatenate(decided), np.concatenate(answers)
    temperature = min(TEMPERATURES.tolist(), key=lambda each: log_loss(logits / each, possible))
    facts = {
        "documents": corpus_fingerprint([document for gold, _ in sets.values() for document in gold]),
        "corpora": {name: len(gold) for name, (gold, _) in sets.items()},
        "decisions": len(logits),
        "log_loss_before": log_loss(logits, possible),
        "log_loss": log_loss(logits / temperature, possible),
    }
    return Calibration(temperature, facts=facts)


def possible_classes(model: Recognizer, right: npt.NDArray[np.int64], silent: Collection[str]) -> npt.NDArray[np.bool_]:
    """Which classes a span may have by its corpus: its own, or without one any that the corpus is silent about.

    (N,) -> (N, C)
    """
    labels = model.labels
    possible: npt.NDArray[np.bool_] = np.arange(labels.num_classes) == right[:, None]
    unmarked = right == labels.nothing(labels.target)
    for label in silent:
        possible[unmarked, labels.id(labels.target, label)] = True
    return possible


def log_loss(logits: Floats, possible: npt.NDArray[np.bool_]) -> float:
    """The mean of -log of the chance that a class is one of the possible ones.  (N, C), (N, C)"""
    chance = (softmax(logits) * possible).sum(-1)
    return float(-np.log(np.maximum(chance, np.finfo(float).tiny)).mean())


def found_in(model: Recognizer, sets: Mapping[str, DevSet], threshold: float | None = None) -> Found:
    """What the model finds in each dev set, of the types that its corpus annotates."""
    return {
        name: [only(document, labels) for document in model.predict(gold, threshold=threshold)]
        for name, (gold, labels) in sets.items()
    }


def calibrate(model: Recognizer, sets: Mapping[str, DevSet]) -> None:
    """Fits the temperature, then chooses the threshold of each type that is best for all corpora together."""
    model.calibration = None
    fitted = model.calibration = fit_temperature(model, sets)
    many = found_in(model, sets, LOWEST)
    gold = [document for name in many for document in sets[name].gold]
    chosen = choose_thresholds(gold, [document for found in many.values() for document in found])
    thresholds = {label: choice.threshold for label, choice in chosen.items()}
    model.calibration = replace(fitted, thresholds=thresholds, facts={**fitted.facts, "aim": "f1"})


def main() -> None:
    """Calibrates a model folder, and says what that changed on the dev sets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--corpora", type=Path, default=HERE / "corpora.toml")
    parser.add_argument("--device")
    given = parser.parse_args()
    model = Recognizer.from_pretrained(given.model, device=given.device, precision="float32")
    sets = dev_sets(read_corpora(given.corpora))
    calibrate(model, sets)
    calibration, model.calibration = model.calibration, None
    before = found_in(model, sets)
    model.calibration = calibration
    after = found_in(model, sets)
    for name, (gold, labels) in sets.items():
        print(f"{name} ({len(gold)} documents, {', '.join(sorted(labels))})")
        for when, found in (("before", before[name]), ("after", after[name])):
            f1, error = recognition(gold, found).micro.f1, calibration_of(gold, found).overall.error
            print(f"  {when}: F1 {f1:.2f}, calibration error {error:.1f}")
    print(calibration)
    assert calibration is not None
    write_json(given.model / CALIBRATION, calibration.to_dict())
    model.facts.pop("calibration_error", None)  # measured with the calibration before this one
    write_json(given.model / FACTS, model.facts)


if __name__ == "__main__":
    main()
