"""The settings that `wingspan tune` tries: which of the declared ranges a recipe has, and where it is itself."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import partial
from typing import Any

from wingspan.recipe import Between, OneOf, Range, Recipe, Times
from wingspan.recipe_json import override
from wingspan.training.optimizer import by_prefix

Space = Mapping[str, Between | OneOf]

FACTORS = ("train.factors", "train.decays")
"""Settings that are numbers by the prefix of parameters' names."""


def search_space(
    recipe: Recipe, declared: Mapping[str, Range], given: Mapping[str, Between | OneOf], fixed: Mapping[str, str]
) -> dict[str, Between | OneOf]:
    """The ranges to search. Declared ones that this variant does not have, or that `--set` fixes, are left out.

    Those the user gave replace the declared ones and have to fit.
    """
    found: dict[str, Between | OneOf] = {}
    for key, one in {**declared, **given}.items():
        if key in fixed and key in given:
            raise ValueError(f"{key} has both --set and --range; give one of them")
        if key in fixed:
            continue
        try:
            check_term(recipe, key)
            resolved = one.around(value_of(recipe, key)) if isinstance(one, Times) else one
            for text in samples(resolved):
                override(recipe, key, text)
        except ValueError as error:
            if key in given:
                raise ValueError(f"--range {key}: {error}") from error
            continue
        found[key] = resolved
    if not found:
        raise ValueError("there is nothing to search; give ranges, for example --range train.epochs=5:20")
    return found


def check_term(recipe: Recipe, key: str) -> None:
    """Rates are set for any name of parameters, but those of a term that the recipe lacks would change nothing."""
    place, _, rest = key.partition(".objectives.")
    term = rest.partition(".")[0]
    if place in FACTORS and term and term not in recipe.terms:
        raise ValueError(f"the recipe has no term {term!r}; it has {', '.join(recipe.terms)}")


def samples(one: Between | OneOf) -> list[str]:
    """What a range can give, its ends at least, as `--set` takes it."""
    return [as_text(value) for value in (one.values if isinstance(one, OneOf) else (one.low, one.high))]


def as_text(value: Any) -> str:
    """A value as `--set` takes it."""
    return value if isinstance(value, str) else json.dumps(value)


def own_values(recipe: Recipe, space: Space) -> dict[str, Any] | None:
    """The recipe's own values, to be tried first; None where one of them lies outside of its range."""
    own = {key: value_of(recipe, key) for key in space}
    return own if all(space[key].holds(value) for key, value in own.items()) else None


def value_of(recipe: Recipe, key: str) -> Any:
    """What a recipe has under a name of `--set`; the default of the part where the recipe says nothing."""
    for numbers in FACTORS:
        if key.startswith(f"{numbers}."):  # one where nothing is said
            return by_prefix(key.removeprefix(f"{numbers}."), value_of(recipe, numbers))
    value: Any = recipe
    names = key.split(".")
    for place, name in enumerate(names):
        if isinstance(value, partial):
            parameters = inspect.signature(value.func).parameters
            value = value.keywords.get(name, parameters[name].default if name in parameters else None)
        elif isinstance(value, Mapping):
            if ".".join(names[place:]) in value:  # names of parameters, dots and all
                return value[".".join(names[place:])]
            value = value.get(name)
        elif isinstance(value, tuple) and name.isdigit():  # phases, by their place
            value = value[int(name)] if int(name) < len(value) else None
        else:
            value = getattr(value, name, None) if is_dataclass(value) else None
    return value
