"""Small variants of the recipe `conditional`, and trainings of them on two corpora."""

from __future__ import annotations

from dataclasses import replace

from several import two_corpora

from trainings import tiny
from wingspan.corpora.label_map import LabelMap
from wingspan.recipe import Recipe
from wingspan.recipe_json import override
from wingspan.recipes import find
from wingspan.training.fit import fit
from wingspan.training.loop import TrainingData, TrainingRun
from wingspan.training.multi_corpus import CorporaPlan

MAP = LabelMap({("genes", "Disease"): "Disease", ("genes", "Gene"): None})
SMALL = {"hidden": 8, "latent_size": 4}


def small(name: str, **train) -> Recipe:
    """A variant with tiny parts."""
    recipe = tiny(name, **train)
    recipe = override(recipe, "spans.around.width_size", "3")
    recipe = override(recipe, "head.spread", "0.3")  # for layers as small as these
    if "cvae" in recipe.terms:
        for key, value in SMALL.items():
            recipe = override(recipe, f"terms.cvae.objective.{key}", str(value))
    return replace(recipe, segments=find("conditional").segments)


def run_of(recipe: Recipe, plan: CorporaPlan | None = None) -> TrainingRun:
    """A training on two corpora, ready for the loop."""
    plan = plan or two_corpora(6, label_map=MAP)
    fitted = fit(recipe, plan.training, seed=1, declared=plan.labels)
    return TrainingRun(fitted.recipe, fitted.labels, fitted.learner, TrainingData(fitted.sentences), 1)
