"""Scores as a corpus sees them, and what the classification of spans makes of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import arrays_of, gold_of, grid_of, sentence, sizes, vectors, word_inputs

from wingspan.batch import entities_found
from wingspan.labels import LabelSet
from wingspan.layers.corpus import CorpusClasses
from wingspan.model import States, fetch
from wingspan.objectives.classification import Classification

OWN = LabelSet({"one": ("A", "B"), "two": ("B", "C")}, annotates={"two": ("C",)})
# own classes: 0 nothing, 1 A, 2 B of one; 3 nothing, 4 B, 5 C of two, whose documents mark C only
SHARED = LabelSet({"one": ("A", "B"), "two": ("B", "C")}, annotates={"two": ("C",)}, shared=True)
# shared classes: 0 nothing, 1 A, 2 B, 3 C
BOTH = torch.tensor([0, 1])


def chances(*scores: float) -> list[float]:
    total = sum(map(math.exp, scores))
    return [math.exp(score) / total for score in scores]


def test_own_blocks_are_a_softmax_each():
    scores = torch.tensor([[[0.3, -1.0, 2.0, 0.5, 1.5, -0.7]], [[0.3, -1.0, 2.0, 0.5, 1.5, -0.7]]])
    read = CorpusClasses(OWN).read(scores, BOTH).softmax(-1)
    assert read[0, 0].tolist() == pytest.approx([*chances(0.3, -1.0, 2.0), 0, 0, 0])
    assert read[1, 0].tolist() == pytest.approx([0, 0, 0, *chances(0.5, 1.5, -0.7)])
    learned = CorpusClasses(OWN).learned(scores, BOTH).exp()
    assert learned[0, 0].tolist() == pytest.approx([*chances(0.3, -1.0, 2.0), 0, 0, 0])
    nothing, b, c = chances(0.5, 1.5, -0.7)
    assert learned[1, 0].tolist() == pytest.approx([0, 0, 0, nothing + b, b, c])


def test_shared_labels_that_a_corpus_does_not_mark_or_have_are_one_with_nothing():
    scores = torch.tensor([[[0.3, -1.0, 2.0, 0.5]], [[0.3, -1.0, 2.0, 0.5]]])
    nothing, a, b, c = chances(0.3, -1.0, 2.0, 0.5)
    read = CorpusClasses(SHARED).read(scores, BOTH).softmax(-1)
    assert read[0, 0].tolist() == pytest.approx([nothing + c, a, b, 0])
    assert read[1, 0].tolist() == pytest.approx([nothing + a, 0, b, c])
    learned = CorpusClasses(SHARED).learned(scores, BOTH).exp()
    assert learned[0, 0].tolist() == pytest.approx([nothing + c, a, b, c])
    assert learned[1, 0].tolist() == pytest.approx([nothing + a + b, a, b, c])


def test_multiplied_scores_leave_foreign_classes_a_share():
    scores = torch.tensor([[[-0.3, -1.0, -2.0, 0.5, 1.5, -0.7]]])
    read = CorpusClasses(OWN, "multiply").read(scores, torch.tensor([0])).softmax(-1)
    assert read[0, 0].tolist() == pytest.approx(chances(-0.3, -1.0, -2.0, 0, 0, 0))


def states_of(labels: LabelSet, scores=None, seed: int = 0):
    """One sentence of each corpus with a gold entity, all spans up to two words, random scores."""
    sentences = [sentence("a b c", ("A", 1, 2), dataset="one"), sentence("a b", ("C", 0, 2), dataset="two")]
    inputs = word_inputs(sentences)._replace(dataset=BOTH)
    candidates = grid_of(inputs, 2)
    if scores is None:
        torch.manual_seed(seed)
        scores = torch.randn(*candidates.mask.shape, labels.num_classes)
    states = States(inputs, vectors(inputs), candidates, scores=scores.requires_grad_())
    return states, gold_of(sentences, inputs, labels)


def by_hand(states: States, gold, cost) -> float:
    """The mean of `cost(row, scores, gold class or None)` over the spans that count, one by one."""
    costs = []
    known = {(0, 1, 2): int(gold.label[0, 0]), (1, 0, 2): int(gold.label[1, 0])}
    for row, cell in torch.nonzero(states.candidates.mask).tolist():
        start, end = states.candidates.start[row, cell], states.candidates.end[row, cell]
        scores = states.scores[row, cell].tolist()
        costs.append(cost(row, scores, known.get((row, int(start), int(end)))))
    return sum(costs) / len(costs)


def test_the_loss_of_shared_labels_is_that_of_the_contract():
    """An unmarked span costs -log(p(nothing) + sum of p(types that its corpus does not mark))."""
    states, gold = states_of(SHARED)
    unmarked = {0: [0, 3], 1: [0, 1, 2]}

    def cost(row, scores, label):
        chance = chances(*scores)
        return -math.log(chance[label] if label is not None else sum(chance[c] for c in unmarked[row]))

    loss = Classification(sizes(labels=SHARED))(states, gold)
    assert loss.item() == pytest.approx(by_hand(states, gold, cost), rel=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_own_losses_do_not_touch_foreign_scores(smoothing):
    states, gold = states_of(OWN)
    loss = Classification(sizes(labels=OWN), smoothing=smoothing)(states, gold)
    loss.backward()
    grad = states.scores.grad
    assert torch.isfinite(loss)
    assert not grad[0, :, 3:].any()
    assert not grad[1, :, :3].any()
    assert grad[0, :, :3].any()
    assert grad[1, :, 3:].any()
    if not smoothing:

        def cost(row, scores, label):
            first = 3 * row
            chance = chances(*scores[first : first + 3])
            if label is not None:
                return -math.log(chance[label - first])
            return -math.log(chance[0] + (chance[1] if row == 1 else 0.0))  # two does not mark B

        assert loss.item() == pytest.approx(by_hand(states, gold, cost), rel=1e-6)


def test_smoothed_targets_and_silence_go_together():
    """Shares of the target times folded log chances, span by span."""
    states, gold = states_of(SHARED)
    loss = Classification(sizes(labels=SHARED), smoothing=0.4)(states, gold)
    unmarked = {0: [0, 3], 1: [0, 1, 2]}
    # the gold of one is (1, 2): four neighbors get 0.1 each, but (1, 1) and (2, 2) are no spans: their share stays
    shares = {(0, 1, 2): (1, 0.8), (0, 0, 2): (1, 0.1), (0, 1, 3): (1, 0.1), (1, 0, 2): (3, 0.8)}
    shares |= {(1, 0, 1): (3, 0.1), (1, 1, 2): (3, 0.1)}
    costs = []
    for row, cell in torch.nonzero(states.candidates.mask).tolist():
        place = (row, int(states.candidates.start[row, cell]), int(states.candidates.end[row, cell]))
        chance = chances(*states.scores[row, cell].tolist())
        label, share = shares.get(place, (0, 0.0))
        rest = sum(chance[c] for c in unmarked[row])
        costs.append(-share * math.log(chance[label]) - (1 - share) * math.log(rest))
    assert loss.item() == pytest.approx(sum(costs) / len(costs), rel=1e-6)


@pytest.mark.parametrize(("labels", "known"), [(OWN, {0: [1, 2], 1: [5]}), (SHARED, {0: [1, 2], 1: [3]})])
def test_yes_and_no_are_asked_about_what_a_corpus_marks(labels, known):
    states, gold = states_of(labels)

    def cost(row, scores, label):
        right = [math.log1p(math.exp(-scores[c] if c == label else scores[c])) for c in known[row]]
        return sum(right) / len(right)

    loss = Classification(sizes(labels=labels), link="sigmoid")(states, gold)
    assert loss.item() == pytest.approx(by_hand(states, gold, cost), rel=1e-6)


@pytest.mark.parametrize("link", ["softmax", "sigmoid"])
def test_a_type_that_is_marked_in_part_is_learned_where_it_is_marked(link):
    """Two labels may mean one of the target's, only one of them marked throughout: silence about it says nothing."""
    labels = LabelSet(SHARED.types, annotates={"one": ("B",), "two": ("C",)}, shared=True)
    states, gold = states_of(labels)  # one marks an A all the same
    unmarked, charged = {0: [0, 1, 3], 1: [0, 1, 2]}, {0: [2], 1: [3]}

    def cost(row, scores, label):
        if link == "sigmoid":
            asked = {*charged[row], *([label] if label else [])}
            return sum(math.log1p(math.exp(-scores[c] if c == label else scores[c])) for c in asked) / len(asked)
        chance = chances(*scores)
        return -math.log(chance[label] if label is not None else sum(chance[c] for c in unmarked[row]))

    loss = Classification(sizes(labels=labels), link=link)(states, gold)
    assert loss.item() == pytest.approx(by_hand(states, gold, cost), rel=1e-6)
    loss.backward()
    assert torch.isfinite(states.scores.grad).all()


LABELS = st.lists(st.sampled_from("ABCD"), min_size=1, max_size=3, unique=True)


@settings(max_examples=60)
@given(
    types=st.lists(LABELS, min_size=2, max_size=3),
    shared=st.booleans(),
    link=st.sampled_from(["softmax", "sigmoid"]),
    thresholds=st.sampled_from([None, 0.0, 0.3, {"A": 0.0}]),
    temperature=st.sampled_from([1.0, 0.5, 3.0]),
    most_labels=st.sampled_from([None, 1, 9]),
    scale=st.sampled_from([1.0, 50.0, 1e4]),
    seed=st.integers(0, 1000),
)
def test_no_foreign_label_is_ever_read(types, shared, link, thresholds, temperature, most_labels, scale, seed):
    labels = LabelSet({f"c{n}": tuple(own) for n, own in enumerate(types)}, shared=shared)
    sentences = [sentence("a b c", dataset=name) for name in labels.types]
    inputs = word_inputs(sentences)._replace(dataset=torch.arange(len(types)))
    candidates = grid_of(inputs, 3)
    torch.manual_seed(seed)
    scores = scale * torch.randn(*candidates.mask.shape, labels.num_classes)
    objective = Classification(sizes(labels=labels), link=link, most_labels=most_labels)
    states = States(inputs, vectors(inputs), candidates, scores=scores)
    found = fetch(objective.decode(states, thresholds, temperature))()
    assert np.isfinite(found.score).all()
    for name, entities in zip(labels.types, entities_found(found, arrays_of(inputs), labels), strict=True):
        assert {entity.label for entity in entities} <= set(labels.types[name])
    decided = objective.decisions(states, gold_of(sentences, inputs, labels))
    assert torch.isfinite(decided.logits).all()


def test_a_foreign_class_that_wins_by_multiplication_is_named_with_its_corpus():
    """Oi and Miwa 2025's code: where all own scores are negative, 0 wins; it counts as a false positive."""
    labels = LabelSet({"one": ("A",), "two": ("A",)})
    sentences = [sentence("a", dataset="one")]
    inputs = word_inputs(sentences)
    states = States(inputs, vectors(inputs), grid_of(inputs, 1), scores=torch.tensor([[[-1.0, -2.0, 5.0, 7.0]]]))
    objective = Classification(sizes(labels=labels), foreign="multiply")
    ((entity,),) = entities_found(fetch(objective.decode(states))(), arrays_of(inputs), labels)
    assert entity.label == "two:nothing"
    assert Classification(sizes(labels=labels)).decode(states).label.tolist() == []
