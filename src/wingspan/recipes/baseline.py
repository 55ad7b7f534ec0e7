"""A small recognizer that needs no download: hashed word features, convolutions, pooled spans: the default."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from wingspan.encoders.hashed import ConvolvedEncoder
from wingspan.encoders.pretrained import PretrainedEncoder
from wingspan.heads.feedforward import FeedForwardHead
from wingspan.objectives.classification import Classification
from wingspan.recipe import Between, OneOf, Range, Recipe, Term, Times, TrainSettings, with_links, with_proposals
from wingspan.spans.pooled import PooledSpans

RARE = 0.01  # the chance of each type before training; from even ones, the first epochs find nothing


def recipe() -> Recipe:
    """First, last and maximum of the words, the width, one hidden layer; all spans of the grid, smoothed borders."""
    return Recipe(
        name="baseline",
        paper="the quickest system: hashed features, convolutions and pooled spans, trained from scratch",
        encoder=partial(ConvolvedEncoder),
        spans=partial(PooledSpans, views=("first", "last", "max"), width_size=25),
        head=partial(FeedForwardHead, hidden=(128,), dropout=0.3, start_chance=RARE),
        terms={"spans": Term(partial(Classification, smoothing=0.1))},
        train=TrainSettings(epochs=20, batch_size=4, learning_rate=1e-3, warmup=0.05, clip=5.0),
    )


def pretrained() -> Recipe:
    """The same spans on a pretrained encoder; its head starts even, and borders are not smoothed, as in its figures."""
    train = TrainSettings(
        epochs=12, batch_size=16, learning_rate=1e-4, factors={"model.scorer": 10.0, "model.encoder.shapes": 10.0}
    )
    return replace(
        recipe(),
        encoder=partial(PretrainedEncoder, name="minilm"),
        head=partial(FeedForwardHead, hidden=(128,), dropout=0.3),
        terms={"spans": Term(partial(Classification))},
        train=train,
    )


def proposals() -> Recipe:
    """The best spans of any width instead of the grid."""
    return replace(with_proposals(recipe()), name="baseline/proposals")


def links() -> Recipe:
    """Entities in several pieces, too: fragments, and links between them."""
    return replace(with_links(recipe()), name="baseline/links")


variants: dict[str, Callable[[], Recipe]] = {
    "": recipe,
    "pretrained": pretrained,
    "proposals": proposals,
    "links": links,
}

ranges: dict[str, Range] = {
    "train.learning_rate": Times(0.2, 5.0),
    "train.batch_size": OneOf((4, 8, 16)),
    "encoder.dropout": Between(0.0, 0.5),
    "head.dropout": Between(0.0, 0.5),
    "spans.width_size": OneOf((0, 10, 25, 50)),
}
