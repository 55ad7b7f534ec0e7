"""`wingspan experiment` and `wingspan tune`: many trainings."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from wingspan.cli import app, options
from wingspan.cli.options import pairs, use_threads, whole_numbers
from wingspan.corpora.leaks import OnLeak

TimeBudget = Annotated[float | None, typer.Option(min=0, help="Seconds after which no training is started.")]


@app.command(epilog="Example: wingspan experiment plan.toml --workers 2")
def experiment(
    plan: Annotated[Path, typer.Argument(help="The plan: recipes, corpora, seeds, as TOML; see docs/experiments.md.")],
    output: Annotated[Path | None, typer.Option(help="Folder for results, instead of the plan's.")] = None,
    seeds: Annotated[str | None, typer.Option(help="Seeds instead of the plan's: 1,2,3.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=0, help="Trainings at a time, each in its own process; 0: in this process.")
    ] = None,
    time_budget: TimeBudget = None,
    published: Annotated[Path | None, typer.Option(help="TOML with published figures, shown beside ours.")] = None,
    on_leak: Annotated[OnLeak | None, options.LEAK_OPTION] = None,
    tables_only: Annotated[
        bool, typer.Option("--tables-only", help="Only write the tables again, from the finished runs.")
    ] = False,
    commit: Annotated[str | None, typer.Option(help="The code's commit, kept with every result.")] = None,
    json: options.Json = None,
    device: options.Device = None,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads of each training.")] = None,
) -> None:
    """Trains recipes on corpora with several seeds and writes tables with mean and deviation; can be resumed."""
    from dataclasses import replace

    from rich.console import Console

    from wingspan.experiments.plan import read_plan
    from wingspan.experiments.run import run_experiment as run
    from wingspan.views.console import write_json

    changes: dict[str, Any] = {
        "output": output,
        "seeds": tuple(whole_numbers(seeds)) if seeds is not None else None,
        "workers": workers,
        "published": published,
        "commit": commit,
        "device": device,
        "threads": threads,
        "on_leak": on_leak,
    }
    chosen = replace(read_plan(plan), **{name: value for name, value in changes.items() if value is not None})
    console = Console(stderr=json == Path("-"))
    summary = run(chosen, console, time_budget=time_budget, tables_only=tables_only)
    if json is not None:
        write_json(summary.to_dict(), json)
    if summary.failed:
        raise typer.Exit(1)


@app.command(
    epilog="Example: wingspan tune bundling --train train.jsonl --dev dev.jsonl --output runs/search --trials 30"
)
def tune(
    recipe: options.RecipeName,
    train: Annotated[list[Path], typer.Option(help="Training corpus, in any format; may be given several times.")],
    dev: Annotated[Path, typer.Option(help="Documents that decide which settings are best.")],
    output: Annotated[
        Path, typer.Option(help="Folder for the study, the logs and best.toml; an existing study goes on.")
    ],
    format: options.CorpusFormat = None,
    encoder: options.EncoderName = None,
    set: Annotated[list[str] | None, typer.Option(help="key=value: a setting for all trials.")] = None,
    lexicon: Annotated[str | None, typer.Option(help="Synonyms, as `wingspan train` takes them.")] = None,
    range: Annotated[
        list[str] | None, typer.Option(help="key=low:high, key=low:high:log or key=a,b,c, besides the recipe's ranges.")
    ] = None,
    trials: Annotated[int, typer.Option(min=1, help="Trials of the study, earlier ones included.")] = 20,
    time_budget: TimeBudget = None,
    pruner: Annotated[
        Literal["median", "hyperband", "none"], typer.Option(help="The rule that ends hopeless trials early.")
    ] = "median",
    study: Annotated[
        str | None, typer.Option(help="A database file or server URL instead of OUTPUT/study.db, to share a search.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="The study's name in the database; by default the recipe's.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every training and of the search.")] = 1,
    on_leak: options.OnLeakOption = "drop",
    json: options.Json = None,
    device: options.Device = None,
    threads: options.Threads = None,
) -> None:
    """Searches for better settings with Optuna and writes the best to a file for `train`; can be resumed."""
    from rich.console import Console

    from wingspan.recipe import parse_range
    from wingspan.tuning.search import SearchRequest
    from wingspan.tuning.search import tune as run
    from wingspan.views.console import write_json

    use_threads(threads)
    request = SearchRequest(
        recipe,
        tuple(train),
        dev,
        output,
        encoder=encoder,
        settings=pairs(set, "--set"),
        ranges={key: parse_range(text) for key, text in pairs(range, "--range").items()},
        format=format,
        trials=trials,
        time_budget=time_budget,
        pruner=pruner,
        study=study,
        name=name,
        seed=seed,
        device=device,
        lexicon=lexicon,
        on_leak=on_leak,
    )
    result = run(request, Console(stderr=json == Path("-")))
    if json is not None:
        write_json(result.to_dict(), json)
    if result.best is None:
        raise typer.Exit(1)
