"""The plan of an experiment: recipes x corpora x training fractions x seeds, and the identity of each run."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, get_args

from wingspan.corpora.groups import too_coarse
from wingspan.corpora.leaks import OnLeak
from wingspan.files import TomlTable, flag, load_toml, number, path_from, settings, several, tables, whole, word
from wingspan.recipe_json import with_settings
from wingspan.text import Document

PARTS = ("dev", "test")
FIGURE = re.compile(r"(micro|macro|document_macro|labels\..+)\.(precision|recall|f1)")


@dataclass(frozen=True)
class System:
    """One row of the tables: a recipe under a name, with its own settings and the common ones it cannot take."""

    recipe: str
    name: str
    encoder: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    """Settings of the plan and of corpora under these names are left out, as `spans` for a tagger."""


@dataclass(frozen=True)
class PlannedCorpus:
    """One column of the tables: files and their settings."""

    name: str
    train: tuple[Path, ...] = ()
    dev: Path | None = None
    test: Path | None = None
    format: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    lexicon: str | None = None
    """Synonyms for recipes that learn from them, as `--lexicon` takes it."""
    several: Path | None = None
    """A `corpora.toml` instead of files: the column has the scores on its target."""


@dataclass(frozen=True)
class PlannedRun:
    """One training."""

    system: System
    corpus: PlannedCorpus
    settings: Mapping[str, str]
    seed: int
    fraction: float

    def __str__(self) -> str:
        """The run in words."""
        share = "" if self.fraction == 1 else f", {100 * self.fraction:g} % of the training documents"
        return f"{self.system.name} on {self.corpus.name}, seed {self.seed}{share}"


@dataclass(frozen=True)
class ExperimentPlan:
    """A whole experiment; docs/experiments.md explains each key."""

    title: str
    output: Path
    systems: tuple[System, ...]
    corpora: tuple[PlannedCorpus, ...]
    settings: Mapping[str, str] = field(default_factory=dict)
    seeds: tuple[int, ...] = (1, 2, 3)
    fractions: tuple[float, ...] = (1.0,)
    evaluate: tuple[str, ...] = PARTS
    figures: tuple[str, ...] = ("micro.f1",)
    baseline: str | None = None
    published: Path | None = None
    workers: int = 1
    threads: int | None = None
    device: str | None = None
    tf32: bool = False
    checkpoints: bool = False
    keep_models: bool = False
    keep_predictions: bool = False
    on_leak: OnLeak = "drop"
    """The treatment of training documents that are in dev or test, as in `train --on-leak`."""
    commit: str | None = None

    def runs(self) -> Iterator[PlannedRun]:
        """Every training, seed by seed, so that an experiment that is stopped has compared all systems."""
        for seed, fraction, corpus, system in product(self.seeds, self.fractions, self.corpora, self.systems):
            yield PlannedRun(system, corpus, self.settings_of(system, corpus), seed, fraction)

    def settings_of(self, system: System, corpus: PlannedCorpus) -> dict[str, str]:
        """The settings of a run: the plan's, then the corpus', then the recipe's; the last one wins."""
        common = {**self.settings, **corpus.settings}
        foreign = tuple(f"{name}." for name in system.without)
        kept = {key: value for key, value in common.items() if not f"{key}.".startswith(foreign or ("\0",))}
        return {**kept, **system.settings}


def identity(
    run: PlannedRun, fingerprints: Mapping[str, str], evaluate: tuple[str, ...], on_leak: OnLeak = "drop"
) -> str:
    """A hash of everything that decides a run's figures; not of where its files are, nor of its name in tables."""
    recipe, encoder = run.system.recipe, run.system.encoder
    if recipe.endswith(".py"):
        recipe = hashlib.sha256(Path(recipe).read_bytes()).hexdigest()
    facts = {
        "recipe": recipe,
        "encoder": Path(encoder).name if encoder is not None and Path(encoder).is_dir() else encoder,
        "settings": dict(sorted(run.settings.items())),
        "corpus": {part: value for part, value in fingerprints.items() if part != "test" or "test" in evaluate},
        "evaluate": sorted(evaluate),
        "seed": run.seed,
        "fraction": run.fraction,
    }
    if (lexicon := run.corpus.lexicon) is not None:
        facts["lexicon"] = lexicon if lexicon == "corpus" else hashlib.sha256(Path(lexicon).read_bytes()).hexdigest()
    if on_leak == "allow":
        facts["on_leak"] = on_leak
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:12]


def read_plan(path: Path) -> ExperimentPlan:
    """Reads a plan from a TOML file. Relative paths start at the file's folder."""
    table, here = load_toml(path), path_from(path.parent)
    systems = [_system(item, path) for item in table.need("recipes", tables, "a list of recipes")]
    corpora = [_corpus(item, path) for item in table.need("corpora", tables, "a list of tables, [[corpora]]")]
    encoder = table.take("encoder", word, "an encoder as --encoder takes it", None)
    for at, system in enumerate(systems):  # the plan's encoder where the recipe names none
        name = system.encoder or encoder
        folder = path.parent / name if name is not None else None
        systems[at] = replace(system, encoder=str(folder) if folder is not None and folder.is_dir() else name)

    def share(value: Any) -> float | None:
        part = number(value)
        return part if part is not None and 0 < part <= 1 else None

    def leak_choice(value: Any) -> OnLeak | None:
        choices: tuple[OnLeak, ...] = get_args(OnLeak)
        return next((choice for choice in choices if choice == value), None)

    plan = ExperimentPlan(
        title=table.take("title", word, "a text", path.stem),
        output=table.need("output", here, "a folder for the results"),
        systems=tuple(systems),
        corpora=tuple(corpora),
        settings=table.take("set", settings, "a table of settings", {}),
        seeds=table.take("seeds", several(whole), "a list of different whole numbers", (1, 2, 3)),
        fractions=table.take("fractions", several(share), "a list of different shares above 0, up to 1", (1.0,)),
        evaluate=table.take("evaluate", several(part_name), 'a list of "dev" and "test"', PARTS),
        figures=table.take("figures", several(figure_name), 'a list such as ["micro.f1", "macro.f1"]', ("micro.f1",)),
        baseline=table.take("baseline", word, "the name of a recipe of this plan", None),
        published=table.take("published", here, "a TOML file with published figures", None),
        workers=table.take("workers", whole, "a whole number; 0 trains in this process", 1),
        threads=table.take("threads", whole, "a whole number", None),
        device=table.take("device", word, "cpu, cuda or cuda:N", None),
        tf32=table.take("tf32", flag, "true or false", False),
        checkpoints=table.take("checkpoints", flag, "true or false", False),
        keep_models=table.take("keep_models", flag, "true or false", False),
        keep_predictions=table.take("keep_predictions", flag, "true or false", False),
        on_leak=table.take("on_leak", leak_choice, '"drop", "stop" or "allow"', "drop"),
        commit=table.take("commit", word, "a text", None),
    )
    table.close()
    for kind, names in (("recipes", [s.name for s in plan.systems]), ("corpora", [c.name for c in plan.corpora])):
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ValueError(f"{path}: two {kind} are called {twice[0]!r}; give each its own name")
    known = [system.name for system in plan.systems]
    if plan.baseline is not None and plan.baseline not in known:
        among = ", ".join(map(repr, known))
        raise ValueError(f"{path}: the baseline {plan.baseline!r} is none of the recipes {among}")
    for corpus in plan.corpora:
        missing = [part for part in plan.evaluate if getattr(corpus, part) is None]
        if missing and corpus.several is None:
            raise ValueError(
                f"{path}: corpus {corpus.name!r} has no {missing[0]} file; give one, or set evaluate without it"
            )
    return plan


def _system(item: Any, path: Path) -> System:
    """`"bundling/span"`, or a table with a name and settings."""
    table = _entry({"recipe": item} if isinstance(item, str) else item, path, "recipes")
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
    table, here = _entry(item, path, "corpora"), path_from(path.parent)
    name = table.need("name", word, "a text")
    table.place = f"{path}: corpus {name!r}"
    together = table.take("corpora", here, "a corpora.toml", None)

    def paths(value: Any) -> tuple[Path, ...] | None:
        return several(here)([value] if isinstance(value, str) else value)

    def lexicon(value: Any) -> str | None:
        path = here(value) if value != "corpus" else None
        return str(path) if path is not None else word(value)

    files = (paths, "a file, or a list of files")
    corpus = PlannedCorpus(
        name,
        table.need("train", *files) if together is None else table.take("train", *files, ()),
        table.take("dev", here, "a file", None),
        table.take("test", here, "a file", None),
        table.take("format", word, "the name of a format", None),
        table.take("set", settings, "a table of settings", {}),
        table.take("lexicon", lexicon, "a lexicon, as --lexicon takes it", None),
        together,
    )
    table.close()
    if together is not None and any((corpus.train, corpus.dev, corpus.test, corpus.format)):
        raise ValueError(f"{table.place}: corpora names all files itself; leave out train, dev, test and format")
    return corpus


def _entry(item: Any, path: Path, where: str) -> TomlTable:
    """One entry of a list of tables."""
    if not isinstance(item, dict):
        raise ValueError(f"{path}: {where} must be a list of tables, [[{where}]], not {item!r}")
    name = item.get("name", item.get("recipe"))
    return TomlTable(item, f"{path}: {where}" + (f" {name!r}" if name else ""))


def part_name(value: Any) -> str | None:
    """The value if it names a scored part."""
    return value if value in PARTS else None


def figure_name(value: Any) -> str | None:
    """The value if it names a figure, such as `micro.f1`."""
    return value if isinstance(value, str) and FIGURE.fullmatch(value) else None


def fraction_of(documents: Sequence[Document], fraction: float, seed: int) -> list[Document]:
    """A share of the documents for learning curves: whole groups, at least one, or rows where groups are too coarse.

    With the same seed a smaller share is always part of a larger one.
    """
    if fraction >= 1:
        return list(documents)
    alone = too_coarse(documents) is not None
    names = [f"row {n}" if alone or row.group is None else f"group {row.group}" for n, row in enumerate(documents)]
    sizes = Counter(names)
    kept: set[str] = set()
    number = 0
    for name in sorted(sizes, key=lambda name: hashlib.sha256(f"{seed} {name}".encode()).digest()):
        if kept and number >= fraction * len(names):
            break
        kept.add(name)
        number += sizes[name]
    return [document for name, document in zip(names, documents, strict=True) if name in kept]
