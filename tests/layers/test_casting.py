"""Weights cast together: the numbers of autocast, for the encoder's output and for every gradient."""

import pytest
import torch
from torch import nn
from torch.nn.utils import prune
from towers import configured

from wingspan.layers.autocast import GROUP, call_with_cast_weights, cast_by_autocast, cast_together

TOKENS = torch.randint(3, 30, (2, 9), generator=torch.Generator().manual_seed(0))


pytestmark = pytest.mark.filterwarnings("ignore:TF32 acceleration")  # switching oneDNN warns about Intel's GPUs


@pytest.fixture(autouse=True)
def _plain_kernels():
    # oneDNN's bf16 kernels need instructions that some virtual machines announce and do not have
    with torch.backends.mkldnn.flags(enabled=False):
        yield


def model(**changes):
    found = configured("bert", **changes).model
    return found.train()


def outcome(called, of):
    of.zero_grad()
    torch.manual_seed(7)  # the same dropout
    with torch.autocast("cpu", torch.bfloat16):
        top = called(input_ids=TOKENS).last_hidden_state
        top.float().square().sum().backward()
    return top.detach(), {name: weight.grad for name, weight in of.named_parameters()}


def same(one, other):
    torch.testing.assert_close(one[0], other[0], rtol=0, atol=0)
    assert one[1].keys() == other[1].keys()
    for name, gradient in one[1].items():
        assert (gradient is None) == (other[1][name] is None), name
        if gradient is not None:
            torch.testing.assert_close(gradient, other[1][name], rtol=0, atol=0)


def test_output_and_gradients_are_autocasts_to_the_last_bit():
    bert = model()
    assert len(list(cast_by_autocast(bert))) > GROUP, "more than one group"
    same(outcome(lambda **given: call_with_cast_weights(bert, **given), bert), outcome(bert, bert))


def test_layers_recomputed_in_the_backward_pass_are_the_same_too():
    bert = model()
    bert.gradient_checkpointing_enable({"use_reentrant": False})
    same(outcome(lambda **given: call_with_cast_weights(bert, **given), bert), outcome(bert, bert))


def test_frozen_and_unused_weights_get_no_gradient():
    bert = model()
    bert.encoder.layer[0].requires_grad_(False)
    bert.unused = nn.Linear(2, 2)
    found = outcome(lambda **given: call_with_cast_weights(bert, **given), bert)
    same(found, outcome(bert, bert))
    assert found[1]["unused.weight"] is None
    assert found[1]["encoder.layer.0.output.dense.weight"] is None


def test_the_parameters_are_back_after_the_call_and_after_an_error():
    bert = model()
    part = bert.encoder.layer[0].intermediate.dense
    with torch.autocast("cpu", torch.bfloat16):
        call_with_cast_weights(bert, input_ids=TOKENS)
        with pytest.raises(ValueError, match="input_ids"):
            call_with_cast_weights(bert, no_such_input=TOKENS)
    assert isinstance(part.weight, nn.Parameter)
    assert part.weight.dtype == torch.float32
    assert "weight" not in vars(part)


def test_prediction_changes_nothing_in_the_model():
    bert, seen = model(), []
    part = bert.encoder.layer[0].intermediate.dense
    part.register_forward_pre_hook(lambda *_: seen.append(part.weight.dtype))
    with torch.autocast("cpu", torch.bfloat16):
        call_with_cast_weights(bert, input_ids=TOKENS)
        with torch.no_grad():
            call_with_cast_weights(bert, input_ids=TOKENS)
        with torch.inference_mode():
            call_with_cast_weights(bert, input_ids=TOKENS)
    assert seen == [torch.bfloat16, torch.float32, torch.float32]


def test_a_weight_that_is_computed_stays_what_it_is():
    bert = model()
    prune.l1_unstructured(bert.encoder.layer[0].intermediate.dense, "weight", amount=0.5)
    for _ in range(2):
        same(outcome(lambda **given: call_with_cast_weights(bert, **given), bert), outcome(bert, bert))


def test_without_autocast_nothing_is_cast():
    bert = model().eval()
    assert call_with_cast_weights(bert, input_ids=TOKENS).last_hidden_state.dtype == torch.float32


def test_an_unused_stack_gives_its_rows_no_gradient():
    rows, single = [torch.ones(2, requires_grad=True) for _ in range(2)], torch.ones(3, requires_grad=True)
    _, cast = cast_together([rows], [single], torch.bfloat16)
    cast.sum().backward()
    assert rows[0].grad is None
    assert single.grad.tolist() == [1, 1, 1]


def test_what_has_the_type_already_is_not_copied():
    rows, single = [torch.ones(2, requires_grad=True) for _ in range(2)], torch.ones(3, requires_grad=True)
    stack, same = cast_together([rows], [single], torch.float32)
    assert same is single
    stack.sum().backward()
    assert rows[1].grad.tolist() == [1, 1]
