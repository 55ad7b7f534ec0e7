import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from wingspan.layers import grid

DENSE = {
    "first": (grid.first_words, lambda inside: inside[0]),
    "last": (grid.windows, lambda inside: inside[-1]),
    "mean": (grid.mean_words, lambda inside: inside.mean(0)),
    "max": (grid.max_words, lambda inside: inside.max(0).values),
}
LISTED = {"mean": grid.range_means, "max": grid.range_maxima}


def random_words(batch: int, length: int, size: int, seed: int) -> torch.Tensor:
    return torch.randn(batch, length, size, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("view", DENSE)
@given(batch=st.integers(1, 3), length=st.integers(1, 9), width=st.integers(1, 12), seed=st.integers(0, 999))
def test_a_view_is_what_a_loop_over_spans_computes(view, batch, length, width, seed):
    words = random_words(batch, length, 3, seed)
    dense, of_span = DENSE[view]
    out = dense(words, width)
    assert out.shape == (batch, length, width, 3)
    for row in range(batch):
        for start in range(length):
            for end in range(start + 1, min(start + width, length) + 1):
                expected = of_span(words[row, start:end])
                torch.testing.assert_close(out[row, start, end - start - 1], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("view", LISTED)
@given(batch=st.integers(1, 3), length=st.integers(1, 40), seed=st.integers(0, 999), data=st.data())
def test_listed_spans_of_any_width_are_what_a_loop_computes(view, batch, length, seed, data):
    words = random_words(batch, length, 3, seed)
    places = st.tuples(st.integers(0, length - 1), st.integers(1, length)).map(lambda p: (min(p), max(p)))
    places = places.filter(lambda p: p[0] < p[1])
    spans = data.draw(st.lists(st.lists(places, min_size=4, max_size=4), min_size=batch, max_size=batch))
    table = torch.tensor(spans)
    out = LISTED[view](words, table[..., 0], table[..., 1])
    _, of_span = DENSE[view]
    for row in range(batch):
        for at, (start, end) in enumerate(spans[row]):
            torch.testing.assert_close(out[row, at], of_span(words[row, start:end]), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("view", LISTED)
@pytest.mark.parametrize(("length", "width"), [(7, 3), (7, 7), (16, 16), (1, 1)])
def test_listed_and_dense_views_agree(view, length, width):
    words = random_words(2, length, 4, 0)
    cells = [(s, s + w) for s in range(length) for w in range(1, width + 1)]
    real = [at for at, (_, end) in enumerate(cells) if end <= length]
    table = torch.tensor(cells).expand(2, -1, -1)
    listed = LISTED[view](words, table[..., 0], table[..., 1])
    dense = DENSE[view][0](words, width).flatten(1, 2)
    torch.testing.assert_close(listed[:, real], dense[:, real], rtol=1e-5, atol=1e-5)
    assert torch.isfinite(listed).all()  # cells that are no span are never read, but must not poison a sum with nan


@pytest.mark.parametrize("view", DENSE)
@pytest.mark.parametrize(("length", "width"), [(5, 3), (3, 5), (1, 1)])
def test_gradients_are_those_of_the_loop(view, length, width):
    words = random_words(2, length, 3, 1).requires_grad_()
    dense, of_span = DENSE[view]
    spans = [(s, w) for s in range(length) for w in range(1, width + 1) if s + w <= length]
    weights = torch.randn(2, len(spans), 3, generator=torch.Generator().manual_seed(2))
    out = dense(words, width)
    picked = torch.stack([out[:, s, w - 1] for s, w in spans], 1)
    naive = torch.stack([torch.stack([of_span(row[s : s + w]) for s, w in spans]) for row in words])
    (fast,) = torch.autograd.grad((picked * weights).sum(), words)
    (slow,) = torch.autograd.grad((naive * weights).sum(), words)
    torch.testing.assert_close(fast, slow, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("length", "width"), [(6, 3), (3, 5), (1, 1)])
@pytest.mark.parametrize("base", [(4,), (2, 1, 1, 4), "all"])
def test_projected_maxima_are_the_same_with_and_without_gradients(length, width, base):
    words, weight = random_words(2, length, 3, 1), random_words(1, 3, 4, 2)[0]
    start = torch.ones((2, length, width, 4) if base == "all" else base)
    wanted = start + grid.max_words(words, width) @ weight
    whole = grid.add_maxima(start.clone(), words, weight, width)
    with torch.no_grad():
        by_width = grid.add_maxima(start.clone(), words, weight, width)
    real = torch.arange(length)[:, None] + torch.arange(width) < length
    for out in (whole, by_width):
        assert out.shape == (2, length, width, 4)
        torch.testing.assert_close(out[:, real], wanted[:, real], rtol=1e-5, atol=1e-5)


def test_among_equal_words_the_maximum_sends_its_gradient_to_one():
    words = torch.zeros(1, 4, 1, requires_grad=True)
    (sent,) = torch.autograd.grad(grid.max_words(words, 4)[0, 0, 3].sum(), words)
    assert sent.sum() == 1
    assert sorted(sent.flatten().tolist()) == [0, 0, 0, 1]


def test_empty_and_foreign_ranges_are_harmless():
    words = random_words(1, 3, 2, 0)
    start, end = torch.tensor([[0, 2, 3]]), torch.tensor([[0, 9, 3]])
    for pooled in LISTED.values():
        assert torch.isfinite(pooled(words, start, end)).all()


def test_long_ranges_keep_their_digits_in_half_precision():
    words = torch.full((1, 4000, 1), 0.1, dtype=torch.bfloat16)
    mean = grid.range_means(words, torch.tensor([[0, 3990]]), torch.tensor([[4000, 4000]]))
    assert mean.dtype == torch.bfloat16
    torch.testing.assert_close(mean, words[:, :2], rtol=0, atol=1e-3)


def test_maxima_in_training_are_those_of_prediction_and_go_back_to_the_first_of_equals():
    words = torch.tensor([[[1.0], [-2.0], [3.0], [3.0], [-0.5]]], requires_grad=True)
    start, end = torch.tensor([[0, 1, 1, 2, 4]]), torch.tensor([[3, 2, 5, 4, 5]])
    found = grid.range_maxima(words, start, end)
    assert found.flatten().tolist() == [3.0, -2.0, 3.0, 3.0, -0.5]
    assert torch.equal(found, grid.range_maxima(words.detach(), start, end))
    found.backward(torch.tensor([[[1.0], [10.0], [100.0], [1000.0], [10000.0]]]))
    assert words.grad.flatten().tolist() == [0.0, 10.0, 1101.0, 0.0, 10000.0]


def test_maxima_of_padding_beyond_the_end_are_some_words_of_the_sentence_and_learn():
    words = -torch.rand(1, 5, 3, generator=torch.Generator().manual_seed(1)).requires_grad_()
    start, end = torch.tensor([[0, 3, 4, 0]]), torch.tensor([[5, 7, 9, 0]])  # all but the first are padding
    found = grid.range_maxima(words, start, end)
    assert torch.equal(found[0, 0], words[0].amax(0))
    assert bool((found < 0).all())
    found.sum().backward()
