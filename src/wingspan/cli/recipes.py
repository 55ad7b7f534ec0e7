"""`wingspan recipes`: the systems, their variants, and the settings each one takes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from wingspan.cli import app
from wingspan.cli.options import Json, Parts, trusted

if TYPE_CHECKING:
    from wingspan.recipe import Recipe


@app.command(epilog="Example: wingspan recipes bundling/bl-span")
def recipes(name: Annotated[str | None, typer.Argument(help="Show this recipe with all its settings.")] = None) -> None:
    """Lists the systems, their variants and the paper each one is; or one of them with its settings."""
    from rich.console import Console

    show_recipe(name, Console()) if name else list_recipes(Console())


@app.command(epilog="Example: wingspan info runs/mine")
def info(
    model: Annotated[str, typer.Argument(help="A model folder or hub id.")],
    json: Json = None,
    parts: Parts = None,
) -> None:
    """Says what is in a model: system, labels, limits, scores."""
    from rich.console import Console

    from wingspan.views.console import write_json

    facts = describe_model(model, trusted(parts))
    if json is not None:
        write_json(facts, json)
        return
    for line in lines(facts):
        Console().print(line, highlight=False, markup=False, soft_wrap=True)


def list_recipes(console: Console) -> None:
    """All recipes with the paper each one is."""
    from wingspan.recipes import NAMES, find, variants

    table = Table("recipe", "variants", "what it is")
    for name in NAMES:
        known = [variant for variant in variants(name) if variant]
        table.add_row(name, ", ".join(known), find(name).paper)
    console.print(table)
    console.print("See one with its settings: wingspan recipes bundling/bl-span", highlight=False)


def show_recipe(name: str, console: Console) -> None:
    """One recipe: every setting and its value, as `--set` names it."""
    from wingspan.recipe_json import settings_of, to_record
    from wingspan.recipes import find

    recipe: Recipe = find(name)
    console.print(f"{recipe.name}: {recipe.paper}", highlight=False)
    for key, value in settings_of(to_record(recipe)):
        console.print(f"  {key} = {json.dumps(value)}", highlight=False, markup=False)


# --- `wingspan info`: what is in a model folder.


def describe_model(model: str | Path, parts: Sequence[str] = ()) -> dict[str, Any]:
    """The model's recipe, labels, size and what is known about its training, as plain data."""
    from wingspan.recipe_json import to_record
    from wingspan.recognizer import Recognizer

    recognizer = Recognizer.from_pretrained(model, device="cpu", parts=parts)
    recipe = recognizer.recipe
    return {
        "recipe": recipe.name,
        "system": recipe.paper,
        "labels": recognizer.labels.to_dict(),
        "max_width": recipe.max_width,
        "overlap": recipe.overlap,
        "read_with": recipe.read_with,
        "encoder": to_record(recipe.encoder),
        "max_length": recipe.segments.max_length,
        "parameters": sum(parameter.numel() for parameter in recognizer.learner.parameters()),
        "calibration": recognizer.calibration.to_dict() if recognizer.calibration else None,
        **recognizer.facts,
    }


def lines(facts: Mapping[str, Any]) -> Iterator[str]:
    """What `info` found, for people: one line for each fact, what belongs to it indented below."""
    for name, value in facts.items():
        yield from told(name, value["said"].removeprefix("Leaks: ") if name == "leaks" else value)


def told(name: str, value: Any, indent: str = "") -> Iterator[str]:
    """One fact, and what it is made of; scores in one line, wherever they stand."""
    if isinstance(value, Mapping) and "micro" in value:
        yield f"{indent}{name}: {figures(value['micro'])}"
    elif isinstance(value, Mapping) and value:
        yield f"{indent}{name}:"
        for key, inner in value.items():
            yield from told(str(key), inner, f"{indent}  ")
    else:
        yield f"{indent}{name}: {plain(value)}"


def plain(value: Any) -> str:
    """A value without the marks of Python."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(plain, value)) or "none"
    return "none" if value is None or value == {} else str(value)


def figures(micro: Mapping[str, Any]) -> str:
    """Strict scores in one line."""
    shares = ", ".join(f"{name} {micro[name]:.2f}" for name in ("precision", "recall", "f1"))
    return f"{shares} ({micro['tp']} right, {micro['fp']} spurious, {micro['fn']} missed)"
