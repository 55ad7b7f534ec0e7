import math

import pytest
import torch
from tiny import DRUG, GENE, arrays_of, gold_of, grid_of, of_length, sentence, sizes, vectors, word_inputs

from wingspan.batch import entities_found
from wingspan.labels import LabelSet
from wingspan.model import States, fetch
from wingspan.objectives.classification import Classification

NOTHING = 0


def states_of(sentences, width: int = 3, seed: int = 0, classes: int = 3) -> States:
    inputs = word_inputs(sentences)
    cells = grid_of(inputs, width)
    scores = 2 * torch.randn(*cells.start.shape, classes, generator=torch.Generator().manual_seed(seed))
    return States(inputs, vectors(inputs), cells, scores=scores)


def certain(sentences, says: dict[tuple[int, int, int], list[float]]) -> States:
    """States whose cells (row, start, end) have these probabilities for nothing, Drug, Gene; all others say nothing."""
    states = states_of(sentences)
    chance = torch.tensor([0.98, 0.01, 0.01]).repeat(*states.candidates.start.shape, 1)
    for (row, start, end), shares in says.items():
        here = (states.candidates.start[row] == start) & (states.candidates.end[row] == end)
        assert here.any()
        chance[row, here] = torch.tensor(shares)
    return states._replace(scores=chance.log())


def gold_classes(sentences, states: States) -> list[tuple[int, int, set[int]]]:
    """Each cell that counts as (row, cell, gold classes), by a plain loop."""
    number = {"Drug": DRUG, "Gene": GENE}
    rows = []
    for row, cell in torch.nonzero(states.candidates.mask).tolist():
        span = int(states.candidates.start[row, cell]), int(states.candidates.end[row, cell])
        labels = {number[e.label] for e in sentences[row].entities if (e.start, e.end) == span}
        rows.append((row, cell, labels))
    return rows


SENTENCES = [of_length(5, ("Drug", 0, 2), ("Gene", 3, 4)), of_length(2), of_length(4, ("Gene", 1, 4), core=(1, 3))]


@pytest.mark.parametrize("reduction", ["cells", "sentences"])
def test_softmax_loss_by_hand(reduction):
    states = states_of(SENTENCES)
    costs = []
    for row, cell, labels in gold_classes(SENTENCES, states):
        scores = states.scores[row, cell].tolist()
        target = min(labels, default=NOTHING)
        costs.append(math.log(sum(map(math.exp, scores))) - scores[target])
    expected = sum(costs) / (len(costs) if reduction == "cells" else len(SENTENCES))
    objective = Classification(sizes(), reduction=reduction)
    loss = objective(states, gold_of(SENTENCES, states.inputs))
    assert loss.item() == pytest.approx(expected, rel=1e-5)


TWICE = [sentence("a b c", ("Drug", 0, 2), ("Gene", 0, 2), ("Gene", 2, 3)), sentence("a")]


def test_sigmoid_loss_by_hand_with_two_labels_on_one_span():
    states = states_of(TWICE)
    costs = []
    for row, cell, labels in gold_classes(TWICE, states):
        scores = states.scores[row, cell].tolist()
        each = [math.log1p(math.exp(-scores[c] if c in labels else scores[c])) for c in (DRUG, GENE)]
        costs.append(sum(each) / 2)
    assert any(labels == {DRUG, GENE} for _, _, labels in gold_classes(TWICE, states))
    loss = Classification(sizes(), link="sigmoid")(states, gold_of(TWICE, states.inputs))
    assert loss.item() == pytest.approx(sum(costs) / len(costs), rel=1e-5)


def test_softmax_takes_the_first_of_two_labels():
    states = states_of(TWICE)
    both = Classification(sizes())(states, gold_of(TWICE, states.inputs))
    only = [sentence("a b c", ("Drug", 0, 2), ("Gene", 2, 3)), sentence("a")]
    assert both == Classification(sizes())(states, gold_of(only, states.inputs))


def test_masked_cells_neither_cost_nor_learn():
    states = states_of(SENTENCES)
    scores = states.scores.clone().requires_grad_()
    gold = gold_of(SENTENCES, states.inputs)
    loss = Classification(sizes())(states._replace(scores=scores), gold)
    loss.backward()
    assert float(scores.grad[~states.candidates.mask].abs().sum()) == 0
    assert bool((scores.grad[states.candidates.mask].abs().sum(-1) > 0).all())
    noisy = torch.where(states.candidates.mask.unsqueeze(-1), states.scores, torch.full_like(states.scores, 99.0))
    assert loss.item() == Classification(sizes())(states._replace(scores=noisy), gold).item()


@pytest.mark.parametrize("link", ["softmax", "sigmoid"])
def test_padding_does_not_change_the_loss(link):
    objective = Classification(sizes(), link=link, reduction="sentences")
    states = states_of(SENTENCES)
    together = objective(states, gold_of(SENTENCES, states.inputs)).item()
    alone = 0.0
    for row, one in enumerate(SENTENCES):
        own = states_of([one])
        length, width = len(one.words), own.candidates.width
        part = states.scores.view(3, 5, 3, 3)[row : row + 1, :length, :width].flatten(1, 2)
        alone += objective(own._replace(scores=part), gold_of([one], own.inputs)).item() / 3
    assert together == pytest.approx(alone, rel=1e-5)


def test_a_batch_in_which_nothing_counts_costs_nothing():
    empty = [of_length(3, core=(3, 3))]
    states = states_of(empty)
    assert Classification(sizes())(states, gold_of(empty, states.inputs)).item() == 0


def read(objective: Classification, states: States, thresholds=None) -> list[tuple[int, int, int, int, float]]:
    found = objective.decode(states, thresholds)
    return sorted(
        (row, start, end, label, round(score, 4))
        for row, start, end, label, score in zip(*(part.tolist() for part in found[:5]), strict=True)
    )


SURE = {
    (0, 0, 2): [0.1, 0.8, 0.1],
    (0, 3, 4): [0.2, 0.1, 0.7],
    (0, 4, 5): [0.55, 0.4, 0.05],
    (2, 1, 4): [0.3, 0.36, 0.34],
}


def test_the_likeliest_class_is_read():
    found = read(Classification(sizes()), certain(SENTENCES, SURE))
    assert found == [(0, 0, 2, DRUG, 0.8), (0, 3, 4, GENE, 0.7), (2, 1, 4, DRUG, 0.36)]


def test_a_threshold_holds_for_all_labels():
    states = certain(SENTENCES, SURE)
    assert read(Classification(sizes()), states, 0.75) == [(0, 0, 2, DRUG, 0.8)]
    # below one half the class "nothing" has no veto, but a span still has one label
    assert read(Classification(sizes()), states, 0.34) == [
        (0, 0, 2, DRUG, 0.8),
        (0, 3, 4, GENE, 0.7),
        (0, 4, 5, DRUG, 0.4),
        (2, 1, 4, DRUG, 0.36),
    ]
    assert read(Classification(sizes()), states, 1) == []


def test_labels_may_have_thresholds_of_their_own():
    states = certain(SENTENCES, SURE)
    found = read(Classification(sizes()), states, {"Drug": 0.9, "Gene": 0.3})
    assert found == [(0, 3, 4, GENE, 0.7), (2, 1, 4, GENE, 0.34)]
    only_gene = read(Classification(sizes()), states, {"Gene": 0.72})  # Drug keeps one half
    assert only_gene == [(0, 0, 2, DRUG, 0.8)]


def test_sigmoid_reads_any_number_of_labels_per_span():
    states = certain(SENTENCES, {})
    scores = torch.full_like(states.scores, -5.0)
    here = (states.candidates.start[0] == 0) & (states.candidates.end[0] == 2)
    scores[0, here] = torch.tensor([9.0, 1.0, 0.5])  # the score of "nothing" has no say
    found = read(Classification(sizes(), link="sigmoid"), states._replace(scores=scores))
    assert [entity[:4] for entity in found] == [(0, 0, 2, DRUG), (0, 0, 2, GENE)]
    assert found[0][4] == pytest.approx(1 / (1 + math.exp(-1)), abs=1e-4)
    strict = read(Classification(sizes(), link="sigmoid"), states._replace(scores=scores), {"Gene": 0.9})
    assert [entity[3] for entity in strict] == [DRUG]


@pytest.mark.parametrize("link", ["softmax", "sigmoid"])
@pytest.mark.parametrize("thresholds", [None, 0.0, {"Drug": 0.0}])
def test_a_masked_cell_is_never_read(link, thresholds):
    states = states_of(SENTENCES)
    states = states._replace(scores=states.scores + torch.tensor([-9.0, 5.0, 0.0]))
    found = Classification(sizes(), link=link).decode(states, thresholds)
    assert len(found.sentence) >= int(states.candidates.mask.sum())
    for row, start, end in zip(found.sentence, found.start, found.end, strict=True):
        one = SENTENCES[row]
        assert one.core.start <= start < one.core.end
        assert end <= one.reach.end


def test_what_is_read_becomes_entities():
    states = certain(SENTENCES, SURE)
    arrays = arrays_of(states.inputs)
    found = entities_found(fetch(Classification(sizes()).decode(states))(), arrays, sizes().labels)
    assert [[(e.label, e.start, e.end) for e in row] for row in found] == [
        [("Drug", 0, 2), ("Gene", 3, 4)],
        [],
        [("Drug", 1, 4)],
    ]
    assert found[0][0].score == pytest.approx(0.8)


def test_each_corpus_has_its_own_class_of_nothing():
    labels = LabelSet({"main": ("Drug",), "other": ("Gene", "Cell")})  # nothing is 0 and 2
    sentences = [of_length(2, ("Drug", 0, 1)), of_length(2, ("Cell", 1, 2), dataset="other")]
    states = states_of(sentences, classes=5)
    inputs = states.inputs._replace(dataset=torch.tensor([0, 1]))
    states = states._replace(inputs=inputs, scores=torch.zeros_like(states.scores))
    states.scores[0, :, 0] = states.scores[1, :, 2] = 9.0
    objective = Classification(sizes(labels=labels))
    assert len(objective.decode(states).label) == 0
    swapped = states._replace(inputs=inputs._replace(dataset=torch.tensor([1, 0])))
    gold = gold_of(sentences, inputs, labels)
    assert gold.label[:, 0].tolist() == [1, 4]
    assert objective(states, gold) < objective(swapped, gold)
