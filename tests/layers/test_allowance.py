"""The size that a model may have, and weights that are not drawn because others take their places."""

import pytest
import torch
from torch import nn

from wingspan.layers.allowance import FREE_NUMBERS, WeightCount, allowance

FEW = WeightCount(1, 1)


def test_a_model_far_larger_than_its_weights_is_not_built():
    with pytest.raises(ValueError, match="far larger than its weights"), allowance(FEW):
        torch.empty(FREE_NUMBERS + 9)
    with allowance(WeightCount(1, FREE_NUMBERS)):
        torch.empty(FREE_NUMBERS + 9)


def test_nothing_is_drawn_where_weights_follow():
    state = torch.get_rng_state()
    with allowance(FEW, draws=False):
        layer = nn.Linear(3, 4)
        table = nn.Embedding(5, 2)
        assert not layer.weight.any()
        assert not table.weight.any()
        assert torch.equal(torch.get_rng_state(), state)
        with allowance(FEW):  # a base model that is opened meanwhile
            assert nn.Linear(3, 4).weight.any()
        assert not nn.Linear(3, 4).weight.any()
    assert nn.Linear(3, 4).weight.any()


def test_what_no_file_brings_back_is_drawn():
    generator = torch.Generator().manual_seed(1)
    with allowance(FEW, draws=False):
        assert torch.empty(5).normal_(generator=generator).all()


def test_an_error_in_a_base_model_changes_nothing_around_it():
    with allowance(FEW, draws=False):
        with pytest.raises(KeyError), allowance(FEW):
            raise KeyError
        assert not nn.Linear(3, 4).weight.any()
