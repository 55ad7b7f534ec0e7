"""What our kept results support: the recipe that `wingspan train auto` picks, and settings for the encoder's size.

The results are dev scores in `evidence.json` beside this file, which `benchmarks/evidence.py` makes of the JSON lines
in `benchmarks/results/`. Test scores decide nothing here.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from functools import lru_cache, partial
from importlib import resources
from pathlib import Path
from statistics import mean, stdev
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypedDict

from huggingface_hub.errors import HfHubHTTPError

from wingspan.box import located
from wingspan.checkpoint import download, recipe_of
from wingspan.corpora.statistics import Statistics, describe
from wingspan.encoders import Encoder
from wingspan.encoders.loading import check_folder, fetch, locate
from wingspan.encoders.pretrained import PretrainedEncoder
from wingspan.files import stored_object
from wingspan.layers.bert_blocks import FAMILIES
from wingspan.recipe import Part, Recipe, without_teachers
from wingspan.recipes import find
from wingspan.spans.deep import DeepSpans
from wingspan.training.corpora import Corpora
from wingspan.views.console import counted

Kind = Literal["flat", "nested", "long", "discontinuous", "several"]

NESTED = 0.01  # shares of the entities, from which on a corpus is of that kind
DISCONTINUOUS = 0.005
WIDE = 16  # words: where one entity of a hundred is longer, a grid of all spans becomes dear
NEAR = 0.1  # points of F1: recipes that are so near to the best are told apart by what their predictions cost

FROM_SCRATCH: dict[Kind, str] = {
    "flat": "baseline",
    "nested": "baseline",
    "long": "baseline/proposals",
    "discontinuous": "baseline/links",
    "several": "baseline",
}
"""Without a pretrained encoder: the recipes that are made for it, since results are kept for few of them."""


UNKNOWN_WEIGHTS = 12 * 12 * 768 * 768
"""What an encoder is taken to have whose size cannot be told: those of BERT base."""
BASE_WEIGHTS = 40_000_000
"""From so many weights of blocks on, an encoder is of base size: BERT base and MPNet have 85 million, MiniLM 11."""
FOR_BASE: dict[str, str] = {
    "train.learning_rate": "5e-5",
    "train.factors.model.scorer": "10",
    "train.factors.objectives": "10",
    "train.factors.model.encoder.shapes": "10",
    "train.warmup": "0.1",
    "train.epochs": "12",
    "encoder.word_dropout": "0.15",
}
"""What encoders of base size are trained with where nobody has set it; the recipes' own values are for small ones."""


SIZES = ("hidden_size", "d_model", "dim")
LAYERS = ("num_hidden_layers", "encoder_layers", "num_layers", "n_layers")
"""What configurations of BERT and its kin, BART, T5 and DistilBERT call them."""


BLOCKS = (*FAMILIES, "mpnet", "distilbert")
"""The kinds of encoders whose blocks deep spans can copy, as configurations call them."""


class KeptRuns(TypedDict):
    """The dev scores of one recipe on one corpus."""

    kind: Kind
    corpus: str
    encoder: str
    weights: int  # of the encoder's blocks
    recipe: str
    settings: dict[str, str]  # of the recipe, where they were not its defaults
    dev: list[float]  # of each seed, the mean of its runs, which are no independent draws
    cost: float | None  # of a prediction on a CPU, times the bare encoder's, where it was measured
    cost_encoder: str | None  # with which that was


class Settled(NamedTuple):
    """A recipe with its encoder, and for `auto` the reason in one paragraph, and settings where users give none."""

    recipe: str | Recipe
    encoder: str | None
    reason: str | None = None
    settings: Mapping[str, str] = MappingProxyType({})


def settle(
    recipe: str | Recipe,
    corpora: Corpora,
    encoder: str | None,
    start: str | Path | None = None,
    parts: Sequence[str] = (),
    *,
    taught: bool = False,
) -> Settled:
    """The recipe itself, or what `auto` stands for: that of the model `start`, if there is one to go on from."""
    if recipe != "auto":
        return Settled(recipe, encoder)
    if start is not None:
        own = as_trained(start, parts, taught=taught)
        return Settled(own, None, f"auto: {start} was trained as {own.name}, and goes on with the same settings.")
    trained = [corpus for corpus in corpora.plan.corpora if corpus.training] if corpora.plan is not None else []
    return choose(describe(corpora.train), len(trained), encoder)


def as_trained(model: str | Path, parts: Sequence[str] = (), *, taught: bool = False) -> Recipe:
    """The recipe that a model was trained with, open again for what new documents need.

    Its teachers are gone, unless this training is `taught`, too.
    """
    folder = located(model)
    recipe = recipe_of(folder if folder.is_dir() else download(str(model), None), parts)
    return replace(recipe if taught else without_teachers(recipe), max_width="auto", overlap="auto")


def choose(found: Statistics, corpora: int, encoder: str | None, evidence: Sequence[KeptRuns] | None = None) -> Settled:
    """The recipe for a corpus with these figures, or for several of them."""
    kind, seen = kind_of(found, corpora)
    named = encoder or "hashed"
    pretrained = named != "hashed" and not named.startswith("static:")
    if kind != "discontinuous" and found.discontinuous:
        finder = "discontinuous" if pretrained else FROM_SCRATCH["discontinuous"]
        seen += f"; {counted(found.discontinuous, 'entity', 'entities')} in pieces will be missed, which {finder} finds"
    if not pretrained:
        recipe = FROM_SCRATCH[kind]
        advice = "; --encoder minilm, or a larger one, finds more" if encoder is None else ""
        return Settled(recipe, named, f"auto: {seen}. No pretrained encoder, so {recipe}, which needs none{advice}.")
    winner = winner_for(kind, named, evidence)
    of_pieces = " of entities in pieces" if kind == "discontinuous" else ""
    lead, faster = "", ""
    ran_on = frozenset(row["corpus"] for row in winner.runs)
    if winner.lead is not None:
        side = "before" if winner.faster is None else "behind"
        there = f" on {listing(winner.on)}" if winner.on < ran_on else ""
        chance = ", which may be chance" if winner.chance else ""
        lead = f", {winner.lead:.2f} F1{of_pieces} {side} {winner.second}{there}{chance}"
    if winner.faster is not None:
        than = "" if lead else f" as {winner.second}"
        timed = winner.runs[0]["cost_encoder"]
        elsewhere = "" if timed == winner.encoder else f" (measured with {timed})"
        faster = f", but predicts {winner.faster:.1f} times as fast{than} on a CPU{elsewhere}"
    assumed = "" if weights_of(named) else f" (the size of {named} is not known)"
    place = "next to the best" if faster else "best"
    measured = f"{winner.recipe} was {place} on dev of {listing(ran_on)} with {winner.encoder}"
    settings = dict(set.intersection(*(set(row["settings"].items()) for row in winner.runs)))
    as_there = ", ".join(f"{name}={value}" for name, value in sorted(settings.items()))
    also = f" Set as there, unless you do: {as_there}." if settings else ""
    return Settled(winner.recipe, named, f"auto: {seen}. {measured}{assumed}{lead}{faster}.{also}", settings)


def winner_for(kind: Kind, encoder: str, evidence: Sequence[KeptRuns] | None = None) -> Winner:
    """The winner for a kind of data with a pretrained encoder, of recipes whose parts can be made for it."""
    rows = [row for row in evidence or kept() if row["kind"] == kind]
    rows = nearest(rows, weights_of(encoder) or UNKNOWN_WEIGHTS)
    if not has_copyable_blocks(encoder):
        rows = [row for row in rows if not made_with(find(row["recipe"]).spans, DeepSpans)]
    return first_of(rows)


def has_copyable_blocks(encoder: str) -> bool:
    """Whether deep spans can copy an encoder's blocks, as far as its configuration can be had."""
    if any(row["encoder"] == encoder for row in kept()):
        return True  # they did in the runs; so tables of these are made without a download
    return config_of(encoder).get("model_type", BLOCKS[0]) in BLOCKS


def made_with(part: Any, kind: type) -> bool:
    """Whether a part, or one inside it, is of a kind."""
    return isinstance(part, partial) and (
        part.func is kind or any(made_with(inner, kind) for inner in part.keywords.values())
    )


def kind_of(found: Statistics, corpora: int) -> tuple[Kind, str]:
    """What kind of data it is, and the figure that says so."""
    entities = max(found.entities, 1)
    widest = found.mention_words.get("p99", 0)
    if corpora > 1:
        return "several", f"{corpora} corpora with documents to train on"
    if found.discontinuous / entities >= DISCONTINUOUS:
        return "discontinuous", f"{found.discontinuous / entities:.1%} of {found.entities:,} entities are in pieces"
    if widest > WIDE:
        return "long", f"at least 1% of {found.entities:,} entities have more than {WIDE} words"
    if found.nested / entities >= NESTED:
        return "nested", f"{found.nested / entities:.1%} of {found.entities:,} entities are inside others"
    return "flat", f"{found.entities:,} entities, next to none of them nested, long or in pieces"


def nearest(rows: Sequence[KeptRuns], weights: int) -> list[KeptRuns]:
    """The rows of the encoder whose size is nearest."""
    closest = min((row["weights"] for row in rows), key=lambda size: abs(math.log(size / weights)))
    return [row for row in rows if row["weights"] == closest]


def rank(rows: Sequence[KeptRuns]) -> list[tuple[str, float]]:
    """Recipes by their mean distance from the best of each corpus; one that ran on fewer than half of them is out."""
    means: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for row in rows:
        means[row["corpus"]][row["recipe"]] = mean(row["dev"])
    distances: defaultdict[str, list[float]] = defaultdict(list)
    for scores in means.values():
        for recipe, score in scores.items():
            distances[recipe].append(score - max(scores.values()))
    ranked = {recipe: mean(each) for recipe, each in distances.items() if 2 * len(each) >= len(means)}
    return sorted(ranked.items(), key=lambda item: -item[1])


class Winner(NamedTuple):
    """The best recipe of some runs and its lead; or the quickest of those next to the best, which is second then."""

    recipe: str
    runs: Sequence[KeptRuns]  # of this recipe
    second: str | None = None
    lead: float | None = None
    """Of the better over the other on corpora that both have seen; None where these contradict the ranking over all."""
    chance: bool = False  # whether the lead is less than two standard errors, from the seeds
    faster: float | None = None
    """How many times as fast as the second it predicts, where it was taken for that."""
    on: frozenset[str] = frozenset()
    """The corpora of the lead."""

    @property
    def encoder(self) -> str:
        """The encoder that its runs had."""
        return self.runs[0]["encoder"]


def first_of(rows: Sequence[KeptRuns]) -> Winner:
    """The best recipe of these runs; of those that are as near to it as nothing, the one that predicts fastest."""
    runs: defaultdict[str, list[KeptRuns]] = defaultdict(list)
    for row in rows:
        runs[row["recipe"]].append(row)
    (best, top), *others = rank(rows)
    if not others:
        return Winner(best, runs[best])
    costs = {row["recipe"]: cost for row in rows if (cost := row["cost"]) is not None}
    near = [name for name, behind in ((best, top), *others) if top - behind <= NEAR and name in costs]
    first = min(near, key=costs.__getitem__) if best in near else best
    other = others[0][0] if first == best else first
    better, worse = ({row["corpus"]: row["dev"] for row in runs[name]} for name in (best, other))
    both = better.keys() & worse.keys()
    if not both:
        return Winner(best, runs[best])
    lead = mean(mean(better[corpus]) - mean(worse[corpus]) for corpus in both)
    error = math.sqrt(sum(squared_error(dev[corpus]) for dev in (better, worse) for corpus in both)) / len(both)
    second, faster = (other, None) if first == best else (best, costs[best] / costs[first])
    found = Winner(first, runs[first], second, lead, lead <= 2 * error, faster, frozenset(both))
    return found if lead >= 0 else found._replace(lead=None)


def squared_error(dev: Sequence[float]) -> float:
    """Of the mean of some seeds; of one seed nobody knows."""
    return stdev(dev) ** 2 / len(dev) if len(dev) > 1 else math.inf


def weights_of(encoder: str) -> int | None:
    """The weights of an encoder's blocks; None where its configuration cannot be had, or does not say."""
    known = {row["encoder"]: row["weights"] for row in kept()}
    if encoder in known:
        return known[encoder]
    config = config_of(encoder)
    size, layers = (next((config[name] for name in names if name in config), None) for names in (SIZES, LAYERS))
    if not (isinstance(size, int) and isinstance(layers, int) and size > 0 and layers > 0):
        return None
    return block_weights(size, layers)


def config_of(encoder: str) -> dict[str, Any]:
    """An encoder's configuration; empty where it cannot be had, of which loading says why."""
    where = Path(locate(encoder))
    try:
        folder = where if where.is_dir() else fetch(str(where), None, ["config.json"])
        check_folder(folder)
        return stored_object(folder / "config.json")
    except (OSError, ValueError, HfHubHTTPError):
        return {}


def settings_by_size(recipe: str, encoder: Part, start: str | Path | None = None) -> dict[str, str]:
    """Settings for the size of the encoder, or of that of the model `start`; none where the recipe's own are meant.

    They are for small encoders. What a paper published and what users wrote into recipe files stays as it is, and
    adapters beside frozen weights learn at other rates.
    """
    if recipe.endswith(".py") or recipe.partition("/")[2].startswith("paper"):
        return {}
    if start is not None:
        folder = located(start) / "encoder"
        large = folder.is_dir() and (weights_of(str(folder)) or UNKNOWN_WEIGHTS) >= BASE_WEIGHTS
        return {name: value for name, value in FOR_BASE.items() if large and not name.startswith("encoder.")}
    settings = encoder.keywords if isinstance(encoder, partial) and encoder.func is PretrainedEncoder else {}
    frozen = settings.get("adapters") is not None or settings.get("quantize") is not None
    large = not frozen and "name" in settings and (weights_of(settings["name"]) or UNKNOWN_WEIGHTS) >= BASE_WEIGHTS
    return FOR_BASE if large else {}


def line_about_size(recipe: Recipe, encoder: Encoder) -> list[str]:
    """What an encoder of base size is trained with, for the run log."""
    if not isinstance(encoder, PretrainedEncoder):
        return []
    if block_weights(encoder.size, encoder.model.config.num_hidden_layers) < BASE_WEIGHTS:
        return []
    train, new_parts = recipe.train, recipe.train.factors.get("model.scorer", 1.0)
    return [
        f"An encoder of base size: learning rate {train.learning_rate:g}, {new_parts:g} times that for new parts, "
        f"warm-up {train.warmup:g}, {counted(train.epochs, 'epoch')}, word dropout {encoder.word_dropout:g}; "
        "--set changes them."
    ]


def block_weights(size: int, layers: int) -> int:
    """The weights of blocks of BERT's form: four products for attention, eight for the wide layer."""
    return 12 * size * size * layers


@lru_cache(maxsize=1)
def kept() -> tuple[KeptRuns, ...]:
    """The results that ship with the package."""
    return tuple(json.loads(resources.files(__package__).joinpath("evidence.json").read_text(encoding="utf-8")))


def listing(names: Set[str]) -> str:
    """Names with commas and an `and`."""
    *front, last = sorted(names)
    return f"{', '.join(front)} and {last}" if front else last
