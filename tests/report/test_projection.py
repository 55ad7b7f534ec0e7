"""Planes, and how well groups lie apart, by hand and against scikit-learn."""

import numpy as np
import pytest
from collected_rows import rows_of

from wingspan.report.geometry import label_map, pca, silhouette, span_map, tsne


def test_pca_by_hand():
    """Four points on a cross: the long arm is the first axis and has 8/10 of the variance."""
    points, shares = pca(np.array([[5.0, 1], [5, -3], [6, -1], [4, -1]]))
    assert shares == pytest.approx((0.8, 0.2))
    assert points == pytest.approx(np.array([[2, 0], [-2, 0], [0, 1], [0, -1]]), abs=1e-9)


def test_pca_keeps_distances_where_two_axes_hold_everything():
    random = np.random.default_rng(0)
    plane = random.normal(size=(30, 2))
    turned, _ = np.linalg.qr(random.normal(size=(7, 7)))
    points, shares = pca(np.hstack([plane, np.zeros((30, 5))]) @ turned)
    assert sum(shares) == pytest.approx(1.0)
    apart = np.linalg.norm(plane[:, None] - plane, axis=-1)
    assert np.linalg.norm(points[:, None] - points, axis=-1) == pytest.approx(apart)


def test_pca_axes_do_not_flip():
    values = np.random.default_rng(1).normal(size=(20, 5))
    assert pca(values)[0] == pytest.approx(pca(values[::-1])[0][::-1])


@pytest.mark.parametrize("shape", [(0, 3), (1, 3), (5, 1), (2, 2)])
def test_pca_of_little(shape):
    points, shares = pca(np.ones(shape))
    assert points.shape == (shape[0], 2)
    assert shares == (0.0, 0.0)


def test_silhouette_by_hand():
    """Two on a line near 0, two near 10: a = 1, b = 9.5 or 10.5 for the outer ones, 9.5 and 8.5 ... by symmetry."""
    values = np.array([[0.0], [1.0], [10.0], [11.0]])
    outer, inner = (10.5 - 1) / 10.5, (9.5 - 1) / 9.5
    assert silhouette(values, ["a", "a", "b", "b"]) == pytest.approx((2 * outer + 2 * inner) / 4)
    assert silhouette(values, ["a", "a", "b", "c"]) == pytest.approx(((10 - 1) / 10 + (9 - 1) / 9 + 0 + 0) / 4)
    assert silhouette(values, ["a"] * 4) is None
    assert silhouette(values, list("abcd")) is None
    assert silhouette(np.zeros((4, 1)), ["a", "a", "b", "b"]) == 0.0


def test_silhouette_is_that_of_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    random = np.random.default_rng(3)
    groups = random.integers(0, 4, 1200)
    values = random.normal(size=(1200, 6)) + groups[:, None]
    assert silhouette(values, groups.astype(str)) == pytest.approx(metrics.silhouette_score(values, groups), abs=1e-6)


def test_tsne_keeps_neighborhoods_and_repeats():
    pytest.importorskip("sklearn")
    random = np.random.default_rng(0)
    groups = np.repeat(["a", "b", "c"], 20)
    values = random.normal(size=(60, 80)) + 12 * np.eye(3).repeat(20, 0) @ random.normal(size=(3, 80))
    points = tsne(values, seed=5)
    assert silhouette(points, groups) > 0.6
    assert np.array_equal(points, tsne(values, seed=5))


@pytest.mark.parametrize("values", [np.zeros((1, 4)), np.zeros((9, 4)), np.arange(9.0)[:, None], np.eye(5)])
def test_tsne_of_little(values):
    pytest.importorskip("sklearn")
    points = tsne(values)
    assert points.shape == (len(values), 2)
    assert np.isfinite(points).all()


ROWS = rows_of(
    feature=[[0, 1, 0], [2, 1, 0], [0, 5, 0], [9, 9, 9]],
    gold=[1, 1, 2, 0],
    chance=[[0.1, 0.8, 0.1], [0.6, 0.2, 0.2], [0.2, 0.2, 0.6], [0.9, 0.05, 0.05]],
    dataset=np.array(["one", "two", "two", "one"]),
)


def test_a_map_shows_gold_spans_only():
    points = span_map(ROWS)
    assert points.group.tolist() == ["Drug", "Drug", "Gene"]
    assert points.mark.tolist() == ["right", "wrong", "right"]
    assert points.text.tolist() == ["span 0", "span 1", "span 2"]
    assert (points.kind, points.method) == ("feature", "pca")
    assert points.shares is not None
    assert sum(points.shares) == pytest.approx(1.0)
    assert points.silhouette == pytest.approx(silhouette(ROWS.feature[:3], ["Drug", "Drug", "Gene"]))


def test_a_map_of_one_label_by_dataset():
    points = span_map(ROWS, by="dataset", only="Drug")
    assert points.group.tolist() == ["one", "two"]
    assert points.text.tolist() == ["span 0", "span 1"]


def test_a_map_has_a_limit():
    many = rows_of(np.random.default_rng(0).normal(size=(50, 4)), [1] * 50)
    few, again = span_map(many, limit=7), span_map(many, limit=7)
    assert len(few.x) == 7
    assert few.text.tolist() == again.text.tolist()


def test_before_and_after():
    before, after = span_map(ROWS, "vector"), span_map(ROWS, "feature")
    assert (before.kind, after.kind) == ("vector", "feature")
    assert before.shares == pytest.approx((1.0, 0.0))  # the vectors have one dimension
    assert before.text.tolist() == after.text.tolist()


def test_labels_on_a_plane():
    points = label_map(np.eye(4), ["", "A", "B", "C"], method="pca")
    assert points.text.tolist() == ["", "A", "B", "C"]
    assert points.silhouette is None
    assert label_map(np.eye(4), list("ABCD"), list("xxyy"), "pca").group.tolist() == ["x", "x", "y", "y"]
