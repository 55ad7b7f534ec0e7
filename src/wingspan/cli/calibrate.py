"""`wingspan calibrate`: the temperature of a model's scores and thresholds of its labels, fitted on dev documents."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from wingspan.box import NAME
from wingspan.cli import app
from wingspan.cli.options import BatchSize, Device, Json, OneFormat, Parts, Threads, trusted, use_threads
from wingspan.evaluation import calibration
from wingspan.evaluation.calibration import ByLabel, Calibration, Choice, Reliability
from wingspan.evaluation.scores import Counts, recognition
from wingspan.views.console import say, write_json
from wingspan.views.tables import Sheet


@dataclass(frozen=True)
class Calibrated:
    """The result, measured on the documents it was fitted on: before, and with the calibrated model."""

    calibration: Calibration
    before: ByLabel[Reliability]
    after: ByLabel[Reliability]
    choices: Mapping[str, Choice]
    f1_before: Counts
    f1_after: Counts

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data."""

        def figures(rows: ByLabel[Reliability], micro: Counts) -> dict[str, Any]:
            labels = {label: row.to_dict() for label, row in rows.labels.items()}
            return {"micro": micro.to_dict(), "calibration": rows.overall.to_dict(), "labels": labels}

        return {
            **self.calibration.to_dict(),
            "before": figures(self.before, self.f1_before),
            "after": figures(self.after, self.f1_after),
            "choices": {label: choice._asdict() for label, choice in self.choices.items()},
        }


@app.command(epilog="Example: wingspan calibrate runs/mine dev.jsonl --thresholds f1")
def calibrate(
    model: Annotated[str, typer.Argument(help="A model folder; a hub id or wingspan-bio-small needs --output.")],
    dev: Annotated[Path, typer.Argument(help="Gold documents that it was not trained on.")],
    output: Annotated[Path | None, typer.Option(help="Folder for the calibrated model; by default the same.")] = None,
    thresholds: Annotated[
        str | None,
        typer.Option(help="Also choose a threshold for each label: f1 for the best F1, or a precision such as 90."),
    ] = None,
    format: OneFormat = None,
    json: Json = None,
    batch_size: BatchSize = 32,
    parts: Parts = None,
    device: Device = None,
    threads: Threads = None,
) -> Calibrated:
    """Fits the temperature of a model's scores, and thresholds if you want them; both are saved with the model."""
    from wingspan.recognizer import Recognizer
    from wingspan.training.corpora import documents_of
    from wingspan.training.finish import fit_calibration

    use_threads(threads)
    if output is None and (model == NAME or not Path(model).is_dir()):
        raise ValueError(f"{model}: only a model folder can be calibrated in its place; give --output FOLDER")
    precision = None
    if thresholds not in (None, "f1"):
        try:
            precision = float(str(thresholds))
        except ValueError:
            precision = 0.0
        if not 1 < precision <= 100:  # 0.9 is hardly meant as 0.9 %
            raise ValueError(f"--thresholds {thresholds}: write f1, or a precision in percent, for example 90")
    recognizer = Recognizer.from_pretrained(model, device=device, parts=trusted(parts))
    if recognizer.recipe.protocol == "typing":
        raise ValueError(
            f"{model}: this model types given spans, not found ones; its training calibrated it where it had --dev"
        )
    # in the target's labels, as prediction without --dataset, whatever corpus the file names
    gold = [replace(document, dataset=recognizer.labels.target) for document in documents_of(dev, format)]
    recognizer.calibration = None
    before = recognizer.predict(gold, batch_size=batch_size)
    recognizer.calibration = fitted = fit_calibration(recognizer, gold, batch_size=batch_size)
    choices: dict[str, Choice] = {}
    if thresholds is not None:
        many = recognizer.predict(gold, batch_size=batch_size, threshold=0.05)  # no lower one is chosen
        choices = calibration.choose_thresholds(gold, many, precision)
        chosen = {label: choice.threshold for label, choice in choices.items()}
        recognizer.calibration = replace(fitted, thresholds=chosen, facts={**fitted.facts, "aim": thresholds})
    after = recognizer.predict(gold, batch_size=batch_size)
    recognizer.facts.pop("calibration_error", None)  # measured with the calibration before this one
    recognizer.save_pretrained(output if output is not None else model)
    result = Calibrated(
        recognizer.calibration,
        calibration.calibration_of(gold, before),
        calibration.calibration_of(gold, after),
        choices,
        recognition(gold, before).micro,
        recognition(gold, after).micro,
    )
    if json is not None:
        write_json(result.to_dict(), json)
    if json != Path("-"):
        show(result, Console())
    return result


def show(result: Calibrated, console: Console) -> None:
    """Prints calibration errors, thresholds, and precision, recall and F1 before and after."""

    def errors(name: str, before: Reliability | None, after: Reliability | None) -> tuple[str, ...]:
        cells = ["" if side is None else f"{side.error:.2f}" for side in (before, after)]
        threshold = result.calibration.thresholds.get(name)
        return (name, *cells, str(after.entities if after else 0), "" if threshold is None else f"{threshold:.3f}")

    before, after = result.before, result.after
    labels = sorted({*before.labels, *after.labels})
    Sheet(
        f"Expected calibration error in points, temperature {result.calibration.temperature:.3g}",
        ("label", "before", "after", "entities", "threshold"),
        [errors(label, before.labels.get(label), after.labels.get(label)) for label in labels],
        [errors("all", before.overall, after.overall)],
    ).show(console)
    for when, micro in (("Before", result.f1_before), ("After", result.f1_after)):
        say(console, f"{when}: precision {micro.precision:.2f}, recall {micro.recall:.2f}, F1 {micro.f1:.2f}")
    if result.calibration.facts.get("aim") == "f1" and result.f1_after.f1 < result.f1_before.f1:
        note = "these thresholds make F1 lower, as spans and labels compete; calibrate without --thresholds"
        say(console, f"Note: {note}.")
    for label, choice in result.choices.items():
        if not choice.reached:
            say(console, f"Note: {label} never reaches the wanted precision; its best is {choice.precision:.2f}.")
    say(console, "Note: these are the documents it was fitted on; others tell how well it holds.")
