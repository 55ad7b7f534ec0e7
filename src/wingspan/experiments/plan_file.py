"""A plan from a TOML file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from wingspan.corpora.leak_report import OnLeak
from wingspan.experiments.plan import FIGURE, PARTS, Plan, PlannedCorpus, System
from wingspan.experiments.settings_file import with_settings
from wingspan.toml_tables import (
    TomlTable,
    flag,
    load_toml,
    number,
    path_from,
    settings,
    several,
    tables,
    whole,
    word,
)


def read_plan(path: Path) -> Plan:
    """The plan of a file. Relative paths start at the folder the file lies in."""
    table, here = load_toml(path), path_from(path.parent)
    systems = [_system(item, path) for item in table.need("recipes", tables, "a list of recipes")]
    corpora = [_corpus(item, path) for item in table.need("corpora", tables, "a list of tables, [[corpora]]")]
    encoder = table.take("encoder", word, "an encoder as --encoder takes it", None)
    plan = Plan(
        title=table.take("title", word, "a text", path.stem),
        output=table.need("output", here, "a folder for the results"),
        systems=tuple(_with_encoder(system, encoder, path.parent) for system in systems),
        corpora=tuple(corpora),
        settings=table.take("set", settings, "a table of settings", {}),
        seeds=table.take("seeds", several(whole), "a list of different whole numbers", (1, 2, 3)),
        fractions=table.take("fractions", several(_share), "a list of different shares above 0, up to 1", (1.0,)),
        evaluate=table.take("evaluate", several(_part), 'a list of "dev" and "test"', PARTS),
        figures=table.take("figures", several(_figure), 'a list such as ["micro.f1", "macro.f1"]', ("micro.f1",)),
        baseline=table.take("baseline", word, "the name of a recipe of this plan", None),
        published=table.take("published", here, "a TOML file with published figures", None),
        workers=table.take("workers", whole, "a whole number; 0 trains in the process itself", 1),
        threads=table.take("threads", whole, "a whole number", None),
        device=table.take("device", word, "cpu, cuda or cuda:N", None),
        tf32=table.take("tf32", flag, "true or false", False),
        checkpoints=table.take("checkpoints", flag, "true or false", False),
        keep_models=table.take("keep_models", flag, "true or false", False),
        keep_predictions=table.take("keep_predictions", flag, "true or false", False),
        on_leak=table.take("on_leak", _on_leak, '"drop", "stop" or "allow"', "drop"),
        commit=table.take("commit", word, "a text", None),
    )
    table.close()
    return _checked(plan, path)


def _system(item: Any, path: Path) -> System:
    """`"bundling/span"`, or a table with a name and settings."""
    table = _entry(item, path, "recipe", "recipes")
    recipe = table.need("recipe", word, "NAME, NAME/VARIANT, or a Python file with recipe()")
    if recipe.endswith(".py"):
        recipe = str(path_from(path.parent)(recipe))
    file = table.take("settings", path_from(path.parent), "a file that `wingspan tune` wrote", None)
    name = table.take("name", word, "a text", Path(recipe).stem if recipe.endswith(".py") else recipe)
    encoder = table.take("encoder", word, "an encoder as --encoder takes it", None)
    system = System(
        recipe,
        name,
        *with_settings(file, recipe, encoder, table.take("set", settings, "a table of settings", {})),
        table.take("without", several(word), 'a list such as ["spans", "head"]', ()),
    )
    table.close()
    return system


def _corpus(item: Any, path: Path) -> PlannedCorpus:
    table, here = _entry(item, path, None, "corpora"), path_from(path.parent)
    name = table.need("name", word, "a text")
    table.place = f"{path}: corpus {name!r}"
    together = table.take("corpora", here, "a corpora.toml", None)
    files = (lambda value: _paths(value, here), "a file, or a list of files")
    corpus = PlannedCorpus(
        name,
        table.need("train", *files) if together is None else table.take("train", *files, ()),
        table.take("dev", here, "a file", None),
        table.take("test", here, "a file", None),
        table.take("format", word, "the name of a format", None),
        table.take("set", settings, "a table of settings", {}),
        table.take("lexicon", lambda value: _lexicon(value, here), "a lexicon, as --lexicon takes it", None),
        together,
    )
    table.close()
    if together is not None and (corpus.files() or corpus.format):
        raise ValueError(f"{table.place}: corpora names all files itself; leave out train, dev, test and format")
    return corpus


def _entry(item: Any, path: Path, single: str | None, where: str) -> TomlTable:
    """One entry of a list of tables; a bare text stands for the key `single`."""
    if isinstance(item, str) and single is not None:
        item = {single: item}
    if not isinstance(item, dict):
        raise ValueError(f"{path}: {where} must be a list of tables, [[{where}]], not {item!r}")
    named = item.get("name", item.get(single) if single else None)
    return TomlTable(item, f"{path}: {where}" + (f" {named!r}" if named else ""))


def _with_encoder(system: System, encoder: str | None, folder: Path) -> System:
    """The plan's encoder, where the entry names none of its own; a folder may be relative to the plan."""
    name = system.encoder or encoder
    return replace(system, encoder=str(folder / name) if name is not None and (folder / name).is_dir() else name)


def _paths(value: Any, here: Any) -> tuple[Path, ...] | None:
    return (here(value),) if isinstance(value, str) else several(here)(value)


def _lexicon(value: Any, here: Any) -> str | None:
    path = None if value == "corpus" else here(value)
    return str(path) if path is not None else word(value)


def _on_leak(value: Any) -> OnLeak | None:
    choices: tuple[OnLeak, ...] = get_args(OnLeak)
    return next((choice for choice in choices if choice == value), None)


def _share(value: Any) -> float | None:
    found = number(value)
    return found if found is not None and 0 < found <= 1 else None


def _part(value: Any) -> str | None:
    return value if value in PARTS else None


def _figure(value: Any) -> str | None:
    return value if isinstance(value, str) and FIGURE.fullmatch(value) else None


def _checked(plan: Plan, path: Path) -> Plan:
    """What the keys must be to each other."""
    for kind, names in (("recipes", [s.name for s in plan.systems]), ("corpora", [c.name for c in plan.corpora])):
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ValueError(f"{path}: two {kind} are called {twice[0]!r}; give each its own name")
    if plan.baseline is not None and plan.baseline not in [system.name for system in plan.systems]:
        known = ", ".join(repr(system.name) for system in plan.systems)
        raise ValueError(f"{path}: the baseline {plan.baseline!r} is none of the recipes {known}")
    for corpus in plan.corpora:
        missing = [part for part in plan.evaluate if part not in corpus.files()]
        if missing and corpus.several is None:
            raise ValueError(
                f"{path}: corpus {corpus.name!r} has no {missing[0]} file; give one, or set evaluate without it"
            )
    return plan
