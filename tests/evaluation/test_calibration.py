"""Reliability, calibration error, temperature, curves and thresholds, against hand computation and other libraries."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.metrics import average_precision_score

from wingspan.evaluation.calibration import (
    COLDEST,
    WARMEST,
    Calibration,
    Curve,
    calibration_of,
    choose,
    choose_thresholds,
    curves,
    fit_temperature,
    log_loss,
    reliability,
    scored,
    softmax,
)
from wingspan.text import Document, Entity

TEXT = "x" * 30


def documents(*rows: tuple[str, float, bool], missed: int = 0) -> tuple[list[Document], list[Document]]:
    """One document whose found entities have these labels and scores and are right or not; some gold is missed."""
    found = [Entity.at(label, at, at + 1, score) for at, (label, score, _) in enumerate(rows)]
    gold = [entity for entity, (_, _, right) in zip(found, rows, strict=True) if right]
    gold += [Entity.at("a", 20 + at, 22 + at) for at in range(missed)]
    return [Document("1", TEXT, tuple(gold))], [Document("1", TEXT, tuple(found))]


ROWS = (
    ("a", 0.95, True),
    ("a", 0.85, False),
    ("a", 0.9, True),
    ("b", 0.55, True),
    ("b", 0.55, False),
    ("b", 1.0, True),
)


def test_calibration_error_by_hand():
    found = calibration_of(*documents(*ROWS, missed=2), bins=10)
    overall = found.overall
    filled = {one.low: one for one in overall.bins if one.entities}
    assert set(filled) == {0.5, 0.8, 0.9}
    assert filled[0.9][2:] == (3, pytest.approx(95), 100)
    assert filled[0.8][2:] == (1, pytest.approx(85), 0)
    assert filled[0.5][2:] == (2, pytest.approx(55), 50)
    assert overall.error == pytest.approx((3 * 5 + 1 * 85 + 2 * 5) / 6)
    assert overall.worst == pytest.approx(85)
    assert found.labels["b"].error == pytest.approx((2 * 5 + 1 * 0) / 3)
    assert found.labels["a"].entities == 3
    assert overall.to_dict()["bins"][5] == {
        "low": 0.5,
        "high": 0.6,
        "entities": 2,
        "confidence": pytest.approx(55),
        "accuracy": 50,
    }


def test_scores_at_the_borders_and_nothing_at_all():
    edges = reliability(np.array([0.0, 0.5, 1.0]), np.array([False, True, True]), bins=2)
    assert [one.entities for one in edges.bins] == [1, 2]
    empty = reliability(np.array([]), np.array([], dtype=bool))
    assert (empty.error, empty.worst, empty.entities) == (0, 0, 0)
    with pytest.raises(ValueError, match="chances from 0 to 1"):
        reliability(np.array([3.0]), np.array([True]))
    with pytest.raises(ValueError, match="0 bins"):
        reliability(np.array([0.5]), np.array([True]), bins=0)


def test_an_entity_found_twice_counts_once():
    gold, _ = documents(("a", 1.0, True))
    entity = gold[0].entities[0]
    twice = [Document("1", TEXT, (Entity("a", entity.spans, 0.3), Entity("a", entity.spans, 0.7)))]
    assert scored(gold, twice).overall.scores.tolist() == [0.7]


def drawn(seed: int, temperature: float, classes: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Class scores that are too large by a factor: the right classes are drawn from those divided by it."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 3, (4000, classes))
    chance = softmax(logits / temperature)
    return logits, (chance.cumsum(-1) > rng.random((4000, 1))).argmax(-1)


@pytest.mark.parametrize("truth", [0.5, 1.0, 2.5])
def test_the_temperature_is_found_again_and_is_the_optimum(truth):
    logits, target = drawn(1, truth)
    found = fit_temperature(logits, target)
    assert found == pytest.approx(truth, rel=0.06)
    best = minimize_scalar(lambda t: log_loss(logits, target, t), bounds=(0.1, 10), method="bounded")
    assert found == pytest.approx(best.x, rel=1e-3)
    assert log_loss(logits, target, found) <= log_loss(logits, target)


def test_a_temperature_by_hand():
    """Nine of ten decisions with the class scores 0 and z are right: the chance should be 0.9, so z / T = log 9."""
    logits = np.tile([0.0, 4.0], (10, 1))
    target = np.array([1] * 9 + [0])
    temperature = fit_temperature(logits, target)
    assert temperature == pytest.approx(4 / np.log(9), rel=1e-6)
    assert log_loss(logits, target, temperature) == pytest.approx(-(0.9 * np.log(0.9) + 0.1 * np.log(0.1)))


def test_temperatures_stay_within_reason():
    logits = np.array([[0.0, 5.0], [5.0, 0.0]])
    assert fit_temperature(logits, np.array([1, 0])) == COLDEST
    assert fit_temperature(logits, np.array([0, 1])) == WARMEST
    with pytest.raises(ValueError, match="no decision"):
        fit_temperature(np.zeros((0, 2)), np.zeros(0, dtype=int))


def test_classes_of_other_corpora_are_left_out():
    """They have minus infinity, and must change nothing."""
    logits, target = drawn(2, 2.0)
    wider = np.concatenate([logits, np.full((len(logits), 1), -np.inf)], 1)
    assert fit_temperature(wider, target) == pytest.approx(fit_temperature(logits, target))


def test_scaling_repairs_the_calibration_error():
    logits, target = drawn(3, 2.5)
    before, after = (
        reliability(chance.max(-1), chance.argmax(-1) == target).error
        for chance in (softmax(logits), softmax(logits / fit_temperature(logits, target)))
    )
    assert before > 8
    assert after < 2.5


def test_curves_by_hand():
    found = curves(*documents(("a", 0.9, True), ("a", 0.8, False), ("a", 0.8, True), ("a", 0.3, False), missed=2))
    points = found.overall
    assert points.thresholds.tolist() == [0.9, 0.8, 0.3]
    assert points.precision.tolist() == pytest.approx([100, 200 / 3, 50])
    assert points.recall.tolist() == [25, 50, 50]
    assert points.f1.tolist() == pytest.approx([40, 400 / 7, 50])
    assert points.average_precision == pytest.approx(25 + 25 * 2 / 3)
    assert points.gold == 4


def test_average_precision_is_that_of_others_where_all_gold_is_found():
    rng = np.random.default_rng(4)
    scores, right = rng.random(28).round(1), rng.random(28) < 0.4
    found = curves(*documents(*(("a", score, bool(yes)) for score, yes in zip(scores, right, strict=True))))
    assert found.overall.average_precision == pytest.approx(100 * average_precision_score(right, scores))


def test_thresholds_for_f1_and_for_a_precision():
    rows = [("a", 0.9, True), ("a", 0.8, True), ("a", 0.6, False), ("a", 0.5, True), ("a", 0.2, False)]
    gold, found = documents(*rows, ("b", 0.7, False), missed=1)
    best = choose_thresholds(gold, found)
    assert best["a"] == (pytest.approx(0.35), 75, 75, 75, True)
    careful = choose_thresholds(gold, found, precision=90)
    assert careful["a"] == (pytest.approx(0.7), 100, 50, pytest.approx(200 / 3), True)
    assert careful["b"] == (pytest.approx(0.7), 0, 0, 0, False)
    with pytest.raises(ValueError, match="a precision of 120"):
        choose_thresholds(gold, found, precision=120)
    assert choose_thresholds(gold, [Document("1", TEXT)]) == {}


def test_what_is_saved_is_read_back_and_checked():
    saved = Calibration(1.5, {"Drug": 0.25}, {"decisions": 3})
    assert Calibration.from_dict(saved.to_dict(), "here") == saved
    assert str(saved) == "temperature 1.5; thresholds Drug 0.25"
    for broken in ({}, {"temperature": 0}, {"temperature": "1"}, {"temperature": True}):
        with pytest.raises(ValueError, match="here: the temperature is"):
            Calibration.from_dict(broken, "here")
    for bars in ([1], {"Drug": 2}, {"Drug": None}):
        with pytest.raises(ValueError, match="here: thresholds are not"):
            Calibration.from_dict({"temperature": 1, "thresholds": bars}, "here")


def test_of_thresholds_with_the_same_f1_the_higher_one_is_chosen():
    points = Curve(np.array([0.9, 0.5]), np.array([100.0, 50.0]), np.array([50.0, 50.0]), np.array([60.0, 60.0]), 2)
    assert choose(points).threshold == pytest.approx(0.7)  # halfway to the next
