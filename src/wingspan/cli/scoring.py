"""Commands that compare documents with documents: `score`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from wingspan.cli import app


class ModeName(StrEnum):
    """What counts as a match."""

    strict = "strict"
    exact = "exact"
    partial = "partial"
    type = "type"
    lenient = "lenient"
    fragments = "fragments"
    all = "all"


class ProtocolName(StrEnum):
    """What the system had to do."""

    recognition = "recognition"
    typing = "typing"


class SubsetName(StrEnum):
    """What part of the corpus is scored."""

    all = "all"
    discontinuous_documents = "discontinuous-documents"
    discontinuous_entities = "discontinuous-entities"


@app.command(epilog="Example: wingspan score test.jsonl predicted.jsonl --mode all --json figures.json")
def score(
    gold: Annotated[Path, typer.Argument(help="The corpus with the right entities, in any format.")],
    predicted: Annotated[Path, typer.Argument(help="The same documents with the entities a system found.")],
    format: Annotated[
        str | None, typer.Option(help="Format of both files; otherwise found by name or content.")
    ] = None,
    predicted_format: Annotated[
        str | None, typer.Option(help="Format of PREDICTED, if it differs from --format.")
    ] = None,
    mode: Annotated[ModeName, typer.Option(help="What counts as a match; see docs/scoring.md.")] = ModeName.strict,
    protocol: Annotated[
        ProtocolName, typer.Option(help="recognition: entities had to be found. typing: labels of given spans.")
    ] = ProtocolName.recognition,
    subset: Annotated[SubsetName, typer.Option(help="Score only what is discontinuous.")] = SubsetName.all,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Gold documents without prediction count as predicted empty.")
    ] = False,
    json: Annotated[Path | None, typer.Option(help="Write the figures to this file; - prints them instead.")] = None,
) -> None:
    """Scores predictions against gold: precision, recall and F1, per label and overall, with counts."""
    from rich.console import Console

    from wingspan.runs import score as run
    from wingspan.runs.figures import write_figures

    result = run.score(
        gold,
        predicted,
        format=format,
        predicted_format=predicted_format,
        protocol=protocol.value,
        mode=mode.value,
        subset=subset.value,
        allow_missing=allow_missing,
    )
    if json is not None:
        write_figures(run.figures(result), json)
    if json != Path("-"):
        run.show(result, Console())
