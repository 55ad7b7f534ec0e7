"""The variational information bottleneck and what it charges: the oracles of Nguyen et al. 2023."""

import math

import pytest
import torch
import torch.nn.functional as F
from tiny import ENCODER, GENE, gold_of, grid_of, of_length, piece_inputs, sizes, vectors, word_inputs
from torch.distributions import Normal, kl_divergence

from wingspan.candidates import Grid
from wingspan.heads.bottleneck import BottleneckHead
from wingspan.layers.schedules import Moment
from wingspan.model import States
from wingspan.objectives.classification import Classification
from wingspan.objectives.compression import Compression


def test_layer_sizes_of_a_768_wide_encoder():
    head = BottleneckHead(3 * 768, 3)
    assert [layer.in_features for layer in head.layers] == [2304, 2016]
    assert [layer.out_features for layer in head.layers] == [2016, 1728]
    assert head.mean.out_features == head.spread.out_features == head.size == head.classify.in_features == 1152
    assert head.prior_mean.shape == head.prior_spread.shape == (1152,)


def test_sizes_can_be_chosen():
    head = BottleneckHead(10, 3, hidden=(9, 8, 7), size=4)
    assert [layer.out_features for layer in head.layers] == [9, 8, 7]
    assert head.size == 4
    assert [layer.out_features for layer in BottleneckHead(24, 3, size=4).layers] == [19, 14]
    with pytest.raises(ValueError, match="head.hidden is empty"):
        BottleneckHead(10, 3, hidden=())
    with pytest.raises(ValueError, match="head.samples is 0"):
        BottleneckHead(10, 3, samples=0)


def test_with_all_weights_zero_the_spread_is_ln_two_and_the_mean_zero():
    head = BottleneckHead(6, 2, prior="standard")
    for parameter in head.parameters():
        torch.nn.init.zeros_(parameter)
    scored = head.eval()(torch.randn(1, 4, 6))
    assert torch.equal(scored.features, torch.zeros(1, 4, 3))
    one = 0.5 * (math.log(2) ** 2 - 1 - 2 * math.log(math.log(2)))  # by hand, from N(0, ln 2) to N(0, 1)
    torch.testing.assert_close(scored.divergence, torch.full((1, 4), 3 * one))


@pytest.mark.parametrize("prior", ["learned", "standard"])
def test_the_divergence_is_torchs(prior):
    torch.manual_seed(0)
    head = BottleneckHead(8, 2, prior=prior)
    spans = torch.randn(2, 5, 8)
    hidden = torch.relu(head.layers[1](torch.relu(head.layers[0](spans))))
    found = Normal(head.mean(hidden), F.softplus(head.spread(hidden)))
    other = Normal(*head.prior_of(spans.device))
    torch.testing.assert_close(head(spans).divergence, kl_divergence(found, other).sum(-1))
    if prior == "standard":
        assert not [name for name, _ in head.named_parameters() if "prior" in name]


def test_prediction_reads_the_mean_and_computes_no_more():
    head = BottleneckHead(8, 3).eval()
    spans = torch.randn(2, 5, 8)
    scored, again = head(spans), head.finish(head.entry(spans))
    torch.testing.assert_close(scored.scores, head.classify(scored.features))
    torch.testing.assert_close(scored.scores, again.scores)
    assert scored.samples is None
    with torch.inference_mode():
        quick = head(spans)
        quickest = head.finish(head.entry(spans))
    assert quick.divergence is None
    torch.testing.assert_close(quick.features, scored.features.detach())
    assert quickest.features is None  # mean and classifier are one layer
    torch.testing.assert_close(quickest.scores, scored.scores.detach())


def test_training_draws_around_the_mean():
    torch.manual_seed(0)
    head = BottleneckHead(8, 3, samples=2000).train()
    spans = torch.randn(1, 2, 8)
    scored = head(spans)
    assert scored.samples.shape == (2000, 1, 2, 3)
    hidden = torch.relu(head.layers[1](torch.relu(head.layers[0](spans))))
    spread = F.softplus(head.spread(hidden))
    expected = (head.classify.weight.square() @ spread.square().unsqueeze(-1)).squeeze(-1).sqrt()  # (1, 2, 3)
    torch.testing.assert_close(scored.samples.mean(0), scored.scores, atol=0.05, rtol=0)
    torch.testing.assert_close(scored.samples.std(0), expected, atol=0.05, rtol=0)


def states_of(head, sentences, link="sigmoid"):
    """A batch through a head, its gold, and a classifier."""
    inputs = word_inputs(sentences)
    grid = grid_of(inputs, 3)
    torch.manual_seed(1)
    spans = torch.randn(*grid.start.shape, 8, requires_grad=True)
    states = States(inputs, vectors(inputs), grid, **head(spans)._asdict())
    return states, gold_of(sentences, inputs), Classification(sizes(), link=link), spans


SENTENCES = [of_length(4, ("Drug", 0, 2), ("Gene", 2, 3)), of_length(3, ("Drug", 1, 2))]


@pytest.mark.parametrize("link", ["sigmoid", "softmax"])
def test_equal_samples_cost_what_one_costs(link):
    head = BottleneckHead(8, 3, samples=5).train()
    torch.nn.init.constant_(head.spread.bias, -80.0)  # no spread: all draws are the mean
    torch.nn.init.zeros_(head.spread.weight)
    states, gold, classify, _ = states_of(head, SENTENCES, link)
    one = classify(states._replace(samples=None), gold)
    torch.testing.assert_close(classify(states, gold), one)
    torch.testing.assert_close(classify(states._replace(samples=states.samples[:2]), gold), one)


def test_the_loss_is_the_mean_over_samples():
    head = BottleneckHead(8, 3, samples=3).train()
    states, gold, classify, _ = states_of(head, SENTENCES)
    single = [classify(states._replace(scores=draw, samples=None), gold) for draw in states.samples]
    torch.testing.assert_close(classify(states, gold), torch.stack(single).mean())


def learned(module, loss):
    """The names of parameters that a loss reaches."""
    module.zero_grad()
    loss.backward(retain_graph=True)
    return {
        name.split(".")[0] for name, p in module.named_parameters() if p.grad is not None and p.grad.abs().sum() > 0
    }


def test_gradients_reach_what_they_should_and_nothing_else():
    head = BottleneckHead(8, 3).train()
    states, gold, classify, spans = states_of(head, SENTENCES)
    inner = {"layers", "mean", "spread"}
    assert learned(head, classify(states, gold)) == {*inner, "classify"}
    charge = Compression(sizes(), beta=1.0)(states, gold)
    assert learned(head, charge) == {*inner, "prior_mean", "prior_spread"}
    outside = ~states.candidates.mask
    assert spans.grad[outside].abs().sum() == 0  # padding and impossible spans are never charged
    assert spans.grad[~outside].abs().sum() > 0


def test_the_charge_is_the_mean_over_candidates_times_beta():
    head = BottleneckHead(8, 3).train()
    states, gold, _, _ = states_of(head, SENTENCES)
    mean = states.divergence[states.candidates.mask].mean()
    torch.testing.assert_close(Compression(sizes(), beta=0.5, schedule="constant")(states, gold), 0.5 * mean)
    late = states._replace(moment=Moment(epoch=6, step=5, steps=100))
    torch.testing.assert_close(Compression(sizes(), beta=0.01)(late, gold), 0.07 * mean)  # the seventh epoch
    torch.testing.assert_close(Compression(sizes(), beta=0.4)(late, gold), mean)  # never more than 1
    torch.testing.assert_close(Compression(sizes(), beta=0.2, schedule="warmup")(late, gold), 0.1 * mean)


def test_within_words_all_spans_of_pieces_are_charged():
    """Nguyen et al. 2023's code averages over word-internal spans too: systems.md 1.B."""
    sentences = [of_length(2), of_length(1)]
    inputs = piece_inputs(sentences, [[2, 1], [2]])
    grid = Grid(ENCODER, 3)(inputs, vectors(inputs), gold_of(sentences, inputs))
    divergence = torch.rand(grid.start.shape)
    states = States(inputs, vectors(inputs), grid, divergence=divergence)
    enumerated = torch.tensor([[True] * 9, [True, True, False, True, False, False, False, False, False]])
    enumerated[0, [5, 7, 8]] = False  # beyond three pieces
    found = Compression(sizes(), beta=1.0, within_words=True)(states, None)
    torch.testing.assert_close(found, divergence[enumerated].mean())
    assert int(grid.mask.sum()) == 4 < int(enumerated.sum()) == 9


def test_a_head_that_does_not_compress_is_named():
    inputs = word_inputs(SENTENCES)
    with pytest.raises(ValueError, match="use heads.bottleneck.BottleneckHead"):
        Compression(sizes())(States(inputs, vectors(inputs), grid_of(inputs, 3)), None)
    with pytest.raises(ValueError, match="beta is 2"):
        Compression(sizes(), beta=2.0)


def test_the_divergence_is_in_float32_under_autocast():
    head = BottleneckHead(8, 3).train()
    spans = torch.randn(2, 5, 8)
    with torch.autocast("cpu", torch.bfloat16):
        low = head(spans)
    assert low.divergence.dtype == torch.float32
    torch.testing.assert_close(low.divergence, head(spans).divergence, rtol=0.05, atol=0.1)


def test_a_span_may_be_kept_to_one_label():
    """Nguyen et al. 2023's `ner_label_limit` of 1."""
    inputs = word_inputs([of_length(1)])
    scores = torch.tensor([[[9.0, 1.0, 2.0]]])
    states = States(inputs, vectors(inputs), grid_of(inputs, 1), scores=scores)
    both = Classification(sizes(), link="sigmoid").decode(states)
    assert sorted(both.label.tolist()) == [1, 2]
    assert Classification(sizes(), link="sigmoid", most_labels=1).decode(states).label.tolist() == [GENE]
    assert not len(Classification(sizes(), link="sigmoid", most_labels=1).decode(states._replace(scores=-scores)).label)
    with pytest.raises(ValueError, match="most_labels is 0"):
        Classification(sizes(), most_labels=0)
