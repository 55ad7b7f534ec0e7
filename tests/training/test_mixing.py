"""Which sentences of which corpora make an epoch."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import chain

import pytest

from wingspan.batch import batches
from wingspan.recipe import TrainSettings
from wingspan.training.loop import kept
from wingspan.training.multi_corpus import apportion, draw, epoch_batches

CORPORA = ["big"] * 80 + ["small"] * 15 + ["tiny"] * 5
LENGTHS = [3 + (7 * n) % 11 for n in range(100)]
SETTINGS = TrainSettings(batch_size=10)


def epoch(number: int = 0, weights=None, seed: int = 1, **settings) -> list[list[int]]:
    return epoch_batches(LENGTHS, CORPORA, replace(SETTINGS, **settings), weights or {}, (seed, 0), number)


def counts(found: list[list[int]]) -> dict[str, int]:
    return dict(Counter(CORPORA[index] for index in chain(*found)))


def test_in_proportion_every_sentence_comes_once_as_with_one_corpus():
    plain = batches(LENGTHS, 10, budget=SETTINGS.budget, seed=(1, 0, 3))
    assert epoch(3) == plain
    assert epoch(3, weights={"big": 2.0, "small": 2.0, "tiny": 2.0}) == plain
    assert sorted(chain(*epoch(3, batches="single"))) == list(range(100))
    assert sorted(chain(*epoch(3, batches="turns"))) == list(range(100))


@pytest.mark.parametrize(
    ("settings", "weights", "wanted"),
    [
        ({"sampling": "uniform"}, {}, {"big": 34, "small": 33, "tiny": 33}),
        ({"sampling": "uniform"}, {"tiny": 2.0}, {"big": 25, "small": 25, "tiny": 50}),
        # square roots of 80, 15 and 5 are 8.94, 3.87 and 2.24
        ({"sampling": "temperature", "temperature": 2.0}, {}, {"big": 59, "small": 26, "tiny": 15}),
        ({"sampling": "proportion"}, {"small": 4.0}, {"big": 55, "small": 41, "tiny": 4}),
        ({"sampling": "each"}, {}, {"big": 40, "small": 30, "tiny": 30}),
    ],
)
@pytest.mark.parametrize("kind", ["mixed", "single", "turns"])
def test_an_epoch_holds_as_many_of_each_corpus_as_asked(settings, weights, wanted, kind):
    assert counts(epoch(batches=kind, weights=weights, **settings)) == wanted


def test_epochs_go_on_where_the_last_one_stopped():
    """Drawn 33 times an epoch, the five tiny sentences come 6 or 7 times each; in five epochs 33 times each."""
    tiny = [Counter(i for i in chain(*epoch(n, sampling="uniform")) if CORPORA[i] == "tiny") for n in range(5)]
    assert set(tiny[0].values()) == {6, 7}
    assert set(sum(tiny, Counter()).values()) == {33}
    big = Counter(i for n in range(2) for i in chain(*epoch(n, sampling="uniform")) if CORPORA[i] == "big")
    assert set(big.values()) == {1}  # 68 of 80, none twice


def test_a_single_corpus_fills_a_batch():
    for kind in ("single", "turns"):
        found = epoch(sampling="uniform", batches=kind)
        assert all(len({CORPORA[index] for index in batch}) == 1 for batch in found)
        assert len(found) == 12  # 4 + 4 + 4


def test_in_turns_steps_of_three_batches_see_three_corpora():
    found = [CORPORA[batch[0]] for batch in epoch(sampling="uniform", batches="turns")]
    assert all(set(found[at : at + 3]) == {"big", "small", "tiny"} for at in range(0, 12, 3))


def test_each_batch_has_as_many_of_each():
    found = epoch(sampling="each")
    assert [counts([batch]) for batch in found] == [{"big": 4, "small": 3, "tiny": 3}] * 10
    turns = epoch(sampling="each", batches="turns")
    assert [(CORPORA[batch[0]], len(batch)) for batch in turns[:3]] == [("big", 4), ("small", 3), ("tiny", 3)]
    with pytest.raises(ValueError, match="train.batch_size is 2, and train.sampling=each draws from 3 corpora"):
        epoch(sampling="each", batch_size=2)


@pytest.mark.parametrize("settings", [{"sampling": "uniform"}, {"batches": "single"}, {"sampling": "each"}])
def test_seed_phase_and_epoch_decide_everything(settings):
    assert epoch(2, **settings) == epoch(2, **settings)
    assert epoch(2, **settings) != epoch(3, **settings)
    assert epoch(2, **settings) != epoch(2, seed=2, **settings)


def test_budget_holds():
    for kind in ("mixed", "single", "turns"):
        for sampling in ("uniform", "each"):
            for batch in epoch(sampling=sampling, batches=kind, budget=30):
                assert len(batch) * max(LENGTHS[index] for index in batch) <= 30


def test_apportion_and_draw():
    assert apportion(10, {"a": 1, "b": 1, "c": 1}) == {"a": 4, "b": 3, "c": 3}
    assert apportion(10, {"a": 98, "b": 1, "c": 1}) == {"a": 8, "b": 1, "c": 1}
    assert apportion(100, {"a": 0.5, "b": 0.5}) == {"a": 50, "b": 50}
    row = draw([5, 6, 7], 0, 9, (1, 0))
    assert all(sorted(row[at : at + 3]) == [5, 6, 7] for at in (0, 3, 6))
    assert draw([5, 6, 7], 2, 4, (1, 0)) == row[2:6]


def test_whole_batches_leave_out_the_rest_of_each_corpus():
    whole = replace(SETTINGS, whole_batches=True)
    found = kept(epoch(batches="single"), whole)
    assert {len(batch) for batch in found} == {10}
    assert counts(found) == {"big": 80, "small": 10}  # five of the small ones and all tiny ones fill no batch
    assert kept(epoch(batches="single"), SETTINGS) == epoch(batches="single")
    with pytest.raises(ValueError, match="no batch of 200 sentences can be filled"):
        kept(epoch(), replace(whole, batch_size=200))
