"""GloVe against plain loops: the counts, the loss, every step."""

import math
from collections import defaultdict

import numpy as np
import pytest
import torch

from wingspan.training import vector_training
from wingspan.training.vector_training import (
    Counts,
    Glove,
    GloveSettings,
    Layout,
    PairCounter,
    merged_on_disk,
    pairs_within,
)

TEXTS = [[0, 1, 2, 0, 3], [2, 2, 4], [5], [6, 1, 0, 1, 5, 3, 2]]
WINDOW = 3


def running(texts=TEXTS):
    words = np.array([word for text in texts for word in text], np.int32)
    owners = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    return words, owners


def counted_by_hand(texts=TEXTS, window: int = WINDOW) -> dict[tuple[int, int], float]:
    found = defaultdict(float)
    for text in texts:
        for at, word in enumerate(text):
            for other in range(max(0, at - window), at):
                found[text[other], word] += 1 / (at - other)
                found[word, text[other]] += 1 / (at - other)
    return dict(found)


def as_pairs(counts: Counts, layout: Layout) -> dict[tuple[int, int], float]:
    found = {}
    for key, value in zip(counts.keys.tolist(), counts.sums.tolist(), strict=True):
        block, inside = divmod(key, layout.width**2)
        (a, b), (i, j) = divmod(block, layout.blocks), divmod(inside, layout.width)
        found[a * layout.width + i, b * layout.width + j] = value
    return found


@pytest.mark.parametrize("width", [1, 2, 3, 7])
def test_pairs_are_those_of_a_double_loop(width):
    layout = Layout(7, width)
    assert as_pairs(pairs_within(*running(), WINDOW, layout), layout) == pytest.approx(counted_by_hand())


@pytest.mark.parametrize(
    ("words", "pairs", "width", "blocks"),
    [
        (7, 50, 1, 7),
        (25, 400, 3, 9),
        (70_000, 9_000_000, 7_000, 10),
        (400_000, 10**10, 1_096, 365),
        (100, 10**10, 10, 10),
    ],
)
def test_blocks_are_neither_too_few_nor_too_empty(words, pairs, width, blocks):
    layout = Layout.of(words, pairs)
    assert (layout.width, layout.blocks) == (width, blocks)


def test_counting_in_little_memory_counts_the_same(tmp_path, monkeypatch):
    draw = np.random.default_rng(0)
    texts = [draw.integers(0, 40, draw.integers(0, 60)).tolist() for _ in range(120)]
    layout = Layout.of(40, 10_000)
    counter = PairCounter(layout, WINDOW, tmp_path, 1000)
    words, owners = running(texts)
    for start in range(0, len(words), 777):
        counter.add(words[start : start + 777], owners[start : start + 777])
    counts = counter.counts()
    assert len(counter.runs) > 1
    assert isinstance(counts.keys, np.memmap)
    assert (np.diff(counts.keys) > 0).all()
    assert as_pairs(counts, layout) == pytest.approx(counted_by_hand(texts))


def test_merging_holds_few_pairs_at_once(tmp_path, monkeypatch):
    draw = np.random.default_rng(0)
    runs = [Counts(np.unique(draw.integers(0, 50_000, 20_000)), np.empty(0)) for _ in range(5)]
    runs = [Counts(keys, np.ones(len(keys))) for keys, _ in runs]
    most, merge = [], vector_training.merged_in_memory
    monkeypatch.setattr(
        vector_training, "merged_in_memory", lambda some: most.append(sum(len(c.keys) for c in some)) or merge(some)
    )
    merged = merged_on_disk(runs, tmp_path / "all", 4_000)
    assert max(most) <= 4_000
    whole = np.concatenate([run.keys for run in runs])
    keys, counts = np.unique(whole, return_counts=True)
    assert np.array_equal(merged.keys, keys)
    assert np.array_equal(merged.sums, counts)


SETTINGS = GloveSettings(size=3, epochs=4, learning_rate=0.1, x_max=1.5, alpha=0.6, seed=5)


def naive_step(pairs, rows, columns, row_biases, column_biases, squares) -> float:
    """One step of AdaGrad over some pairs, number by number. All slopes are those before the step."""
    loss = 0.0
    slopes = [defaultdict(float) for _ in range(4)]
    for (i, j), seen in pairs.items():
        weight = min(1.0, (seen / SETTINGS.x_max) ** SETTINGS.alpha)
        product = sum(rows[i][d] * columns[j][d] for d in range(SETTINGS.size))
        error = product + row_biases[i][0] + column_biases[j][0] - math.log(seen)
        loss += weight * error**2
        for d in range(SETTINGS.size):
            slopes[0][i, d] += weight * error * columns[j][d]
            slopes[1][j, d] += weight * error * rows[i][d]
        slopes[2][i, 0] += weight * error
        slopes[3][j, 0] += weight * error
    for table, square, slope in zip((rows, columns, row_biases, column_biases), squares, slopes, strict=True):
        for (at, d), value in slope.items():
            square[at, d] += value**2
            table[at][d] -= SETTINGS.learning_rate * value / math.sqrt(square[at, d])
    return loss


def test_loss_and_vectors_are_those_of_plain_loops():
    layout = Layout(7, 3)
    glove = Glove(pairs_within(*running(), WINDOW, layout), layout, SETTINGS)
    rows, columns = glove.rows[:, :3].tolist(), glove.columns[:, :3].tolist()
    row_biases, column_biases = glove.rows[:, 3:4].tolist(), glove.columns[:, 4:].tolist()
    squares = [defaultdict(lambda: 1.0) for _ in range(4)]
    order = np.random.default_rng(SETTINGS.seed)
    for _ in range(SETTINGS.epochs):
        expected = []
        for number in order.permutation(9).tolist():
            a, b = divmod(number, 3)
            mine = {(i, j): x for (i, j), x in counted_by_hand().items() if (i // 3, j // 3) == (a, b)}
            expected.append(naive_step(mine, rows, columns, row_biases, column_biases, squares))
        assert list(glove.epoch()) == pytest.approx(expected, rel=1e-5)
    both = np.array(rows) + np.array(columns)
    np.testing.assert_allclose(glove.vectors(), both, rtol=1e-4, atol=1e-6)
    assert glove.rows[:, -1].tolist() == [1.0] * 7 == glove.columns[:, -2].tolist()


def test_it_learns():
    layout = Layout.of(7, 100)
    counts = pairs_within(*running(), WINDOW, layout)
    glove = Glove(counts, layout, GloveSettings(size=8, learning_rate=0.2, x_max=1))
    losses = [sum(glove.epoch()) for _ in range(100)]
    assert losses[-1] < losses[0] / 10
    assert torch.isfinite(glove.rows).all()
