"""Commands that train many times: `experiment`, `tune`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from wingspan.cli import app
from wingspan.cli.options import CorpusFormat, Device, EncoderName, Json, LeakHandling, pairs, whole_numbers
from wingspan.corpora.leaks import OnLeak

TimeBudget = Annotated[
    float | None, typer.Option(min=0, help="Seconds; nothing is started that should take longer than is left.")
]
Workers = Annotated[int, typer.Option(min=0, help="Trainings side by side; 0 trains in this very process.")]
WorkerThreads = Annotated[int | None, typer.Option(min=1, help="CPU threads of each worker.")]


@app.command(epilog="Example: wingspan experiment plan.toml --workers 2")
def experiment(
    plan: Annotated[Path, typer.Argument(help="The plan: recipes, corpora, seeds, as TOML; see docs/experiments.md.")],
    output: Annotated[Path | None, typer.Option(help="Folder for results, instead of the plan's.")] = None,
    seeds: Annotated[str | None, typer.Option(help="Seeds instead of the plan's: 1,2,3.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=0, help="Trainings side by side; 0 trains in this very process.")
    ] = None,
    time_budget: TimeBudget = None,
    published: Annotated[Path | None, typer.Option(help="TOML with published figures, for a column beside.")] = None,
    on_leak: Annotated[
        OnLeak | None, typer.Option(help="Training documents that are in dev or test, instead of the plan's.")
    ] = None,
    tables_only: Annotated[bool, typer.Option("--tables-only", help="Train nothing, write the tables again.")] = False,
    commit: Annotated[str | None, typer.Option(help="Written into every line, to know the code later.")] = None,
    json: Json = None,
    device: Device = None,
    threads: WorkerThreads = None,
) -> None:
    """Trains recipes on corpora with several seeds, resumable, and writes tables with mean and deviation."""
    from dataclasses import replace

    from rich.console import Console

    from wingspan.experiments.plan import read_plan
    from wingspan.experiments.run import run_experiment as run
    from wingspan.views.console import write_json

    given: dict[str, Any] = {
        "output": output,
        "seeds": tuple(whole_numbers(seeds)) if seeds is not None else None,
        "workers": workers,
        "published": published,
        "commit": commit,
        "device": device,
        "threads": threads,
        "on_leak": on_leak,
    }
    chosen = replace(read_plan(plan), **{name: value for name, value in given.items() if value is not None})
    console = Console(stderr=json is not None and str(json) == "-")
    summary = run(chosen, console, time_budget=time_budget, tables_only=tables_only)
    if json is not None:
        write_json(summary.to_dict(), json)
    if summary.failed:
        raise typer.Exit(1)


@app.command(
    epilog="Example: wingspan tune bundling --train train.jsonl --dev dev.jsonl --output runs/search --trials 30"
)
def tune(
    recipe: Annotated[str, typer.Argument(help="NAME, NAME/VARIANT, auto, or your own file with recipe().")],
    train: Annotated[list[Path], typer.Option(help="Training corpus, in any format; may be given several times.")],
    dev: Annotated[Path, typer.Option(help="Decides which settings are best.")],
    output: Annotated[Path, typer.Option(help="Folder for the study, the logs and best.toml; goes on if it is there.")],
    format: CorpusFormat = None,
    encoder: EncoderName = None,
    set: Annotated[list[str] | None, typer.Option(help="key=value: a setting for all trials.")] = None,
    lexicon: Annotated[str | None, typer.Option(help="Synonyms, as `wingspan train` takes them.")] = None,
    range: Annotated[
        list[str] | None, typer.Option(help="key=low:high, key=low:high:log or key=a,b,c; besides the recipe's own.")
    ] = None,
    trials: Annotated[int, typer.Option(min=1, help="How many there shall be, earlier ones counted.")] = 20,
    time_budget: TimeBudget = None,
    pruner: Annotated[
        Literal["median", "hyperband", "none"], typer.Option(help="What ends hopeless trials early.")
    ] = "median",
    study: Annotated[
        str | None, typer.Option(help="A database file or server URL instead of OUTPUT/study.db, to share a search.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="The study's name in the database; otherwise the recipe's.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of every training, and of the search.")] = 1,
    on_leak: LeakHandling = "drop",
    workers: Workers = 1,
    json: Json = None,
    device: Device = None,
    threads: WorkerThreads = None,
) -> None:
    """Searches for better settings (Optuna), resumable, several workers; the best go into a file for `train`."""
    from rich.console import Console

    from wingspan.recipe import parse_range
    from wingspan.tuning.search import Order
    from wingspan.tuning.search import tune as run
    from wingspan.views.console import write_json

    order = Order(
        recipe,
        tuple(train),
        dev,
        output,
        encoder=encoder,
        settings=pairs(set, "--set"),
        given={key: parse_range(text) for key, text in pairs(range, "--range").items()},
        format=format,
        trials=trials,
        time_budget=time_budget,
        workers=workers,
        threads=threads,
        pruner=pruner,
        study=study,
        name=name,
        seed=seed,
        device=device,
        lexicon=lexicon,
        on_leak=on_leak,
    )
    found = run(order, Console(stderr=json is not None and str(json) == "-"))
    if json is not None:
        write_json(found.to_dict(), json)
    if found.problems or found.best is None:
        raise typer.Exit(1)
