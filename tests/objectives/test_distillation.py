"""What a student learns of teachers: the loss by hand, what costs nothing, and which spans take part."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny import DRUG, GENE, LABELS, gold_of, grid_of, of_length, piece_inputs, sizes, targets_of, vectors, word_inputs

from wingspan.candidates import Grid
from wingspan.labels import LabelSet
from wingspan.model import States
from wingspan.objectives.distillation import Distillation, Taught
from wingspan.text import Sentence

Spans = dict[tuple[int, int], list[float]]


def taught(length: int, spans: Spans, classes=(DRUG, GENE), widest: int = 9) -> Taught:
    """What teachers that score spans of up to so many words say of a sentence."""
    until = np.array([min(start + widest, length) for start in range(length)])
    starts, ends = (np.array([span[at] for span in sorted(spans)], dtype=np.int64) for at in (0, 1))
    chances = np.array([spans[span] for span in sorted(spans)], dtype=np.float32).reshape(-1, len(classes))
    return Taught(np.array(classes), until, starts, ends, chances)


def learning(length: int, *voices: Taught, **others) -> Sentence:
    return replace(of_length(length, **others), taught=voices)


def states_of(sentences, width: int = 2, classes: int = 3, inputs=None) -> States:
    inputs = word_inputs(sentences) if inputs is None else inputs
    cells = grid_of(inputs, width)
    scores = torch.randn(*cells.start.shape, classes, generator=torch.Generator().manual_seed(0))
    return States(inputs, vectors(inputs), cells, scores=scores.requires_grad_())


def loss_of(objective: Distillation, sentences, states: States, labels: LabelSet = LABELS) -> torch.Tensor:
    targets = targets_of(objective, sentences, states.inputs)
    return objective(states, gold_of(sentences, states.inputs, labels), targets)


def touched(states: States) -> set[tuple[int, int, int]]:
    """The spans (row, start, end) whose scores have learned something."""
    moved = states.scores.grad.abs().sum(-1) > 0
    cells = states.candidates
    return {(row, int(cells.start[row, at]), int(cells.end[row, at])) for row, at in torch.nonzero(moved).tolist()}


def softmax(scores: list[float]) -> list[float]:
    powers = [math.exp(score) for score in scores]
    return [power / sum(powers) for power in powers]


SAID: Spans = {(0, 1): [0.7, 0.1], (1, 3): [0.0, 0.4]}


@pytest.mark.parametrize("reduction", ["cells", "sentences"])
@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_the_loss_by_hand(reduction, temperature):
    sentences = [learning(3, taught(3, SAID)), of_length(2)]  # the second was not taught
    states = states_of(sentences)
    costs = []
    for at in torch.nonzero(states.candidates.mask[0]).flatten().tolist():
        span = int(states.candidates.start[0, at]), int(states.candidates.end[0, at])
        drug, gene = SAID.get(span, [0.0, 0.0])
        chances = softmax([score / temperature for score in states.scores[0, at].tolist()])
        target = (1 - drug - gene, drug, gene)
        costs.append(-sum(share * math.log(chance) for share, chance in zip(target, chances, strict=True)))
    assert len(costs) == 5
    divisor = 5 if reduction == "cells" else 2
    found = loss_of(Distillation(sizes(), temperature=temperature, reduction=reduction), sentences, states)
    assert found.item() == pytest.approx(temperature**2 * sum(costs) / divisor, rel=1e-5)


def test_the_loss_of_yes_and_no_by_hand():
    sentences = [learning(2, taught(2, {(0, 2): [0.9, 0.8]}))]
    states = states_of(sentences)
    costs = []
    for at in torch.nonzero(states.candidates.mask[0]).flatten().tolist():
        both = (0.9, 0.8) if int(states.candidates.end[0, at]) - int(states.candidates.start[0, at]) == 2 else (0, 0)
        for share, score in zip(both, states.scores[0, at, 1:].tolist(), strict=True):
            chance = 1 / (1 + math.exp(-score))
            costs.append(-share * math.log(chance) - (1 - share) * math.log(1 - chance))
    assert loss_of(Distillation(sizes(), link="sigmoid"), sentences, states).item() == pytest.approx(sum(costs) / 6)


def all_said(states: States, chances: torch.Tensor) -> Spans:
    cells = states.candidates
    real = torch.nonzero(cells.mask[0]).flatten().tolist()
    return {(int(cells.start[0, at]), int(cells.end[0, at])): chances[0, at, 1:].tolist() for at in real}


@pytest.mark.parametrize("link", ["softmax", "sigmoid"])
@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_a_student_that_says_the_same_learns_nothing(link, temperature):
    states = states_of([of_length(4)])
    scores = states.scores.detach() / temperature
    same = all_said(states, scores.softmax(-1) if link == "softmax" else scores.sigmoid())
    objective = Distillation(sizes(), link=link, temperature=temperature)
    loss_of(objective, [learning(4, taught(4, same))], states).backward()
    assert states.scores.grad.abs().max().item() < 1e-6
    other = {span: [chance / 2 for chance in chances] for span, chances in same.items()}
    loss_of(objective, [learning(4, taught(4, other))], states).backward()
    assert states.scores.grad.abs().max().item() > 1e-3


def test_spans_that_no_teacher_scores_do_not_count():
    sentences = [learning(3, taught(3, SAID, widest=1)), of_length(3)]
    states = states_of(sentences)
    loss_of(Distillation(sizes()), sentences, states).backward()
    assert touched(states) == {(0, 0, 1), (0, 1, 2), (0, 2, 3)}


def test_spans_of_another_window_do_not_count():
    sentences = [learning(4, taught(4, {(0, 1): [0.5, 0.5]}), core=(1, 3))]
    states = states_of(sentences)
    loss_of(Distillation(sizes()), sentences, states).backward()
    assert touched(states) == {(0, 1, 2), (0, 1, 3), (0, 2, 3), (0, 2, 4)}


def test_nothing_of_a_teacher_may_be_a_label_that_it_does_not_know():
    sentences = [learning(1, taught(1, {(0, 1): [0.25]}, classes=[GENE]))]
    states = states_of(sentences, width=1)
    nothing, drug, gene = softmax(states.scores[0, 0].tolist())
    loss = loss_of(Distillation(sizes()), sentences, states)
    assert loss.item() == pytest.approx(-0.25 * math.log(gene) - 0.75 * math.log(nothing + drug), rel=1e-5)
    states.scores.grad = None
    loss_of(Distillation(sizes(), link="sigmoid"), sentences, states).backward()
    assert states.scores.grad[0, 0, [0, DRUG]].tolist() == [0.0, 0.0]


def test_voices_are_averaged_where_they_score_a_span():
    alone, together = taught(2, {(0, 1): [0.8, 0.1]}, widest=1), taught(2, {(0, 2): [0.6]}, classes=[GENE])
    objective = Distillation(sizes())
    found = []
    for voices in ([alone], [together], [alone, together]):
        states = states_of([of_length(2)])
        found.append(loss_of(objective, [learning(2, *voices)], states).item())
    # the first scores two spans, the second all three; their mean counts for the two that both score
    states = states_of([of_length(2)])
    narrow = together._replace(until=alone.until)
    both = loss_of(objective, [learning(2, narrow)], states).item()
    assert found[2] * 3 == pytest.approx((found[0] * 2 + both * 2) / 2 + (found[1] * 3 - both * 2), rel=1e-5)


def test_spans_of_pieces_are_found_by_their_words():
    sentences = [learning(2, taught(2, {(0, 2): [0.0, 0.9]}))]
    inputs = piece_inputs(sentences, [[2, 1]])
    states = states_of(sentences, width=3, inputs=inputs)
    states = states._replace(candidates=Grid(None, 3, within_words=True)(inputs, None, gold_of(sentences, inputs)))
    scores = torch.zeros(1, 9, 3, requires_grad=True)
    loss_of(Distillation(sizes()), sentences, states._replace(scores=scores)).backward()
    states = states._replace(scores=scores)
    assert touched(states) == {(0, 0, 2), (0, 0, 3), (0, 2, 3)}  # the two words and both together
    assert scores.grad[0, 2].argmin().item() == GENE


def test_a_corpus_is_taught_in_its_own_block():
    labels = LabelSet({"one": ("Drug",), "two": ("Drug", "Gene")})  # nothing, Drug, nothing, Drug, Gene
    sentences = [learning(1, taught(1, {(0, 1): [0.5]}, classes=[labels.id("two", "Gene")]), dataset="two")]
    inputs = word_inputs(sentences)._replace(dataset=torch.tensor([1]))
    states = states_of(sentences, width=1, classes=5, inputs=inputs)
    loss_of(Distillation(sizes(labels=labels)), sentences, states, labels).backward()
    assert states.scores.grad[0, 0, :2].tolist() == [0.0, 0.0]
    assert states.scores.grad[0, 0, 2:].abs().min().item() > 0


def test_a_temperature_of_zero_is_refused():
    with pytest.raises(ValueError, match="the teachers' temperature is 0; give a number above 0"):
        Distillation(sizes(), temperature=0)
