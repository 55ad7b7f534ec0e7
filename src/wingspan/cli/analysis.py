"""The command that explains results: `analyze`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from wingspan.cli import app
from wingspan.cli.models import BatchSize, Device, Json, Parts, Threads, pairs, trusted, use_threads


class Chapter(StrEnum):
    """What needs the model once more."""

    robustness = "robustness"
    representation = "representation"


@app.command(
    epilog="Example: wingspan analyze runs/mine test.jsonl --train train.jsonl --output analysis    "
    "Without a model: wingspan analyze --gold test.jsonl --predicted A=a.jsonl --predicted B=b.jsonl --output analysis"
)
def analyze(
    output: Annotated[Path, typer.Option(help="Folder for report.html, figures, tables and predictions.")],
    model: Annotated[str | None, typer.Argument(help="A model folder or hub id.")] = None,
    corpus: Annotated[Path | None, typer.Argument(help="The corpus with the right entities, in any format.")] = None,
    gold: Annotated[Path | None, typer.Option(help="Without MODEL: the corpus with the right entities.")] = None,
    predicted: Annotated[
        list[str] | None,
        typer.Option(help="FILE, NAME=FILE or NAME=FILE,FILE for the runs of one system; may be given several times."),
    ] = None,
    train: Annotated[Path | None, typer.Option(help="The training corpus: more attributes, label conflicts.")] = None,
    format: Annotated[str | None, typer.Option(help="Format of the files; otherwise found by name or content.")] = None,
    predicted_format: Annotated[
        str | None, typer.Option(help="Format of the predictions, if it differs from --format.")
    ] = None,
    attribute: Annotated[
        list[str] | None,
        typer.Option(help="A bucket attribute, entity:KEY or document:KEY for what the corpus says; otherwise all."),
    ] = None,
    quantiles: Annotated[
        int | None, typer.Option(min=2, help="So many buckets of equal size, instead of the papers' intervals.")
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="Bootstrap samples behind intervals and p-values.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Decides every draw.")] = 1,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Gold documents without prediction count as predicted empty.")
    ] = False,
    skip: Annotated[list[Chapter] | None, typer.Option(help="Leave out this chapter, which takes its time.")] = None,
    corpora: Annotated[
        Path | None, typer.Option(help="Of a model of several corpora: a corpora.toml, for a chapter on each of them.")
    ] = None,
    transfer: Annotated[
        list[str] | None, typer.Option(help="NAME=MODEL: a model of one of these corpora, to be scored on the others.")
    ] = None,
    json: Json = None,
    batch_size: BatchSize = 32,
    parts: Parts = None,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Explains results in one HTML report: scores, errors, buckets, calibration, and how a model sees spans."""
    from rich.console import Console

    from wingspan.runs import analyze as run
    from wingspan.runs.figures import write_figures

    console = Console(stderr=json == Path("-"))
    skipped = [name.value for name in skip or []]
    settings = run.Settings(format, predicted_format, samples, seed, attribute, quantiles, allow_missing, skipped)
    if model is not None and corpus is not None and gold is None and not predicted:
        use_threads(threads)
        from wingspan.runs.analyze_corpora import Several
        from wingspan.runs.analyze_model import analyze_model

        if transfer and corpora is None:
            raise ValueError("--transfer scores models on other corpora; give these with --corpora corpora.toml")
        models = pairs(transfer, "--transfer", "bc5cdr=runs/bc5cdr")
        report = analyze_model(
            model,
            corpus,
            output,
            train,
            settings,
            console,
            batch_size=batch_size,
            parts=trusted(parts),
            device=device,
            several=Several(corpora, models, device) if corpora is not None else None,
        )
    elif model is None and corpus is None and gold is not None and predicted:
        report = run.analyze_documents(gold, predicted, output, train, settings, console)
    else:
        raise ValueError("give MODEL and CORPUS, or --gold GOLD with --predicted FILE once or several times")
    if json is not None:
        write_figures(run.figures_of(report), json)
    console.print(f"{output / 'report.html'}", highlight=False, markup=False, soft_wrap=True)
