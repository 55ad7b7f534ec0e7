"""Norms and cosines against values computed by hand and by brute force."""

from itertools import combinations, product

import numpy as np
import pytest
from collected_rows import rows_of

from wingspan.report.geometry import class_cosines, cosine_by_overlap, geometry, norms_by_class, template_cosines


def cosine(one, other) -> float:
    return float(np.dot(one, other) / np.linalg.norm(one) / np.linalg.norm(other))


def test_cosine_by_overlap():
    """An entity at words 2-4 and its neighbors: touching, half inside, nearly the same."""
    rows = rows_of(
        feature=[[3, 0], [0, 2], [1, 1], [2, 0], [-1, 0]],
        gold=[1, 0, 0, 0, 0],
        spans=[(2, 5), (5, 7), (4, 6), (2, 4), (1, 2)],
        pairs=[(0, 1), (0, 2), (0, 3), (0, 4)],
    )
    none, weak, strong = cosine_by_overlap(rows)
    assert (none.overlap, none.pairs) == ("none", 2)
    assert none.mean == pytest.approx(-0.5)  # 0 and -1
    assert none.deviation == pytest.approx(np.sqrt(0.5))
    assert (weak.overlap, weak.pairs) == ("weak", 1)  # one word of four
    assert weak.mean == pytest.approx(np.sqrt(0.5))
    assert np.isnan(weak.deviation)
    assert (strong.overlap, strong.pairs, strong.mean) == ("strong", 1, pytest.approx(1.0))


def test_without_pairs_there_is_nothing_to_say():
    assert [row.pairs for row in cosine_by_overlap(rows_of([[1.0, 0]], [1]))] == [0, 0, 0]


HAND = rows_of(
    feature=[[3, 4], [0, 2], [1, 0], [0, -1], [5, 0]],
    gold=[1, 1, 2, 2, 0],
    templates=[[1, 0], [0, 2], [3, 4]],
)


def test_table_five_by_hand():
    found = geometry(HAND)
    assert found.norm == pytest.approx((5 + 2 + 1 + 1) / 4)
    assert found.within == pytest.approx((0.8 + 0.0) / 2)  # drugs: (3,4)·(0,1)/5; genes are orthogonal
    assert found.between == pytest.approx((0.6 - 0.8 + 0.0 - 1.0) / 4)
    assert found.against_nothing == pytest.approx(((0.6 + 0) / 2 + (1 + 0) / 2) / 2)
    assert found.template_norm == pytest.approx((1 + 2 + 5) / 3)
    assert found.template_cosine == pytest.approx((0 + 0.6 + 0.8) / 3)
    assert found.template_between == pytest.approx(0.8)
    assert found.template_against_nothing == pytest.approx((0 + 0.6) / 2)


def test_norms_by_class():
    drug, gene, nothing = norms_by_class(HAND)
    assert (drug.label, drug.mean, drug.rows) == ("Drug", pytest.approx(3.5), 2)
    assert drug.deviation == pytest.approx(np.std([5, 2], ddof=1))
    assert (gene.label, gene.mean, gene.deviation) == ("Gene", pytest.approx(1.0), pytest.approx(0.0))
    assert (nothing.label, nothing.mean, nothing.rows) == ("", pytest.approx(5.0), 1)


def test_class_cosines_are_means_over_pairs():
    random = np.random.default_rng(0)
    feature, gold = random.normal(size=(40, 6)), random.integers(0, 4, 40)
    rows = rows_of(feature, gold, ("", "A", "B", "C"))
    names, matrix = class_cosines(rows)
    assert names == ("A", "B", "C", "")
    classes = np.array(["", "A", "B", "C"])[gold]
    members = {name: feature[classes == name] for name in names}
    for (i, one), (j, other) in product(enumerate(names), repeat=2):
        pairs = combinations(members[one], 2) if i == j else product(members[one], members[other])
        assert matrix[i, j] == pytest.approx(np.mean([cosine(*pair) for pair in pairs]), abs=1e-6)


def test_template_cosines():
    expected = [[1, 0, 0.6], [0, 1, 0.8], [0.6, 0.8, 1]]
    assert template_cosines(HAND) == pytest.approx(np.array(expected))


def test_only_sampled_spans_stand_for_nothing():
    sampled = np.array([False, True, False])
    rows = rows_of([[1, 0], [1, 0], [-1, 0]], [1, 0, 0], sampled=sampled)
    assert geometry(rows).against_nothing == pytest.approx(1.0)


def test_too_few_rows_or_classes_are_none():
    found = geometry(rows_of([[1.0, 2.0]], [1], ("", "Drug")))
    assert (found.within, found.between, found.against_nothing, found.template_norm) == (None, None, None, None)
    names, matrix = class_cosines(rows_of([[1.0, 2.0]], [1]))
    assert names == ("Drug",)
    assert np.isnan(matrix).all()


def test_a_vector_of_zeros_is_like_nothing():
    assert geometry(rows_of([[0, 0], [1, 0]], [1, 1])).within == pytest.approx(0.0)


def test_what_was_not_collected_is_said():
    with pytest.raises(ValueError, match="these rows have no latent; collect them with one"):
        geometry(HAND, "latent")
