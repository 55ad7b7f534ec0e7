"""Entities in one piece and in several from one model: fragments are found beside entities, and linked.

None of the five papers does this; there is no `paper` variant. `recipe.with_links` adds fragments and links to any
span recipe. `split`, `hull`, `drop` and `nearest` are alternatives without links: learn each fragment as an entity,
learn all words from the first to the last, learn nothing, or join split fragments that are close together.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from wingspan.candidates import Grid
from wingspan.corpora.fragments import Fragments
from wingspan.decoding import Joining
from wingspan.encoders.pretrained import PretrainedEncoder
from wingspan.heads.feedforward import FeedForwardHead
from wingspan.objectives.classification import Classification
from wingspan.recipe import (
    Between,
    OneOf,
    Part,
    Range,
    Recipe,
    Term,
    Times,
    TrainSettings,
    bundle,
    with_links,
    with_proposals,
)
from wingspan.spans.deep import DeepSpans
from wingspan.spans.pooled import PooledSpans

ABOUT = "our own: spans as entities and as fragments of discontinuous ones, which links join"
POOLED: Part = partial(PooledSpans, views=("first", "last", "max"), width_size=25, dropout=0.2)
DEEP: Part = partial(DeepSpans, depth=2, width_size=25)
FRESH = {"model.scorer": 10.0, "objectives": 10.0, "model.encoder.shapes": 10.0}


def plain(fragments: Fragments = "drop", spans: Part = POOLED, name: str | None = None, gap: bool = False) -> Recipe:
    """The same spans without links."""
    return Recipe(
        name=f"discontinuous/{name or fragments}",
        paper=ABOUT,
        encoder=partial(PretrainedEncoder, name="minilm", pooling="max"),
        spans=spans,
        head=partial(FeedForwardHead, hidden=(256,), dropout=0.2),
        candidates=partial(Grid),
        terms={"spans": Term(partial(Classification))},
        joining=Joining(fragments, gap="auto" if gap else 0),
        train=TrainSettings(epochs=15, batch_size=32, learning_rate=1.5e-4, factors=FRESH),
    )


def recipe(of: Callable[[], Recipe] = plain, name: str = "discontinuous") -> Recipe:
    """Links on top of a recipe."""
    return replace(with_links(of()), name=name)


def deep() -> Recipe:
    """Links on deep spans, two layers of them."""
    slow = {f"model.scorer.spans.{part}": 1.0 for part in ("blocks", "around.blocks", "distances", "around.distances")}
    spans = plain(spans=DEEP)
    return replace(spans, train=replace(spans.train, factors={**FRESH, **slow}, clip=5.0))


variants: dict[str, Callable[[], Recipe]] = {
    "": recipe,
    "deep": partial(recipe, deep, "discontinuous/deep"),
    "bundled": partial(recipe, lambda: bundle(plain(), 0.1), "discontinuous/bundled"),
    "proposals": partial(recipe, lambda: with_proposals(plain()), "discontinuous/proposals"),
    "drop": plain,
    "split": partial(plain, "split"),
    "hull": partial(plain, "hull"),
    "nearest": partial(plain, "split", name="nearest", gap=True),
}

ranges: dict[str, Range] = {
    "train.learning_rate": Times(0.2, 5.0),
    "train.batch_size": OneOf((16, 32, 48)),
    "terms.links.weight": Between(0.2, 3.0),
    "terms.links.objective.pairs": Between(0.2, 3.0),
    "spans.dropout": Between(0.0, 0.5),
    "head.dropout": Between(0.0, 0.5),
}
