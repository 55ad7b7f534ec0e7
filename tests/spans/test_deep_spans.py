"""The span Transformer against the encoder itself, against a plain loop over widths, and in numbers of parameters."""

from functools import partial
from types import SimpleNamespace

import pytest
import torch
from tiny import ENCODER, of_length, word_inputs
from torch import nn
from towers import SMALL, Configured, configured, looped
from transformers import RobertaConfig, RobertaModel, RoFormerConfig, RoFormerModel

from wingspan.candidates import Candidates, Grid
from wingspan.encoders import Words
from wingspan.heads.feedforward import FeedForwardHead
from wingspan.layers import grid
from wingspan.layers.bert_blocks import attention_bias, buckets
from wingspan.layers.grid import inside
from wingspan.spans import deep
from wingspan.spans.contextual import ContextualSpans, initialize
from wingspan.spans.deep import DeepSpans, sentence_spans
from wingspan.spans.pooled import PooledSpans

TOKENS = torch.randint(3, 30, (2, 9), generator=torch.Generator().manual_seed(0))


def close(one: torch.Tensor, other: torch.Tensor) -> None:
    torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def listed(start: list[int], end: list[int], batch: int = 2) -> Candidates:
    rows = (torch.tensor([part] * batch) for part in (start, end))
    return Candidates(*rows, torch.ones(batch, len(start), dtype=torch.bool), None)


def on_grid(words: Words, width: int) -> Candidates:
    inputs = word_inputs([of_length(words.top.shape[1])] * len(words.top))
    return Grid(ENCODER, width)(inputs, words)


@pytest.mark.parametrize("kind", ["bert", "roberta", "electra", "mpnet", "distilbert"])
@pytest.mark.parametrize("depth", [None, 1, 2])
def test_a_query_that_is_a_word_and_reads_the_whole_input_becomes_the_encoders_own_output(kind, depth, monkeypatch):
    encoder = configured(kind)
    words = encoder(TOKENS)
    spans = DeepSpans(encoder, 9, depth=depth, share_weights=True, build_single=True).eval()
    below = words.layers[-(depth or 3) - 1]
    monkeypatch.setattr(spans, "_begin", lambda states, layout: below)  # one query per word, which is its start
    at, held = torch.arange(9).expand(2, -1), torch.ones(1, 9, 9, dtype=torch.bool)
    out = spans._build(words, deep.SpanBlocks(deep.same, at, at + 1, held, attention_bias(held, torch.float32)))
    close(out, words.top)
    assert not torch.allclose(below, words.top, atol=1e-2)


def test_distances_of_a_span_are_those_of_its_start_and_learn():
    encoder = configured("mpnet")
    words, (start, end) = encoder(TOKENS), ([2, 2, 4], [6, 4, 9])
    spans = DeepSpans(encoder, 9).eval()
    before = spans(words, listed(start, end))
    with torch.no_grad():
        spans.distances.weight[16 + 3] += 1.0  # three words to the right of the start: only spans of four or more
    after = spans(words, listed(start, end))
    changed = (after - before).abs().amax(-1) > 1e-4
    assert changed.tolist() == [[True, False, True]] * 2
    after.sum().backward()
    used = spans.distances.weight.grad.abs().sum(-1) > 0
    assert [row for row in range(32) if used[row]] == [0, 17, 18, 19, 20]
    assert encoder.distances.weight.grad is None or spans.distances is not encoder.distances


@pytest.mark.parametrize("length", [5, 40, 300])
def test_buckets_of_distances_are_mpnets(length):
    stack = configured("mpnet").model.encoder
    distance = torch.arange(-length, length + 1)
    assert torch.equal(buckets(distance, 32), stack.relative_position_bucket(distance))


@pytest.mark.parametrize("kind", ["bert", "roberta", "mpnet"])
@pytest.mark.parametrize("depth", [None, 2])
@pytest.mark.parametrize("block", [128, 9, 4])
@pytest.mark.parametrize("as_list", [False, True])
def test_all_widths_at_once_equal_the_loop_over_widths(kind, depth, block, as_list, monkeypatch):
    monkeypatch.setattr(deep, "BLOCK", block)  # 128: one packed block; 4: three blocks
    encoder, width = configured(kind), 5
    spans = DeepSpans(encoder, width, depth=depth).eval()
    words = encoder(TOKENS)
    candidates = on_grid(words, width)
    if as_list:
        candidates = candidates._replace(width=None)
    out = spans(words, candidates).view(2, 9, width, -1)
    plain = looped(spans.blocks, words.layers, width, spans.distances)
    wanted = [
        *encoder.model.encoder.parameters(),
        *spans.blocks.parameters(),
        encoder.model.embeddings.LayerNorm.weight,
    ]
    weights = {k: torch.randn(plain[k].shape, generator=torch.Generator().manual_seed(k)) for k in plain}
    for k in plain:
        close(out[:, : 9 - k + 1, k - 1], plain[k])
    fast = sum((out[:, : 9 - k + 1, k - 1] * weights[k]).sum() for k in plain)
    slow = sum((plain[k] * weights[k]).sum() for k in plain)
    gradients = (torch.autograd.grad(loss, wanted, allow_unused=True, retain_graph=True) for loss in (fast, slow))
    for one, other in zip(*gradients, strict=True):
        close(one, other)


@pytest.mark.parametrize("aggregation", ["max", "mean", "multiplicative", "additive"])
@pytest.mark.parametrize("build_single", [False, True])
@pytest.mark.parametrize("size_embedding", [False, True])
def test_long_sentences_in_blocks_equal_lists(aggregation, build_single, size_embedding, monkeypatch):
    monkeypatch.setattr(deep, "BLOCK", 4)
    encoder = configured()
    torch.manual_seed(3)
    settings = dict(aggregation=aggregation, build_single=build_single, size_embedding=size_embedding, width_size=2)
    spans = DeepSpans(encoder, 4, **settings).eval()
    if spans.sizes is not None:
        nn.init.normal_(spans.sizes.weight)
    words = encoder(TOKENS)
    candidates = on_grid(words, 4)
    dense, one_by_one = spans(words, candidates), spans(words, candidates._replace(width=None))
    close(dense[candidates.mask], one_by_one[candidates.mask])
    monkeypatch.setattr(deep, "BLOCK", 128)
    close(spans(words, candidates)[candidates.mask], dense[candidates.mask])


@pytest.mark.parametrize("scoring", ["multiplicative", "additive"])
def test_attention_begins_with_the_paper_formula(scoring):
    encoder = configured()
    spans = DeepSpans(encoder, 4, aggregation=scoring).eval()
    states = encoder(TOKENS).layers[0][0, 2:5]
    scores = spans.scores
    rows = states if scoring == "multiplicative" else torch.cat([states, scores.other.expand(3, -1)], -1)
    weights = (torch.tanh(scores.inner(rows)) @ scores.direction).softmax(0)
    start, end = torch.tensor([[2], [2]]), torch.tensor([[5], [5]])
    held = inside(start, end, 9)
    blocks = deep.SpanBlocks(deep.same, start, end, held, attention_bias(held, torch.float32))
    close(spans._begin(encoder(TOKENS).layers[0], blocks)[0, 0], weights @ states)


def test_spans_of_any_width_and_padding_in_a_list():
    encoder = configured()
    spans = DeepSpans(encoder, 3, size_embedding=True, width_size=2).eval()
    words = encoder(TOKENS)
    out = spans(words, listed([0, 0, 4, 0], [9, 1, 9, 0]))  # the last is padding: no span at all
    close(out[:, 0, :8], looped(spans.blocks, words.layers, 9)[9][:, 0])
    close(out[:, 1, :8], words.top[:, 0])
    assert torch.equal(out[0, 0, 8:], spans.widths.weight[2])
    assert bool(torch.isfinite(out).all())
    out.sum().backward()
    assert all(bool(torch.isfinite(part.grad).all()) for part in spans.parameters() if part.grad is not None)


@pytest.mark.parametrize(("length", "width"), [(9, 4), (5, 5), (12, 1), (1, 1)])
def test_number_of_spans(length, width):
    start, end, held, bias, places = sentence_spans(length, 1, width, torch.device("cpu"), torch.float32)
    assert len(start) == width * (2 * length - width + 1) // 2
    found = set(zip(start.tolist(), (end - start).tolist(), strict=True))
    assert found == {(s, k) for k in range(1, width + 1) for s in range(length - k + 1)}
    assert torch.equal(places, start * width + end - start - 1)
    assert torch.equal(held.sum(-1)[0], end - start)
    assert torch.equal(bias[0] == 0, held)


def test_maxima_in_few_launches_are_those_of_ranges():
    values = torch.randn(2, 7, 5, generator=torch.Generator().manual_seed(3)).relu().requires_grad_()  # with ties
    start, end, held, _, places = sentence_spans(7, 2, 4, torch.device("cpu"), torch.float32)
    expected = grid.range_maxima(values, start.expand(2, -1), end.expand(2, -1))
    weights = torch.randn(expected.shape, generator=torch.Generator().manual_seed(4))
    (gradient,) = torch.autograd.grad((expected * weights).sum(), values)
    for found in (grid.max_words(values, 4).flatten(1, 2)[:, places[7:]], grid.held_maxima(values, held)):
        assert torch.equal(found, expected)
        close(torch.autograd.grad((found * weights).sum(), values)[0], gradient)


@pytest.mark.parametrize("length", [1, 2])
@pytest.mark.parametrize("block", [128, 1])
def test_one_word_and_two(length, block, monkeypatch):
    monkeypatch.setattr(deep, "BLOCK", block)
    encoder = configured()
    spans = DeepSpans(encoder, 4).eval()
    words = encoder(TOKENS[:, :length])
    candidates = on_grid(words, 4)
    out = spans(words, candidates)
    assert out.shape == (2, length * length, 8)
    close(out.view(2, length, length, 8)[:, :, 0], words.top)
    close(out[candidates.mask], spans(words, candidates._replace(width=None))[candidates.mask])


def test_shared_blocks_are_registered_once_and_follow_the_encoder():
    encoder = configured()
    spans = DeepSpans(encoder, 4, share_weights=True).eval()
    assert not list(spans.parameters())
    assert not spans.state_dict()
    words = encoder(TOKENS)
    before = spans(words, on_grid(words, 4))
    with torch.no_grad():
        encoder.model.encoder.layer[2].output.dense.weight.mul_(2)
    assert not torch.allclose(before, spans(words, on_grid(words, 4)))


def test_copied_blocks_start_equal_and_go_their_own_way():
    encoder = configured()
    shared = DeepSpans(encoder, 4, share_weights=True, depth=2).eval()
    copied = DeepSpans(encoder, 4, depth=2).eval()
    assert encoder.keep_layers
    words = encoder(TOKENS)
    candidates = on_grid(words, 4)
    close(shared(words, candidates), copied(words, candidates))
    before = encoder.model.encoder.layer[2].output.dense.weight.clone()
    with torch.no_grad():
        copied.blocks[1].output.dense.weight.mul_(2)
    assert torch.equal(before, encoder.model.encoder.layer[2].output.dense.weight)


def test_recomputing_instead_of_keeping_changes_nothing():
    encoder = configured(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    words = encoder(TOKENS)
    results = []
    for checkpointing in (False, True):
        torch.manual_seed(0)
        spans = DeepSpans(encoder, 4, checkpointing=checkpointing).train()
        out = spans(words, on_grid(words, 4))
        gradients = torch.autograd.grad(out.square().sum(), list(spans.parameters()), retain_graph=True)
        results.append((out, *gradients))
    for one, other in zip(*results, strict=True):
        close(one, other)


def test_dropout_is_the_encoders():
    encoder = configured(hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.3)
    spans = DeepSpans(encoder, 4)
    assert spans.dropout.p == 0.2
    assert spans.blocks[0].attention.self.dropout.p == 0.3
    words = encoder(TOKENS)
    candidates = on_grid(words, 4)
    spans.train()
    assert not torch.allclose(spans(words, candidates), spans(words, candidates))
    spans.eval()
    close(spans(words, candidates), spans(words, candidates))


def parameters(*modules: nn.Module) -> float:
    unique = {id(part): part.numel() for module in modules for part in module.parameters()}
    return round(sum(unique.values()) / 1e6, 2)


@pytest.mark.parametrize(("shared", "expected"), [(False, 212.93), (True, 126.33)])
def test_parameter_counts_of_the_paper(shared, expected):
    with torch.device("meta"):
        settings = dict(vocab_size=50265, max_position_embeddings=514, type_vocab_size=1)
        encoder = Configured(RobertaModel(RobertaConfig(**settings)))  # pooler included
        around = partial(DeepSpans, share_weights=shared)
        spans = ContextualSpans(encoder, 25, around=around, hidden_size=400, share_weights=shared, width_size=25)
        head = FeedForwardHead(spans.size, 8, hidden=(300,))
    assert parameters(encoder, spans, head) == expected


def test_other_encoders_are_refused_with_a_sentence():
    rotary = Configured(RoFormerModel(RoFormerConfig(**SMALL)))
    other = SimpleNamespace(size=8, blocks=nn.ModuleList([nn.TransformerEncoderLayer(8, 2, 12)]))
    with pytest.raises(ValueError, match="has none: choose such an encoder, or PooledSpans"):
        DeepSpans(ENCODER, 4)
    for encoder in (rotary, other):
        with pytest.raises(ValueError, match="BERT, RoBERTa, ELECTRA, MPNet, DistilBERT and their kin; .* has others"):
            DeepSpans(encoder, 4)
    for depth in (0, 4):
        with pytest.raises(ValueError, match=f"depth is {depth}; this encoder has 3 layers: give 1 to 3"):
            DeepSpans(configured(), 4, depth=depth)
    with pytest.raises(ValueError, match="no aggregation 'sum'"):
        DeepSpans(configured(), 4, aggregation="sum")


def test_contextual_spans_are_one_bilstm_run_per_width():
    torch.manual_seed(0)
    inputs = word_inputs([of_length(6), of_length(3)])
    top = torch.randn(2, 6, 5)
    words = Words(top, (), top[:, 0], inputs.unit_mask)
    candidates = Grid(ENCODER, 4)(inputs, words)
    spans = ContextualSpans(ENCODER, 4, around=partial(PooledSpans, views=("max",)), hidden_size=6, width_size=2).eval()
    out = spans(words, candidates).view(2, 6, 4, 8)
    for row, length in enumerate([6, 3]):
        for k in range(1, min(length, 4) + 1):
            sequence = top[row : row + 1, :length].unfold(1, k, 1).amax(-1)  # (1, length - k + 1, D)
            part = spans.single if k == 1 else spans.recurrent
            ahead, back = part.forwards(sequence)[0], part.backwards(sequence.flip(1))[0].flip(1)
            wide = spans.widths.weight[k - 1].expand(1, length - k + 1, -1)
            close(out[row : row + 1, : length - k + 1, k - 1], torch.cat([ahead, back, wide], -1))


def test_recurrent_weights_start_as_in_the_paper():
    spans = ContextualSpans(ENCODER, 4, around=partial(PooledSpans, views=("max",)), hidden_size=40)
    initialize(spans.recurrent)
    bias = spans.recurrent.forwards.bias_ih_l0.view(4, 20)
    assert bias.sum(-1).tolist() == [0, 20, 0, 0]
    weight = spans.recurrent.forwards.weight_ih_l0.detach().view(4, 20, 5).abs().amax((1, 2))
    bound = (6 / 25) ** 0.5
    assert float(weight[0]) <= bound < float(weight[2]) <= 5 / 3 * bound
    assert ContextualSpans(ENCODER, 4, around=partial(PooledSpans), share_weights=True).single is None
    with pytest.raises(ValueError, match="hidden_size is 5"):
        ContextualSpans(ENCODER, 4, around=partial(PooledSpans), hidden_size=5)


def test_prediction_builds_only_what_is_wider_than_a_word():
    encoder = configured()
    spans = DeepSpans(encoder, 4, width_size=2).eval()
    words = encoder(TOKENS)
    start, end = torch.tensor([[0, 3, 2, 8], [5, 1, 0, 0]]), torch.tensor([[1, 5, 3, 9], [9, 4, 1, 0]])
    candidates = Candidates(start, end, torch.tensor([[True] * 4, [True, True, True, False]]), None)
    trained, built = spans(words, candidates), []
    whole = spans._build
    spans._build = lambda words, blocks: built.append(blocks.start.shape) or whole(words, blocks)
    with torch.no_grad():
        found = spans(words, candidates)
    close(found[candidates.mask], trained[candidates.mask])
    assert built == [(2, 2)]
    with torch.no_grad():
        close(spans(words, candidates._replace(mask=start < 0))[0, 0, :8], words.top[0, 0])
