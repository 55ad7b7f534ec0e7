"""A recipe as JSON and back, and `--set key=value`. The record holds scalars, lists, maps and parts, never code.

Loading imports a part only after its module's prefix was checked, and insists on the family it must belong to.
"""

from __future__ import annotations

import difflib
import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any

from wingspan.candidates import CandidatePolicy
from wingspan.corpora.segment import Segmenting
from wingspan.encoders import Encoder
from wingspan.heads import Head
from wingspan.objectives import Objective
from wingspan.recipe import Phase, Recipe, Term, TrainSettings
from wingspan.spans import SpanRepresentation

PLAIN = {cls.__name__: cls for cls in (Recipe, Term, Phase, TrainSettings, Segmenting)}
FAMILIES = (Encoder, SpanRepresentation, Head, Objective, CandidatePolicy)


def to_record(value: Any) -> Any:
    """Any value of a recipe as plain data."""
    if isinstance(value, partial):
        settings = {name: to_record(part) for name, part in value.keywords.items()}
        return {"part": f"{value.func.__module__}:{value.func.__qualname__}", **settings}
    if inspect.isclass(value):
        return {"part": f"{value.__module__}:{value.__qualname__}"}
    if is_dataclass(value) and not isinstance(value, type):
        named = {field.name: to_record(getattr(value, field.name)) for field in fields(value)}
        return {"record": type(value).__name__, **named}
    if isinstance(value, Mapping):
        return {str(name): to_record(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [to_record(part) for part in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise ValueError(f"a recipe holds scalars, lists, maps and parts; {value!r} is none of them")


def from_record(value: Any, parts: Sequence[str] = ()) -> Any:
    """Plain data as recipe values. `parts` are modules outside wingspan that the caller trusts."""
    if isinstance(value, list):
        return tuple(from_record(part, parts) for part in value)
    if not isinstance(value, dict):
        return value
    settings = {name: from_record(part, parts) for name, part in value.items() if name not in ("part", "record")}
    if "record" in value:
        plain = PLAIN.get(str(value["record"]))
        if plain is None:
            raise ValueError(f"recipe.json has an unknown record {value['record']!r}; it needs a newer wingspan")
        known = {field.name for field in fields(plain)}
        unknown = sorted(set(settings) - known)
        if unknown:
            raise ValueError(f"recipe.json: {value['record']} has no setting {unknown[0]!r}; it needs a newer wingspan")
        return plain(**settings)
    if "part" in value:
        return partial(part_named(str(value["part"]), parts), **settings)
    return settings


def part_named(path: str, parts: Sequence[str] = ()) -> type:
    """The class behind "module:Class", if its module may be imported and it is one of our families."""
    module, _, name = path.partition(":")
    allowed = module.startswith("wingspan.") or any(module == own or module.startswith(f"{own}.") for own in parts)
    if not allowed:
        raise ValueError(
            f"recipe.json names a part {path!r} outside wingspan; if you trust it, load with parts=[{module!r}]"
        )
    try:
        found = getattr(import_module(module), name, None)
    except ImportError as error:
        raise ValueError(f"recipe.json names a part {path!r} that cannot be imported ({error})") from error
    if not (inspect.isclass(found) and issubclass(found, FAMILIES)):
        raise ValueError(f"recipe.json names {path!r}, which is no encoder, span representation, head or objective")
    return found


def override(recipe: Recipe, key: str, text: str) -> Recipe:
    """`--set spans.width_size=10`: a scalar anywhere in the recipe; anything structural is a Python function."""
    changed: Recipe = _set(recipe, key.split("."), parse(text), key)
    return changed


def parse(text: str) -> Any:
    """A value from the shell: a JSON scalar or list, else a word."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return {"none": None, "true": True, "false": False}.get(text.lower(), text)
    return tuple(value) if isinstance(value, list) else value


def _set(where: Any, path: list[str], value: Any, key: str) -> Any:
    name, rest = path[0], path[1:]
    if is_dataclass(where) and not isinstance(where, type):
        _check(name, [field.name for field in fields(where)], key)
        old = getattr(where, name)
        return replace(where, **{name: _set(old, rest, value, key) if rest else _like(old, value, key)})
    if isinstance(where, partial):
        known = inspect.signature(where.func).parameters
        _check(name, [p.name for p in known.values() if p.kind is p.KEYWORD_ONLY], key)
        old = where.keywords.get(name, known[name].default)
        new = _set(old, rest, value, key) if rest else _like(old, value, key)
        return partial(where.func, **{**where.keywords, name: new})
    if isinstance(where, Mapping):
        if name in where and rest:
            return {**where, name: _set(where[name], rest, value, key)}
        if not where or all(isinstance(part, int | float) for part in where.values()):
            return {**where, ".".join(path): value}  # the keys of such maps are parameter names or labels
        _check(name, list(where), key)
    raise ValueError(f"--set {key}: nothing can be set inside {where!r}")


def _check(name: str, known: list[str], key: str) -> None:
    if name not in known:
        near = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
        raise ValueError(f"--set {key}: no setting {name!r}; {hint}")


def _like(old: Any, value: Any, key: str) -> Any:
    """The value, if it can stand where the old one stood."""
    if isinstance(old, partial) or inspect.isclass(old) or is_dataclass(old):
        raise ValueError(f"--set {key}: this is a part, not a scalar; write a recipe file to change it")
    if isinstance(old, bool) != isinstance(value, bool) and isinstance(old, bool):
        raise ValueError(f"--set {key}: expected true or false, not {value!r}")
    number = isinstance(old, int | float) and not isinstance(old, bool)
    if number and value is not None and (isinstance(value, str | bool) and value != "auto"):
        raise ValueError(f"--set {key}: expected a number like {old!r}, not {value!r}")
    if isinstance(old, int) and not isinstance(old, bool) and isinstance(value, float) and value != int(value):
        raise ValueError(f"--set {key}: expected a whole number like {old!r}, not {value!r}")
    return value
