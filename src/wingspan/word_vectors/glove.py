"""GloVe: word vectors whose products say how often words stand together. See: Pennington, Socher and Manning 2014.

The weighted least squares of equation 8, by AdaGrad. A step is a block of the matrix, some rows by some columns: its
pairs all at once, as sparse products. Words are spread over blocks at random, so that each block looks like the whole.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wingspan.word_vectors.cooccurrence import Counts, Layout


@dataclass(frozen=True)
class GloveSettings:
    """The paper's: `x_max` and `alpha` of equation 9; pairs above `x_max` all weigh 1."""

    size: int = 100
    epochs: int = 25
    learning_rate: float = 0.05
    x_max: float = 10.0
    alpha: float = 0.75
    seed: int = 1


class Glove:
    """Two vectors and two biases for each word: as a row, and as a column. N words of size D.

    A row is [vector, bias, 1] and a column [vector, 1, bias], so that one product has both biases in it.
    """

    def __init__(self, counts: Counts, layout: Layout, settings: GloveSettings) -> None:
        self.counts, self.layout, self.settings = counts, layout, settings
        generator = torch.Generator().manual_seed(settings.seed)
        shape = (layout.num_words, settings.size + 2)
        self.rows, self.columns = ((torch.rand(shape, generator=generator) - 0.5) / settings.size for _ in range(2))
        self.rows[:, -1] = self.columns[:, -2] = 1.0
        self.row_squares, self.column_squares = torch.ones(shape), torch.ones(shape)  # what AdaGrad has summed up
        self.draw = np.random.default_rng(settings.seed)
        edges = [layout.block(number)[0] for number in range(layout.blocks**2 + 1)]
        self.edges = np.searchsorted(counts.keys, edges)

    def epoch(self) -> Iterator[float]:
        """Goes through all blocks in a random order; yields the summed loss of each, before its step."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sparse CSR tensor support", UserWarning)
            for number in self.draw.permutation(self.layout.blocks**2).tolist():
                yield self.step(number)

    def step(self, number: int) -> float:
        """One step of AdaGrad on the pairs of a block."""
        first, past = self.edges[number : number + 2]
        if first == past:
            return 0.0
        width = self.layout.width
        keys = torch.from_numpy(self.counts.keys[first:past] - self.layout.block(number)[0])
        seen = torch.from_numpy(self.counts.sums[first:past].astype(np.float32))
        row, column = divmod(number, self.layout.blocks)
        mine = slice(row * width, (row + 1) * width), slice(column * width, (column + 1) * width)
        rows, columns = self.rows[mine[0]], self.columns[mine[1]]
        per_row = torch.bincount(keys // width, minlength=len(rows))
        starts = torch.cat([per_row.new_zeros(1), per_row.cumsum(0)])
        pattern = sparse(starts, keys % width, -seen.log(), (len(rows), len(columns)))
        error = torch.sparse.sampled_addmm(pattern, rows, columns.T.contiguous()).values()  # of pairs that were seen
        weight = (seen / self.settings.x_max).pow(self.settings.alpha).clamp(max=1.0)
        loss = float((weight * error.square()).sum())
        slope = sparse(starts, keys % width, weight * error, pattern.shape)
        row_slope, column_slope = slope @ columns, slope.t() @ rows
        row_slope[:, -1] = column_slope[:, -2] = 0.0  # these are ones, and stay it
        descend(rows, self.row_squares[mine[0]], row_slope, self.settings.learning_rate)
        descend(columns, self.column_squares[mine[1]], column_slope, self.settings.learning_rate)
        return loss

    def vectors(self) -> NDArray[np.float32]:
        """Both vectors of each word summed, as in section 4.2.  (N, D)"""
        both: NDArray[np.float32] = (self.rows + self.columns)[:, : self.settings.size].numpy()
        return both


def sparse(starts: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A sparse matrix, row by row."""
    return torch.sparse_csr_tensor(starts, columns, values, shape, check_invariants=False)


def descend(values: Tensor, squares: Tensor, slope: Tensor, rate: float) -> None:
    """AdaGrad, in place."""
    squares.addcmul_(slope, slope)
    values.addcdiv_(slope, squares.sqrt(), value=-rate)
