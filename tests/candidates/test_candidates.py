from types import SimpleNamespace

import pytest
import torch
from tiny import ENCODER, gold_of, grid_of, of_length, piece_inputs, sentence, vectors, word_inputs

from wingspan.candidates import Candidates, Sampled, counts


def spans(candidates: Candidates, row: int = 0) -> list[tuple[int, int]]:
    kept = candidates.mask[row]
    return list(zip(candidates.start[row][kept].tolist(), candidates.end[row][kept].tolist(), strict=True))


@pytest.mark.parametrize(("length", "width"), [(100, 10), (7, 3), (3, 10), (1, 1)])
def test_the_grid_has_as_many_spans_as_the_formula_says(length, width):
    found = spans(grid_of(word_inputs([of_length(length)]), width))
    narrow = min(width, length)
    assert len(found) == len(set(found)) == narrow * (2 * length - narrow + 1) // 2
    if (length, width) == (100, 10):
        assert len(found) == 955  # Ji et al. 2022
    assert all(0 <= start < end <= length and end - start <= width for start, end in found)


def test_cells_lie_start_by_start_so_that_the_grid_can_be_reshaped():
    cells = grid_of(word_inputs([of_length(4), of_length(2)]), 3)
    assert cells.width == 3
    assert cells.start.view(2, 4, 3)[0, 2].tolist() == [2, 2, 2]
    assert cells.end.view(2, 4, 3)[0, 2].tolist() == [3, 4, 5]
    assert spans(cells, 1) == [(0, 1), (0, 2), (1, 2)]  # padding is no span


def test_spans_start_in_the_core_and_end_in_the_reach():
    found = spans(grid_of(word_inputs([of_length(8, core=(2, 5), reach=(1, 6))]), 3))
    every = [(s, e) for s in range(8) for e in range(s + 1, min(s + 3, 8) + 1)]
    assert found == [(s, e) for s, e in every if 2 <= s < 5 and e <= 6]


def test_with_pieces_as_units_spans_lie_on_word_borders():
    # words of 2, 1 and 3 pieces: units 0-1, 2, 3-5
    inputs = piece_inputs([of_length(3)], [[2, 1, 3]])
    assert spans(grid_of(inputs, 6)) == [(0, 2), (0, 3), (0, 6), (2, 3), (2, 6), (3, 6)]
    assert spans(grid_of(inputs, 3)) == [(0, 2), (0, 3), (2, 3), (3, 6)]  # the width counts units


def test_with_pieces_core_and_reach_are_in_units():
    inputs = piece_inputs([of_length(3, core=(1, 2), reach=(0, 3)), of_length(2)], [[2, 1, 3], [1, 1]])
    assert inputs.core.tolist() == [[2, 3], [0, 2]]
    assert inputs.reach.tolist() == [[0, 6], [0, 2]]
    assert spans(grid_of(inputs, 6)) == [(2, 3), (2, 6)]
    assert spans(grid_of(inputs, 6), 1) == [(0, 1), (0, 2), (1, 2)]


def drawn(policy: Sampled, sentences, seed: int) -> tuple[Candidates, int]:
    inputs = word_inputs(sentences)
    gold = gold_of(sentences, inputs)
    torch.manual_seed(seed)
    return policy(inputs, vectors(inputs), gold), gold.start.shape[1]


LONG = of_length(60, ("Drug", 3, 5), ("Gene", 10, 40))  # the second is wider than the grid
SHORT = of_length(3, ("Drug", 0, 1))


def test_a_sample_holds_all_gold_and_at_most_so_many_others():
    found, gold = drawn(Sampled(ENCODER, 5, negatives=100), [LONG, SHORT], seed=0)
    assert found.width is None
    assert spans(found)[:2] == [(3, 5), (10, 40)]
    negatives = spans(found)[2:]
    assert len(negatives) == len(set(negatives)) == 100
    assert (3, 5) not in negatives
    assert all(end - start <= 5 and end <= 60 for start, end in negatives)
    assert sorted(spans(found, 1)) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]  # all that a short one has


def test_negatives_are_redrawn_and_repeatable():
    policy = Sampled(ENCODER, 5, negatives=30)
    first, _ = drawn(policy, [LONG], seed=1)
    again, _ = drawn(policy, [LONG], seed=1)
    other, _ = drawn(policy, [LONG], seed=2)
    assert spans(first) == spans(again)
    assert set(spans(first)) != set(spans(other))


def test_every_negative_can_be_drawn():
    policy = Sampled(ENCODER, 2, negatives=1)
    seen = {spans(drawn(policy, [SHORT], seed)[0])[1] for seed in range(60)}
    assert seen == {(0, 2), (1, 2), (1, 3), (2, 3)}


def test_negatives_can_be_none():
    found, _ = drawn(Sampled(ENCODER, 2, negatives=0), [LONG], seed=0)
    assert spans(found) == [(3, 5), (10, 40)]


def test_a_span_with_two_labels_is_one_candidate():
    twice = sentence("a b c", ("Drug", 0, 2), ("Gene", 0, 2), ("Gene", 2, 3))
    found, _ = drawn(Sampled(ENCODER, 3, negatives=100), [twice], seed=0)
    assert spans(found)[:2] == [(0, 2), (2, 3)]
    assert len(spans(found)) == len(set(spans(found))) == 6


def test_gold_outside_core_or_reach_does_not_count_and_is_no_negative():
    window = of_length(9, ("Drug", 0, 2), ("Drug", 3, 4), ("Gene", 4, 8), core=(2, 6), reach=(2, 7))
    found, _ = drawn(Sampled(ENCODER, 3, negatives=100), [window], seed=0)
    assert spans(found)[0] == (3, 4)
    assert all(2 <= start < 6 and end <= 7 for start, end in spans(found))


def test_without_gold_a_sampler_is_the_grid():
    inputs = word_inputs([LONG, SHORT])
    sampled, whole = Sampled(ENCODER, 5)(inputs, vectors(inputs)), grid_of(inputs, 5)
    assert sampled.width == whole.width == 5
    assert all(torch.equal(a, b) for a, b in zip(sampled[:3], whole[:3], strict=True))


def test_a_span_belongs_to_the_window_whose_core_has_its_start():
    inputs = SimpleNamespace(core=torch.tensor([[2, 5]]), reach=torch.tensor([[0, 7]]))
    start, end = torch.tensor([[1, 2, 4, 4, 4, 5]]), torch.tensor([[3, 3, 5, 7, 8, 6]])
    assert counts(start, end, inputs).tolist() == [[False, True, True, True, False, False]]
