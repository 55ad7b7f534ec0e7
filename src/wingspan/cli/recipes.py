"""`wingspan recipes`: the systems, their variants and settings; `wingspan info`: the contents of a model folder."""

from collections.abc import Iterator, Mapping, Sequence
from json import dumps
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from wingspan.cli import app
from wingspan.cli.options import Json, Parts, trusted
from wingspan.views.console import say, write_json


@app.command(epilog="Example: wingspan recipes bundling/bl-span")
def recipes(name: Annotated[str | None, typer.Argument(help="Show this recipe with all its settings.")] = None) -> None:
    """Lists the systems, their variants and papers; or shows one of them with all its settings."""
    from wingspan.recipe_json import settings_of
    from wingspan.recipes import NAMES, find, variants

    console = Console()
    if name is None:
        table = Table("recipe", "variants", "what it is")
        for each in NAMES:
            table.add_row(each, ", ".join(filter(None, variants(each))), find(each).paper)
        console.print(table)
        console.print("See one with its settings: wingspan recipes bundling/bl-span", highlight=False)
        return
    recipe = find(name)
    console.print(f"{recipe.name}: {recipe.paper}", highlight=False)
    console.print("Settings follow an equals sign; change one with wingspan train --set KEY=VALUE", highlight=False)
    for key, value, settable, unused in settings_of(recipe):
        shown = value if isinstance(value, str) and not settable else dumps(value)
        note = f"  (unused while {unused} is null)" if unused else ""
        say(console, f"  {key}{' =' if settable else ':'} {shown}{note}")


@app.command(epilog="Example: wingspan info runs/mine")
def info(
    model: Annotated[str | None, typer.Argument(help="A model folder or hub id; otherwise wingspan-bio-small.")] = None,
    json: Json = None,
    parts: Parts = None,
) -> None:
    """Describes a model: system, labels, limits, scores."""
    facts = describe_model(model, trusted(parts))
    if json is not None:
        write_json(facts, json)
        return
    for name, value in facts.items():
        for line in fact_lines(name, value["said"].removeprefix("Leaks: ") if name == "leaks" else value):
            say(Console(), line)


def describe_model(model: str | Path | None, parts: Sequence[str] = ()) -> dict[str, Any]:
    """The model's recipe, labels, size and facts about its training, as plain data."""
    from wingspan.recipe import Recipe
    from wingspan.recipe_json import as_json
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
        "encoder": as_json(recipe.encoder) if isinstance(recipe, Recipe) else "exported",
        "max_length": recipe.segments.max_length,
        "parameters": recognizer.engine.parameters,
        "calibration": recognizer.calibration.to_dict() if recognizer.calibration else None,
        **recognizer.facts,
    }


def fact_lines(name: str, value: Any, indent: str = "") -> Iterator[str]:
    """One fact and its inner facts; scores are one line."""
    if isinstance(value, Mapping) and "micro" in value:
        micro = value["micro"]
        shares = ", ".join(f"{figure} {micro[figure]:.2f}" for figure in ("precision", "recall", "f1"))
        yield f"{indent}{name}: {shares} ({micro['tp']} right, {micro['fp']} spurious, {micro['fn']} missed)"
    elif isinstance(value, Mapping) and value:
        yield f"{indent}{name}:"
        for key, inner in value.items():
            yield from fact_lines(str(key), inner, f"{indent}  ")
    else:
        yield f"{indent}{name}: {plain(value)}"


def plain(value: Any) -> str:
    """A value without Python's quotes and brackets."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(plain, value)) or "none"
    return "none" if value is None or value == {} else str(value)
