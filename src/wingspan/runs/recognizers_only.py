"""Verbs about strict F1 refuse recipes that type given spans: those have an accuracy, and no report mixes the two."""

from __future__ import annotations

from wingspan.recipe import Recipe


def must_recognize(recipe: Recipe, verb: str) -> Recipe:
    """The recipe, if its models find their spans."""
    if recipe.protocol == "typing":
        raise ValueError(
            f"{recipe.name} types given spans and has no F1, which {verb} is about; "
            "use wingspan train and evaluate, or a variant that recognizes"
        )
    return recipe
