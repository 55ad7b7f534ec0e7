"""Convolutions over the grid, against a plain loop over first and last words."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from tiny import ENCODER, grid_of, of_length, vectors, word_inputs

from trainings import tiny
from wingspan.recipe import with_proposals
from wingspan.spans.contextual import ConvolvedSpans
from wingspan.spans.pooled import PooledSpans

LENGTHS = (6, 1, 4, 9)
POOLED = partial(PooledSpans, views=("first", "last", "mean"), width_size=2)


def made(width: int, depth: int = 2) -> ConvolvedSpans:
    torch.manual_seed(0)
    spans = ConvolvedSpans(ENCODER, width, around=POOLED, size=4, depth=depth).eval()
    with torch.no_grad():
        for norm in spans.norms:
            norm.weight.normal_()
            norm.bias.normal_()
    return spans


def by_hand(spans: ConvolvedSpans, row: int, length: int, words, cells) -> dict[tuple[int, int], torch.Tensor]:
    """Vectors by (first, last) word, with `conv2d` over the square of all pairs; what is no span is zero."""
    channels = spans.channels(spans.around(words, cells))[row]
    places = zip(cells.start[row].tolist(), (cells.end[row] - 1).tolist(), strict=True)
    first = {place: channels[at] for at, place in enumerate(places) if place[1] < length}
    now = first
    for convolution, norm in zip(spans.convolutions, spans.norms, strict=True):
        square = torch.zeros(length, length, spans.size)
        for place, vector in now.items():
            square[place] = vector
        kernel = convolution.weight.view(spans.size, 3, 3, spans.size).permute(0, 3, 1, 2)
        seen = F.conv2d(square.permute(2, 0, 1)[None], kernel, convolution.bias, padding=1)[0].permute(1, 2, 0)
        now = {place: F.gelu(norm(vector + seen[place])) for place, vector in now.items()}
    return {place: first[place] + now[place] for place in now}


@pytest.mark.parametrize("width", [1, 2, 3, 5, 12])
@pytest.mark.parametrize("depth", [1, 3])
@torch.no_grad()
def test_neighbors_are_those_of_first_and_last_word(width, depth):
    inputs = word_inputs([of_length(length) for length in LENGTHS])
    words, cells, spans = vectors(inputs), grid_of(inputs, width), made(width, depth)
    found = spans(words, cells)
    for row, length in enumerate(LENGTHS):
        expected = by_hand(spans, row, length, words, cells)
        assert len(expected) == sum(min(width, length - start) for start in range(length))
        for at, (start, end) in enumerate(zip(cells.start[row].tolist(), cells.end[row].tolist(), strict=True)):
            if end <= length:
                torch.testing.assert_close(found[row, at], expected[start, end - 1], rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_two_kinds_of_spans_are_as_one_long_vector():
    inputs = word_inputs([of_length(length) for length in LENGTHS])
    words, cells, spans = vectors(inputs), grid_of(inputs, 3), made(3)
    two = ConvolvedSpans(ENCODER, 3, around=POOLED, beside=partial(PooledSpans, views=("max",)), size=4).eval()
    two.load_state_dict({**two.state_dict(), **spans.state_dict()})
    long = torch.cat([two.around(words, cells), two.beside(words, cells)], -1)
    weight = torch.cat([two.channels.weight, two.beside_channels.weight], 1)
    spans.around.project = lambda *_: F.linear(long, weight, two.channels.bias)
    torch.testing.assert_close(two(words, cells), spans(words, cells))
    assert len([name for name, _ in two.named_parameters() if name.startswith("beside")]) == 1


def test_a_span_feels_spans_as_far_as_there_are_convolutions():
    """One layer: borders at most one word away; a change two words away is not felt."""
    inputs = word_inputs([of_length(9)])
    words, cells, spans = vectors(inputs), grid_of(inputs, 3), made(3, depth=1)
    channels = torch.randn(1, 27, 4).requires_grad_()
    spans.around.project = lambda *_: channels
    spans(words, cells)[0, 4 * 3 + 1].square().sum().backward()  # words 4 and 5
    felt = {place // 3: set() for place in range(27)}
    for place in torch.nonzero(channels.grad[0].abs().sum(-1)).flatten().tolist():
        felt[place // 3].add(place // 3 + place % 3)  # first word: last words
    assert {first: last for first, last in felt.items() if last} == {3: {4, 5}, 4: {4, 5, 6}, 5: {5, 6}}


def test_it_needs_the_grid():
    recipe = tiny("bundling/bl-span-cnn")
    with pytest.raises(ValueError, match="ConvolvedSpans needs the whole grid, which Proposed does not give"):
        with_proposals(recipe)
    with pytest.raises(ValueError, match="ConvolvedSpans.depth is 0; give at least 1"):
        ConvolvedSpans(ENCODER, 3, around=POOLED, depth=0)
