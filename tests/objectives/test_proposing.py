import math

import pytest
import torch
from tiny import ENCODER, gold_of, of_length, sizes, vectors, word_inputs

from wingspan.candidates.proposed import Proposed
from wingspan.model import States
from wingspan.objectives.proposing import Proposing, gold_pairs

SENTENCES = [
    of_length(6, ("Drug", 0, 1), ("Gene", 0, 1), ("Gene", 1, 6)),
    of_length(3),
    of_length(8, ("Drug", 0, 2), ("Gene", 3, 5), ("Gene", 4, 8), core=(2, 6), reach=(1, 7)),
]
GOLD = [{(0, 1), (1, 6)}, set(), {(3, 5)}]  # in core and reach
WORDS = 6 + 3 + 8


def states_of(sentences, seed: int = 0):
    inputs = word_inputs(sentences)
    torch.manual_seed(seed)
    policy = Proposed(ENCODER, 3).eval()
    with torch.no_grad():
        for weight in policy.parameters():
            weight.copy_(torch.randn_like(weight))
    words, gold = vectors(inputs), gold_of(sentences, inputs)
    return States(inputs, words, policy(inputs, words, gold)), gold, policy


def by_hand(states: States) -> tuple[float, float]:
    """Both losses by a plain loop."""
    pairs = ranking = 0.0
    for row, gold in enumerate(GOLD):
        scores = states.candidates.proposals[row].tolist()
        spans = {(s, e + 1): x for s, line in enumerate(scores) for e, x in enumerate(line) if x > -math.inf}
        pairs += sum(math.log1p(math.exp(-x if span in gold else x)) for span, x in spans.items())
        ranking += math.log(1 + sum(math.exp(x) for span, x in spans.items() if span not in gold))
        ranking += math.log(1 + sum(math.exp(-spans[span]) for span in gold))
    return pairs / WORDS, ranking / len(GOLD)


@pytest.mark.parametrize(("pairs", "ranking"), [(1.0, 0.0), (0.0, 1.0), (0.5, 2.0)])
def test_loss_by_hand(pairs, ranking):
    states, gold, _ = states_of(SENTENCES)
    expected = by_hand(states)
    loss = Proposing(sizes(), pairs=pairs, ranking=ranking)(states, gold, None)
    assert loss.item() == pytest.approx(pairs * expected[0] + ranking * expected[1], rel=1e-5)


def test_gold_becomes_pairs_and_padding_does_not():
    inputs = word_inputs(SENTENCES)
    pairs = gold_pairs(gold_of(SENTENCES, inputs), 8)
    found = [{(s, e + 1) for s, e in torch.nonzero(row).tolist()} for row in pairs]
    assert found == [{(0, 1), (1, 6)}, set(), {(0, 2), (3, 5), (4, 8)}]


def test_gradients_are_numbers_and_reach_every_weight():
    states, gold, policy = states_of(SENTENCES)
    Proposing(sizes())(states, gold, None).backward()
    assert all(bool(torch.isfinite(weight.grad).all()) for weight in policy.parameters())
    assert all(float(weight.grad.abs().sum()) > 0 for weight in policy.parameters())


def test_without_gold_there_is_still_something_to_learn():
    states, gold, policy = states_of([of_length(4), of_length(2)])
    loss = Proposing(sizes())(states, gold, None)
    assert loss.item() > 0
    loss.backward()
    assert all(bool(torch.isfinite(weight.grad).all()) for weight in policy.parameters())


def test_padding_changes_nothing():
    states, gold, _ = states_of([SENTENCES[0]])
    alone = Proposing(sizes())(states, gold, None)
    padded = word_inputs([SENTENCES[0], of_length(20)])
    scores = torch.full((1, 20, 20), -torch.inf)
    scores[:, :6, :6] = states.candidates.proposals
    inputs = type(padded)(*(part[:1] for part in padded[:-1]))
    wide = states._replace(inputs=inputs, candidates=states.candidates._replace(proposals=scores))
    torch.testing.assert_close(Proposing(sizes())(wide, gold, None), alone)


def test_scores_of_great_size_give_finite_losses():
    states, gold, _ = states_of(SENTENCES)
    big = states._replace(candidates=states.candidates._replace(proposals=1e4 * states.candidates.proposals))
    assert bool(torch.isfinite(Proposing(sizes())(big, gold, None)))


def test_it_learns_to_put_gold_first():
    inputs = word_inputs(SENTENCES)
    words, gold = vectors(inputs, seed=1), gold_of(SENTENCES, inputs)
    torch.manual_seed(0)
    policy, objective = Proposed(ENCODER, 3, budget=0.3, dropout=0.0), Proposing(sizes())
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.05)
    for _ in range(60):
        optimizer.zero_grad()
        objective(States(inputs, words, policy(inputs, words, gold)), gold, None).backward()
        optimizer.step()
    found = policy(inputs, words)
    for row, expected in enumerate(GOLD):
        spans = list(zip(found.start[row].tolist(), found.end[row].tolist(), strict=True))
        assert set(spans[: len(expected)]) == expected


def test_it_reads_nothing_and_saves_nothing():
    objective = Proposing(sizes())
    assert not objective.predicts
    assert not list(objective.parameters())
