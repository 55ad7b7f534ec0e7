"""Commands that train many times: `experiment`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from wingspan.cli import app
from wingspan.cli.models import Device, Json, whole_numbers


@app.command(epilog="Example: wingspan experiment plan.toml --workers 2")
def experiment(
    plan: Annotated[Path, typer.Argument(help="The plan: recipes, corpora, seeds, as TOML; see docs/experiments.md.")],
    output: Annotated[Path | None, typer.Option(help="Folder for results, instead of the plan's.")] = None,
    seeds: Annotated[str | None, typer.Option(help="Seeds instead of the plan's: 1,2,3.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=0, help="Trainings side by side; 0 trains in this very process.")
    ] = None,
    time_budget: Annotated[
        float | None, typer.Option(min=0, help="Seconds; no run is started that should take longer than is left.")
    ] = None,
    published: Annotated[Path | None, typer.Option(help="TOML with published figures, for a column beside.")] = None,
    tables_only: Annotated[bool, typer.Option("--tables-only", help="Train nothing, write the tables again.")] = False,
    commit: Annotated[str | None, typer.Option(help="Written into every line, to know the code later.")] = None,
    json: Json = None,
    device: Device = None,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads of each worker.")] = None,
) -> None:
    """Trains recipes on corpora with several seeds, resumable, and writes tables with mean and deviation."""
    from dataclasses import replace

    from rich.console import Console

    from wingspan.experiments.plan import read_plan
    from wingspan.runs.experiment import experiment as run
    from wingspan.runs.figures import write_figures

    given: dict[str, Any] = {
        "output": output,
        "seeds": tuple(whole_numbers(seeds)) if seeds is not None else None,
        "workers": workers,
        "published": published,
        "commit": commit,
        "device": device,
        "threads": threads,
    }
    chosen = replace(read_plan(plan), **{name: value for name, value in given.items() if value is not None})
    console = Console(stderr=json is not None and str(json) == "-")
    summary = run(chosen, console, time_budget=time_budget, tables_only=tables_only)
    if json is not None:
        write_figures(summary.to_dict(), json)
    if summary.failed:
        raise typer.Exit(1)
