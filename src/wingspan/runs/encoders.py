"""What `--encoder` takes: hashed, a short name, a folder, or a hub id."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from wingspan.encoders.hashed import HashedEncoder
from wingspan.encoders.pretrained import PretrainedEncoder
from wingspan.recipe import Recipe


def with_encoder(recipe: Recipe, name: str) -> Recipe:
    """The recipe on another encoder. Weights from nothing need another learning rate than pretrained ones."""
    part: Any = recipe.encoder if isinstance(recipe.encoder, partial) else partial(recipe.encoder)
    if name == "hashed":
        if part.func is HashedEncoder:
            return recipe
        train = replace(recipe.train, learning_rate=2e-3, factors={}, clip=5.0)
        return replace(recipe, encoder=partial(HashedEncoder), train=train)
    if part.func is PretrainedEncoder:
        return replace(recipe, encoder=partial(PretrainedEncoder, **{**part.keywords, "name": name}))
    train = replace(recipe.train, learning_rate=1e-4, factors=FRESH, clip=1.0)
    return replace(recipe, encoder=partial(PretrainedEncoder, name=name), train=train)


FRESH = {"model.scorer": 10.0, "objectives": 10.0, "model.encoder.shapes": 10.0}
"""Parameters that are trained from nothing beside a pretrained encoder learn ten times as fast."""
