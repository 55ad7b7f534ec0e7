"""Whether a difference may be chance: confidence intervals, p-values, Holm's correction, and the resampling behind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from wingspan.corpora.groups import too_coarse
from wingspan.evaluation.matching import Mode, fragments, match, pair
from wingspan.evaluation.scores import FIGURES, Counts, of, tally
from wingspan.text import Document, Entity

ROUNDING = 1e-9
"""Two figures closer than this are equal: the same counts may be summed in another order."""


class ConfidenceInterval(NamedTuple):
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
    """None if a system has several runs: exchanging answers does not cover seeds."""
    p_holm: float

    @property
    def p(self) -> float:
        """Approximate randomization where possible, else the bootstrap over runs and documents."""
        return self.p_bootstrap if self.p_randomization is None else self.p_randomization

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {**self._asdict(), "p": self.p}


def intervals(samples: FloatArray, observed: FloatArray, confidence: float = 0.95) -> list[ConfidenceInterval]:
    """The percentile interval of each column.  samples (N, K), observed (K,)"""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence:g}; it is a share between 0 and 1, for example 0.95")
    low, high = np.quantile(samples, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    return [ConfidenceInterval(*map(float, row)) for row in zip(observed, low, high, strict=True)]


def bootstrap_p(samples: FloatArray, observed: FloatArray) -> FloatArray:
    """How often resampling moves a difference by as much as its distance from zero, two-sided.  (N, K), (K,) -> (K,)

    See: Efron and Tibshirani 1993, algorithm 16.2; Berg-Kirkpatrick et al. 2012.
    """
    return randomization_p(samples - observed, observed)


def randomization_p(samples: FloatArray, observed: FloatArray) -> FloatArray:
    """How often exchanged answers differ by at least as much, two-sided.  (N, K), (K,) -> (K,)"""
    beyond = (np.abs(samples) >= np.abs(observed) - ROUNDING).sum(0)
    share: FloatArray = (1 + beyond) / (1 + len(samples))  # the observed difference is one of them
    return share


def system_intervals(
    table: CountTable, systems: Sequence[Sequence[int]], *, samples: int = 1000, seed: int = 1, confidence: float = 0.95
) -> tuple[list[list[tuple[ConfidenceInterval, ConfidenceInterval, ConfidenceInterval]]], FloatArray]:
    """Precision, recall and F1 with intervals for each system and row; and the F1s of the samples behind them.

    -> intervals; (samples, systems, rows)
    """
    if samples < 1:
        raise ValueError(f"{samples} samples; give at least 1, better 1000")
    drawn = bootstrap(table.counts, systems, samples, seed)  # (N, S, R, 3)
    runs = table.figures()
    found = []
    for at, system in enumerate(systems):
        observed = runs[list(system)].mean(0)
        precision, recall, f1 = (intervals(drawn[:, at, :, k], observed[:, k], confidence) for k in range(3))
        found.append(list(zip(precision, recall, f1, strict=True)))
    return found, drawn[..., F1]


def differences(
    table: CountTable,
    systems: tuple[Sequence[int], Sequence[int]],
    drawn: FloatArray,
    *,
    seed: int | Sequence[int] = 1,
    confidence: float = 0.95,
) -> Rows[Difference]:
    """The F1 of two systems in every row; `drawn` are their F1s on the same bootstrap samples.  (N, 2, rows)

    p-values of labels are corrected for each other; micro and macro are tested once each and stay as they are.
    """
    first, second = systems
    f1 = table.figures()[..., F1]
    observed = f1[list(second)].mean(0) - f1[list(first)].mean(0)  # (rows,)
    moved = drawn[:, 1] - drawn[:, 0]
    wins = (moved > ROUNDING).mean(0) + (np.abs(moved) <= ROUNDING).mean(0) / 2
    by_bootstrap = bootstrap_p(moved, observed)
    by_chance: list[float] | list[None] = [None] * len(observed)
    if len(first) == len(second) == 1:
        tossed = randomization(table.counts[:, first[0]], table.counts[:, second[0]], len(drawn), seed)
        by_chance = randomization_p(tossed[..., F1], observed).tolist()
    columns = zip(intervals(moved, observed, confidence), wins.tolist(), by_bootstrap.tolist(), by_chance, strict=True)
    rows = [Difference(*between, won, p, chance, 1.0) for between, won, p, chance in columns]
    adjusted = [row.p for row in rows[:2]] + holm([row.p for row in rows[2:]])
    return table.named([row._replace(p_holm=p) for row, p in zip(rows, adjusted, strict=True)])


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected for multiple tests (Holm 1979): labels of one corpus, or several corpora."""
    adjusted = [1.0] * len(p_values)
    highest = 0.0
    for rank, at in enumerate(sorted(range(len(p_values)), key=lambda at: p_values[at])):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[at]))
        adjusted[at] = highest
    return adjusted


def mcnemar(only_first: int, only_second: int) -> float:
    """McNemar's test, exact and two-sided: are mentions that only one system gets right split as by a coin toss?

    See: McNemar 1947. Sums logarithms of binomial coefficients, which do not overflow with many mentions.
    """
    tosses, fewer = only_first + only_second, min(only_first, only_second)
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, tosses + 1)))])  # of factorials
    k = np.arange(fewer + 1)
    tail = np.exp(logs[tosses] - logs[k] - logs[tosses - k] - tosses * np.log(2)).sum()
    return float(min(1.0, 2 * tail))


# Resampling: documents drawn again, runs drawn again, answers of two systems exchanged
#
# Each is a matrix product of draws with per-document counts, so a thousand resamples cost about as much as one pass
# over the corpus. Draws depend on the seed alone.


CELLS = 4_000_000  # of the matrix of draws held at once


def bootstrap(
    counts: npt.NDArray[np.float32], systems: Sequence[Sequence[int]], samples: int, seed: int
) -> npt.NDArray[np.float64]:
    """Figures of each system on corpora of the same size, drawn with replacement, the same for all systems.

    A system is the list of its runs, and its figure the mean over runs. Several runs are drawn too, with replacement:
    one fewer than there are, which makes the variance of the drawn means s²/n, unbiased, as with other seeds.
    (units, runs, 1 + labels, 3) -> (samples, systems, 2 + labels, 3)
    """
    units = len(counts)
    of_documents, of_runs = (np.random.default_rng(part) for part in np.random.SeedSequence(seed).spawn(2))
    shares = np.zeros((samples, len(systems), counts.shape[1]))  # the weight of each run
    for at, system in enumerate(systems):
        draws = max(len(system) - 1, 1)
        chosen = np.array(system)[of_runs.integers(0, len(system), (samples, draws))]
        np.add.at(shares[:, at], (np.arange(samples)[:, None], chosen), 1 / draws)
    results = []
    for part in parts(samples, units):
        size = part.stop - part.start
        drawn = of_documents.integers(0, units, (size, units)) + units * np.arange(size)[:, None]
        times = np.bincount(drawn.ravel(), minlength=size * units).reshape(size, units)
        each = figures(np.tensordot(times.astype(np.float32), counts, 1))  # (size, runs, rows, 3)
        results.append(np.einsum("nsr,nrlf->nslf", shares[part], each))
    return np.concatenate(results)


def randomization(
    first: npt.NDArray[np.float32], second: npt.NDArray[np.float32], samples: int, seed: int | Sequence[int]
) -> npt.NDArray[np.float64]:
    """Second minus first after a coin toss on each document decides whether they exchange their answers.

    If the two were equally good, such a corpus would look like the real one (Noreen 1989, Yeh 2000).
    (units, 1 + labels, 3) twice -> (samples, 2 + labels, 3)
    """
    rng = np.random.default_rng(seed)
    both = (first + second).sum(0, dtype=np.float64)  # (1 + labels, 3)
    gap = second - first
    gap = gap[gap.any((1, 2))]  # exchanging equal answers changes nothing
    results = []
    for part in parts(samples, len(gap)):
        tails = rng.random((part.stop - part.start, len(gap)), dtype=np.float32) < 0.5
        moved = np.tensordot(np.where(tails, np.float32(-1), np.float32(1)), gap, 1)  # (size, 1 + labels, 3)
        results.append(figures((both + moved) / 2) - figures((both - moved) / 2))
    return np.concatenate(results)


def parts(samples: int, units: int) -> Iterator[slice]:
    """Samples in portions that fit into memory."""
    step = max(CELLS // max(units, 1), 1)
    for start in range(0, samples, step):
        yield slice(start, min(start + step, samples))


# Counts of every document, run and label


FloatArray = npt.NDArray[np.floating[Any]]

F1 = FIGURES.index("f1")
T = TypeVar("T")


@dataclass(frozen=True)
class Rows(Generic[T]):
    """One value for all entities together, one for the mean over labels, one for each label."""

    micro: T
    macro: T
    labels: Mapping[str, T]

    def items(self) -> list[tuple[str, T]]:
        """Labels first, the averages below, as in tables."""
        return [*self.labels.items(), ("micro", self.micro), ("macro", self.macro)]

    def to_dict(self, plain: Callable[[T], Any]) -> dict[str, Any]:
        """As plain data, in the shape of `wingspan score`."""
        labels = {label: plain(value) for label, value in self.labels.items()}
        return {"micro": plain(self.micro), "macro": plain(self.macro), "labels": labels}


@dataclass(frozen=True)
class CountTable:
    """Counts of several runs on the same documents. Rows of one `group` are one unit, unless `coarse` says why not.

    `counts` is (units, runs, 1 + labels, 3): tp, found, gold; the first row is all labels together. Halves and whole
    numbers below eight million are exact in 32 bits, and so are their sums.
    """

    units: tuple[str, ...]
    labels: tuple[str, ...]
    counts: npt.NDArray[np.float32]
    coarse: str | None = None

    def named(self, values: Sequence[T]) -> Rows[T]:
        """Values in the order of the rows of `figures`, by name."""
        micro, macro, *labels = values
        return Rows(micro, macro, dict(zip(self.labels, labels, strict=True)))

    def figures(self) -> npt.NDArray[np.float64]:
        """Precision, recall and F1 of every run.  (runs, rows, 3)"""
        return figures(self.counts.sum(0, dtype=np.float64))


def tabulate(
    gold: Sequence[Document], runs: Sequence[Sequence[Document]], mode: Mode = "strict", *, allow_missing: bool = False
) -> CountTable:
    """Counts the runs against the gold as `recognition` does, unit by unit."""
    pairs = [pair(gold, run, allow_missing) for run in runs]
    names: dict[str | int, str] = {}  # of units
    unit_of = []
    coarse = too_coarse(gold)
    for number, document in enumerate(gold):
        group = None if coarse else document.group
        key = number if group is None else group
        names.setdefault(key, document.id if group is None else group)
        unit_of.append(key)
    rows = {key: row for row, key in enumerate(names)}
    documents = [document for side in (gold, *runs) for document in side]
    labels = sorted({entity.label for document in documents for entity in document.entities})
    place = {label: at for at, label in enumerate(labels, 1)}
    counts = np.zeros((len(names), len(runs), 1 + len(labels), 3), dtype=np.float32)
    for run, answered in enumerate(pairs):
        for key, (reference, prediction) in zip(unit_of, answered, strict=True):
            present = {entity.label for entity in (*reference.entities, *prediction.entities)}
            if not present:
                continue
            here = counts[rows[key], run]
            together = counted(reference.entities, prediction.entities, mode)
            here[0] += together
            for label in present:
                sides = of(label, reference.entities), of(label, prediction.entities)
                here[place[label]] += together if len(present) == 1 else counted(*sides, mode)
    return CountTable(
        tuple(names.values()), tuple(labels), counts, coarse and f"{coarse}, and intervals may be too narrow"
    )


def counted(gold: Iterable[Entity], found: Iterable[Entity], mode: Mode) -> tuple[float, float, float]:
    """True positives, found and gold entities of one document. Strict modes need no matching: sets suffice."""
    if mode == "fragments":
        gold, found = fragments(gold), fragments(found)
    if mode in ("strict", "fragments"):
        gold_set, found_set = set(gold), set(found)
        return len(gold_set & found_set), len(found_set), len(gold_set)
    counts = Counts(**tally(match(gold, found, mode)))
    return counts.tp, counts.found, counts.gold


def figures(sums: FloatArray) -> npt.NDArray[np.float64]:
    """Percentages from summed counts, macro as second row, without labels that occur on neither side.

    (..., 1 + labels, 3) -> (..., 2 + labels, 3)
    """
    tp, found, gold = np.moveaxis(sums.astype(np.float64), -1, 0)
    shares = ((tp, found), (tp, gold), (2 * tp, found + gold))  # 0.0 where the whole is 0
    each = np.stack(
        [100 * np.divide(part, whole, out=np.zeros_like(part), where=whole > 0) for part, whole in shares], -1
    )  # (..., 1 + labels, 3)
    occurs = ((found + gold)[..., 1:] > 0)[..., None]
    macro = (each[..., 1:, :] * occurs).sum(-2, keepdims=True) / np.maximum(occurs.sum(-2, keepdims=True), 1)
    return np.concatenate([each[..., :1, :], macro, each[..., 1:, :]], -2)
