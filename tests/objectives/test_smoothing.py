"""Boundary smoothing: the targets of systems.md 3.B.10, on the grid and on lists, against a plain loop."""

import pytest
import torch
import torch.nn.functional as F
from tiny import DRUG, GENE, gold_of, grid_of, of_length, sizes, vectors, word_inputs

from wingspan.candidates import Candidates
from wingspan.labels import LabelSet
from wingspan.model import States
from wingspan.objectives.classification import Classification, neighbors, smoothed

SENTENCES = [
    of_length(7, ("Drug", 1, 3), ("Gene", 2, 3), ("Gene", 5, 7)),
    of_length(2, ("Drug", 0, 1), ("Gene", 0, 1)),
    of_length(4),
    of_length(5, ("Gene", 0, 5), ("Drug", 0, 4)),
]


def shares(length: int, start: int, end: int, distance: int = 1, smoothing: float = 0.1, width: int | None = None):
    """What every span of a sentence gets of one entity, without zeros."""
    one = [of_length(length, ("Drug", start, end))]
    inputs = word_inputs(one)
    cells = grid_of(inputs, width or length)
    found = smoothed(cells, gold_of(one, inputs), inputs, smoothing, neighbors(distance))[0, :, 0]
    spans = zip(cells.start[0].tolist(), cells.end[0].tolist(), cells.mask[0].tolist(), found.tolist(), strict=True)
    return {(s, e): pytest.approx(share) for s, e, real, share in spans if real and share}


def test_published_examples():
    assert shares(5, 1, 3) == {(1, 3): 0.9, (0, 3): 0.025, (2, 3): 0.025, (1, 2): 0.025, (1, 4): 0.025}
    assert shares(5, 0, 1) == {(0, 1): 0.975, (0, 2): 0.025}
    near = dict.fromkeys([(3, 6), (5, 6), (4, 5), (4, 7)], 0.0125)
    far = dict.fromkeys([(2, 6), (4, 8), (3, 5), (3, 7), (5, 7)], 0.00625)
    assert shares(10, 4, 6, distance=2) == {(4, 6): 0.91875, **near, **far}


def test_what_goes_to_spans_wider_than_the_grid_is_lost():
    assert shares(8, 2, 5, width=3) == {(2, 5): 0.9, (3, 5): 0.025, (2, 4): 0.025}


def expected_targets(one, width: int, smoothing: float, distance: int) -> dict[tuple[int, int], list[float]]:
    """The rule of the paper, span by span."""
    length = len(one.words)
    cells = {(s, e): [0.0, 0.0, 0.0] for s in range(length) for e in range(s + 1, length + 1)}
    for entity in one.entities:
        label = {"Drug": DRUG, "Gene": GENE}[entity.label]
        own = (entity.start, entity.end)
        cells[own][label] += 1 - smoothing
        for d in range(1, distance + 1):
            around = {(i, j) for i in range(-d, d + 1) for j in range(-d, d + 1) if abs(i) + abs(j) == d}
            assert len(around) == 4 * d
            for i, j in around:
                spot = (own[0] + i, own[1] + j)
                cells[spot if spot in cells else own][label] += smoothing / (4 * d * distance)
    for chances in cells.values():
        total = sum(chances)
        chances[:] = [chance / max(total, 1.0) for chance in chances]
        chances[0] = max(0.0, 1 - total)
    return {(s, e): chances for (s, e), chances in cells.items() if e - s <= width}


@pytest.mark.parametrize("distance", [1, 2, 3])
@pytest.mark.parametrize("reduction", ["cells", "sentences"])
@pytest.mark.parametrize("listed", [False, True])
def test_loss_equals_a_plain_loop(distance, reduction, listed):
    inputs = word_inputs(SENTENCES)
    cells = grid_of(inputs, 4)
    if listed:
        order = torch.randperm(cells.start.shape[1], generator=torch.Generator().manual_seed(1))
        cells = Candidates(*(part[:, order] for part in cells[:3]), None)
    scores = torch.randn(*cells.start.shape, 3, generator=torch.Generator().manual_seed(2), requires_grad=True)
    states = States(inputs, vectors(inputs), cells, scores=scores)
    objective = Classification(sizes(), smoothing=0.2, smoothing_distance=distance, reduction=reduction)
    loss = objective(states, gold_of(SENTENCES, inputs))
    costs = []
    for row, one in enumerate(SENTENCES):
        wanted = expected_targets(one, 4, 0.2, distance)
        spans = zip(cells.start[row].tolist(), cells.end[row].tolist(), cells.mask[row].tolist(), strict=True)
        for at, (start, end, real) in enumerate(spans):
            if real:
                costs.append(F.cross_entropy(scores[row, at], torch.tensor(wanted.pop((start, end)))))
        assert not wanted
    plain = sum(costs) / (len(costs) if reduction == "cells" else len(SENTENCES))
    torch.testing.assert_close(loss, plain)
    (fast,), (slow,) = torch.autograd.grad(loss, scores), torch.autograd.grad(plain, scores)
    torch.testing.assert_close(fast, slow, rtol=1e-5, atol=1e-6)


def test_without_smoothing_nothing_changes():
    inputs = word_inputs(SENTENCES)
    cells = grid_of(inputs, 4)
    scores = torch.randn(*cells.start.shape, 3, generator=torch.Generator().manual_seed(2))
    states, gold = States(inputs, vectors(inputs), cells, scores=scores), gold_of(SENTENCES, inputs)
    plain = Classification(sizes())(states, gold)
    one_label = [of_length(2, ("Drug", 0, 1)) if at == 1 else one for at, one in enumerate(SENTENCES)]
    tiny = Classification(sizes(), smoothing=1e-7)(states, gold_of(one_label, inputs))
    assert tiny.item() == pytest.approx(plain.item(), rel=1e-5)


def test_each_corpus_keeps_its_own_nothing():
    labels = LabelSet({"main": ("Drug",), "other": ("Gene", "Cell")})  # nothing is 0 and 2
    one = [of_length(3, ("Gene", 0, 1), dataset="other")]
    inputs = word_inputs(one)._replace(dataset=torch.tensor([1]))
    cells = grid_of(inputs, 3)
    scores = torch.zeros(*cells.start.shape, 5)
    scores[..., :2] = -torch.inf  # another corpus' classes are impossible, which must not break the loss
    states = States(inputs, vectors(inputs), cells, scores=scores)
    loss = Classification(sizes(labels=labels), smoothing=0.1)(states, gold_of(one, inputs, labels))
    assert loss.item() == pytest.approx(torch.tensor(3.0).log().item(), rel=1e-5)


def test_sigmoid_takes_shares_too():
    inputs = word_inputs(SENTENCES[:1])
    cells = grid_of(inputs, 4)
    scores = torch.zeros(*cells.start.shape, 3, requires_grad=True)
    states = States(inputs, vectors(inputs), cells, scores=scores)
    Classification(sizes(), link="sigmoid", smoothing=0.1)(states, gold_of(SENTENCES[:1], inputs)).backward()
    here = (cells.start[0] == 1) & (cells.end[0] == 4)
    slope = scores.grad[0, here][0] * cells.mask.sum() * 2
    torch.testing.assert_close(slope, torch.tensor([0.0, 0.5 - 0.025, 0.5]))


def test_impossible_settings_are_said():
    with pytest.raises(ValueError, match="smoothing is 1"):
        Classification(sizes(), smoothing=1.0)
    with pytest.raises(ValueError, match="smoothing_distance is 0"):
        Classification(sizes(), smoothing=0.1, smoothing_distance=0)
