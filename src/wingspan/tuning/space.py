"""The search space of `wingspan tune`: the ranges that a recipe has, and its own values in them."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import partial
from typing import Any

from wingspan.recipe import Between, OneOf, Range, Recipe, Times
from wingspan.recipe_json import override
from wingspan.training.loop import by_prefix

FACTORS = ("train.factors", "train.decays")
"""Settings that map prefixes of parameter names to numbers."""


def search_space(
    recipe: Recipe, declared: Mapping[str, Range], requested: Mapping[str, Between | OneOf], fixed: Mapping[str, str]
) -> dict[str, Between | OneOf]:
    """The ranges to search. Declared ones that this variant does not have, or that `--set` fixes, are left out.

    Requested ranges replace the declared ones and have to fit.
    """
    space: dict[str, Between | OneOf] = {}
    for key, choices in {**declared, **requested}.items():
        if key in fixed and key in requested:
            raise ValueError(f"{key} has both --set and --range; give one of them")
        if key in fixed:
            continue
        try:
            setting, _, rest = key.partition(".objectives.")
            term = rest.partition(".")[0]
            if setting in FACTORS and term and term not in recipe.terms:  # such a factor would change nothing
                raise ValueError(f"the recipe has no term {term!r}; it has {', '.join(recipe.terms)}")
            resolved = choices.around(value_of(recipe, key)) if isinstance(choices, Times) else choices
            for value in resolved.values if isinstance(resolved, OneOf) else (resolved.low, resolved.high):
                override(recipe, key, as_text(value))
        except ValueError as error:
            if key in requested:
                raise ValueError(f"--range {key}: {error}") from error
            continue
        space[key] = resolved
    if not space:
        raise ValueError("there is nothing to search; give ranges, for example --range train.epochs=5:20")
    return space


def as_text(value: Any) -> str:
    """A value in the form of `--set`."""
    return value if isinstance(value, str) else json.dumps(value)


def own_values(recipe: Recipe, space: Mapping[str, Between | OneOf]) -> dict[str, Any] | None:
    """The recipe's own values, to be tried first; None if one of them is outside its range."""
    own = {key: value_of(recipe, key) for key in space}
    return own if all(space[key].holds(value) for key, value in own.items()) else None


def value_of(recipe: Recipe, key: str) -> Any:
    """The value of a setting of a recipe; the default of the part where the recipe sets none."""
    for numbers in FACTORS:
        if key.startswith(f"{numbers}."):
            return by_prefix(key.removeprefix(f"{numbers}."), value_of(recipe, numbers))
    value: Any = recipe
    names = key.split(".")
    for at, name in enumerate(names):
        if isinstance(value, partial):
            parameters = inspect.signature(value.func).parameters
            value = value.keywords.get(name, parameters[name].default if name in parameters else None)
        elif isinstance(value, Mapping):
            if ".".join(names[at:]) in value:  # names of parameters contain dots
                return value[".".join(names[at:])]
            value = value.get(name)
        elif isinstance(value, tuple) and name.isdigit():  # phases by number
            value = value[int(name)] if int(name) < len(value) else None
        else:
            value = getattr(value, name, None) if is_dataclass(value) else None
    return value
