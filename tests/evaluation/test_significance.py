"""Statistics against hand computation, scipy, and simulated corpora whose truth is known."""

import numpy as np
import pytest
from scipy import stats

from wingspan.evaluation.significance import (
    CountTable,
    bootstrap,
    bootstrap_p,
    differences,
    figures,
    holm,
    intervals,
    mcnemar,
    parts,
    randomization,
    randomization_p,
    system_intervals,
)


def simulated(rng: np.random.Generator, units: int, recalls: tuple[float, ...], labels: int = 1) -> np.ndarray:
    """Counts of documents of very different sizes; each run finds each mention with its chance, and errs as often.

    The truth: precision and recall are both the chance, so F1 is 100 times it.  (units, runs, 1 + labels, 3)
    """
    gold = rng.poisson(rng.gamma(2.0, 2.0, (units, 1, labels)), (units, 1, labels))
    gold = np.broadcast_to(gold, (units, len(recalls), labels))
    chance = np.array(recalls)[None, :, None]
    tp = rng.binomial(gold, chance)
    spurious = rng.poisson(gold * (1 - chance))
    each = np.stack([tp, tp + spurious, gold], -1).astype(np.float32)
    return np.concatenate([each.sum(2, keepdims=True), each], 2)


def test_bootstrap_intervals_cover_the_truth_at_the_stated_rate():
    rng = np.random.default_rng(1)
    inside = np.zeros(3)
    for trial in range(400):
        counts = simulated(rng, 60, (0.8,))
        samples = bootstrap(counts, [[0]], 300, seed=trial)[:, 0, 0]
        found = intervals(samples, figures(counts.sum(0))[0, 0], 0.9)
        inside += [one.low <= 80 <= one.high for one in found]
    assert np.all(np.abs(inside / 400 - 0.9) < 0.04), inside  # a binomial's deviation here is 0.015


def test_intervals_over_runs_and_documents_cover_the_truth():
    """A system's runs differ by their seeds as well: an interval over documents alone would cover far less."""
    rng = np.random.default_rng(2)
    inside = np.zeros(2)
    for trial in range(300):
        recalls = tuple(np.clip(rng.normal(0.8, 0.03, 6), 0, 1))
        counts = simulated(rng, 60, recalls)
        observed = figures(counts.sum(0))[:, 0].mean(0)
        together = bootstrap(counts, [range(6)], 300, seed=trial)[:, 0, 0]
        alone = bootstrap(counts.sum(1, keepdims=True), [[0]], 300, seed=trial)[:, 0, 0]
        for at, samples in enumerate((together, alone)):
            f1 = intervals(samples, observed, 0.9)[2]
            inside[at] += f1.low <= 80 <= f1.high
    assert abs(inside[0] / 300 - 0.9) < 0.05, inside
    assert inside[1] / 300 < 0.75, inside


def null_pair(rng: np.random.Generator, units: int) -> tuple[np.ndarray, np.ndarray]:
    counts = simulated(rng, units, (0.75, 0.75), labels=2)
    return counts[:, 0], counts[:, 1]


def test_randomization_p_values_are_uniform_under_the_null():
    rng = np.random.default_rng(3)
    p_values = []
    for trial in range(400):
        first, second = null_pair(rng, 50)
        observed = figures(second.sum(0)) - figures(first.sum(0))
        tossed = randomization(first, second, 199, seed=trial)
        p_values.append(randomization_p(tossed[:, 0, 2], observed[0, 2]))
    assert stats.kstest(p_values, "uniform").pvalue > 0.05
    assert abs(np.mean(np.array(p_values) <= 0.05) - 0.05) < 0.03


def test_bootstrap_p_values_hold_their_level_under_the_null():
    rng = np.random.default_rng(4)
    p_values = []
    for trial in range(300):
        counts = np.stack(null_pair(rng, 80), 1)
        drawn = bootstrap(counts, [[0], [1]], 300, seed=trial)[..., 0, 2]
        f1 = figures(counts.sum(0))[:, 0, 2]
        p_values.append(bootstrap_p(drawn[:, 1] - drawn[:, 0], f1[1] - f1[0]))
    assert abs(np.mean(np.array(p_values) <= 0.1) - 0.1) < 0.04


def test_the_test_over_seeds_and_documents_holds_its_level_where_one_over_documents_does_not():
    """Two systems equally good on average, each with five seeds that differ."""
    rng = np.random.default_rng(5)
    rejected = np.zeros(2)
    for trial in range(200):
        recalls = tuple(np.clip(rng.normal(0.75, 0.03, 10), 0, 1))
        table = CountTable(tuple(map(str, range(60))), ("x",), simulated(rng, 60, recalls))
        for at, systems in enumerate(([range(5), range(5, 10)], [[0], [5]])):
            _, drawn = system_intervals(table, systems, samples=300, seed=trial)
            rejected[at] += differences(table, tuple(systems), drawn, seed=trial).micro.p_bootstrap <= 0.05
    assert rejected[0] / 200 < 0.12, rejected  # five runs: a little above the level, as the notes say
    assert rejected[1] / 200 > 0.2, rejected


def test_a_resample_is_what_drawing_documents_gives():
    counts = simulated(np.random.default_rng(6), 7, (0.5, 0.9), labels=2)
    drawn = bootstrap(counts, [[0], [1]], 4, seed=9)
    draws = np.random.default_rng(np.random.SeedSequence(9).spawn(2)[0]).integers(0, 7, (4, 7))
    for sample, chosen in enumerate(draws):
        for run in (0, 1):
            assert np.allclose(drawn[sample, run], figures(counts[chosen, run].sum(0)))


def test_exchanging_answers_by_brute_force():
    """Six documents: all 64 exchanges can be looked at, and a thousand tosses find the same share."""
    first, second = (simulated(np.random.default_rng(7), 6, (0.6, 0.9))[:, run] for run in (0, 1))
    observed = (figures(second.sum(0)) - figures(first.sum(0)))[0, 2]
    extreme = 0
    for exchange in range(64):
        swap = np.array([exchange >> bit & 1 for bit in range(6)], dtype=bool)[:, None, None]
        one, two = np.where(swap, second, first), np.where(swap, first, second)
        extreme += abs((figures(two.sum(0)) - figures(one.sum(0)))[0, 2]) >= abs(observed) - 1e-9
    tossed = randomization(first, second, 20_000, seed=1)[:, 0, 2]
    assert randomization_p(tossed, observed) == pytest.approx(extreme / 64, abs=0.015)


def test_draws_depend_on_the_seed_and_not_on_the_portions(monkeypatch):
    counts = simulated(np.random.default_rng(9), 30, (0.7, 0.8, 0.9))
    whole = bootstrap(counts, [[0, 1], [2]], 50, seed=3)
    tossed = randomization(counts[:, 0], counts[:, 1], 50, seed=3)
    monkeypatch.setattr("wingspan.evaluation.significance.CELLS", 30 * 7)
    assert len(list(parts(50, 30))) == 8
    assert np.allclose(bootstrap(counts, [[0, 1], [2]], 50, seed=3), whole)
    assert not np.allclose(bootstrap(counts, [[0, 1], [2]], 50, seed=4), whole)
    assert np.allclose(randomization(counts[:, 0], counts[:, 1], 50, seed=3), tossed)


def test_drawn_runs_spread_as_the_mean_of_new_runs_would():
    """One document, so that runs alone differ: the variance of the drawn means is s²/n."""
    f1 = np.array([60.0, 70, 80, 100])
    counts = np.array([[[[x, 100, 100]] * 2 for x in f1]], dtype=np.float32)  # (1, 4, 2, 3)
    drawn = bootstrap(counts, [range(4)], 20_000, seed=1)[:, 0, 0, 2]
    assert drawn.mean() == pytest.approx(f1.mean(), abs=0.2)
    assert drawn.var() == pytest.approx(f1.var(ddof=1) / 4, rel=0.03)


def test_equal_systems_differ_by_nothing():
    counts = simulated(np.random.default_rng(10), 20, (0.7,), labels=2)
    table = CountTable(tuple(map(str, range(20))), ("x", "y"), np.concatenate([counts, counts], 1))
    _, drawn = system_intervals(table, [[0], [1]], samples=50)
    for _, row in differences(table, ([0], [1]), drawn).items():
        assert row == (0, 0, 0, 0.5, 1, 1, 1)


def test_differences_have_the_sign_of_second_minus_first():
    counts = simulated(np.random.default_rng(11), 80, (0.6, 0.9), labels=2)
    table = CountTable(tuple(map(str, range(80))), ("x", "y"), counts)
    figures_found, drawn = system_intervals(table, [[0], [1]], samples=300, confidence=0.9)
    rows = differences(table, ([0], [1]), drawn, confidence=0.9)
    assert rows.micro.value == pytest.approx(figures_found[1][0][2].value - figures_found[0][0][2].value)
    assert 0 < rows.micro.low < rows.micro.value < rows.micro.high
    assert rows.micro.wins == 1
    assert rows.micro.p == rows.micro.p_randomization == pytest.approx(1 / 301)
    assert rows.labels["x"].p_holm == pytest.approx(2 / 301)
    with pytest.raises(ValueError, match="confidence is 95"):
        system_intervals(table, [[0], [1]], samples=10, confidence=95)
    with pytest.raises(ValueError, match="0 samples"):
        system_intervals(table, [[0], [1]], samples=0)


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.5]) == [1.0, 1.0]
    assert holm([0.02]) == [0.02]
    assert holm([]) == []


@pytest.mark.parametrize(("one", "other"), [(0, 0), (1, 0), (3, 9), (9, 3), (10, 10), (400, 470), (30_000, 29_500)])
def test_mcnemar_is_the_binomial_test(one, other):
    expected = stats.binomtest(one, one + other).pvalue if one + other else 1.0
    assert mcnemar(one, other) == pytest.approx(expected, rel=1e-6)
