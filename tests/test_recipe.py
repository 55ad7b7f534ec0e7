from dataclasses import replace
from functools import partial

import pytest
import torch
from tiny import LABELS, of_length, sentence

from wingspan.batch import Collate
from wingspan.candidates import Grid, Sampled
from wingspan.encoders.hashed import HashedEncoder
from wingspan.heads.feedforward import FeedForwardHead
from wingspan.model import tensors
from wingspan.objectives.classification import Classification
from wingspan.objectives.tagging import Tagging
from wingspan.recipe import Learner, Recipe, Term, assemble, bundle
from wingspan.recipes import NAMES, variants
from wingspan.spans.pooled import PooledSpans

SENTENCES = [
    sentence("aspirin lowers BRCA1 levels", ("Drug", 0, 1), ("Gene", 2, 3)),
    sentence("no gene here"),
    of_length(7, ("Gene", 1, 6)),
]


GRID = partial(Grid)


def small_spans(candidates=GRID) -> Recipe:
    return Recipe(
        name="small",
        paper="none",
        encoder=partial(HashedEncoder, buckets=50, embedding=4, hidden=6),
        spans=partial(PooledSpans, width_size=2),
        head=partial(FeedForwardHead),
        candidates=candidates,
        terms={"spans": Term(partial(Classification))},
        max_width=4,
        overlap="flat",
    )


def small_tags() -> Recipe:
    return replace(small_spans(), spans=None, head=None, terms={"tags": Term(partial(Tagging))}, read_with="tags")


def step(recipe: Recipe, seed: int = 0) -> tuple[Learner, dict[str, torch.Tensor]]:
    """One training step's losses and gradients."""
    torch.manual_seed(seed)
    learner = assemble(recipe, LABELS).train()
    faces = {name: part.targets for name, part in learner.objectives.items()}
    batch = tensors(Collate(learner.model.encoder.tokenize, LABELS, faces)(SENTENCES), "cpu")
    torch.manual_seed(seed + 1)
    losses = learner(batch.inputs, batch.gold, batch.targets, tuple(recipe.terms))
    losses["loss"].backward()
    return learner, losses


def gradients(learner: Learner) -> dict[str, torch.Tensor]:
    return {name: p.grad for name, p in learner.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("candidates", [GRID, partial(Sampled, negatives=5)], ids=["grid", "sampled"])
@pytest.mark.parametrize("crf", [False, True])
def test_bundled_with_weight_zero_it_learns_as_if_alone(candidates, crf):
    plain, _ = step(small_spans(candidates))
    bundled, losses = step(bundle(small_spans(candidates), 0.0, crf=crf))
    assert losses["tags"].item() > 0
    expected, found = gradients(plain), gradients(bundled)
    tags = {name for name in found if name.startswith("objectives.tags")}
    assert tags
    assert all(float(found[name].abs().sum()) == 0 for name in tags)
    assert set(found) - tags == set(expected)
    assert all(torch.equal(found[name], gradient) for name, gradient in expected.items())


def test_bundled_with_weight_one_the_spans_learn_nothing():
    learner, _ = step(bundle(small_spans(), 1.0))
    found = gradients(learner)
    assert all(float(found[n].abs().sum()) == 0 for n in found if n.startswith("model.scorer"))
    assert float(found["model.encoder.project.weight"].abs().sum()) > 0


def test_losses_are_weighted():
    _, losses = step(bundle(small_spans(), 0.1))
    torch.testing.assert_close(losses["loss"], 0.9 * losses["spans"] + 0.1 * losses["tags"])


def test_a_tagger_is_bundled_with_spans():
    spans = small_spans()
    own = dict(
        spans=spans.spans, head=spans.head, candidates=spans.candidates, objective=spans.terms["spans"].objective
    )
    recipe = bundle(small_tags(), 0.1, **own)
    assert recipe.read_with == "tags"
    assert {name: term.weight for name, term in recipe.terms.items()} == {"spans": 0.9, "tags": 0.1}
    learner, losses = step(recipe)
    torch.testing.assert_close(losses["loss"], 0.9 * losses["spans"] + 0.1 * losses["tags"])
    assert learner.model.scorer is not None


# test_deep_recipe.py, test_compress_recipe.py, test_discontinuous_recipe.py
OWN_TESTS = ("deep_span", "compress_generate", "discontinuous")


def test_what_is_bundled_already_is_said():
    with pytest.raises(ValueError, match="bundled already; change terms.tags.weight"):
        bundle(bundle(small_spans()))


@pytest.mark.parametrize("system", [name for name in NAMES if name not in OWN_TESTS])
def test_every_recipe_is_a_recipe_and_can_be_bundled(system):
    for make in variants(system).values():
        recipe = make()
        assert isinstance(recipe, Recipe)
        if {"tags", "spans"} <= set(recipe.terms):
            with pytest.raises(ValueError, match="bundled already"):
                bundle(recipe)
        elif "spans" in recipe.terms:
            assert set(bundle(recipe).terms) == {*recipe.terms, "tags"}
        small = replace(recipe, encoder=small_spans().encoder, max_width=4, overlap="nested")
        _, losses = step(small)
        assert torch.isfinite(losses["loss"])


def test_every_parameter_of_a_bundled_model_learns():
    learner, _ = step(bundle(small_spans(), 0.5, crf=True))
    still = [n for n, p in learner.named_parameters() if p.grad is None or float(p.grad.abs().sum()) == 0]
    assert still == []


def test_a_recipe_that_cannot_read_is_said():
    with pytest.raises(ValueError, match="reads with 'tags' but has terms spans"):
        replace(small_spans(), read_with="tags")
    with pytest.raises(ValueError, match="needs both spans and head, or neither"):
        replace(small_spans(), head=None)


def test_a_part_of_the_wrong_family_is_said():
    with pytest.raises(ValueError, match="a CandidatePolicy is needed here, not a list"):
        assemble(replace(small_spans(), candidates=lambda encoder, width: [width]), LABELS)
