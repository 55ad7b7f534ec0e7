"""R-Drop: what two passes with other dropout cost when they differ."""

import math

import pytest
import torch
from tiny import gold_of, grid_of, of_length, sizes, vectors, word_inputs

import wingspan
from trainings import run_of, tiny, train_documents
from wingspan.labels import LabelSet
from wingspan.model import States, tensors
from wingspan.objectives.classification import Consistency
from wingspan.recipe import bundle, with_consistency, with_proposals
from wingspan.recipe_json import as_json, from_json
from wingspan.training.loop import collator, plan

SENTENCES = [of_length(5, ("Drug", 0, 2)), of_length(2), of_length(4, core=(1, 3))]


def states_of(seed: int) -> States:
    inputs = word_inputs(SENTENCES)
    cells = grid_of(inputs, 3)
    scores = 2 * torch.randn(*cells.start.shape, 3, generator=torch.Generator().manual_seed(seed))
    return States(inputs, vectors(inputs), cells, scores=scores)


def chances(scores: list[float], link: str) -> list[list[float]]:
    """Distributions: one over the classes, or yes and no of each type."""
    if link == "softmax":
        total = sum(map(math.exp, scores))
        return [[math.exp(score) / total for score in scores]]
    return [[1 / (1 + math.exp(-score)), 1 / (1 + math.exp(score))] for score in scores[1:]]


@pytest.mark.parametrize("link", ["softmax", "sigmoid"])
@pytest.mark.parametrize("reduction", ["cells", "sentences"])
def test_by_hand(link, reduction):
    one, other = states_of(0), states_of(1)
    costs = []
    for row, cell in torch.nonzero(one.candidates.mask).tolist():
        pairs = zip(*(chances(each.scores[row, cell].tolist(), link) for each in (one, other)), strict=True)
        each = [sum(p * math.log(p / q) for p, q in zip(*pair, strict=True)) for pair in pairs]
        costs.append(sum(each) / len(each))
    expected = sum(costs) / (len(costs) if reduction == "cells" else len(SENTENCES))
    objective = Consistency(sizes(), link=link, reduction=reduction)
    found = objective(one._replace(twin=other), gold_of(SENTENCES, one.inputs), None)
    assert found.item() == pytest.approx(expected, rel=1e-5)
    assert objective(one._replace(twin=one), None, None).item() == 0


def test_classes_of_other_corpora_have_no_share_and_no_gradient_that_is_no_number():
    labels = LabelSet({"one": ("Drug", "Gene"), "two": ("Gene",)})
    inputs = word_inputs(SENTENCES)
    cells = grid_of(inputs, 3)
    scores = [torch.randn(*cells.start.shape, labels.num_classes).requires_grad_() for _ in range(2)]
    one, other = (States(inputs, vectors(inputs), cells, scores=each) for each in scores)
    Consistency(sizes(labels=labels))(one._replace(twin=other), None, None).backward()
    for each in scores:
        assert bool(torch.isfinite(each.grad).all())
        assert float(each.grad[..., 3:].abs().sum()) == 0
        assert float(each.grad[..., :3].abs().sum()) > 0


def first_batch(recipe):
    run = run_of(recipe)
    batch = collator(run.recipe, run.labels, run.learner)([run.data.sentences[at] for at in plan(run, 0)[0][0]])
    return run.learner.train(), tensors(batch, "cpu"), tuple(run.recipe.terms)


def test_without_dropout_two_passes_agree_and_with_it_they_do_not():
    learner, batch, terms = first_batch(with_consistency(bundle(tiny("bundling/span"), 0.1)))
    torch.manual_seed(0)
    losses = learner(batch.inputs, batch.gold, batch.targets, terms)
    assert losses["consistency"].item() > 1e-6
    for module in learner.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    losses = learner(batch.inputs, batch.gold, batch.targets, terms)
    assert losses["consistency"].item() == pytest.approx(0, abs=1e-9)
    once = learner(batch.inputs, batch.gold, batch.targets, ("spans", "tags"))
    for name in ("spans", "tags"):
        assert losses[name].item() == pytest.approx(once[name].item(), rel=1e-6)


def test_losses_are_means_over_both_passes():
    learner, batch, _ = first_batch(with_consistency(tiny("bundling/span")))
    torch.manual_seed(3)
    both = learner(batch.inputs, batch.gold, batch.targets, ("spans", "consistency"))["spans"].item()
    torch.manual_seed(3)
    each = [learner(batch.inputs, batch.gold, batch.targets, ("spans",))["spans"].item() for _ in range(2)]
    assert each[0] != each[1]
    assert both == pytest.approx(sum(each) / 2, rel=1e-6)


def test_it_takes_the_classification_for_its_own_and_trains_only(tmp_path):
    recipe = with_consistency(tiny("deep_span/biaffine"), 0.5)
    assert recipe.terms["consistency"].objective.keywords == {"reduction": "sentences"}
    assert as_json(from_json(as_json(recipe))) == as_json(recipe)
    model = wingspan.train(with_consistency(tiny("baseline")), train=train_documents(4), output=tmp_path, device="cpu")
    assert "consistency" in model.learner.objectives
    assert set(wingspan.load(tmp_path, device="cpu").learner.objectives) == {"spans"}


def test_passes_with_other_candidates_cannot_be_compared():
    with pytest.raises(ValueError, match="two passes can only be compared on the same spans; use candidates Grid"):
        run_of(with_consistency(with_proposals(tiny("baseline"))))
    with pytest.raises(ValueError, match="classifies no spans that could be compared"):
        with_consistency(tiny("bundling/seq"))
