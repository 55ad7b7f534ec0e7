from functools import partial

import numpy as np
import pytest
import torch
from tiny import LABELS, of_length, sentence

from wingspan.batch import Collate, Found, Gold
from wingspan.candidates import Sampled
from wingspan.encoders.hashed import HashedEncoder
from wingspan.heads.bottleneck import BottleneckHead
from wingspan.heads.feedforward import FeedForwardHead
from wingspan.layers.lstm import BiLSTM
from wingspan.model import Packed, fetch, tensors
from wingspan.objectives.classification import Classification
from wingspan.recipe import Recipe, Term, assemble
from wingspan.spans.contextual import ProjectedSpans
from wingspan.spans.pooled import PooledSpans

SENTENCES = [of_length(5, ("Gene", 0, 2)), sentence("one"), sentence("Some other words"), of_length(9)]


def learner(hidden=(8,), **settings):
    torch.manual_seed(0)
    parts = {
        "spans": partial(PooledSpans, views=("first", "mean", "max"), sentence=True, width_size=2),
        "head": partial(FeedForwardHead, hidden=hidden, spread=0.5),
    }
    recipe = Recipe(
        name="small",
        paper="none",
        encoder=partial(HashedEncoder, buckets=50, embedding=4, hidden=6),
        terms={"spans": Term(partial(Classification))},
        max_width=4,
        overlap="flat",
        **{**parts, **settings},
    )
    return assemble(recipe, LABELS).eval()


def run(model, sentences, **asked):
    collate = Collate(model.encoder.tokenize, LABELS, {})
    with torch.no_grad():
        return model(tensors(collate.inputs(sentences), "cpu"), **asked)


@pytest.mark.parametrize("hidden", [(), (8,)])
def test_scores_are_the_same_with_and_without_span_vectors(hidden):
    model = learner(hidden).model
    fast, slow = run(model, SENTENCES), run(model, SENTENCES, vectors=True)
    assert fast.spans is None
    assert slow.spans.shape[-1] == model.scorer.spans.size
    assert slow.features.shape[-1] == model.scorer.head.size
    mask = fast.candidates.mask
    torch.testing.assert_close(fast.scores[mask], slow.scores[mask], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("spans", [PooledSpans, partial(ProjectedSpans, around=PooledSpans)])
@pytest.mark.parametrize("head", [FeedForwardHead, BottleneckHead])
def test_spans_that_do_not_count_are_not_scored_in_prediction_and_nothing_else_changes(spans, head):
    model = learner(
        spans=partial(spans), head=partial(head, **({"hidden": (8,)} if head is FeedForwardHead else {}))
    ).model
    seen = []
    finish = model.scorer.head.finish
    model.scorer.head.finish = lambda entered: seen.append(entered.shape) or finish(entered)
    found = run(model, SENTENCES)
    mask = found.candidates.mask
    every = run(model, SENTENCES, vectors=True)
    torch.testing.assert_close(found.scores[mask], every.scores[mask])
    assert not found.scores[~mask].any()
    assert (found.divergence is None) == (every.divergence is None)
    assert seen[0][0] == mask.sum() < mask.numel()


def test_without_spans_only_words_are_computed():
    model = learner().model
    states = run(model, SENTENCES, spans=False)
    assert states.scores is None
    assert states.candidates is None
    torch.testing.assert_close(states.words.top, run(model, SENTENCES).words.top)


def test_batch_composition_and_order_change_nothing():
    model = learner().model
    together = run(model, SENTENCES)
    turned = run(model, SENTENCES[::-1])
    for row, one in enumerate(SENTENCES):
        alone = run(model, [one])
        expected = alone.scores[0][alone.candidates.mask[0]]
        for states, at in ((together, row), (turned, len(SENTENCES) - 1 - row)):
            found = states.scores[at][states.candidates.mask[at]]
            torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_in_training_a_sampler_sees_the_gold_and_in_prediction_the_grid():
    model = learner(candidates=partial(Sampled, negatives=3)).model
    collate = Collate(model.encoder.tokenize, LABELS, {})
    batch = tensors(collate(SENTENCES), "cpu")
    assert model(batch.inputs, batch.gold).candidates.width is None
    assert model(batch.inputs).candidates.width == 4


def test_arrays_become_tensors_wherever_they_are():
    found = Found(*(np.arange(2) for _ in range(6)))
    moved = tensors({"a": found, "b": None, "c": "text"}, "cpu")
    assert isinstance(moved["a"], Found)
    assert all(isinstance(part, torch.Tensor) for part in moved["a"][:6])
    assert moved["b"] is None
    assert moved["c"] == "text"


def test_a_bidirectional_lstm_is_the_packed_one():
    torch.manual_seed(0)
    ours = BiLSTM(3, 4)
    lengths = torch.tensor([5, 2, 1])
    vectors = torch.randn(3, 5, 3)
    theirs = torch.nn.LSTM(3, 4, batch_first=True, bidirectional=True)
    for name, weight in ours.forwards.named_parameters():
        getattr(theirs, name).data.copy_(weight.data)
    for name, weight in ours.backwards.named_parameters():
        getattr(theirs, f"{name}_reverse").data.copy_(weight.data)
    packed = torch.nn.utils.rnn.pack_padded_sequence(vectors, lengths, batch_first=True)
    expected, _ = torch.nn.utils.rnn.pad_packed_sequence(theirs(packed)[0], batch_first=True)
    found = ours(vectors, lengths)
    for row, length in enumerate(lengths.tolist()):
        torch.testing.assert_close(found[row, :length], expected[row, :length], rtol=1e-5, atol=1e-6)


def test_a_packed_batch_is_the_batch():
    """Arrays of all kinds, some empty, some not contiguous, one of them twice, in named tuples and mappings."""
    numbers = np.arange(12).reshape(3, 4)
    batch = {
        "gold": Gold(numbers, numbers[:, ::2], np.zeros((0, 3)), np.arange(5) > 2),
        "others": {"small": np.float32([0.5, 1.5, 2.5]), "one": np.array(7, dtype=np.int16), "again": numbers},
        "nothing": None,
        "words": ("a", "b"),
    }
    found, expected = tensors(Packed(batch), "cpu"), tensors(batch, "cpu")
    assert isinstance(found["gold"], Gold)
    assert (found["nothing"], found["words"]) == (None, ("a", "b"))
    pairs = [*zip(found["gold"], expected["gold"], strict=True)]
    pairs += [(found["others"][name], value) for name, value in expected["others"].items()]
    for one, other in pairs:
        assert one.dtype == other.dtype
        assert torch.equal(one, other)


def test_a_packed_batch_without_arrays():
    assert tensors(Packed({"targets": {}}), "cpu") == {"targets": {}}


def test_tensors_become_arrays_again():
    found = Found(*(torch.arange(2) for _ in range(5)), total=torch.tensor(2))
    back = fetch({"a": found, "b": None, "c": np.arange(3)})()
    assert isinstance(back["a"], Found)
    assert back["a"].start.tolist() == [0, 1]
    assert isinstance(back["a"].total, np.ndarray)
    assert back["a"].calibrated is None
    assert back["b"] is None
    assert back["c"].tolist() == [0, 1, 2]
