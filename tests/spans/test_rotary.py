"""Rotary positions in the biaffine: products know how far apart start and end are, and not where they are."""

import math

import pytest
import torch
from tiny import ENCODER, grid_of, of_length, vectors, word_inputs
from torch import nn

from wingspan.spans.biaffine import BiaffineSpans, RotaryBiaffineSpans, turned


def made(kind: type = RotaryBiaffineSpans) -> BiaffineSpans:
    torch.manual_seed(0)
    return kind(ENCODER, 4, hidden=6, width_size=0).eval()


@torch.no_grad()
def test_scores_depend_on_the_distance_only():
    """The same words three places later have the same scores; the same words further apart have others."""
    inputs = word_inputs([of_length(8)])
    words, cells, spans = vectors(inputs), grid_of(inputs, 4), made()
    top = words.top.clone()
    top[0, 4:] = top[0, :4]
    linear = nn.Linear(spans.size, 3)
    scores = spans.project(words._replace(top=top), cells, linear).view(8, 4, 3)
    for start in range(4):
        for width in range(4 - start):
            torch.testing.assert_close(scores[start, width], scores[start + 4, width])
    apart = top.clone()
    apart[0, 2] = apart[0, 1]  # word 1 again one word further from word 0
    there = spans.project(words._replace(top=apart), cells, linear).view(8, 4, 3)
    assert not torch.allclose(there[0, 1], there[0, 2], atol=1e-3)
    plain = made(BiaffineSpans)
    level = plain.project(words._replace(top=apart), cells, linear).view(8, 4, 3)
    torch.testing.assert_close(level[0, 1], level[0, 2])


@torch.no_grad()
def test_single_words_are_not_turned():
    inputs = word_inputs([of_length(5)])
    words, cells = vectors(inputs), grid_of(inputs, 4)
    one, other = (made(kind)(words, cells).view(5, 4, -1) for kind in (RotaryBiaffineSpans, BiaffineSpans))
    torch.testing.assert_close(one[:, 0], other[:, 0])
    assert not torch.allclose(one[0, 1], other[0, 1])


def test_turns_by_hand():
    vector = torch.tensor([1.0, 2.0, 3.0, 4.0])  # pairs (1, 3) and (2, 4)
    found = turned(vector.expand(2, 4), torch.tensor([0, 5]))
    assert torch.equal(found[0], vector)
    expected = [0.0] * 4
    for pair, speed in enumerate((1.0, 10_000.0**-0.5)):
        x, y, angle = float(vector[pair]), float(vector[pair + 2]), 5 * speed
        expected[pair] = x * math.cos(angle) - y * math.sin(angle)
        expected[pair + 2] = x * math.sin(angle) + y * math.cos(angle)
    assert found[1].tolist() == pytest.approx(expected, rel=1e-5)


def test_turning_both_sides_by_their_places_is_turning_one_by_the_distance():
    one, other = torch.randn(2, 7, 6, generator=torch.Generator().manual_seed(1))
    at = torch.arange(7)
    both = turned(one, at + 3) @ turned(other, at + 3).T
    distance = turned(other[None].expand(7, 7, 6), at[None] - at[:, None])  # (7, 7, 6)
    torch.testing.assert_close(both, (one[:, None] * distance).sum(-1), rtol=1e-4, atol=1e-5)


def test_entries_turn_in_pairs():
    with pytest.raises(ValueError, match="hidden is 7; entries turn in pairs: give an even one"):
        RotaryBiaffineSpans(ENCODER, 4, hidden=7)
