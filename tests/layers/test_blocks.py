"""Blocks with queries of their own: the same whether run together or one by one; a mask that kernels take as it is."""

import pytest
import torch
from towers import configured

from wingspan.layers.bert_blocks import Projection, attention_bias, layers_of, run_layer
from wingspan.spans.deep import same

TOKENS = torch.randint(3, 30, (2, 9), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("kind", ["bert", "roberta", "electra", "mpnet", "distilbert"])
def test_few_large_calls_give_what_many_small_ones_give(kind):
    encoder = configured(kind)
    states = encoder(TOKENS).layers[:-1]
    held = torch.ones(1, 4, 9, dtype=torch.bool).tril(3)
    queries = torch.randn(2 * 4, 8, generator=torch.Generator().manual_seed(1))
    outputs, gradients = [], []
    for together in (False, True):
        spans, bias = queries, attention_bias(held, torch.float32)
        for layer in layers_of(encoder.blocks, states, torch.float32, same, together=together):
            spans = run_layer(layer, spans, bias, training=False)
        outputs.append(spans)
        gradients.append(
            torch.autograd.grad(spans.square().sum(), list(encoder.blocks.parameters()), retain_graph=True)
        )
    torch.testing.assert_close(*outputs)
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)


def test_gradients_of_stacked_weights_lie_as_the_weights_do():
    draw = torch.Generator().manual_seed(2)
    states, weights = (torch.randn(3, *shape, generator=draw, requires_grad=True) for shape in ((2, 5, 4), (4, 4)))
    biases = torch.randn(3, 4, generator=draw, requires_grad=True)
    found = torch.autograd.grad(
        Projection.apply(states.flatten(1, 2), weights, biases).square().sum(), [states, weights, biases]
    )
    plain = torch.einsum("nblk,njk->nblj", states, weights) + biases[:, None, None]
    for one, other in zip(found, torch.autograd.grad(plain.square().sum(), [states, weights, biases]), strict=True):
        torch.testing.assert_close(one, other)
    assert found[1].stride() == weights.stride()


def test_half_precision_stays_close_and_gives_gradients_in_full_precision():
    encoder = configured()
    states = encoder(TOKENS).layers[:-1]
    bias = attention_bias(torch.ones(1, 4, 9, dtype=torch.bool), torch.float32)
    found = []
    for dtype in (torch.float32, torch.bfloat16):
        spans = torch.ones(2 * 4, 8, dtype=dtype)
        for layer in layers_of(encoder.blocks, states, dtype, same, together=True):
            spans = run_layer(layer, spans, bias.to(dtype), training=False)
        found.append(spans.float())
    torch.testing.assert_close(found[1], found[0], atol=0.15, rtol=0.05)
    found[1].sum().backward()
    assert all(weight.grad.dtype == torch.float32 for weight in encoder.blocks.parameters() if weight.grad is not None)
    assert encoder.blocks[0].attention.self.query.weight.grad.abs().sum() > 0


def test_a_mask_adds_nothing_or_hides_and_its_rows_are_aligned():
    held = torch.tensor([[[True, False, True], [False, True, True]]])
    bias = attention_bias(held, torch.float32)
    assert bias.shape == (1, 1, 2, 3)
    assert bias.stride(2) == 16
    assert bias[0, 0].tolist() == [[0, -torch.inf, 0], [-torch.inf, 0, 0]]
