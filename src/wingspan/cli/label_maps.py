"""The command that relates the labels of several corpora: `label-map`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wingspan.cli import app
from wingspan.cli.models import BatchSize, Device, Json


@app.command(
    "label-map",
    epilog="Example: wingspan label-map bc5cdr=bc5cdr/train.jsonl --target biored=biored/train.jsonl --output map.tsv",
)
def label_map(
    corpora: Annotated[
        list[str], typer.Argument(metavar="NAME=FILE...", help="The other corpora; several files: NAME=FILE,FILE.")
    ],
    target: Annotated[str, typer.Option(help="NAME=FILE: the corpus in whose labels the others are said.")],
    output: Annotated[Path | None, typer.Option(help="Write the map with its evidence here, as .tsv.")] = None,
    model: Annotated[
        str | None, typer.Option(help="A model trained on the target; otherwise names are classified by spelling.")
    ] = None,
    reference: Annotated[Path | None, typer.Option(help="A label map to compare with; differences are listed.")] = None,
    format: Annotated[str | None, typer.Option(help="Format of the corpora; otherwise found.")] = None,
    batch_size: BatchSize = 32,
    device: Device = None,
    json: Json = None,
) -> None:
    """Suggests which label of each corpus means which of the target's, or none, with evidence for each."""
    from rich.console import Console

    from wingspan.corpora.label_suggestions import write_suggestions
    from wingspan.runs import label_map as run
    from wingspan.runs.figures import write_figures

    ((name, aim),) = run.corpora_of([target], format).items()
    others = run.corpora_of(corpora, format, taken=[name])
    found = run.suggestions(aim, others, model, batch_size=batch_size, device=device)
    comparison = run.compared(found, reference) if reference is not None else None
    if output is not None:
        write_suggestions(found, output)
    if json is not None:
        figures = {"suggestions": [one.to_dict() for one in found]}
        write_figures({**figures, **({"reference": comparison.to_dict()} if comparison else {})}, json)
    if json != Path("-"):
        console = Console()
        run.show(found, console)
        if comparison is not None:
            run.show_comparison(comparison, console)
