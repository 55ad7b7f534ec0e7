"""`wingspan calibrate`: scores that mean what they say, and thresholds that suit a purpose, fitted on dev documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console

from wingspan.corpora.statistics import describe
from wingspan.evaluation.calibration import (
    ByLabel,
    Calibration,
    Reliability,
    calibration_of,
    fit_temperature,
    log_loss,
)
from wingspan.evaluation.scores import Counts, recognition
from wingspan.evaluation.thresholds import Choice, choose_thresholds
from wingspan.model import tensors
from wingspan.recognizer import Recognizer
from wingspan.runs.reading import documents_of
from wingspan.runs.tables import Sheet
from wingspan.sampling import batches
from wingspan.text import Document

FEWEST = 30
"""Decisions; of fewer no temperature is believed."""
LOWEST = 0.05
"""The least score of the entities among which thresholds are chosen."""


@dataclass(frozen=True)
class Calibrated:
    """What came of it, measured on the documents it was fitted on: before, and with the calibrated model."""

    calibration: Calibration
    before: ByLabel[Reliability]
    after: ByLabel[Reliability]
    choices: Mapping[str, Choice]
    f1_before: Counts
    f1_after: Counts

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            **self.calibration.to_dict(),
            "before": figures(self.before, self.f1_before),
            "after": figures(self.after, self.f1_after),
            "choices": {label: choice._asdict() for label, choice in self.choices.items()},
        }


def calibrate(
    model: str | Path,
    dev: str | Path,
    *,
    output: str | Path | None = None,
    thresholds: str | None = None,
    format: str | None = None,
    batch_size: int = 32,
    parts: Sequence[str] = (),
    device: str | None = None,
) -> Calibrated:
    """Fits the model's temperature to the documents, chooses thresholds where asked, and saves the model with both.

    `thresholds` is "f1", or a wanted precision in percent. The entities that are found stay the same without it.
    """
    if output is None and not Path(model).is_dir():
        raise ValueError(f"{model}: only a model folder can be calibrated in its place; give --output FOLDER")
    precision = aim(thresholds)
    recognizer = Recognizer.from_pretrained(model, device=device, parts=parts)
    if recognizer.recipe.protocol == "typing":
        raise ValueError(
            f"{model}: this model types given spans, not found ones; its training calibrated it where it had --dev"
        )
    # as prediction takes texts that nobody names a corpus for, whatever the file says of them
    gold = [replace(document, dataset=recognizer.labels.target) for document in documents_of(dev, format)]
    recognizer.calibration = None
    before = recognizer.predict(gold, batch_size=batch_size)
    recognizer.calibration = fitted = fit(recognizer, gold, batch_size=batch_size)
    choices: dict[str, Choice] = {}
    if thresholds is not None:
        many = recognizer.predict(gold, batch_size=batch_size, threshold=LOWEST)
        choices = choose_thresholds(gold, many, precision)
        bars = {label: choice.threshold for label, choice in choices.items()}
        recognizer.calibration = replace(fitted, thresholds=bars, facts={**fitted.facts, "aim": thresholds})
    after = recognizer.predict(gold, batch_size=batch_size)
    recognizer.facts.pop("calibration_error", None)  # measured with the calibration before this one
    recognizer.save_pretrained(output if output is not None else model)
    return Calibrated(
        recognizer.calibration,
        calibration_of(gold, before),
        calibration_of(gold, after),
        choices,
        recognition(gold, before).micro,
        recognition(gold, after).micro,
    )


def aim(thresholds: str | None) -> float | None:
    """The wanted precision in percent; None for the best F1, or where no thresholds are wanted."""
    if thresholds in (None, "f1"):
        return None
    try:
        wanted = float(str(thresholds))
    except ValueError:
        wanted = 0.0
    if not 1 < wanted <= 100:  # 0.9 is hardly meant as 0.9 %
        raise ValueError(f"--thresholds {thresholds}: write f1, or a precision in percent, for example 90")
    return wanted


def calibrate_on(model: Recognizer, dev: Sequence[Document], console: Console, *, batch_size: int = 32) -> None:
    """Calibrates a model that was just trained; where that cannot be done it stays as it is, and that is said."""
    try:
        model.calibration = fit(model, dev, batch_size=batch_size)
        said = f"Scores are calibrated on dev: {model.calibration}."
    except ValueError as error:
        said = f"Scores are not calibrated: {error}"
    console.print(said, highlight=False, markup=False, soft_wrap=True)


def fit(recognizer: Recognizer, documents: Sequence[Document], *, batch_size: int = 32) -> Calibration:
    """The temperature that makes the right decisions on these documents likeliest. It changes none of them."""
    logits, target = decisions(recognizer, documents, batch_size)
    if len(target) < FEWEST:
        raise ValueError(
            f"these documents have only {len(target)} decisions to learn from, {FEWEST} are needed; use more of them"
        )
    temperature = fit_temperature(logits, target)
    return Calibration(
        temperature,
        facts={
            "documents": describe(documents).fingerprint,
            "decisions": len(target),
            "log_loss_before": log_loss(logits, target),
            "log_loss": log_loss(logits, target, temperature),
        },
    )


@torch.inference_mode()
def decisions(recognizer: Recognizer, documents: Sequence[Document], batch_size: int) -> tuple[Any, Any]:
    """The contested decisions of all documents, read as prediction reads them.  (N, C), (N,)"""
    reader: Any = recognizer.learner.objectives[recognizer.recipe.reader]
    if not reader.calibrates:
        raise ValueError(f"{type(reader).__name__} has no class scores to calibrate; read with spans or tags")
    sentences = list(recognizer.segment(documents))
    lengths = [len(sentence.words) for sentence in sentences]
    logits, targets = [], []
    for batch in batches(lengths, batch_size, budget=recognizer.recipe.train.budget):
        arrays = recognizer.collate([sentences[at] for at in batch])
        inputs, gold = (tensors(part, recognizer.device) for part in (arrays.inputs, arrays.gold))
        given = gold if recognizer.recipe.protocol == "typing" else None
        found = reader.decisions(recognizer.learner.model(inputs, given, spans=reader.reads_spans), gold)
        logits.append(found.logits.double().cpu().numpy())
        targets.append(found.target.cpu().numpy())
    if not logits:
        return np.zeros((0, 2)), np.zeros(0, dtype=np.int64)
    return np.concatenate(logits), np.concatenate(targets)


def figures(rows: ByLabel[Reliability], micro: Counts) -> dict[str, Any]:
    """Calibration errors and strict figures as plain data."""
    return {
        "micro": micro.to_dict(),
        "calibration": rows.overall.to_dict(),
        "labels": {label: row.to_dict() for label, row in rows.labels.items()},
    }


def show(result: Calibrated, console: Console) -> None:
    """Calibration errors before and after, thresholds, and what they do to precision, recall and F1."""

    def errors(name: str, before: Reliability | None, after: Reliability | None) -> tuple[str, ...]:
        cells = ["" if one is None else f"{one.error:.2f}" for one in (before, after)]
        bar = result.calibration.thresholds.get(name)
        return (name, *cells, str(after.entities if after else 0), "" if bar is None else f"{bar:.3f}")

    before, after = result.before, result.after
    labels = sorted({*before.labels, *after.labels})
    Sheet(
        f"Expected calibration error in points, temperature {result.calibration.temperature:.3g}",
        ("label", "before", "after", "entities", "threshold"),
        [errors(label, before.labels.get(label), after.labels.get(label)) for label in labels],
        [errors("all", before.overall, after.overall)],
    ).show(console)
    for when, micro in (("Before", result.f1_before), ("After", result.f1_after)):
        line = f"{when}: precision {micro.precision:.2f}, recall {micro.recall:.2f}, F1 {micro.f1:.2f}"
        console.print(line, highlight=False, soft_wrap=True)
    if result.calibration.facts.get("aim") == "f1" and result.f1_after.f1 < result.f1_before.f1:
        line = "Note: these thresholds make F1 lower, as spans and labels compete; calibrate without --thresholds."
        console.print(line, highlight=False, soft_wrap=True)
    for label, choice in result.choices.items():
        if not choice.reached:
            line = f"Note: {label} never reaches the wanted precision; its best is {choice.precision:.2f}."
            console.print(line, highlight=False, markup=False, soft_wrap=True)
    console.print("Note: these are the documents it was fitted on; others tell how well it holds.", soft_wrap=True)
