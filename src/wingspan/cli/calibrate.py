"""`wingspan calibrate`: scores that mean what they say, and thresholds that suit a purpose, fitted on dev documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from wingspan.cli import app
from wingspan.cli.options import BatchSize, Device, Json, Parts, Threads, trusted, use_threads
from wingspan.evaluation.calibration import Choice, Reliability, calibration_of, choose_thresholds
from wingspan.evaluation.scores import recognition
from wingspan.views.tables import Sheet

if TYPE_CHECKING:
    from wingspan.training.finish import Calibrated


@app.command(epilog="Example: wingspan calibrate runs/mine dev.jsonl --thresholds f1")
def calibrate(
    model: Annotated[str, typer.Argument(help="A model folder; a hub id needs --output.")],
    dev: Annotated[Path, typer.Argument(help="Documents it was not trained on, with the right entities.")],
    output: Annotated[Path | None, typer.Option(help="Folder for the calibrated model; otherwise where it is.")] = None,
    thresholds: Annotated[
        str | None,
        typer.Option(help="Also choose a threshold for each label: f1 for the best F1, or a precision such as 90."),
    ] = None,
    format: Annotated[
        str | None, typer.Option(help="Format of the corpus; otherwise found by name or content.")
    ] = None,
    json: Json = None,
    batch_size: BatchSize = 32,
    parts: Parts = None,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Fits the temperature of a model's scores, and thresholds if you want them; both are saved with the model."""
    from rich.console import Console

    from wingspan.views.console import write_json

    use_threads(threads)
    result = calibrate_model(
        model,
        dev,
        output=output,
        thresholds=thresholds,
        format=format,
        batch_size=batch_size,
        parts=trusted(parts),
        device=device,
    )
    if json is not None:
        write_json(result.to_dict(), json)
    if json != Path("-"):
        show(result, Console())


def calibrate_model(
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
    from wingspan.recognizer import Recognizer
    from wingspan.training.corpora import documents_of
    from wingspan.training.finish import LOWEST, Calibrated, fit

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
