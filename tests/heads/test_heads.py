from functools import partial

import pytest
import torch
from torch import nn

from wingspan.heads import Head
from wingspan.heads.bottleneck import BottleneckHead
from wingspan.heads.feedforward import FeedForwardHead


def test_without_hidden_layers_it_is_linear():
    head = FeedForwardHead(6, 3).eval()
    spans = torch.randn(2, 5, 6)
    scored = head(spans)
    assert isinstance(head, Head)
    assert head.size == 6
    assert scored.features is None
    assert scored.divergence is None
    torch.testing.assert_close(scored.scores, nn.functional.linear(spans, head.entry.weight, head.entry.bias))


def test_hidden_layers_are_applied_in_order():
    head = FeedForwardHead(6, 3, hidden=(8, 4), spread=0.5).eval()
    spans = torch.randn(2, 5, 6)
    one, two, three = head.layers
    hidden = torch.relu(two(torch.relu(one(spans))))
    scored = head(spans)
    assert head.size == scored.features.shape[-1] == 4
    torch.testing.assert_close(scored.features, hidden)
    torch.testing.assert_close(scored.scores, three(hidden))


def test_sizes_in_span_sizes():
    head = FeedForwardHead(6, 3, shares=(1, 0.5))
    assert [(layer.in_features, layer.out_features) for layer in head.layers] == [(6, 6), (6, 3), (3, 3)]
    with pytest.raises(ValueError, match="give one of them"):
        FeedForwardHead(6, 3, hidden=(4,), shares=(1,))
    with pytest.raises(ValueError, match="of 6 nothing is left"):
        FeedForwardHead(6, 3, shares=(0.1,))


@pytest.mark.parametrize("hidden", [(), (8,), (8, 4)])
def test_entry_then_finish_is_forward(hidden):
    head = FeedForwardHead(6, 3, hidden=hidden, spread=0.5).eval()
    spans = torch.randn(2, 5, 6)
    torch.testing.assert_close(head.finish(head.entry(spans)).scores, head(spans).scores)
    assert head.entry.in_features == 6


def test_weights_start_small_and_biases_at_zero():
    torch.manual_seed(0)
    head = FeedForwardHead(400, 50, hidden=(300,), spread=0.02)
    for layer in head.layers:
        assert layer.weight.std().item() == pytest.approx(0.02, rel=0.05)
        assert not layer.bias.any()


@pytest.mark.parametrize("kind", [FeedForwardHead, partial(FeedForwardHead, hidden=(8,)), BottleneckHead])
def test_classes_start_with_a_chance(kind):
    spans = torch.zeros(1, 1, 600)
    torch.manual_seed(0)
    even, rare = kind(600, 3).eval(), kind(600, 3, start_chance=0.01).eval()
    assert even(spans).scores.sigmoid().tolist()[0][0] == pytest.approx([0.5] * 3, abs=0.05)
    assert rare(spans).scores.sigmoid().tolist()[0][0] == pytest.approx([0.01] * 3, abs=0.002)
    for chance in (0.0, 1.0):
        with pytest.raises(ValueError, match="head.start_chance is"):
            kind(600, 3, start_chance=chance)


@pytest.mark.parametrize("kind", [FeedForwardHead, BottleneckHead])
def test_where_labels_start_rare_nothing_is_likely(kind):
    """In a softmax only differences count: had "nothing" started as rare as the labels, all would start alike."""
    spans = torch.zeros(1, 1, 600)
    torch.manual_seed(0)
    even, rare = kind(600, 3).eval(), kind(600, 3, start_chance=0.01).eval()
    for head in (even, rare):
        head.expect_nothing([0])
    assert even(spans).scores.softmax(-1).tolist()[0][0] == pytest.approx([1 / 3] * 3, abs=0.05)
    assert rare(spans).scores.softmax(-1).tolist()[0][0] == pytest.approx([0.98, 0.01, 0.01], abs=0.005)


def test_dropout_acts_in_training_only():
    torch.manual_seed(0)
    head = FeedForwardHead(6, 3, hidden=(400,), dropout=0.5, spread=1.0)
    spans = torch.randn(1, 1, 6)
    share = float((head(spans).features == 0).float().mean())
    assert share > float((head.eval()(spans).features == 0).float().mean()) + 0.1
    assert torch.equal(head(spans).scores, head(spans).scores)


def test_dropout_on_span_vectors_asks_for_them():
    assert FeedForwardHead(6, 3, input_dropout=0.2).wants_vectors
    assert not FeedForwardHead(6, 3).wants_vectors


def test_every_parameter_learns():
    head = FeedForwardHead(6, 3, hidden=(8,), spread=0.5).eval()
    head(torch.randn(4, 5, 6)).scores.square().sum().backward()
    assert all(float(parameter.grad.abs().sum()) > 0 for parameter in head.parameters())
