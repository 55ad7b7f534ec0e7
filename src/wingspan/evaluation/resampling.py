"""Figures of resampled corpora: documents drawn anew, runs drawn anew, answers of two systems exchanged.

Everything is a matrix product of draws with per-document counts, so that a thousand resamples cost about as much as
one look at the corpus. Draws depend on the seed alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from wingspan.evaluation.counting import Floats, figures

CELLS = 4_000_000  # of the matrix of draws that is held at once


def bootstrap(
    counts: npt.NDArray[np.float32], systems: Sequence[Sequence[int]], samples: int, seed: int
) -> npt.NDArray[np.float64]:
    """Figures of each system on corpora of as many documents, drawn with replacement, the same for all systems.

    A system is the list of its runs, and its figure the mean over runs. With several, runs are drawn too, with
    replacement: one fewer than there are, which makes the variance of the drawn means s²/n, unbiased, as it would be
    with other seeds.  (units, runs, 1 + labels, 3) -> (samples, systems, 2 + labels, 3)
    """
    units = len(counts)
    of_documents, of_runs = (np.random.default_rng(part) for part in np.random.SeedSequence(seed).spawn(2))
    shares = np.stack([drawn_runs(of_runs, system, counts.shape[1], samples) for system in systems], 1)
    results = []
    for chosen in parts(samples, units):
        size = chosen.stop - chosen.start
        draws = of_documents.integers(0, units, (size, units)) + units * np.arange(size)[:, None]
        times = np.bincount(draws.ravel(), minlength=size * units).reshape(size, units)
        each = figures(product(times.astype(np.float32), counts))  # (size, runs, rows, 3)
        results.append(np.einsum("nsr,nrlf->nslf", shares[chosen], each))
    return np.concatenate(results)


def drawn_runs(rng: np.random.Generator, system: Sequence[int], runs: int, samples: int) -> npt.NDArray[np.float64]:
    """How much each run counts in each sample.  (samples, runs)"""
    draws = max(len(system) - 1, 1)
    chosen = np.array(system)[rng.integers(0, len(system), (samples, draws))]
    shares = np.zeros((samples, runs))
    np.add.at(shares, (np.arange(samples)[:, None], chosen), 1 / draws)
    return shares


def randomization(
    first: npt.NDArray[np.float32], second: npt.NDArray[np.float32], samples: int, seed: int | Sequence[int]
) -> npt.NDArray[np.float64]:
    """Second minus first where both exchanged their answers on each document by the toss of a coin.

    Were the two equally good, nobody could tell such a corpus from the real one (Noreen 1989, Yeh 2000).
    (units, 1 + labels, 3) twice -> (samples, 2 + labels, 3)
    """
    rng = np.random.default_rng(seed)
    both = (first + second).sum(0, dtype=np.float64)  # (1 + labels, 3)
    gap = second - first
    gap = gap[gap.any((1, 2))]  # exchanging equal answers changes nothing
    results = []
    for chosen in parts(samples, len(gap)):
        size = chosen.stop - chosen.start
        tails = rng.random((size, len(gap)), dtype=np.float32) < 0.5
        moved = product(np.where(tails, np.float32(-1), np.float32(1)), gap)  # (size, 1 + labels, 3)
        results.append(figures((both + moved) / 2) - figures((both - moved) / 2))
    return np.concatenate(results)


def parts(samples: int, units: int) -> Iterator[slice]:
    """Samples in portions that fit into memory."""
    step = max(CELLS // max(units, 1), 1)
    for start in range(0, samples, step):
        yield slice(start, min(start + step, samples))


def product(draws: npt.NDArray[np.float32], counts: npt.NDArray[np.float32]) -> Floats:
    """Summed counts of each sample.  (samples, units) x (units, ...) -> (samples, ...)"""
    flat = counts.reshape(len(counts), int(np.prod(counts.shape[1:])))
    return (draws @ flat).reshape(len(draws), *counts.shape[1:])
