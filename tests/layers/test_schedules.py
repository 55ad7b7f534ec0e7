import math

import pytest

from wingspan.layers.schedules import SCHEDULES, Moment, cyclic, linear, logistic, logistic_each_epoch, warmup


def test_the_logistic_weight_is_one_half_in_the_middle():
    assert logistic(Moment(step=500, steps=1000)) == 0.5
    assert logistic(Moment(step=0, steps=1000)) == pytest.approx(1 / (1 + math.exp(10)))
    assert logistic(Moment(step=750, steps=1000)) == pytest.approx(1 / (1 + math.exp(-5)))


def test_linear_and_warmup_rise_to_one():
    assert [linear(Moment(step=step, steps=4)) for step in range(5)] == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert [warmup(Moment(step=step, steps=40)) for step in (0, 1, 2, 4, 40)] == [0.0, 0.25, 0.5, 1.0, 1.0]


def test_a_cycle_rises_over_its_first_half_and_starts_again():
    found = [cyclic(Moment(step=step, steps=32)) for step in range(9)]  # four cycles of eight steps
    assert found == [0.0, 0.25, 0.5, 0.75, 1.0, 1.0, 1.0, 1.0, 0.0]


def test_the_published_table_is_looked_up_by_the_batch_of_the_epoch():
    """Nguyen et al. 2023's code restarts its step every epoch, so that the weight stays tiny: systems.md 1.F1."""
    steps = 20 * 339  # NCBI, batches of 16, 20 epochs
    weights = [logistic_each_epoch(Moment(epoch=19, step=6000, steps=steps, batch=batch)) for batch in (0, 338)]
    assert weights[0] == pytest.approx(0.0002, abs=5e-5)
    assert weights[1] == pytest.approx(0.0005, abs=5e-5)
    assert logistic_each_epoch(Moment(steps=10**7)) == pytest.approx(0.0)  # nothing overflows


@pytest.mark.parametrize("name", SCHEDULES)
def test_weights_are_between_zero_and_one(name):
    weights = [SCHEDULES[name](Moment(step=step, steps=100, batch=step % 10)) for step in range(101)]
    assert all(0.0 <= weight <= 1.0 for weight in weights)
