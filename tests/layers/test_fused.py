"""An encoder's blocks in fewer operations: the states are autocast's to the last bit, gradients but for rounding."""

import pytest
import torch
from tiny import sentence
from torch import nn
from torch.nn.utils import parametrize, prune
from towers import SMALL
from transformers import CONFIG_MAPPING, AutoModel
from transformers.models.bert.modeling_bert import BertSelfAttention

from wingspan.encoders.pretrained import PretrainedEncoder
from wingspan.layers.autocast import cast_together
from wingspan.layers.bert_blocks import FAMILIES, GROUP, attention_bias, call_fused
from wingspan.model import tensors

TOKENS = torch.randint(3, 30, (2, 9), generator=torch.Generator().manual_seed(0))
HALF = torch.bfloat16

pytestmark = pytest.mark.filterwarnings("ignore:TF32 acceleration")  # switching oneDNN warns about Intel's GPUs


@pytest.fixture(autouse=True)
def _plain_kernels():
    # oneDNN's bf16 kernels need instructions that some virtual machines announce and do not have
    with torch.backends.mkldnn.flags(enabled=False):
        yield


class Watched:
    """A model, and how often its own attention was called."""

    def __init__(self, kind="bert", change=None, **changes):
        self.model = built(kind, **changes)
        self.blocks = self.model.encoder.layer
        if change is not None:
            change(self.blocks, self.model)
        self.calls = 0

    def fused(self, **inputs):
        return call_fused(self.model, list(self.blocks), **inputs)

    def outcome(self, called, mask=None):
        self.model.zero_grad()
        torch.manual_seed(7)  # the same dropout
        own, self.calls = BertSelfAttention.forward, 0

        def counted(*given, **named):
            self.calls += 1
            return own(*given, **named)

        with pytest.MonkeyPatch.context() as patch, torch.autocast("cpu", HALF):
            patch.setattr(BertSelfAttention, "forward", counted)
            out = called(input_ids=TOKENS, attention_mask=mask, output_hidden_states=True)
            out.last_hidden_state.float().square().sum().backward()
        gradients = {name: weight.grad for name, weight in self.model.named_parameters()}
        return [states.detach() for states in out.hidden_states], gradients


def built(kind="bert", **changes):
    """More blocks than one group; weights larger than usual, so that words differ clearly."""
    config = CONFIG_MAPPING[kind](**{**SMALL, "num_hidden_layers": GROUP + 1, "pad_token_id": 1, **changes})
    torch.manual_seed(0)
    model = AutoModel.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model.train()


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
@pytest.mark.parametrize("kind", FAMILIES)
def test_states_are_autocasts_and_gradients_as_close_as_half_precision_lets_them(kind, mask):
    watched = Watched(kind, **({"embedding_size": 8} if kind == "electra" else {}))
    ours, found = watched.outcome(watched.fused, hidden(mask))
    theirs, wanted = watched.outcome(watched.model, hidden(mask))
    equal_states(ours, theirs)
    for name, gradient in wanted.items():
        assert (gradient is None) == (found[name] is None), name
        if gradient is not None:
            torch.testing.assert_close(found[name], gradient, rtol=0.05, atol=0.02 * float(gradient.abs().max()) + 0.2)


def test_the_blocks_own_attention_is_not_used_and_is_back_afterwards():
    """Again and again: transformers puts hooks into a model once it is asked for hidden states."""
    watched = Watched()
    for _ in range(2):
        watched.outcome(watched.fused)
        assert watched.calls == 0
        watched.outcome(watched.model)
        assert watched.calls == GROUP + 1


@pytest.mark.filterwarnings("ignore:.*attention")  # sdpa has no weights to give
def test_who_wants_attention_weights_asks_the_blocks_own_attention():
    watched = Watched()
    watched.model.set_attn_implementation("sdpa")
    watched.outcome(lambda **inputs: watched.fused(**inputs, output_attentions=True))
    assert watched.calls == GROUP + 1


def test_embeddings_in_half_precision_enter_a_residual_stream_in_full_precision():
    watched = Watched("electra", embedding_size=4)
    ours, _ = watched.outcome(watched.fused)
    theirs, _ = watched.outcome(watched.model)
    assert ours[0].dtype == HALF
    assert ours[-1].dtype == torch.float32
    torch.testing.assert_close(ours[-1], theirs[-1].float(), rtol=0.05, atol=0.1)


def test_gradients_are_nearer_to_the_exact_ones_than_autocasts_or_as_near():
    watched = Watched(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    watched.model(input_ids=TOKENS).last_hidden_state.square().sum().backward()
    exact = torch.cat([weight.grad.flatten() for weight in watched.blocks.parameters()])

    def error(called):
        watched.outcome(called)
        return float((torch.cat([weight.grad.flatten() for weight in watched.blocks.parameters()]) - exact).norm())

    assert error(watched.fused) < 1.1 * error(watched.model)


class Doubled(nn.Module):
    def forward(self, weight):
        return 2 * weight


class Adapted(nn.Module):
    """A bottleneck behind the block's last part, as people add them by hand."""

    def __init__(self, inner):
        super().__init__()
        self.inner, self.dense, self.LayerNorm, self.dropout = inner, inner.dense, inner.LayerNorm, inner.dropout
        self.adapter = nn.Linear(8, 8)

    def forward(self, states, residual):
        return self.adapter(self.inner(states, residual)).float()


def replaced(block):
    own = type(block).forward

    def forward(*given, **named):
        return own(block, *given, **named) * 1.5

    block.forward = forward


CHANGES = {
    "frozen": lambda blocks, _: blocks[1].requires_grad_(False),
    "frozen in part": lambda blocks, _: blocks[1].output.LayerNorm.bias.requires_grad_(False),
    "pruned": lambda blocks, _: prune.l1_unstructured(blocks[1].intermediate.dense, "weight", amount=0.5),
    "computed": lambda blocks, _: parametrize.register_parametrization(blocks[1].output.dense, "weight", Doubled()),
    "recomputed": lambda _, model: model.gradient_checkpointing_enable({"use_reentrant": False}),
    "eager": lambda _, model: model.set_attn_implementation("eager"),
    "adapter by hand": lambda blocks, _: setattr(blocks[1], "output", Adapted(blocks[1].output)),
    "wrapped": lambda blocks, _: setattr(blocks[1], "intermediate", nn.Sequential(blocks[1].intermediate)),
    "no dropout": lambda blocks, _: setattr(blocks[1].output, "dropout", nn.Identity()),
    "forward of a block": lambda blocks, _: replaced(blocks[1]),
    "forward of a part": lambda blocks, _: replaced(blocks[1].output),
    "hook inside": lambda blocks, _: blocks[1].output.register_forward_hook(lambda *given: 1.5 * given[2]),
    "dropout off": lambda blocks, _: blocks[1].output.dropout.eval(),
    "causal": lambda blocks, _: setattr(blocks[1].attention.self, "is_causal", True),
    "scaled": lambda blocks, _: setattr(blocks[1].attention.self, "scaling", 1.0),
}


@pytest.mark.parametrize("change", CHANGES)
def test_blocks_that_are_not_as_they_were_built_stay_as_they_are(change):
    watched = Watched(change=CHANGES[change])
    ours, found = watched.outcome(watched.fused)
    assert watched.calls
    theirs, wanted = watched.outcome(watched.model)
    equal_states(ours, theirs)
    for name, gradient in wanted.items():
        assert (gradient is None) == (found[name] is None), name
        if gradient is not None:
            torch.testing.assert_close(found[name], gradient, rtol=0, atol=0)


@pytest.mark.parametrize("changes", [{"hidden_act": "gelu_new"}, {"is_decoder": True}])
def test_activations_that_autocast_may_compute_otherwise_and_decoders_are_left_alone(changes):
    watched = Watched(**changes)
    watched.outcome(watched.fused)
    assert watched.calls == GROUP + 1


def test_every_block_has_its_own_dropout_and_its_own_epsilon():
    watched = Watched()
    watched.blocks[1].output.dropout.p, watched.blocks[2].output.LayerNorm.eps = 0.7, 0.5
    ours, _ = watched.outcome(watched.fused)
    assert watched.calls == 0
    equal_states(ours, watched.outcome(watched.model)[0])


def test_hooks_on_blocks_themselves_are_called():
    watched, seen = Watched(), []
    watched.blocks[1].register_forward_hook(lambda *given: seen.append(given[2].dtype))
    watched.outcome(watched.fused)
    assert watched.calls == 0
    assert seen == [torch.float32]


def test_who_predicts_meanwhile_is_given_the_blocks_own_numbers():
    """In another thread autocast and gradients are what that thread has them to be: here, both off."""
    watched, found = Watched(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0), []
    states = torch.randn(2, 9, 8, generator=torch.Generator().manual_seed(1))

    def predict(*_):
        with torch.autocast("cpu", enabled=False), torch.no_grad():
            found.append(watched.blocks[1](states))

    with torch.no_grad():
        alone = watched.blocks[1](states)
    watched.blocks[0].register_forward_hook(predict)
    watched.outcome(watched.fused)
    torch.testing.assert_close(found, [alone], rtol=0, atol=0)


def test_calls_within_calls_leave_nothing_behind():
    watched = Watched()
    again = watched.blocks[2].register_forward_hook(lambda *_: (again.remove(), watched.fused(input_ids=TOKENS))[0])
    watched.outcome(watched.fused)
    assert not any("forward" in vars(block) for block in watched.blocks)


def test_prediction_and_full_precision_leave_the_blocks_alone():
    watched, seen = Watched(), []
    watched.blocks[0].register_forward_pre_hook(lambda block, _: seen.append("forward" in vars(block)))
    with torch.autocast("cpu", HALF):
        watched.fused(input_ids=TOKENS)
        with torch.no_grad():
            watched.fused(input_ids=TOKENS)
    watched.fused(input_ids=TOKENS)
    assert seen == [True, False, False]


def test_after_an_error_the_blocks_are_what_they_were():
    watched = Watched()
    with torch.autocast("cpu", HALF), pytest.raises(ValueError, match="input_ids"):
        watched.fused(no_such_input=TOKENS)
    assert not any("forward" in vars(block) for block in watched.blocks)


def test_a_model_without_such_blocks_is_called_as_it_is():
    watched = Watched()
    watched.outcome(lambda **inputs: call_fused(watched.model, [], **inputs))
    assert watched.calls == GROUP + 1


@pytest.mark.parametrize("kept", [0, 2])
def test_pretrained_encoders_learn_this_way(folders, monkeypatch, kept):
    encoder = PretrainedEncoder(name=str(folders["bert"])).train()
    encoder.keep_layers = kept
    inputs, calls = tensors(encoder.tokenize([sentence("the drugs in genexys")]), "cpu"), []
    own = BertSelfAttention.forward
    monkeypatch.setattr(
        BertSelfAttention, "forward", lambda *given, **named: (calls.append(1), own(*given, **named))[1]
    )
    for _ in range(2):
        with torch.autocast("cpu", HALF):
            encoder(inputs).top.float().sum().backward()
    assert not calls
    assert all(weight.grad is not None for weight in encoder.blocks.parameters())
    encoder.eval()
    with torch.no_grad():
        encoder(inputs)
    assert len(calls) == len(encoder.blocks)


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
