"""Losses over unequal parts of a batch: the mean of the parts' losses is the loss of the whole."""

import pytest
import torch

from wingspan.layers import distributed


class Others:
    """Stands in for torch.distributed: what the other processes add to a sum."""

    def __init__(self, *added: float) -> None:
        self.added = added

    def is_available(self) -> bool:
        return True

    is_initialized = is_available

    def get_world_size(self) -> int:
        return len(self.added) + 1

    def all_reduce(self, value) -> None:
        value += sum(self.added)


def test_in_one_process_it_is_the_count():
    like = torch.zeros(2)
    assert distributed.share_of(torch.tensor(3), like).item() == 3
    assert distributed.share_of(torch.tensor(0), like).item() == 1
    assert distributed.share_of(5, like) == 5
    assert distributed.share_of(0, like) == 1
    assert distributed.floored(torch.tensor(0.2), 0.5).item() == 0.5


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_of_three_processes_each_has_a_third_of_all(monkeypatch, dtype):
    monkeypatch.setattr(distributed, "processes", Others(7.0, 0.0))
    share = distributed.share_of(torch.tensor(2), torch.zeros(4, dtype=dtype))
    assert share.item() == 3.0
    assert share.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    with distributed.idle(True):
        assert distributed.share_of(2, torch.zeros(1)) == torch.inf  # its sum is nothing
    counted = []
    monkeypatch.setattr(distributed.processes, "all_reduce", lambda value: counted.append(value.item()))
    with distributed.idle(True):
        distributed.share_of(2, torch.zeros(1))
    assert counted == [0.0]
    monkeypatch.setattr(distributed, "processes", Others(0.0, 0.0))
    assert distributed.share_of(0, torch.zeros(1)).item() == pytest.approx(1 / 3)  # at least 1 in all


def test_the_mean_of_all_decides_whether_a_floor_is_reached(monkeypatch):
    value = torch.tensor(0.4, requires_grad=True)
    monkeypatch.setattr(distributed, "processes", Others(0.8))
    assert distributed.floored(value, 0.5) is value  # 0.6 on the average
    monkeypatch.setattr(distributed, "processes", Others(0.5))
    below = distributed.floored(value, 0.5)
    assert below.item() == 0.5
    assert not below.requires_grad
