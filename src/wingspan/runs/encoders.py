"""What `--encoder` takes: hashed, static:FILE, a short name, a folder, or a hub id."""

from __future__ import annotations

import inspect
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from wingspan.encoders.hashed import HashedEncoder
from wingspan.encoders.pretrained import PretrainedEncoder
from wingspan.encoders.static import StaticEncoder
from wingspan.encoders.static_pieces import StaticPieces
from wingspan.recipe import Recipe

STATIC = "static:"
VECTOR_FILES = (".txt", ".vec", ".bin", ".npz", ".gz")


def with_encoder(recipe: Recipe, name: str) -> Recipe:
    """The recipe on another encoder. Weights from nothing need another learning rate than pretrained ones."""
    part: Any = recipe.encoder if isinstance(recipe.encoder, partial) else partial(recipe.encoder)
    if name == "hashed":
        return recipe if part.func is HashedEncoder else from_nothing(recipe, partial(HashedEncoder))
    if name.startswith(STATIC):
        return with_vectors(recipe, part, name.removeprefix(STATIC))
    if part.func is PretrainedEncoder:
        return replace(recipe, encoder=partial(PretrainedEncoder, **{**part.keywords, "name": name}))
    train = replace(recipe.train, learning_rate=1e-4, factors=FRESH, clip=1.0)
    return replace(recipe, encoder=partial(PretrainedEncoder, name=name), train=train)


def with_vectors(recipe: Recipe, part: Any, name: str) -> Recipe:
    """The recipe on static vectors: a file of words, `random`, or a pretrained model, whose input embeddings they are.

    A recipe that is on static vectors keeps what it can be set to.
    """
    kind, chosen = static_part(name)
    if part.func not in (StaticEncoder, StaticPieces):
        return from_nothing(recipe, partial(kind, **chosen, hidden=128, dropout=0.3))
    known = inspect.signature(kind).parameters
    kept = {key: value for key, value in part.keywords.items() if key in known}
    return replace(recipe, encoder=partial(kind, **{**kept, **chosen}))


def static_part(name: str) -> tuple[Any, dict[str, Any]]:
    """Files are of words; folders, short names and ids of the hub are of pretrained models."""
    if name == "random":
        return StaticEncoder, {"vectors": None}
    if Path(name).is_file() or Path(name).suffix in VECTOR_FILES:
        return StaticEncoder, {"vectors": name}
    return StaticPieces, {"name": name}


def from_nothing(recipe: Recipe, encoder: Any) -> Recipe:
    """The recipe on an encoder none of whose trained weights are pretrained."""
    return replace(recipe, encoder=encoder, train=replace(recipe.train, learning_rate=2e-3, factors={}, clip=5.0))


FRESH = {"model.scorer": 10.0, "objectives": 10.0, "model.encoder.shapes": 10.0}
"""Parameters that are trained from nothing beside a pretrained encoder learn ten times as fast."""
