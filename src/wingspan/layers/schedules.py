"""Weights that change during training, each a function of the moment, so that resuming is exact."""

import math
from collections.abc import Callable
from typing import NamedTuple


class Moment(NamedTuple):
    """A point in training. Phases, epochs, steps and batches are counted from 0."""

    phase: int = 0
    epoch: int = 0  # of the whole run, all phases together
    step: int = 0  # optimizer steps of the whole run so far
    steps: int = 1  # optimizer steps of the whole run
    batch: int = 0  # batches of this epoch so far


def constant(moment: Moment) -> float:
    """The full weight from the start."""
    return 1.0


def linear(moment: Moment) -> float:
    """From zero at the first step to one after the last."""
    return min(1.0, moment.step / moment.steps)


def warmup(moment: Moment, share: float = 0.1) -> float:
    """From zero to one over a share of all steps, then one."""
    return min(1.0, moment.step / max(share * moment.steps, 1e-9))


def logistic(moment: Moment, steepness: float = 10.0) -> float:
    """From nearly zero to nearly one over all steps, one half in the middle."""
    return 1.0 / (1.0 + math.exp(-steepness * (2.0 * moment.step / moment.steps - 1.0)))


def cyclic(moment: Moment, cycles: int = 4) -> float:
    """Repeatedly from zero to one over half of a cycle, then one.  See: Fu et al. 2019, NAACL."""
    at = moment.step / moment.steps * cycles
    return min(1.0, 2.0 * (at - math.floor(at)))


def logistic_each_epoch(moment: Moment) -> float:
    """As in Nguyen et al. 2023's code: scaled for all steps, but indexed by the batch within the epoch."""
    return 1.0 / (1.0 + math.exp(min(700.0, 0.0025 * (moment.steps / 2 - moment.batch))))


SCHEDULES: dict[str, Callable[[Moment], float]] = {
    "constant": constant,
    "linear": linear,
    "warmup": warmup,
    "logistic": logistic,
    "cyclic": cyclic,
    "logistic-each-epoch": logistic_each_epoch,
}
