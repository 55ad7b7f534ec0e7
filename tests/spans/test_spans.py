from functools import partial
from itertools import combinations
from types import SimpleNamespace

import pytest
import torch
from tiny import ENCODER, grid_of, of_length, vectors, word_inputs
from torch import nn
from transformers import BertConfig, BertModel

from wingspan.candidates import Candidates
from wingspan.spans import SpanRepresentation
from wingspan.spans.attentive import AttentiveSpans
from wingspan.spans.biaffine import BiaffineSpans, RotaryBiaffineSpans
from wingspan.spans.contextual import ContextualSpans, ConvolvedSpans, ProjectedSpans
from wingspan.spans.deep import DeepSpans
from wingspan.spans.pooled import VIEWS, PooledSpans
from wingspan.spans.recurrent import RecurrentSpans

SELECTIONS = [views for count in range(1, 5) for views in combinations(VIEWS, count)]
PARTS = {
    "boundary": dict(views=("first", "last"), width_size=3),
    "pooling": dict(views=("max",), sentence=True, width_size=3),
    "hybrid": dict(views=("first", "last", "max"), sentence=True, width_size=3),
    "first-mean-last": dict(views=("first", "mean", "last")),
    "sentence": dict(views=("mean",), sentence=True),
    "multiplicative": partial(AttentiveSpans, scoring="multiplicative", width_size=3),
    "additive": partial(AttentiveSpans, scoring="additive"),
    "biaffine": partial(BiaffineSpans, hidden=12, width_size=2),
    "rotary": partial(RotaryBiaffineSpans, hidden=12, width_size=2),
    "deep": partial(DeepSpans, width_size=3),
    "deep-2": partial(DeepSpans, depth=2, aggregation="mean", size_embedding=True),
    "deep-attentive": partial(DeepSpans, depth=1, aggregation="additive", build_single=True),
    "contextual": partial(ContextualSpans, around=partial(PooledSpans, views=("max",)), hidden_size=6, width_size=3),
    "projected": partial(ProjectedSpans, around=partial(PooledSpans, views=("first", "last"), width_size=3), size=6),
    "contextual-deep": partial(ContextualSpans, around=partial(DeepSpans, depth=1), hidden_size=4, share_weights=True),
    "recurrent": partial(RecurrentSpans, hidden_size=6, width_size=3),
    "convolved": partial(ConvolvedSpans, around=partial(BiaffineSpans, hidden=6, width_size=2), size=6, depth=2),
    "convolved-deep": partial(ConvolvedSpans, around=partial(DeepSpans, depth=1), size=4, depth=1),
}
LISTS = [part for part in PARTS if not part.startswith(("contextual", "convolved"))]
PROJECTING = ["multiplicative", "additive", "biaffine", "rotary"]


def with_blocks() -> SimpleNamespace:
    """What a part may ask of an encoder with Transformer blocks."""
    torch.manual_seed(1)
    config = BertConfig(vocab_size=4, hidden_size=5, num_hidden_layers=3, num_attention_heads=1, intermediate_size=7)
    model = BertModel(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return SimpleNamespace(size=5, blocks=model.encoder.layer, distances=None, keep_layers=0)


def make(part, max_width: int = 4) -> SpanRepresentation:
    encoder = with_blocks()
    torch.manual_seed(0)
    if isinstance(part, dict):
        return PooledSpans(ENCODER, max_width, **part).eval()
    return part(encoder, max_width).eval()


def as_list(cells: Candidates) -> Candidates:
    return cells._replace(width=None)


def close(one: torch.Tensor, other: torch.Tensor) -> None:
    torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


@pytest.fixture
def batch():
    inputs = word_inputs([of_length(6), of_length(3), of_length(1)])
    words = vectors(inputs)
    layers = (*(vectors(inputs, seed=seed).top for seed in (1, 2, 3)), words.top)
    return words._replace(layers=layers), grid_of(inputs, 4)


@pytest.mark.parametrize("part", PARTS)
def test_shape_and_size(part, batch):
    words, cells = batch
    spans = make(PARTS[part])
    assert isinstance(spans, SpanRepresentation)
    out = spans(words, cells)
    assert out.shape == (3, 6 * 4, spans.size)
    assert out.dtype == words.top.dtype


@pytest.mark.parametrize("way", ["forward", "project"])
@pytest.mark.parametrize("part", [part for part in PARTS if "deep" not in part])  # their dropout is the encoder's
def test_dropout_is_drawn_anew_in_training_and_only_there(part, way, batch):
    words, cells = batch
    spans = make(PARTS[part]).train()
    for module in spans.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    spans.dropout.p = 0.5
    linear = nn.Linear(spans.size, 3)

    def drawn(seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        return spans(words, cells) if way == "forward" else spans.project(words, cells, linear)

    assert not torch.allclose(drawn(1), drawn(2))
    spans.eval()
    assert torch.equal(drawn(1), drawn(2))


@pytest.mark.parametrize("part", ["boundary", "multiplicative", "biaffine", "rotary", "recurrent"])
def test_words_are_dropped_before_anything_is_made_of_them(part, batch):
    words, cells = batch
    spans, seen = make(PARTS[part]).train(), []
    spans.dropout.register_forward_pre_hook(lambda _, given: seen.append(given[0] is words.top))
    spans(words, cells)
    assert any(seen)


def test_a_vector_is_its_views_then_the_sentence_then_the_width(batch):
    words, cells = batch
    spans = make(PARTS["hybrid"])
    out = spans(words, cells).view(3, 6, 4, -1)
    inside = words.top[0, 1:4]
    expected = torch.cat([inside[0], inside[2], inside.max(0).values, words.sentence[0], spans.widths.weight[2]])
    close(out[0, 1, 2], expected)


@pytest.mark.parametrize("part", PARTS)
def test_padding_and_other_sentences_change_nothing(part, batch):
    words, cells = batch
    spans = make(PARTS[part])
    together = spans(words, cells).view(3, 6, 4, -1)
    for row, length in enumerate([6, 3, 1]):
        inputs = word_inputs([of_length(length)])
        own = words._replace(
            top=words.top[row : row + 1, :length],
            layers=tuple(layer[row : row + 1, :length] for layer in words.layers),
            sentence=words.sentence[row : row + 1],
            mask=inputs.unit_mask,
        )
        alone_cells = grid_of(inputs, 4)
        alone = spans(own, alone_cells).view(1, length, alone_cells.width, -1)
        real = alone_cells.mask.view(1, length, alone_cells.width)
        close(together[row : row + 1, :length, : alone_cells.width][real], alone[real])


@pytest.mark.parametrize("part", LISTS)
def test_a_list_of_spans_gets_the_vectors_of_the_grid(part, batch):
    words, cells = batch
    spans = make(PARTS[part])
    dense, listed = spans(words, cells), spans(words, as_list(cells))
    close(dense[cells.mask], listed[cells.mask])
    shuffled = torch.randperm(cells.start.shape[1], generator=torch.Generator().manual_seed(0))
    moved = Candidates(cells.start[:, shuffled], cells.end[:, shuffled], cells.mask[:, shuffled], None)
    close(spans(words, moved)[moved.mask], dense[:, shuffled][moved.mask])


@pytest.mark.parametrize("views", SELECTIONS, ids="-".join)
@pytest.mark.parametrize(("sentence", "width_size"), [(False, 0), (True, 3)])
@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_projecting_words_first_is_projecting_the_spans(views, sentence, width_size, listed, bias, batch):
    words, cells = batch
    cells = as_list(cells) if listed else cells
    spans = make(dict(views=views, sentence=sentence, width_size=width_size))
    linear = nn.Linear(spans.size, 7, bias=bias)
    with torch.no_grad():
        close(spans.project(words, cells, linear)[cells.mask], linear(spans(words, cells))[cells.mask])


def test_projected_gradients_are_those_of_the_spans(batch):
    words, cells = batch
    spans = make(PARTS["hybrid"])
    linear = nn.Linear(spans.size, 2)
    top = words.top.clone().requires_grad_()
    wanted = [top, linear.weight, linear.bias, spans.widths.weight]
    pick = torch.randn(int(cells.mask.sum()), 2, generator=torch.Generator().manual_seed(3))
    fast = (spans.project(words._replace(top=top), cells, linear)[cells.mask] * pick).sum()
    slow = (linear(spans(words._replace(top=top), cells))[cells.mask] * pick).sum()
    for one, other in zip(torch.autograd.grad(fast, wanted), torch.autograd.grad(slow, wanted), strict=True):
        close(one, other)


@pytest.mark.parametrize("part", PROJECTING)
@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_other_parts_that_project_words_first(part, listed, bias, batch):
    words, cells = batch
    cells = as_list(cells) if listed else cells
    spans = make(PARTS[part])
    linear = nn.Linear(spans.size, 3, bias=bias)
    top = words.top.clone().requires_grad_()
    wanted = [top, *linear.parameters(), *spans.parameters()]
    fast = spans.project(words._replace(top=top), cells, linear)[cells.mask]
    slow = linear(spans(words._replace(top=top), cells))[cells.mask]
    close(fast, slow)
    pick = torch.randn(fast.shape, generator=torch.Generator().manual_seed(3))
    for one, other in zip(
        torch.autograd.grad((fast * pick).sum(), wanted), torch.autograd.grad((slow * pick).sum(), wanted), strict=True
    ):
        close(one, other)


@pytest.mark.parametrize("part", [part for part in LISTS if part not in ("pooling", "hybrid", "sentence")])
@pytest.mark.parametrize("listed", [False, True])
def test_a_span_knows_only_its_own_words(part, listed, batch):
    words, cells = batch
    cells = as_list(cells) if listed else cells
    spans = make(PARTS[part])
    layers = tuple(layer.clone().requires_grad_() for layer in words.layers)
    weights = torch.randn(
        spans.size, generator=torch.Generator().manual_seed(5)
    )  # layer norms make plain sums constant
    out = spans(words._replace(top=layers[-1], layers=layers), cells) @ weights
    for at, (start, end, real) in enumerate(zip(cells.start[0], cells.end[0], cells.mask[0], strict=True)):
        if real:
            each = torch.autograd.grad(out[0, at], layers, retain_graph=True, allow_unused=True)
            felt = sum(part.abs() for part in each if part is not None)
            outside = [n for n in range(6) if not start <= n < end]
            assert float(felt[0, outside].sum()) == pytest.approx(0, abs=1e-6)
            assert float(felt[1:].sum()) == 0
            assert float(felt[0, start].sum()) > 0
            assert float(felt[0, end - 1].sum()) > 0


@pytest.mark.parametrize("part", [part for part in PARTS if part not in ("first-mean-last", "sentence")])
def test_every_parameter_learns(part, batch):
    words, cells = batch
    spans = make(PARTS[part])
    weights = torch.randn(spans.size, generator=torch.Generator().manual_seed(5))
    (spans(words, cells)[cells.mask] @ weights).square().sum().backward()
    for name, parameter in spans.named_parameters():
        if "key.bias" not in name:  # the same for all words: a softmax does not feel it
            assert float(parameter.grad.abs().sum()) > 0, name
            assert parameter.dim() < 2 or "widths" not in name or bool((parameter.grad.abs().sum(-1) > 0).all())


def test_spans_wider_than_the_table_share_its_last_row(batch):
    words, _ = batch
    spans = make(PARTS["boundary"], max_width=4)
    wide = Candidates(torch.zeros(3, 2, dtype=torch.long), torch.tensor([[4, 6]] * 3), torch.ones(3, 2) > 0, None)
    assert torch.equal(spans(words, wide)[0, :, -3:], spans.widths.weight[[3, 3]])


def test_an_unknown_view_is_said():
    with pytest.raises(ValueError, match="no view 'middle'; use first, last, mean, max"):
        PooledSpans(ENCODER, 4, views=("first", "middle"))


def test_dropout_acts_in_training_only(batch):
    words, cells = batch
    spans = make(dict(views=("first",), dropout=0.5))
    close(spans(words, cells), spans(words, cells))
    spans.train()
    torch.manual_seed(0)
    assert float((spans(words, cells) == 0).float().mean()) > 0.2


@pytest.mark.filterwarnings("ignore:TF32 acceleration")  # said by switching oneDNN off and on
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("listed", [False, True])
def test_half_precision_trains_and_is_near(part, listed, batch):
    words, cells = batch
    if listed and part not in LISTS:
        pytest.skip("needs the grid")
    cells = as_list(cells) if listed else cells
    spans = make(PARTS[part])
    linear = nn.Linear(spans.size, 3)
    layers = tuple(layer.clone().requires_grad_() for layer in words.layers)
    states = words._replace(top=layers[-1], layers=layers)
    # oneDNN's bf16 kernels need instructions that some virtual machines announce and do not have
    with torch.backends.mkldnn.flags(enabled=False), torch.autocast("cpu", torch.bfloat16):
        vectors_, projected = spans(states, cells), spans.project(states, cells, linear)
    exact = spans(states, cells)
    assert torch.allclose(vectors_.float()[cells.mask], exact[cells.mask], atol=0.15)
    with torch.backends.mkldnn.flags(enabled=False):
        (vectors_.float()[cells.mask].sum() + projected.float()[cells.mask].sum()).backward()
    gradients = [layer.grad for layer in layers if layer.grad is not None]
    assert gradients
    assert all(bool(torch.isfinite(gradient).all()) for gradient in gradients)
