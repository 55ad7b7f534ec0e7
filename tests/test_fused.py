"""An encoder's blocks in fewer operations: the states are autocast's to the last bit, gradients but for rounding."""

import pytest
import torch
from torch.nn.utils import parametrize, prune

from towers import configured
from wingspan.blocks import attention_bias
from wingspan.fused import GROUP, call_fused

TOKENS = torch.randint(3, 30, (2, 9), generator=torch.Generator().manual_seed(0))
HALF = torch.bfloat16

pytestmark = pytest.mark.filterwarnings("ignore:TF32 acceleration")  # switching oneDNN warns about Intel's GPUs


@pytest.fixture(autouse=True)
def _plain_kernels():
    # oneDNN's bf16 kernels need instructions that some virtual machines announce and do not have
    with torch.backends.mkldnn.flags(enabled=False):
        yield


class Watched:
    """A model, and how often the attention of its first block was called."""

    def __init__(self, kind="bert", **changes):
        self.encoder = configured(kind, num_hidden_layers=GROUP + 1, **changes)  # more than one group
        self.model = self.encoder.model.train()
        self.calls = 0
        self.encoder.blocks[0].attention.self.register_forward_pre_hook(self.count)

    def count(self, *_):
        self.calls += 1

    def fused(self, **inputs):
        return call_fused(self.model, list(self.encoder.blocks), **inputs)

    def outcome(self, called, mask=None):
        self.model.zero_grad()
        torch.manual_seed(7)  # the same dropout
        with torch.autocast("cpu", HALF):
            out = called(input_ids=TOKENS, attention_mask=mask, output_hidden_states=True)
            out.last_hidden_state.float().square().sum().backward()
        gradients = {name: weight.grad for name, weight in self.model.named_parameters()}
        return [states.detach() for states in out.hidden_states], gradients


def equal_states(one, other):
    assert len(one) == len(other) == GROUP + 2
    for ours, theirs in zip(one, other, strict=True):
        assert ours.dtype == theirs.dtype == torch.float32
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


def hidden(kind):
    """The second sentence is shorter, as a user gives it and as `PretrainedEncoder` does on a GPU."""
    real = torch.ones(2, 9, dtype=torch.bool)
    real[1, 6:] = False
    return {"none": None, "words": real.long(), "bias": attention_bias(real.unsqueeze(1), HALF)}[kind]


@pytest.mark.parametrize("mask", ["none", "words", "bias"])
@pytest.mark.parametrize("kind", ["bert", "roberta", "electra"])
def test_states_are_autocasts_and_gradients_as_close_as_half_precision_lets_them(kind, mask):
    watched = Watched(kind, **({"embedding_size": 8} if kind == "electra" else {}))
    ours, found = watched.outcome(watched.fused, hidden(mask))
    assert watched.calls == 0, "the blocks' own attention is not used"
    theirs, wanted = watched.outcome(watched.model, hidden(mask))
    assert watched.calls == 1, "and is back afterwards"
    equal_states(ours, theirs)
    for name, gradient in wanted.items():
        assert (gradient is None) == (found[name] is None), name
        if gradient is not None:
            torch.testing.assert_close(found[name], gradient, rtol=0.05, atol=0.02 * float(gradient.abs().max()) + 0.2)


def test_embeddings_in_half_precision_enter_a_residual_stream_in_full_precision():
    watched = Watched("electra", embedding_size=4)
    ours, _ = watched.outcome(watched.fused)
    theirs, _ = watched.outcome(watched.model)
    assert ours[0].dtype == HALF
    assert ours[-1].dtype == torch.float32
    torch.testing.assert_close(ours[-1], theirs[-1].float(), rtol=0.05, atol=0.1)


def test_gradients_are_nearer_to_the_exact_ones_than_autocasts_or_as_near():
    watched = Watched(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model, blocks = watched.model, watched.encoder.blocks
    model(input_ids=TOKENS).last_hidden_state.square().sum().backward()
    exact = torch.cat([weight.grad.flatten() for weight in blocks.parameters()])

    def error(called):
        watched.outcome(called)
        return float((torch.cat([weight.grad.flatten() for weight in blocks.parameters()]) - exact).norm())

    assert error(watched.fused) < 1.1 * error(model)


def test_blocks_that_are_not_as_they_were_built_stay_as_they_are():
    class Doubled(torch.nn.Module):
        def forward(self, weight):
            return 2 * weight

    def frozen(watched):
        watched.encoder.blocks[1].requires_grad_(False)

    def pruned(watched):
        prune.l1_unstructured(watched.encoder.blocks[1].intermediate.dense, "weight", amount=0.5)

    def computed(watched):
        parametrize.register_parametrization(watched.encoder.blocks[1].output.dense, "weight", Doubled())

    def recomputed(watched):
        watched.model.gradient_checkpointing_enable({"use_reentrant": False})

    def eager(watched):
        watched.model.set_attn_implementation("eager")

    for change in (frozen, pruned, computed, recomputed, eager):
        watched = Watched()
        change(watched)
        ours, found = watched.outcome(watched.fused)
        assert watched.calls, change.__name__
        theirs, wanted = watched.outcome(watched.model)
        equal_states(ours, theirs)
        for name, gradient in wanted.items():
            assert (gradient is None) == (found[name] is None), name
            if gradient is not None:
                torch.testing.assert_close(found[name], gradient, rtol=0, atol=0)


def test_prediction_and_full_precision_leave_the_blocks_alone():
    watched = Watched()
    with torch.autocast("cpu", HALF), torch.no_grad():
        watched.fused(input_ids=TOKENS)
    watched.fused(input_ids=TOKENS)
    assert watched.calls == 2
    assert not any("forward" in vars(block) for block in watched.encoder.blocks)


def test_after_an_error_the_blocks_are_what_they_were():
    watched = Watched()
    block = watched.encoder.blocks[0]
    own = vars(block)["forward"] = lambda *given, **named: type(block).forward(block, *given, **named)
    with torch.autocast("cpu", HALF), pytest.raises(ValueError, match="input_ids"):
        watched.fused(no_such_input=TOKENS)
    assert vars(block)["forward"] is own
    assert "forward" not in vars(watched.encoder.blocks[1])


def test_a_model_without_such_blocks_is_called_as_it_is():
    watched = Watched()
    with torch.autocast("cpu", HALF):
        call_fused(watched.model, [], input_ids=TOKENS)
    assert watched.calls == 1
