"""The command that makes a model's scores mean what they say: `calibrate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wingspan.cli import app
from wingspan.cli.models import BatchSize, Device, Json, Parts, Threads, trusted, use_threads


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

    from wingspan.runs import calibrate as run
    from wingspan.runs.figures import write_figures

    use_threads(threads)
    result = run.calibrate(
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
        write_figures(result.to_dict(), json)
    if json != Path("-"):
        run.show(result, Console())
