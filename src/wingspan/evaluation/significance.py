"""How sure a figure is, and whether a difference may be chance: intervals, p-values, Holm's correction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from wingspan.evaluation.counting import AVERAGES, FIGURES, CountTable, Floats, Rows
from wingspan.evaluation.resampling import bootstrap, randomization

ROUNDING = 1e-9
"""Two figures closer than this are equal; the same counts may be summed in another order."""


class Interval(NamedTuple):
    """A figure and the percentile interval around it."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """As tables print it."""
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


class Difference(NamedTuple):
    """Second system minus first, in points. `p` is two-sided; `p_holm` is corrected for the other rows or pairs."""

    value: float
    low: float
    high: float
    wins: float
    """The share of bootstrap samples in which the second is ahead; a tie is half a win."""
    p_bootstrap: float
    p_randomization: float | None
    """None where a system has several runs: exchanging answers knows nothing of seeds."""
    p_holm: float

    @property
    def p(self) -> float:
        """Approximate randomization where it can be asked, else the bootstrap over runs and documents."""
        return self.p_bootstrap if self.p_randomization is None else self.p_randomization

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {**self._asdict(), "p": self.p}


def intervals(samples: Floats, observed: Floats, confidence: float = 0.95) -> list[Interval]:
    """The percentile interval of each column.  samples (N, K), observed (K,)"""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence:g}; it is a share between 0 and 1, for example 0.95")
    low, high = np.quantile(samples, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    return [Interval(*map(float, row)) for row in zip(observed, low, high, strict=True)]


def bootstrap_p(samples: Floats, observed: Floats) -> Floats:
    """How often chance moves a difference by as much as it is away from zero, two-sided.  (N, K), (K,) -> (K,)

    See: Efron and Tibshirani 1993, algorithm 16.2; Berg-Kirkpatrick et al. 2012.
    """
    return as_extreme(np.abs(samples - observed), observed)


def randomization_p(samples: Floats, observed: Floats) -> Floats:
    """How often exchanged answers differ by at least as much, two-sided.  (N, K), (K,) -> (K,)"""
    return as_extreme(np.abs(samples), observed)


def as_extreme(distances: Floats, observed: Floats) -> Floats:
    """The share of samples as far off as what was observed, which counts as one of them."""
    beyond = (distances >= np.abs(observed) - ROUNDING).sum(0)
    share: Floats = (1 + beyond) / (1 + len(distances))
    return share


def system_intervals(
    table: CountTable,
    systems: Sequence[Sequence[int]],
    *,
    samples: int = 1000,
    seed: int = 1,
    confidence: float = 0.95,
) -> tuple[list[list[tuple[Interval, Interval, Interval]]], Floats]:
    """For each system and row precision, recall and F1 with intervals; and the F1s of the samples behind them.

    -> intervals; (samples, systems, rows)
    """
    if samples < 1:
        raise ValueError(f"{samples} samples; give at least 1, better 1000")
    drawn = bootstrap(table.counts, systems, samples, seed)  # (N, S, R, 3)
    runs = table.figures()
    found = []
    for at, system in enumerate(systems):
        observed = runs[list(system)].mean(0)
        precision, recall, f1 = (intervals(drawn[:, at, :, k], observed[:, k], confidence) for k in range(len(FIGURES)))
        found.append(list(zip(precision, recall, f1, strict=True)))
    return found, drawn[..., FIGURES.index("f1")]


def differences(
    table: CountTable,
    systems: tuple[Sequence[int], Sequence[int]],
    drawn: Floats,
    *,
    seed: int | Sequence[int] = 1,
    confidence: float = 0.95,
) -> Rows[Difference]:
    """The F1 of two systems in every row; `drawn` are their F1s on the same bootstrap samples.  (N, 2, rows)

    p-values of labels are corrected for each other; micro and macro are asked once each and stay as they are.
    """
    first, second = systems
    f1 = table.figures()[..., FIGURES.index("f1")]
    observed = f1[list(second)].mean(0) - f1[list(first)].mean(0)  # (rows,)
    moved = drawn[:, 1] - drawn[:, 0]
    wins = (moved > ROUNDING).mean(0) + (np.abs(moved) <= ROUNDING).mean(0) / 2
    by_bootstrap = bootstrap_p(moved, observed)
    by_chance: list[float] | list[None] = [None] * len(observed)
    if len(first) == len(second) == 1:
        tossed = randomization(table.counts[:, first[0]], table.counts[:, second[0]], len(drawn), seed)
        by_chance = randomization_p(tossed[..., FIGURES.index("f1")], observed).tolist()
    ranges = intervals(moved, observed, confidence)
    figures = zip(ranges, wins.tolist(), by_bootstrap.tolist(), by_chance, strict=True)
    rows = [Difference(*between, won, p, chance, 1.0) for between, won, p, chance in figures]
    adjusted = holm([row.p for row in rows[len(AVERAGES) :]])
    corrections = [*(row.p for row in rows[: len(AVERAGES)]), *adjusted]
    return table.named([row._replace(p_holm=p) for row, p in zip(rows, corrections, strict=True)])


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected for having asked several questions (Holm 1979): labels of one corpus, or several corpora."""
    adjusted = [1.0] * len(p_values)
    highest = 0.0
    for rank, at in enumerate(sorted(range(len(p_values)), key=lambda at: p_values[at])):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[at]))
        adjusted[at] = highest
    return adjusted


def mcnemar(only_first: int, only_second: int) -> float:
    """McNemar's test, exact and two-sided: are the mentions only one system gets right shared out as by a coin?

    See: McNemar 1947. Sums logarithms of binomial coefficients, so that many mentions are no trouble.
    """
    tosses, fewer = only_first + only_second, min(only_first, only_second)
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, tosses + 1)))])  # of factorials
    k = np.arange(fewer + 1)
    tail = np.exp(logs[tosses] - logs[k] - logs[tosses - k] - tosses * np.log(2)).sum()
    return float(min(1.0, 2 * tail))
