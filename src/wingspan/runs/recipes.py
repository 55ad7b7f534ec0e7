"""`wingspan recipes`: the systems, their variants, and the settings each one takes."""

from __future__ import annotations

import json

from rich.console import Console
from rich.table import Table

from wingspan.recipe import Recipe
from wingspan.recipes import NAMES, find, variants
from wingspan.record import settings_of, to_record


def list_recipes(console: Console) -> None:
    """All recipes with the paper each one is."""
    table = Table("recipe", "variants", "what it is")
    for name in NAMES:
        known = [variant for variant in variants(name) if variant]
        table.add_row(name, ", ".join(known), find(name).paper)
    console.print(table)
    console.print("See one with its settings: wingspan recipes bundling/bl-span", highlight=False)


def show_recipe(name: str, console: Console) -> None:
    """One recipe: every setting and its value, as `--set` names it."""
    recipe: Recipe = find(name)
    console.print(f"{recipe.name}: {recipe.paper}", highlight=False)
    for key, value in settings_of(to_record(recipe)):
        console.print(f"  {key} = {json.dumps(value)}", highlight=False, markup=False)
