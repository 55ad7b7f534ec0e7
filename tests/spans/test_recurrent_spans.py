from functools import partial

import pytest
import torch
from tiny import ENCODER, grid_of, of_length, vectors, word_inputs
from torch import nn

from wingspan.candidates import Candidates
from wingspan.spans import recurrent
from wingspan.spans.recurrent import RecurrentSpans, cuts


def make(**settings) -> RecurrentSpans:
    torch.manual_seed(0)
    part = RecurrentSpans(ENCODER, 4, **{"hidden_size": 6, **settings})
    for parameter in part.parameters():
        nn.init.normal_(parameter, std=0.8)  # far from linear, and attention far from even
    return part.eval()


def span_by_span(part: RecurrentSpans, top: torch.Tensor, candidates: Candidates) -> torch.Tensor:
    """As the paper's code does it: one bidirectional LSTM call for each span, on its words alone."""
    size = part.recurrent.size // 2
    lstm = nn.LSTM(top.shape[-1], size, bidirectional=True, batch_first=True)
    weights = {name: value for name, value in part.recurrent.forwards.named_parameters()}
    weights |= {f"{name}_reverse": value for name, value in part.recurrent.backwards.named_parameters()}
    rows = []
    for sentence, cell in candidates.mask.nonzero().tolist():
        words = top[sentence, candidates.start[sentence, cell] : candidates.end[sentence, cell]]
        states, (final, _) = torch.func.functional_call(lstm, weights, (words[None],))
        states, final = states[0], torch.cat([final[0, 0], final[1, 0]])  # (n, 2 H), (2 H,)
        rows.append((states @ final).softmax(0) @ states)
    return torch.stack(rows)


@pytest.fixture
def batch():
    inputs = word_inputs([of_length(9), of_length(3), of_length(1), of_length(6)])
    return vectors(inputs), grid_of(inputs, 4)


def any_width(words) -> Candidates:
    """Spans of up to nine words in no order, some twice, some that do not count."""
    start = torch.tensor([[3, 0, 0, 8, 0, 2], [0, 0, 2, 1, 0, 0], [0] * 6, [5, 0, 1, 1, 0, 4]])
    end = torch.tensor([[5, 9, 1, 9, 9, 3], [3, 1, 3, 2, 0, 0], [1, 1, 1, 0, 0, 0], [6, 6, 5, 2, 3, 6]])
    mask = end > start
    mask[0, 5] = False
    return Candidates(start, end, mask, None)


LAYOUTS = {
    "grid": lambda words, cells: cells,
    "list": lambda words, cells: cells._replace(width=None),
    "any width": lambda words, cells: any_width(words),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("blocks", [False, True])
def test_values_and_gradients_are_those_of_one_span_after_the_other(layout, blocks, batch, monkeypatch):
    if blocks:
        monkeypatch.setattr(recurrent, "CELLS", 8)
    words, cells = batch
    candidates = LAYOUTS[layout](words, cells)
    part = make()
    top = words.top.clone().requires_grad_()
    together = part(words._replace(top=top), candidates)[candidates.mask]
    apart = span_by_span(part, top, candidates)
    torch.testing.assert_close(together, apart, rtol=1e-5, atol=1e-5)
    wanted = [top, *part.parameters()]
    pick = torch.randn(apart.shape, generator=torch.Generator().manual_seed(1))
    for one, other in zip(
        torch.autograd.grad((together * pick).sum(), wanted),
        torch.autograd.grad((apart * pick).sum(), wanted),
        strict=True,
    ):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("layout", ["grid", "list"])
def test_a_span_of_one_word_is_its_states(layout, batch):
    """Its attention weight is 1, so nothing is weighed."""
    words, cells = batch
    candidates = LAYOUTS[layout](words, cells)
    part = make()
    single = candidates.mask & (candidates.end - candidates.start == 1)
    one_word = words.top[words.mask].unsqueeze(1)  # (words, 1, D), sentence by sentence as the cells are
    states = torch.cat([part.recurrent.forwards(one_word)[0], part.recurrent.backwards(one_word)[0]], -1).squeeze(1)
    torch.testing.assert_close(part(words, candidates)[single], states)


def test_the_order_of_the_words_counts(batch):
    words, _ = batch
    part = make()
    turned = words._replace(top=words.top.flip(1))
    one = Candidates(*(torch.tensor([[n]] * 4) for n in (0, 9)), torch.tensor([[True]] + [[False]] * 3), None)
    assert not torch.allclose(part(words, one)[0], part(turned, one)[0], atol=1e-2)


def test_words_outside_a_span_change_not_one_bit(batch):
    words, cells = batch
    part = make()
    inside = (cells.start >= 2) & (cells.end <= 5)
    top = words.top.clone()
    top[:, :2], top[:, 5:] = 7.0, -9.0
    for candidates in (cells, cells._replace(width=None)):
        seen = inside & candidates.mask
        assert torch.equal(part(words, candidates)[seen], part(words._replace(top=top), candidates)[seen])


def test_what_does_not_count_is_zero_and_no_span_at_all_is_fine(batch):
    words, _ = batch
    candidates = any_width(words)
    part = make()
    assert not part(words, candidates)[~candidates.mask].any()
    nothing = candidates._replace(mask=torch.zeros_like(candidates.mask))
    assert part(words, nothing).shape == (4, 6, 6)


def test_blocks_hold_few_cells_or_one_span(monkeypatch):
    monkeypatch.setattr(recurrent, "CELLS", 4)
    assert cuts([]) == []
    assert cuts([1, 1, 2, 2, 3, 7]) == [(0, 2), (2, 4), (4, 5), (5, 6)]


def test_states_of_blocks_are_not_kept_for_the_way_back(batch, monkeypatch):
    """What the graph keeps between forward and backward shrinks; the memory is that of one block."""
    words, cells = batch

    def kept() -> int:
        sizes = []
        with torch.autograd.graph.saved_tensors_hooks(lambda t: (sizes.append(t.numel()), t)[1], lambda t: t):
            make()(words._replace(top=words.top.clone().requires_grad_()), cells)
        return sum(sizes)

    whole = kept()
    monkeypatch.setattr(recurrent, "CELLS", 8)
    assert kept() < whole / 4


@pytest.mark.parametrize("size", [0, 7])
def test_both_directions_share_the_hidden_size(size):
    with pytest.raises(ValueError, match="even"):
        partial(RecurrentSpans, ENCODER, 4)(hidden_size=size)
