"""Options that several commands share."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from wingspan.box import NAME
from wingspan.corpora.leaks import OnLeak

LEAK_OPTION = typer.Option(help="Training documents that are in dev or test: drop them, stop, or train on them.")
OnLeakOption = Annotated[OnLeak, LEAK_OPTION]
RecipeName = Annotated[str, typer.Argument(help="NAME, NAME/VARIANT, auto, or your own file with recipe().")]
ModelName = Annotated[str, typer.Argument(help="A model folder, a hub id, or wingspan-bio-small.")]
GoldCorpus = Annotated[Path, typer.Argument(help="The corpus with the right entities, in any format.")]
AllowMissing = Annotated[
    bool, typer.Option("--allow-missing", help="Gold documents without prediction count as predicted empty.")
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of every random draw.")]
Device = Annotated[str | None, typer.Option(help="cpu or cuda; otherwise a GPU where there is one.")]
ComputeIn = Annotated[str, typer.Option(help="auto, float32, bfloat16 or int8; faster on a CPU, a little less exact.")]
Threads = Annotated[int | None, typer.Option(min=1, help="CPU threads to use.")]
BatchSize = Annotated[int, typer.Option(min=1, help="Sentences per batch.")]
MostSentences = Annotated[
    int | None, typer.Option("--batch-size", min=1, help="The most sentences per batch; otherwise by their length.")
]
NoProgress = Annotated[bool, typer.Option("--no-progress", help="Show no bar while it works.")]
Parts = Annotated[
    list[Path] | None, typer.Option(help="A Python file with parts of the model; it is executed, so trust it.")
]
Dataset = Annotated[str | None, typer.Option(help="Use the labels of this corpus instead of the target's.")]
OneFormat = Annotated[str | None, typer.Option(help="Format of the corpus; otherwise found by name or content.")]
CorpusFormat = Annotated[str | None, typer.Option(help="Format of the corpora; otherwise found by name or content.")]
LabelNames = Annotated[
    str | None, typer.Option(help="Names of tags that the corpus has as numbers: O,B-PER,I-PER,... or a file.")
]
EncoderName = Annotated[str | None, typer.Option(help="hashed, static:FILE, minilm, e5-small, a folder, or a hub id.")]
Json = Annotated[Path | None, typer.Option(help="Write the figures to this file; - prints them instead.")]


def is_model(place: str | Path) -> bool:
    """Whether a folder holds a model, or the installed model is named."""
    # os.path says no of a text that is longer than a name may be; Path would raise
    return place == NAME or any(os.path.isfile(os.path.join(place, name)) for name in ("recipe.json", "export.json"))


def use_threads(threads: int | None) -> None:
    """Limits the CPU threads of torch; of onnxruntime where there is no torch."""
    if threads is None:
        return
    if find_spec("torch") is None:
        os.environ["OMP_NUM_THREADS"] = str(threads)
        return
    import torch

    torch.set_num_threads(threads)


def trusted(parts: list[Path] | None) -> list[str]:
    """Imports the user's files; returns the names of their modules."""
    if not parts:
        return []
    from wingspan.recipes import import_file

    return [import_file(path).__name__ for path in parts]


def pairs(items: list[str] | None, option: str, example: str = "train.epochs=3") -> dict[str, str]:
    """`key=value` options as a dictionary."""
    values = {}
    for item in items or []:
        key, equals, value = item.partition("=")
        if not equals or not key:
            raise ValueError(f"{option} {item}: write it as key=value, for example {option} {example}")
        values[key] = value
    return values


def whole_numbers(seeds: str) -> list[int]:
    """`1,2,3` as numbers."""
    if not all(number.strip().isdecimal() for number in seeds.split(",")):
        raise ValueError(f"--seeds {seeds}: write whole numbers with commas, for example --seeds 1,2,3")
    return [int(number) for number in seeds.split(",")]
