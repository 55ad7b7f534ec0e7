"""A recipe as JSON and back, and `--set key=value`. The JSON holds scalars, lists, maps and parts, never code.

Loading imports a part only after checking the prefix of its module, and insists on the family it must belong to.
"""

import difflib
import inspect
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from wingspan.candidates import CandidatePolicy
from wingspan.corpora.segment import Segmenting
from wingspan.decoding import Joining
from wingspan.encoders import Encoder
from wingspan.encoders.lora import Lora
from wingspan.files import atomic_write, load_toml, settings, word
from wingspan.heads import Head
from wingspan.objectives import Objective
from wingspan.recipe import Phase, Recipe, Term, TrainSettings
from wingspan.spans import SpanRepresentation

PLAIN = {cls.__name__: cls for cls in (Recipe, Term, Phase, TrainSettings, Segmenting, Joining, Lora)}
RESERVED = {"part", "record"}
SLOTS: dict[str, dict[str, type]] = {
    "Recipe": {"encoder": Encoder, "spans": SpanRepresentation, "head": Head, "candidates": CandidatePolicy},
    "Term": {"objective": Objective},
}
FAMILIES = tuple(family for slots in SLOTS.values() for family in slots.values())
MOVED = {
    "wingspan.candidates:Proposed": "wingspan.candidates.proposed:Proposed",
    "wingspan.encoders.static_pieces:StaticPieces": "wingspan.encoders.static:StaticPieces",
    "wingspan.spans.projected:ProjectedSpans": "wingspan.spans.contextual:ProjectedSpans",
}
"""Parts by the names that older model folders have for them."""
GONE = {"TrainSettings": {"average"}}
"""Settings of older model folders that nothing has any more. They were about training, so that nothing else changes."""
GONE_OBJECTIVES = {"wingspan.objectives.classification:Consistency"}
"""Objectives of older model folders that nothing has any more, likewise; they had no weights."""


def as_json(value: Any) -> Any:
    """Any value of a recipe as JSON data."""
    if isinstance(value, partial):
        if value.args:
            raise ValueError(f"give the settings of {value.func.__qualname__} by name; {value.args[0]!r} has none")
        settings = {name: as_json(part) for name, part in value.keywords.items()}
        return {"part": f"{value.func.__module__}:{value.func.__qualname__}", **settings}
    if inspect.isclass(value):
        return {"part": f"{value.__module__}:{value.__qualname__}"}
    if is_dataclass(value) and not isinstance(value, type):
        named = {field.name: as_json(getattr(value, field.name)) for field in fields(value)}
        return {"record": type(value).__name__, **named}
    if isinstance(value, Mapping):
        if RESERVED & set(value):  # a corpus may well have a label "part"
            return {"record": "pairs", "pairs": [[str(name), as_json(part)] for name, part in value.items()]}
        return {str(name): as_json(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(part) for part in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise ValueError(f"a recipe holds scalars, lists, maps and parts; {value!r} is none of them")


def spelled_out(value: Any) -> Any:
    """The same recipe with every setting named: saved so, a model stays what it is when a default changes.

    A default that its own annotation does not allow, which may be that of a user's part, is left where it is.
    """
    if inspect.isclass(value):
        value = partial(value)
    if isinstance(value, partial):
        settings = dict(value.keywords)
        for name, setting in inspect.signature(value.func, eval_str=True).parameters.items():
            usable = any(fits(setting.default, kind) for kind in kinds(setting.annotation))
            if setting.kind is setting.KEYWORD_ONLY and name not in settings and usable:
                settings[name] = setting.default
        return partial(value.func, *value.args, **{name: spelled_out(part) for name, part in settings.items()})
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: spelled_out(getattr(value, field.name)) for field in fields(value)})
    if isinstance(value, Mapping):
        return {name: spelled_out(part) for name, part in value.items()}
    return tuple(map(spelled_out, value)) if isinstance(value, list | tuple) else value


def flat(value: object, prefix: str = "") -> list[tuple[str, object]]:
    """Every scalar of a recipe as JSON with its dotted name; parts are shown by their class."""
    if not isinstance(value, dict):
        return [(prefix, value)]
    rows: list[tuple[str, object]] = []
    for key, inner in value.items():
        if key == "part":
            rows.append((prefix, inner))
        elif key != "record" and (prefix or key not in ("name", "paper")):
            rows.extend(flat(inner, f"{prefix}.{key}" if prefix else key))
    return rows


class Setting(NamedTuple):
    """One line of `wingspan recipes NAME`: a dotted name with its value as JSON."""

    key: str
    value: Any
    settable: bool = True  # whether `--set` takes it; parts and lists of terms are shown only
    unused: str | None = None
    """The setting that is null and makes this one unused; setting this one switches that one on."""


def settings_of(recipe: Recipe) -> Iterator[Setting]:
    """Every setting of a recipe and its parts, those left at their defaults included."""
    for name, hint in get_type_hints(Recipe).items():
        if name not in ("name", "paper"):
            yield from _settings(getattr(recipe, name), hint, name)


def _settings(value: Any, hint: Any, key: str) -> Iterator[Setting]:
    """The settings inside a value, with the names that `_set` takes; `hint` is its annotation."""
    if isinstance(value, partial):
        yield Setting(key, as_json(value)["part"], settable=False)
        for name, setting in inspect.signature(value.func, eval_str=True).parameters.items():
            if setting.kind is setting.KEYWORD_ONLY:
                inner = value.keywords.get(name, setting.default)
                yield from _settings(inner, setting.annotation, f"{key}.{name}")
    elif is_dataclass(value) and not isinstance(value, type):
        for name, inner_hint in get_type_hints(type(value)).items():
            yield from _settings(getattr(value, name), inner_hint, f"{key}.{name}")
    elif isinstance(value, tuple) and value and is_dataclass(value[0]):
        for at, inner in enumerate(value):
            yield from _settings(inner, type(inner), f"{key}.{at}")
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _settings(inner, type(inner), f"{key}.{name}")
    else:
        optional = [kind for kind in kinds(hint) if is_dataclass(kind) and isinstance(kind, type)]
        settable = all(kind in optional or expected(kind) is not None for kind in kinds(hint))
        yield Setting(key, as_json(value), settable)
        for kind in optional if value is None else ():
            yield from (setting._replace(unused=key) for setting in _settings(kind(), kind, key))
    if any(map(takes_names, kinds(hint))):
        yield Setting(f"{key}.NAME", expected(Mapping[str, float]), settable=False)


def from_json(value: Any, parts: Sequence[str] = ()) -> Any:
    """JSON data as a value of a recipe. `parts` are modules outside wingspan that the caller trusts."""
    if isinstance(value, list):
        return tuple(from_json(part, parts) for part in value)
    if not isinstance(value, dict):
        return value
    if value.get("record") == "Recipe":
        value = without_gone(value)
    settings = {name: from_json(part, parts) for name, part in value.items() if name not in RESERVED}
    if value.get("record") == "pairs":
        pairs = settings.get("pairs", ())
        if not all(isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs):
            raise ValueError("recipe.json: a map is damaged; copy or train the model again")
        return dict(pairs)
    if "record" in value:
        plain = PLAIN.get(str(value["record"]))
        if plain is None:
            raise ValueError(f"recipe.json has an unknown record {value['record']!r}; it needs a newer wingspan")
        for name in GONE.get(plain.__name__, ()):
            settings.pop(name, None)
        for slot, family in SLOTS.get(plain.__name__, {}).items():
            part = settings.get(slot)
            made_by: Any = part.func if isinstance(part, partial) else object
            if part is not None and not issubclass(made_by, family):
                raise ValueError(f"recipe.json: the {slot} must be a part of the family {family.__name__}")
        check_kinds(plain.__name__, plain.__name__, settings, get_type_hints(plain))
        try:
            return plain(**settings)
        except TypeError as error:
            raise ValueError(f"recipe.json: {value['record']} is damaged ({error})") from error
    if "part" in value:
        found = part_named(str(value["part"]), parts)
        signature = inspect.signature(found, eval_str=True).parameters
        hints = {name: setting.annotation for name, setting in signature.items()}
        check_kinds(value["part"], found.__name__, settings, hints)
        return partial(found, **settings)
    return settings


def without_gone(recipe: dict[str, Any]) -> dict[str, Any]:
    """A recipe's record without terms whose objective is gone, in its phases, too."""
    terms, phases = recipe.get("terms"), recipe.get("phases", [])
    if not isinstance(terms, dict) or not isinstance(phases, list):
        return recipe  # damaged, which is said later
    kept = {name: term for name, term in terms.items() if objective_of(term) not in GONE_OBJECTIVES}
    gone = terms.keys() - kept.keys()
    if not gone:
        return recipe
    used = [
        {**phase, "terms": [name for name in phase["terms"] if not (isinstance(name, str) and name in gone)]}
        if isinstance(phase, dict) and isinstance(phase.get("terms"), list)
        else phase
        for phase in phases
    ]
    return {**recipe, "terms": kept, "phases": used}


def objective_of(term: Any) -> str:
    """The part that a term's record names."""
    objective = term.get("objective") if isinstance(term, dict) else None
    return str(objective.get("part")) if isinstance(objective, dict) else ""


def check_kinds(path: str, owner: str, settings: Mapping[str, Any], hints: Mapping[str, Any]) -> None:
    """Rejects settings that are unknown, or do not fit their annotations: the file is damaged."""
    unknown = sorted(set(settings) - set(hints))
    if unknown:
        raise ValueError(f"recipe.json: {path} has no setting {unknown[0]!r}; it needs a newer wingspan")
    for name, value in settings.items():
        if not any(fits(value, kind) for kind in kinds(hints[name])):
            raise ValueError(f"recipe.json: {name} of {owner} is damaged ({value!r})")


def part_named(path: str, parts: Sequence[str] = ()) -> type:
    """The class behind "module:Class", if its module is trusted and it belongs to a family of parts."""
    module, _, name = MOVED.get(path, path).partition(":")
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
    try:
        changed: Recipe = _set(recipe, Any, key.split("."), text, key)
    except UnknownSetting:
        keys = [setting.key for setting in settings_of(recipe) if setting.settable]
        last = key.rpartition(".")[2]
        same = [each for each in keys if each.rpartition(".")[2] == last]
        near = difflib.get_close_matches(key, same, 1, 0.0) or difflib.get_close_matches(key, keys, 1, 0.8)
        if not near:
            raise
        raise UnknownSetting(f"--set {key}: no such setting; did you mean {near[0]!r}?") from None
    return changed


class UnknownSetting(ValueError):
    """There is no setting of that name; the message suggests one."""


def parse(text: str) -> Any:
    """A value from the shell: a JSON scalar or list, else a word."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return {"none": None, "true": True, "false": False}.get(text.lower(), text)
    return tuple(value) if isinstance(value, list) else value


def _set(old: Any, hint: Any, path: list[str], text: str, key: str) -> Any:
    """The old value with a new value at the path; `hint` is its annotation."""
    if not path:
        return _value(hint, text, key)
    if old is None:  # `encoder.adapters.rank=8` switches adapters on, with their defaults for the rest
        old = next((kind() for kind in kinds(hint) if is_dataclass(kind) and isinstance(kind, type)), None)
    if is_dataclass(old) and not isinstance(old, type):
        name = _known(path[0], [field.name for field in fields(old)], key)
        return replace(old, **{name: _set(getattr(old, name), get_type_hints(type(old))[name], path[1:], text, key)})
    if isinstance(old, partial):
        settings = inspect.signature(old.func, eval_str=True).parameters
        name = _known(path[0], [p.name for p in settings.values() if p.kind is p.KEYWORD_ONLY], key)
        value = old.keywords.get(name, settings[name].default)
        return partial(old.func, **{**old.keywords, name: _set(value, settings[name].annotation, path[1:], text, key)})
    if isinstance(old, tuple) and old and is_dataclass(old[0]):  # phases, by their place
        at = int(_known(path[0], [str(number) for number in range(len(old))], key))
        return (*old[:at], _set(old[at], type(old[at]), path[1:], text, key), *old[at + 1 :])
    if any(map(takes_names, kinds(hint))):  # the keys of such maps are labels or names of parameters, dots and all
        kept = dict(old) if isinstance(old, Mapping) else {}
        return {**kept, ".".join(path): _value(float, text, key)}
    if isinstance(old, Mapping):
        name = _known(path[0], list(old), key)
        return {**old, name: _set(old[name], type(old[name]), path[1:], text, key)}
    raise ValueError(f"--set {key}: nothing can be set inside {old!r}")


def _known(name: str, known: list[str], key: str) -> str:
    if name in known:
        return name
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
    raise UnknownSetting(f"--set {key}: no setting {name!r}; {hint}")


def _value(hint: Any, text: str, key: str) -> Any:
    """The text as the annotation requires it: `2` and `2.0` are whole numbers, `2` may also be a name."""
    if parse(text) is None and NoneType in kinds(hint) and any(map(is_dataclass, kinds(hint))):
        return None  # such settings as adapters can be switched off
    choices = [kind for kind in map(expected, kinds(hint)) if kind is not None]
    if len(choices) < len(kinds(hint)):
        raise ValueError(f"--set {key}: this is a part, not a scalar; write a recipe file to change it")
    value = parse(text)
    whole = int(value) if isinstance(value, float) and value.is_integer() else value
    for choice in (value, whole, text):
        if any(fits(choice, kind) for kind in kinds(hint)):
            return choice
    raise ValueError(f"--set {key}: expected {' or '.join(choices)}, not {text!r}")


def kinds(hint: Any) -> tuple[Any, ...]:
    """The alternatives of an annotation."""
    return get_args(hint) if isinstance(hint, UnionType) or get_origin(hint) is Union else (hint,)


def takes_names(kind: Any) -> bool:
    """Whether a kind is a map from names to numbers, which `--set KEY.NAME=1.5` extends."""
    return get_origin(kind) is Mapping and get_args(kind)[1] is float


def fits(value: Any, kind: Any) -> bool:
    """Whether a value is of a kind."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return True
    if origin is Literal:
        return value in inner
    if origin is Callable:
        return isinstance(value, partial)
    if origin in (Sequence, tuple):
        return isinstance(value, tuple) and all(fits(item, inner[0]) for item in value)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(fits(item, inner[1]) for item in value.values())
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, kind) if kind in SCALARS or is_dataclass(kind) else False


SCALARS = {int: "a whole number", float: "a number", bool: "true or false", str: "a word", NoneType: "none"}


def expected(kind: Any) -> str | None:
    """A description of what the shell may write for a kind; None if the shell cannot write it."""
    if get_origin(kind) is Literal:
        return " or ".join(get_args(kind))
    if get_origin(kind) is Sequence:
        item = expected(get_args(kind)[0])
        return f"a list in brackets, each {item}" if item else None
    if takes_names(kind):
        return "a number for each name"
    return SCALARS.get(kind)


# Settings as a file, written by `wingspan tune`, read by `wingspan train --settings` and plans


@dataclass(frozen=True)
class SettingsFile:
    """Settings as `--set` takes them, and the recipe and encoder they are for."""

    recipe: str
    encoder: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


def with_settings(
    path: Path | None, recipe: str, encoder: str | None, given: Mapping[str, str]
) -> tuple[str | None, dict[str, str]]:
    """The encoder and settings of a run: the given ones, and from the file the others."""
    if path is None:
        return encoder, dict(given)
    stored = read_settings(path)
    if _named(stored.recipe) != _named(recipe):  # they may be legal in another recipe, but wrong there
        raise ValueError(f"{path}: these settings are for the recipe {stored.recipe!r}, not {recipe!r}")
    return encoder or stored.encoder, {**stored.settings, **given}


def _named(recipe: str) -> str:
    """The recipe's name; a recipe file may have moved to another folder."""
    return Path(recipe).name if recipe.endswith(".py") else recipe


def read_settings(path: Path) -> SettingsFile:
    """The settings of a file."""
    table = load_toml(path)
    found = SettingsFile(
        table.need("recipe", word, "the recipe that the settings are for"),
        table.take("encoder", word, "an encoder as --encoder takes it", None),
        table.take("set", settings, "a table of settings", {}),
    )
    table.close()
    return found


def write_settings(path: Path, content: SettingsFile, remarks: Sequence[str]) -> None:
    """Writes the file with remarks on top."""
    lines = [*(f"# {remark}" for remark in remarks), f"recipe = {json.dumps(content.recipe)}"]
    if content.encoder is not None:
        lines.append(f"encoder = {json.dumps(content.encoder)}")
    lines += ["", "[set]", *(f"{json.dumps(key)} = {_toml(value)}" for key, value in content.settings.items())]
    with atomic_write(path) as file:
        file.write("\n".join(lines) + "\n")


def _toml(text: str) -> str:
    """A TOML value: numbers and booleans as they are, anything else as a string; `--set` reads both alike."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return json.dumps(text)
    return text if isinstance(value, bool | int | float) else json.dumps(text)
