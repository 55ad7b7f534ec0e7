"""One-to-one matching against a brute-force search over all matchings, and its properties."""

from collections import Counter
from itertools import permutations

import pytest
import scoring_samples as samples

from wingspan.evaluation.matching import NOWHERE, heaviest, match
from wingspan.evaluation.scores import MODES, recognition
from wingspan.text import Entity, Span


def touch(a, b):
    return any(set(range(*s)) & set(range(*t)) for s in a.spans for t in b.spans)


def worth(gold, found, mode):
    """The definitions of docs/scoring.md, written a second time and slowly."""
    same_place, same_label = gold.spans == found.spans, gold.label == found.label
    if not touch(gold, found):
        return None
    if mode == "strict":
        return "correct" if same_place and same_label else "incorrect"
    if mode == "exact":
        return "correct" if same_place else "incorrect"
    if mode == "partial":
        return "correct" if same_place else "partial"
    if mode == "type":
        return "correct" if same_label else "incorrect"
    return "correct" if same_label else None


def brute_force(gold, found, mode):
    """The counts of the best of all matchings: most credit, then most correct, then most pairs."""
    if mode == "fragments":
        gold, found = ([Entity(e.label, (s,)) for e in side for s in e.spans] for side in (gold, found))
        mode = "strict"
    gold, found = sorted(set(gold), key=repr), sorted(set(found), key=repr)
    flip = len(gold) > len(found)
    few, many = (found, gold) if flip else (gold, found)
    table = [[worth(m, f, mode) if flip else worth(f, m, mode) for m in many] for f in few]
    best, counts = (-1.0, -1, -1), Counter()
    for order in permutations(range(len(many)), len(few)):
        verdicts = Counter(v for row, column in enumerate(order) if (v := table[row][column]) is not None)
        rank = (verdicts["correct"] + verdicts["partial"] / 2, verdicts["correct"], verdicts.total())
        if rank > best:
            best, counts = rank, verdicts
    pairs = counts.total()
    return {**counts, "missed": len(gold) - pairs, "spurious": len(found) - pairs}


def counted(matches):
    return Counter(m.verdict for m in matches)


@pytest.mark.parametrize("mode", MODES)
def test_equals_brute_force_on_nested_crossing_and_discontinuous_entities(mode):
    rng = samples.generator(f"brute {mode}")
    most = 3 if mode == "fragments" else 5
    for _ in range(1500):
        gold, found = samples.wild(rng, most)
        if mode == "fragments" and max(sum(len(e.spans) for e in side) for side in (gold, found)) > 6:
            continue
        assert +counted(match(gold, found, mode)) == +Counter(brute_force(gold, found, mode)), (gold, found)


@pytest.mark.parametrize("mode", MODES)
def test_every_entity_is_in_exactly_one_match(mode):
    rng = samples.generator(f"once {mode}")
    for _ in range(300):
        gold, found = samples.wild(rng, 8)
        matches = match(gold, found, mode)
        if mode == "fragments":
            gold, found = ([Entity(e.label, (s,)) for e in side for s in e.spans] for side in (gold, found))
        assert Counter(m.gold for m in matches if m.gold) == Counter(set(gold))
        assert Counter(m.found for m in matches if m.found) == Counter(set(found))


@pytest.mark.parametrize("mode", MODES)
def test_order_does_not_matter_and_sides_are_symmetric(mode):
    rng = samples.generator(f"order {mode}")
    for _ in range(300):
        gold, found = samples.wild(rng, 8)
        forward = match(gold, found, mode)
        swapped = counted(match(found, gold, mode))
        rng.shuffle(gold)
        rng.shuffle(found)
        assert match(gold, found, mode) == forward
        swapped["missed"], swapped["spurious"] = swapped["spurious"], swapped["missed"]
        assert +swapped == +counted(forward)


@pytest.mark.parametrize("mode", MODES)
def test_figures_are_bounded_and_swap_with_the_sides(mode):
    rng = samples.generator(f"bounds {mode}")
    for _ in range(200):
        gold, found = (samples.document(side) for side in samples.wild(rng))
        scores, swapped = recognition([gold], [found], mode), recognition([found], [gold], mode)
        assert scores.micro.precision == swapped.micro.recall
        assert scores.micro.f1 == swapped.micro.f1
        assert scores.macro.recall == pytest.approx(swapped.macro.precision)
        for counts in (scores.micro, *scores.labels.values()):
            assert 0 <= counts.precision <= 100
            assert 0 <= counts.f1 <= 100
            assert counts.tp + counts.fn == counts.gold
            assert counts.tp + counts.fp == counts.found
        if gold.entities:
            assert recognition([gold], [gold], mode).micro.f1 == 100


def test_an_identical_pair_gives_way_when_two_overlaps_are_worth_more():
    gold = [Entity.at("A", 0, 10), Entity.at("A", 0, 3)]
    found = [Entity.at("A", 0, 10), Entity.at("A", 5, 8)]
    assert counted(match(gold, found, "type")) == {"correct": 2}
    assert counted(match(gold, found, "strict")) == {"correct": 1, "missed": 1, "spurious": 1}


def test_partial_prefers_one_exact_pair_over_two_halves():
    gold, found = [Entity.at("A", 0, 10), Entity.at("A", 0, 3)], [Entity.at("A", 0, 10), Entity.at("A", 5, 8)]
    assert counted(match(gold, found, "partial")) == {"correct": 1, "missed": 1, "spurious": 1}


def test_a_gap_is_no_overlap():
    apart = Entity("A", (Span(0, 2), Span(8, 10)))
    assert counted(match([apart], [Entity.at("A", 3, 6)], "lenient")) == {"missed": 1, "spurious": 1}
    assert counted(match([apart], [Entity.at("A", 0, 10)], "lenient")) == {"correct": 1}
    assert counted(match([apart], [Entity.at("A", 0, 10)], "strict")) == {"incorrect": 1}


def test_an_empty_span_matches_itself():
    empty = Entity.at("A", 3, 3)
    for mode in MODES:
        assert counted(match([empty], [empty], mode)) == {"correct": 1}
        assert counted(match([empty, Entity.at("A", 8, 9)], [empty], mode))["correct"] == 1


def test_two_long_entities_over_thousands_of_short_ones_stay_fast():
    short = [Entity.at("A", 4 * i, 4 * i + 3) for i in range(3000)]
    shifted = [Entity.at("A", 4 * i + 1, 4 * i + 3) for i in range(3000)]
    matches = match([*short, Entity.at("A", 0, 20_000)], [*shifted, Entity.at("A", 1, 20_000)], "lenient")
    assert counted(matches) == {"correct": 3001}


def test_heaviest_equals_trying_every_assignment():
    rng = samples.generator("assignment")
    for _ in range(800):
        rows, columns = rng.randint(0, 5), rng.randint(0, 5)
        edges = [{c: rng.randint(1, 9) for c in range(columns) if rng.random() < 0.6} for _ in range(rows)]
        placed = heaviest(edges)
        taken = [c for c in placed if c != NOWHERE]
        assert len(taken) == len(set(taken))
        weight = sum(edges[r][c] for r, c in enumerate(placed) if c != NOWHERE)
        seats = [*range(columns), *[NOWHERE] * rows]
        best = (
            max(sum(edges[r].get(c, 0) for r, c in enumerate(o)) for o in set(permutations(seats, rows))) if rows else 0
        )
        assert weight == best


def test_heaviest_equals_the_dense_solver_of_scipy_on_larger_graphs():
    optimize = pytest.importorskip("scipy.optimize", reason="scipy is not installed (seqeval brings it)")
    rng = samples.generator("scipy")
    for _ in range(200):
        rows, columns, density = rng.randint(1, 40), rng.randint(1, 40), rng.choice((0.1, 0.3, 0.9))
        edges = [{c: rng.randint(1, 50) for c in range(columns) if rng.random() < density} for _ in range(rows)]
        dense = [[edges[r].get(c, 0) for c in range(columns)] for r in range(rows)]
        weight = sum(edges[r][c] for r, c in enumerate(heaviest(edges)) if c != NOWHERE)
        best_rows, best_columns = optimize.linear_sum_assignment(dense, maximize=True)
        assert weight == sum(dense[r][c] for r, c in zip(best_rows, best_columns, strict=True))
