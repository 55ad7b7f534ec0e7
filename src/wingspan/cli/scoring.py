"""Commands that compare documents with documents: `score`, `compare`."""

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


class MatchName(StrEnum):
    """What counts as a match, one at a time."""

    strict = "strict"
    exact = "exact"
    partial = "partial"
    type = "type"
    lenient = "lenient"
    fragments = "fragments"


class ProtocolName(StrEnum):
    """What the system had to do."""

    recognition = "recognition"
    typing = "typing"


class SubsetName(StrEnum):
    """What part of the corpus is scored."""

    all = "all"
    discontinuous_documents = "discontinuous-documents"
    discontinuous_sentences = "discontinuous-sentences"
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
    subset: Annotated[SubsetName, typer.Option(help="Score what is discontinuous, or is beside it.")] = SubsetName.all,
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


@app.command(
    epilog="Example: wingspan compare test.jsonl old.jsonl new.jsonl --json figures.json    "
    "Several seeds: wingspan compare test.jsonl base=runs/base/seed-*.jsonl new=n1.jsonl,n2.jsonl,n3.jsonl"
)
def compare(
    gold: Annotated[Path, typer.Argument(help="The corpus with the right entities, in any format.")],
    systems: Annotated[
        list[str],
        typer.Argument(
            metavar="SYSTEM...",
            help="Two or more: FILE, NAME=FILE, or NAME=FILE,FILE,... for the runs of one system; a pattern "
            "such as NAME=runs/*/test.jsonl is all files it fits.",
        ),
    ],
    format: Annotated[str | None, typer.Option(help="Format of all files; otherwise found by name or content.")] = None,
    predicted_format: Annotated[
        str | None, typer.Option(help="Format of the systems' files, if it differs from --format.")
    ] = None,
    mode: Annotated[MatchName, typer.Option(help="What counts as a match; see docs/scoring.md.")] = MatchName.strict,
    samples: Annotated[int, typer.Option(min=1, help="How many resamples intervals and p-values come from.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Decides every draw.")] = 1,
    confidence: Annotated[float, typer.Option(help="Of the intervals; 1 minus it is the level of the verdict.")] = 0.95,
    examples: Annotated[int, typer.Option(min=0, help="How many errors of each kind are shown; 20 in the JSON.")] = 3,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Gold documents without prediction count as predicted empty.")
    ] = False,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report with errors and buckets here.")] = None,
    train: Annotated[
        Path | None, typer.Option(help="The training corpus, for the report: more attributes, label conflicts.")
    ] = None,
    json: Annotated[Path | None, typer.Option(help="Write the figures to this file; - prints them instead.")] = None,
) -> None:
    """Compares systems on one corpus: intervals, paired significance, which errors moved, and who wins."""
    from rich.console import Console

    from wingspan.runs import compare as run
    from wingspan.runs.figures import write_figures

    if train is not None and report is None:
        raise ValueError("--train is for the report; give --report FILE too")
    result = run.compare(
        gold,
        systems,
        format=format,
        predicted_format=predicted_format,
        mode=mode.value,
        samples=samples,
        seed=seed,
        confidence=confidence,
        allow_missing=allow_missing,
    )
    if json is not None:
        write_figures(result.to_dict(), json)
    if json != Path("-"):
        run.show(result, Console(), examples)
    if report is not None:
        from wingspan.runs.analyze import Settings, write_comparison

        write_comparison(
            result, systems, report, train, Settings(format, predicted_format, allow_missing=allow_missing)
        )
