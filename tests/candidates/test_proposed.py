import math

import pytest
import torch
from tiny import ENCODER, gold_of, grid_of, of_length, piece_inputs, sentence, vectors, word_inputs

from wingspan.candidates import Candidates
from wingspan.candidates.proposed import BUCKETS, Proposed, bucket, choose, possible

MINUS = -math.inf


def spans(candidates: Candidates, row: int = 0) -> list[tuple[int, int]]:
    kept = candidates.mask[row]
    return list(zip(candidates.start[row][kept].tolist(), candidates.end[row][kept].tolist(), strict=True))


def make(**settings) -> Proposed:
    """A policy whose random weights make scores that differ much."""
    torch.manual_seed(0)
    policy = Proposed(ENCODER, 3, **settings).eval()
    with torch.no_grad():
        for weight in policy.parameters():
            weight.copy_(torch.randn_like(weight))
    return policy


def by_hand(policy: Proposed, inputs, words, row: int = 0) -> dict[tuple[int, int], float]:
    """The scores of all spans that count, by a plain loop."""
    left, right, inside = (part(words.top[row]) for part in (policy.left, policy.right, policy.inside))
    size = policy.sizes[0]
    core, reach, found = inputs.core[row].tolist(), inputs.reach[row].tolist(), {}
    for start in range(inputs.unit_mask.shape[1]):
        for end in range(start + 1, inputs.unit_mask.shape[1] + 1):
            on_borders = bool(inputs.starts[row, start] and inputs.ends[row, end - 1])
            if on_borders and core[0] <= start < core[1] and end <= reach[1]:
                one, other = left[start], right[end - 1]
                score = one[:size] @ other[:size] / math.sqrt(size) + one[-1] + other[-1]
                score = score + inside[start:end].mean(0) @ (one[size:-1] + other[size:-1])
                found[start, end] = (score + policy.widths.weight[bucket(torch.tensor(end - start)), 0]).item()
    return found


LONG, SHORT = of_length(12), of_length(3)
WINDOW = of_length(9, core=(2, 5), reach=(1, 7))


@pytest.mark.parametrize("row", [0, 1, 2])
def test_scores_by_hand(row):
    inputs = word_inputs([LONG, SHORT, WINDOW])
    policy, words = make(size=4), vectors(inputs)
    scores, expected = policy.score(inputs, words)[row], by_hand(policy, inputs, words, row)
    real = {(s, e + 1) for s, e in torch.nonzero(scores > MINUS).tolist()}
    assert real == set(expected)
    for (start, end), score in expected.items():
        assert scores[start, end - 1].item() == pytest.approx(score, abs=1e-4)


@pytest.mark.parametrize("budget", [0.1, 0.5, 1.0, 2.0, 100.0])
def test_the_best_of_each_sentence_by_hand(budget):
    sentences = [LONG, SHORT, WINDOW]
    inputs = word_inputs(sentences)
    policy, words = make(size=4, budget=budget), vectors(inputs)
    found = policy(inputs, words)
    assert found.width is None
    for row, one in enumerate(sentences):
        scores = by_hand(policy, inputs, words, row)
        quota = max(1, math.ceil(round(budget * one.core.width, 6)))
        best = sorted(scores, key=scores.__getitem__, reverse=True)[:quota]
        assert spans(found, row) == best  # best first, and no more than the budget of this sentence's words


def test_choosing_from_given_scores():
    inputs = word_inputs([of_length(3)])
    scores = torch.tensor([[[0.0, 5.0, 1.0], [MINUS, -1.0, 4.0], [MINUS, MINUS, 3.0]]])
    assert spans(choose(scores, inputs, 1.0)) == [(0, 2), (1, 3), (2, 3)]
    assert spans(choose(scores, inputs, 2 / 3)) == [(0, 2), (1, 3)]
    assert spans(choose(scores, inputs, 0.01)) == spans(choose(scores, inputs, 1e-6)) == [(0, 2)]
    assert len(spans(choose(scores, inputs, 50))) == 6  # all there are, and nothing that is no span


@pytest.mark.parametrize(("budget", "words", "expected"), [(0.1, 30, 3), (0.7, 10, 7), (1.1, 10, 11), (0.25, 5, 2)])
def test_rounding_gives_no_extra_span(budget, words, expected):
    inputs = word_inputs([of_length(words), of_length(2)])
    scores = torch.randn(2, words, words).masked_fill(~possible(inputs), MINUS)
    assert len(spans(choose(scores, inputs, budget))) == expected


def test_without_a_look_inside_start_and_end_decide():
    inputs = word_inputs([LONG])
    policy, words = make(inside_size=0), vectors(inputs)
    changed = words._replace(top=words.top.clone())
    changed.top[0, 5] += 3.0
    before, after = policy.score(inputs, words)[0], policy.score(inputs, changed)[0]
    same = torch.isclose(before, after, atol=1e-5)
    assert bool(same[:5, 6:].all())  # unit 5 lies inside only
    assert not bool(same[5, 5:].any())
    assert not bool(torch.isclose(make().score(inputs, words)[0], make().score(inputs, changed)[0])[:5, 6:].any())


def test_any_width_can_be_chosen():
    inputs = word_inputs([of_length(40)])
    found = make(budget=100.0)(inputs, vectors(inputs))  # max_width is 3
    assert set(spans(found)) == {(s, e) for s in range(40) for e in range(s + 1, 41)}


def test_widths_are_told_apart_on_a_logarithmic_scale():
    widths = torch.tensor([1, 2, 3, 4, 6, 8, 16, 64, 512, 10**6])
    assert bucket(widths).tolist() == [0, 2, 3, 4, 5, 6, 8, 12, 18, BUCKETS - 1]
    assert bucket(torch.arange(-3, 2)).tolist() == [0] * 5


def test_with_pieces_as_units_proposals_lie_on_word_borders_and_are_counted_per_word():
    inputs = piece_inputs([of_length(3), of_length(3, core=(1, 2))], [[2, 1, 3], [1, 2, 2]])
    assert spans(make(budget=100.0)(inputs, vectors(inputs)))  # six units, three words
    every = set(spans(make(budget=100.0)(inputs, vectors(inputs))))
    assert every == {(0, 2), (0, 3), (0, 6), (2, 3), (2, 6), (3, 6)}
    found = make(budget=1.0)(inputs, vectors(inputs))
    assert len(spans(found)) == 3
    assert len(spans(found, 1)) == 1  # one word in the core
    assert set(spans(found, 1)) <= {(1, 3), (1, 5)}


GOLD = [
    of_length(12, ("Drug", 3, 5), ("Gene", 3, 5), ("Gene", 1, 11), ("Drug", 0, 12)),
    SHORT,
    of_length(9, ("Drug", 0, 3), ("Gene", 2, 7), ("Drug", 4, 8), core=(2, 5), reach=(1, 7)),
]


@pytest.mark.parametrize("budget", [0.01, 1.0, 100.0])
def test_in_training_gold_is_kept_and_nothing_is_there_twice(budget):
    inputs = word_inputs(GOLD)
    policy, words = make(budget=budget), vectors(inputs)
    plain, found = policy(inputs, words), policy(inputs, words, gold_of(GOLD, inputs))
    for row, own in enumerate([{(3, 5), (1, 11), (0, 12)}, set(), {(2, 7)}]):  # others are outside core or reach
        assert len(spans(found, row)) == len(set(spans(found, row)))
        assert set(spans(found, row)) == set(spans(plain, row)) | own
    assert torch.equal(plain.proposals, found.proposals)


def test_gold_has_no_part_in_prediction():
    with_gold, without = word_inputs(GOLD), word_inputs([of_length(12), SHORT, WINDOW])
    policy = make(budget=0.3)
    first, second = policy(with_gold, vectors(with_gold)), policy(without, vectors(without))
    assert all(spans(first, row) == spans(second, row) for row in range(3))


def test_padding_and_other_sentences_change_nothing():
    sentences = [LONG, SHORT, WINDOW, of_length(30)]
    inputs = word_inputs(sentences)
    policy, words = make(budget=1.5), vectors(inputs)
    together = policy(inputs, words)
    for row, one in enumerate(sentences):
        length = len(one.words)
        alone = word_inputs([one])
        own = words._replace(top=words.top[row : row + 1, :length], mask=alone.unit_mask)
        assert spans(policy(alone, own)) == spans(together, row)


def test_unlikely_spans_are_left_out_of_prediction_only():
    inputs = word_inputs(GOLD)
    words, gold = vectors(inputs), gold_of(GOLD, inputs)
    every, likely = make(budget=2.0), make(budget=2.0, threshold=0.9)
    scores, found = every.score(inputs, words), likely(inputs, words)
    for row in range(3):
        kept = [(s, e) for s, e in spans(every(inputs, words), row) if scores[row, s, e - 1].sigmoid() >= 0.9]
        assert spans(found, row) == kept
    assert found.start.shape[1] == max(len(spans(found, row)) for row in range(3))  # no work for what was left out
    assert set(spans(likely(inputs, words, gold))) == set(spans(every(inputs, words, gold)))


def test_a_threshold_that_nothing_reaches_leaves_nothing():
    inputs = word_inputs([LONG])
    policy = make(threshold=0.5)
    with torch.no_grad():
        policy.widths.weight.fill_(-1e4)
    found = policy(inputs, vectors(inputs))
    assert found.start.shape == (1, 1)
    assert spans(found) == []


def test_choosing_passes_no_gradient_but_scores_do():
    inputs = word_inputs([LONG])
    policy, words = make(), vectors(inputs)
    top = words.top.clone().requires_grad_()
    found = policy(inputs, words._replace(top=top))
    assert not found.start.requires_grad
    found.proposals[found.proposals > MINUS].sum().backward()
    assert bool((top.grad.abs().sum(-1) > 0).all())
    assert bool(torch.isfinite(top.grad).all())
    assert all(weight.grad is not None for weight in policy.parameters())


def test_scores_have_all_digits_under_autocast():
    inputs = word_inputs([LONG])
    policy, words = make(), vectors(inputs)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = policy(inputs, words)
    assert half.proposals.dtype == torch.float32
    assert spans(half) == spans(policy(inputs, words))


def test_an_empty_batch_row_and_a_single_word():
    inputs = word_inputs([sentence(""), of_length(1)])
    found = make()(inputs, vectors(inputs))
    assert spans(found, 0) == []
    assert spans(found, 1) == [(0, 1)]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (dict(budget=0.0), "candidates.budget is 0.0; give more than 0"),
        (dict(budget=float("nan")), "candidates.budget is nan"),
        (dict(threshold=1.0), "candidates.threshold is 1.0; it is a chance"),
    ],
)
def test_settings_that_cannot_work_are_said(settings, said):
    with pytest.raises(ValueError, match=said):
        Proposed(ENCODER, 3, **settings)


def test_all_spans_that_count_are_those_of_the_widest_grid():
    inputs = piece_inputs([of_length(4, core=(1, 3), reach=(0, 4)), of_length(2)], [[2, 1, 3, 1], [1, 1]])
    pairs, cells = possible(inputs), grid_of(inputs, inputs.unit_mask.shape[1])
    for row in range(2):
        assert {(s, e + 1) for s, e in torch.nonzero(pairs[row]).tolist()} == set(spans(cells, row))
