"""The plan of an experiment: recipes x corpora x train fractions x seeds, and what makes a run the same run."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from wingspan.corpora.leak_report import OnLeak

PARTS = ("dev", "test")
FIGURE = re.compile(r"(micro|macro|document_macro|labels\..+)\.(precision|recall|f1)")


@dataclass(frozen=True)
class System:
    """One row of the tables: a recipe under a name, with what it sets and which settings of others it cannot take."""

    recipe: str
    name: str
    encoder: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    """Settings of the plan and of corpora under these names are left out, as `spans` for a tagger."""


class Sources(NamedTuple):
    """What the documents of a corpus come from: files by part with their format, or a `corpora.toml`."""

    files: tuple[tuple[str, tuple[Path, ...]], ...]
    format: str | None
    several: Path | None


@dataclass(frozen=True)
class PlannedCorpus:
    """One column of the tables: files, and what is set for them."""

    name: str
    train: tuple[Path, ...] = ()
    dev: Path | None = None
    test: Path | None = None
    format: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    lexicon: str | None = None
    """Synonyms for recipes that learn from them, as `--lexicon` takes it."""
    several: Path | None = None
    """A `corpora.toml` in the place of files: the column is what is scored on its target."""

    def files(self) -> dict[str, tuple[Path, ...]]:
        """The files of each part that there is."""
        single = {part: (path,) for part in PARTS if (path := getattr(self, part)) is not None}
        return {**({"train": self.train} if self.train else {}), **single}

    def sources(self) -> Sources:
        """All that its documents come from."""
        return Sources(tuple(self.files().items()), self.format, self.several)


@dataclass(frozen=True)
class PlannedRun:
    """One training."""

    system: System
    corpus: PlannedCorpus
    settings: Mapping[str, str]
    seed: int
    fraction: float

    def __str__(self) -> str:
        """For people: what is running."""
        share = "" if self.fraction == 1 else f", {100 * self.fraction:g} % of the training documents"
        return f"{self.system.name} on {self.corpus.name}, seed {self.seed}{share}"


@dataclass(frozen=True)
class Plan:
    """A whole experiment; see docs/experiments.md for what each key means."""

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
    """What becomes of training documents that are in dev or test, as `--on-leak` of `train` takes it."""
    commit: str | None = None

    def runs(self) -> Iterator[PlannedRun]:
        """Every training, seed by seed, so that an experiment that is stopped has compared all systems."""
        for seed in self.seeds:
            for fraction in self.fractions:
                for corpus in self.corpora:
                    for system in self.systems:
                        yield PlannedRun(system, corpus, self.settings_of(system, corpus), seed, fraction)

    def settings_of(self, system: System, corpus: PlannedCorpus) -> dict[str, str]:
        """What a run sets: the plan's, then the corpus', then the recipe's own, the last one wins."""
        common = {**self.settings, **corpus.settings}
        foreign = tuple(f"{name}." for name in system.without)
        kept = {key: value for key, value in common.items() if not f"{key}.".startswith(foreign or ("\0",))}
        return {**kept, **system.settings}


def identity(
    run: PlannedRun, fingerprints: Mapping[str, str], evaluate: tuple[str, ...], on_leak: OnLeak = "drop"
) -> str:
    """One name for all that decides a run's figures, wherever its files lie and whatever it is called in tables."""
    recipe, encoder = run.system.recipe, run.system.encoder
    if recipe.endswith(".py"):
        recipe = hashlib.sha256(Path(recipe).read_bytes()).hexdigest()
    lexicon = run.corpus.lexicon
    facts = {
        "recipe": recipe,
        "encoder": Path(encoder).name if encoder is not None and Path(encoder).is_dir() else encoder,
        "settings": dict(sorted(run.settings.items())),
        "corpus": {part: value for part, value in fingerprints.items() if part != "test" or "test" in evaluate},
        "evaluate": sorted(evaluate),
        "seed": run.seed,
        "fraction": run.fraction,
    }
    if lexicon is not None:
        facts["lexicon"] = lexicon if lexicon == "corpus" else hashlib.sha256(Path(lexicon).read_bytes()).hexdigest()
    if on_leak == "allow":
        facts["on_leak"] = on_leak
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:12]
