"""The dev scores that `wingspan train auto` decides by, from the results that are kept.

python benchmarks/evidence.py            # writes src/wingspan/training/evidence.json

Only runs of equal epochs (of all phases together), batches and rates are compared: on a corpus with an encoder those
that most recipes have. Runs of equal settings are one row, whenever they were made, with a score for each seed, the
mean of its runs; of several settings those count whose mean on dev is best, of those with three seeds or more. They are
kept with the row, since `auto` trains with them. Where entities are in pieces, the F1 of these counts, since a recipe
that ignores them is hardly worse overall. For long entities only recipes count that have no ceiling on width. What a
prediction costs on a CPU is from `throughput.py`.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from wingspan.encoders.loading import SHORT_NAMES
from wingspan.recipe_json import override
from wingspan.recipes import NAMES, find, variants
from wingspan.training.choice import KeptRuns, Kind, block_weights

RESULTS = Path(__file__).parent / "results"
TARGET = Path(__file__).parent.parent / "src/wingspan/training/evidence.json"
FILES = (
    *(
        "bundling.jsonl",
        "bundling-tags.jsonl",
        "bundling-mpnet.jsonl",
        "deep_accuracy.jsonl",
        "deep_accuracy-mpnet.jsonl",
        "deep_accuracy-mpnet-second.jsonl",
        "deep_accuracy-mpnet-third.jsonl",
        "compress_generate-mpnet.jsonl",
    ),
    "compress_generate-second.jsonl",  # the first round had an autoencoder that has been repaired since
    *("discontinuous.jsonl", "discontinuous-bundled.jsonl"),
    *("conditional.jsonl", "conditional-second.jsonl", "conditional-mpnet.jsonl"),
    *("combinations.jsonl", "combinations-mpnet.jsonl"),
)
KINDS: dict[str, Kind] = {
    "ncbi-disease": "flat",
    "bc5cdr": "flat",
    "wnut17": "flat",
    "genia": "nested",
    "litbank": "long",
    "genia-disc": "discontinuous",
    "craft": "discontinuous",
    "ten corpora, without leaks": "several",
}
SIZES = {"minilm": (384, 6), "e5-small": (384, 12), "all-mpnet-base-v2": (768, 12)}
TITLES = {"ten corpora, without leaks": "BioRED beside nine other corpora"}
SEEDS = 3  # fewer decide nothing
RECIPES = {f"{name}/{variant}".rstrip("/") for name in NAMES for variant in variants(name)}
RECIPES -= {"conditional/multi-shared-label"}  # Multi by another name: what was tried there is `heads = "shared"`
REPAIRED = {"conditional.jsonl": {"conditional/multi-cvae", "conditional/fixed", "conditional/random"}}
REPAIRED["conditional.jsonl"] |= {"conditional/unshared", "conditional/shared-label"}
"""Recipes that have learned with another loss since these runs."""
ELSEWHERE = re.compile(
    r"train\.(epochs|batch_size|learning_rate|budget|precision)|phases\.\d+\.epochs"
    r"|max_width|overlap|spans\.checkpointing"
)
"""Settings that are no part of a recipe's: budgets, number types, what the corpus decides, and what saves memory."""

Settings = dict[str, str]
Runs = defaultdict[str, defaultdict[str, defaultdict[int, list[float]]]]
"""The dev scores of each recipe with each of its settings, which are JSON here, by seed."""


class Budget(NamedTuple):
    """What runs must share to be compared."""

    epochs: int  # of all phases
    batch_size: int
    learning_rate: float


def score(row: dict[str, Any]) -> float:
    """The dev F1 of a run; that of discontinuous entities where the corpus has them."""
    if KINDS[row["corpus"]] == "discontinuous":
        return float(next(iter(row["systems"].values()))["dev"]["discontinuous"]["f1"])
    return float(row["dev"]["f1"])


def costs() -> tuple[str, dict[str, float]]:
    """An encoder, and predictions of texts with it on a CPU by recipe, times the bare encoder's; of one call."""
    lines = (RESULTS / "throughput-recipes.jsonl").read_text(encoding="utf-8").splitlines()
    measured = [(row["name"].split(", "), row["ratio"]) for row in map(json.loads, lines)]
    (folder,) = {name[1] for name, _ in measured}
    short = next((short for short, known in SHORT_NAMES.items() if known.folder == folder), folder)
    return short, {name[2]: ratio for name, ratio in measured if name[0].endswith(" texts")}


def budget_of(recipe: str, settings: Settings) -> Budget:
    """What a recipe was trained for with these settings."""
    trained = find(recipe)
    for key, value in settings.items():
        trained = override(trained, key, value)
    train = trained.train
    epochs = sum(train.epochs if phase.epochs is None else phase.epochs for phase in trained.phases)
    return Budget(epochs, train.batch_size, train.learning_rate)


def collect(results: Path = RESULTS) -> list[KeptRuns]:
    """The best settings of each recipe on each corpus with each encoder, at the budget that most recipes had."""
    runs: defaultdict[tuple[str, str], defaultdict[Budget, Runs]] = defaultdict(lambda: defaultdict(new_runs))
    for name in FILES:
        for line in (results / name).read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            recipe, kind = row["recipe"], KINDS.get(row["corpus"])
            if recipe not in RECIPES - REPAIRED.get(name, set()):
                continue  # tried in a benchmark and not in the package, or another thing by now
            if kind is not None and (kind != "long" or "proposals" in recipe):
                settings = row["settings"]
                own = {key: value for key, value in settings.items() if not ELSEWHERE.fullmatch(key)}
                there = runs[row["corpus"], Path(row["encoder"]).name][budget_of(recipe, settings)]
                there[recipe][json.dumps(own, sort_keys=True)][row["seed"]].append(score(row))
    found: list[KeptRuns] = []
    cost_encoder, cost = costs()
    for (corpus, encoder), budgets in sorted(runs.items()):
        compared = max(map(best_settings, budgets.values()), key=len)
        for recipe, (settings, dev) in sorted(compared.items()):
            found.append(
                KeptRuns(
                    kind=KINDS[corpus],
                    corpus=TITLES.get(corpus, corpus),
                    encoder=encoder,
                    weights=block_weights(*SIZES[encoder]),
                    recipe=recipe,
                    settings=settings,
                    dev=[round(each, 2) for each in dev],
                    cost=cost.get(recipe),
                    cost_encoder=cost_encoder if recipe in cost else None,
                )
            )
    return found


def new_runs() -> Runs:
    """None yet."""
    return defaultdict(lambda: defaultdict(lambda: defaultdict(list)))


def best_settings(runs: Runs) -> dict[str, tuple[Settings, list[float]]]:
    """The settings of each recipe with the best mean, and a score for each seed; not of recipes with too few seeds."""
    best = {}
    for recipe, settings in runs.items():
        enough = {own: [mean(dev[seed]) for seed in sorted(dev)] for own, dev in settings.items() if len(dev) >= SEEDS}
        if enough:
            own = max(enough, key=lambda each: mean(enough[each]))
            best[recipe] = json.loads(own), enough[own]
    return best


def written(rows: list[KeptRuns]) -> str:
    """JSON with a line for each row."""
    return "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n"


if __name__ == "__main__":
    TARGET.write_text(written(collect()), encoding="utf-8")
    print(f"{TARGET}: {len(collect())} rows")
