"""Commands that run a model: `demo`, `recipes`, `predict`, `evaluate`, `info`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from wingspan.cli import app


class OverlapChoice(StrEnum):
    """Which found entities may overlap."""

    flat = "flat"
    nested = "nested"
    any = "any"


Device = Annotated[str | None, typer.Option(help="cpu or cuda; otherwise a GPU where there is one.")]
Threads = Annotated[int | None, typer.Option(min=1, help="CPU threads to use.")]
BatchSize = Annotated[int, typer.Option(min=1, help="Sentences that are read at once.")]
Parts = Annotated[
    list[Path] | None, typer.Option(help="A Python file of yours with parts of the model; it is run, so trust it.")
]
Dataset = Annotated[
    str | None, typer.Option(help="Answer in the labels of this corpus; otherwise in those of the model's target.")
]
CorpusFormat = Annotated[str | None, typer.Option(help="Format of the corpora; otherwise found by name or content.")]
EncoderName = Annotated[str | None, typer.Option(help="hashed, static:FILE, minilm, e5-small, a folder, or a hub id.")]
Json = Annotated[Path | None, typer.Option(help="Write the figures to this file; - prints them instead.")]


def use_threads(threads: int | None) -> None:
    """Limits the CPU threads of torch."""
    if threads is not None:
        import torch

        torch.set_num_threads(threads)


def trusted(parts: list[Path] | None) -> list[str]:
    """Imports the user's own files and names their modules."""
    from wingspan.recipes import import_file

    return [import_file(path).__name__ for path in parts or []]


def pairs(given: list[str] | None, option: str, example: str = "train.epochs=3") -> dict[str, str]:
    """`key=value` options as a dictionary."""
    found = {}
    for item in given or []:
        key, equals, value = item.partition("=")
        if not equals or not key:
            raise ValueError(f"{option} {item}: write it as key=value, for example {option} {example}")
        found[key] = value
    return found


def whole_numbers(seeds: str) -> list[int]:
    """`1,2,3` as numbers."""
    if not all(number.strip().isdecimal() for number in seeds.split(",")):
        raise ValueError(f"--seeds {seeds}: write whole numbers with commas, for example --seeds 1,2,3")
    return [int(number) for number in seeds.split(",")]


@app.command(epilog="Example: wingspan demo")
def demo(
    output: Annotated[Path | None, typer.Option(help="Keep the model in this folder.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Another seed, another model.")] = 1,
    threads: Threads = None,
) -> None:
    """Trains, scores and shows entities on the built-in corpus; no network, under three minutes on two cores."""
    from rich.console import Console

    from wingspan.runs.demo import demo as run

    use_threads(threads)
    run(Console(), output, seed)


@app.command(epilog="Example: wingspan recipes bundling/bl-span")
def recipes(name: Annotated[str | None, typer.Argument(help="Show this recipe with all its settings.")] = None) -> None:
    """Lists the systems, their variants and the paper each one is; or one of them with its settings."""
    from rich.console import Console

    from wingspan.runs.recipes import list_recipes, show_recipe

    show_recipe(name, Console()) if name else list_recipes(Console())


@app.command(epilog="Example: wingspan predict 'Familial breast cancer.' --model runs/mine")
def predict(
    inputs: Annotated[list[str], typer.Argument(metavar="INPUT", help="A text, files, a folder, or - for lines.")],
    model: Annotated[str, typer.Option(help="A model folder or hub id.")],
    output: Annotated[
        Path | None, typer.Option(help="Write documents here; otherwise shown, or JSON lines in a pipe.")
    ] = None,
    format: Annotated[str | None, typer.Option("--from", help="Format of the input files.")] = None,
    to: Annotated[
        str | None, typer.Option("--format", help="Format of the output; otherwise told by its name.")
    ] = None,
    lossy: Annotated[
        bool, typer.Option("--lossy", help="Write although the format changes entities, such as discontinuous ones.")
    ] = False,
    overlap: Annotated[
        OverlapChoice | None, typer.Option(help="Which entities may overlap; otherwise as trained.")
    ] = None,
    threshold: Annotated[float | None, typer.Option(min=0.0, max=1.0, help="The least score of an entity.")] = None,
    dataset: Dataset = None,
    batch_size: BatchSize = 32,
    parts: Parts = None,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Finds entities in texts of any length."""
    from rich.console import Console

    from wingspan.runs.predict import predict as run
    from wingspan.runs.speaking import counted, say

    use_threads(threads)
    console = Console()
    number = run(
        inputs,
        model=model,
        output=output,
        format=format,
        to=to,
        lossy=lossy,
        overlap=overlap.value if overlap else None,
        threshold=threshold,
        dataset=dataset,
        batch_size=batch_size,
        parts=trusted(parts),
        device=device,
        console=console,
    )
    if output is not None:
        say(console, f"{output}: {counted(number, 'document')}")


@app.command(epilog="Example: wingspan evaluate runs/mine test.jsonl --json figures.json")
def evaluate(
    model: Annotated[str, typer.Argument(help="A model folder or hub id.")],
    corpus: Annotated[Path, typer.Argument(help="The corpus with the right entities, in any format.")],
    format: Annotated[
        str | None, typer.Option(help="Format of the corpus; otherwise found by name or content.")
    ] = None,
    dataset: Dataset = None,
    label_map: Annotated[
        Path | None, typer.Option(help="Score in the target's labels; this table says what those of --dataset mean.")
    ] = None,
    json: Json = None,
    batch_size: BatchSize = 32,
    parts: Parts = None,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Scores a model on a corpus: strict precision, recall and F1, with what it can never find; or typing accuracy."""
    from rich.console import Console

    from wingspan.runs.evaluate import evaluate as run
    from wingspan.runs.figures import write_figures
    from wingspan.runs.tables import print_scores

    use_threads(threads)
    console = Console(stderr=json is not None and str(json) == "-")
    scores = run(
        model,
        corpus,
        format=format,
        dataset=dataset,
        label_map=label_map,
        batch_size=batch_size,
        parts=trusted(parts),
        device=device,
        console=console,
    )
    print_scores(scores, console)
    if json is not None:
        write_figures(scores.to_dict(), json)


@app.command(epilog="Example: wingspan info runs/mine")
def info(
    model: Annotated[str, typer.Argument(help="A model folder or hub id.")],
    json: Json = None,
    parts: Parts = None,
) -> None:
    """Says what is in a model: system, labels, limits, scores."""
    from rich.console import Console

    from wingspan.runs import info as run
    from wingspan.runs.figures import write_figures

    facts = run.info(model, trusted(parts))
    if json is not None:
        write_figures(facts, json)
        return
    for line in run.lines(facts):
        Console().print(line, highlight=False, markup=False, soft_wrap=True)
