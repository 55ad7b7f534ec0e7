"""GloVe: word vectors whose products say how often words stand together. See: Pennington, Socher and Manning 2014.

The weighted least squares of equation 8, by AdaGrad. A step is a block of the matrix, some rows by some columns: its
pairs all at once, as sparse products. Words are spread over blocks at random, so that each block looks like the whole.
"""

from __future__ import annotations

import re
import warnings
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from math import isqrt
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wingspan.corpora.formats import read
from wingspan.corpora.words import SPLITTERS
from wingspan.files import read_lines


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


# --- Which words stand near each other, and how often: counted in bounded memory, whatever the length of the text.
#
# Pairs are numbers, counted chunk by chunk as sorted arrays. What does not fit into memory waits on disk until all
# sorted arrays are merged, range by range.


PAIRS_OF_BLOCK = 75_000
NARROWEST = 1024

Keys = NDArray[np.int64]
Sums = NDArray[np.float64]


class Layout(NamedTuple):
    """How a pair of words becomes a number: pairs of one block, `width` words by `width` words, follow each other."""

    num_words: int
    width: int

    @classmethod
    def of(cls, num_words: int, num_pairs: int) -> Layout:
        """Blocks of many pairs each, for so many pairs at the most, but 10 times 10 of them where words allow.

        A step on a block costs as much as its pairs, and as much as its words; none should cost alone.
        """
        side = min(max(10, isqrt(num_pairs // PAIRS_OF_BLOCK)), max(10, num_words // NARROWEST))
        return cls(num_words, -(-num_words // side))

    @property
    def blocks(self) -> int:
        """How many blocks lie side by side."""
        return -(-self.num_words // self.width)

    def keys(self, rows: NDArray[Any], columns: NDArray[Any]) -> Keys:
        """The numbers of pairs."""
        block = (rows // self.width).astype(np.int64) * self.blocks + columns // self.width
        keys: Keys = block * self.width**2 + (rows % self.width) * self.width + columns % self.width
        return keys

    def block(self, number: int) -> tuple[int, int]:
        """The keys of a block, from and to."""
        return number * self.width**2, (number + 1) * self.width**2


class Counts(NamedTuple):
    """How often pairs stand together, sorted by their numbers."""

    keys: Keys  # (N,)
    sums: Sums  # (N,)


def pairs_within(
    words: NDArray[np.int32], texts: NDArray[np.int64], window: int, layout: Layout, start: int = 0
) -> Counts:
    """The pairs of running words in both orders; a pair at distance d counts 1/d. None reaches into another text.

    Only pairs whose second word stands at `start` or later are counted. See: Pennington et al. 2014, section 4.2.
    """
    keys, sums = [], []
    for distance in range(1, window + 1):
        second = max(start, distance)
        same = texts[second:] == texts[second - distance : len(texts) - distance]
        left, right = words[second - distance : len(words) - distance][same], words[second:][same]
        keys += [layout.keys(left, right), layout.keys(right, left)]
        sums.append(np.full(2 * len(left), 1 / distance))
    return summed(np.concatenate(keys), np.concatenate(sums))


def summed(keys: Keys, sums: Sums) -> Counts:
    """Sorted, each key once."""
    if not len(keys):
        return Counts(keys, sums)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    return Counts(keys[first], np.add.reduceat(sums[order], first))


class PairCounter:
    """Collects pairs. At most about `most` of them are in memory."""

    def __init__(self, layout: Layout, window: int, folder: Path, most: int) -> None:
        self.layout, self.window, self.folder = layout, window, folder
        self.most = max(most, 1000)
        self.held: list[Counts] = []
        self.runs: list[Counts] = []
        self.words, self.texts = np.empty(0, np.int32), np.empty(0, np.int64)  # the last ones of those before

    def add(self, words: NDArray[np.int32], texts: NDArray[np.int64]) -> None:
        """Counts the next running words; `texts` says which text each is from."""
        step = max(1, self.most // (2 * self.window))
        for start in range(0, len(words), step):
            before = len(self.words)
            self.words = np.concatenate([self.words, words[start : start + step]])
            self.texts = np.concatenate([self.texts, texts[start : start + step]])
            self.held.append(pairs_within(self.words, self.texts, self.window, self.layout, before))
            self.words, self.texts = self.words[-self.window :], self.texts[-self.window :]
            if sum(len(one.keys) for one in self.held) > self.most:
                self._make_room()

    def _make_room(self) -> None:
        merged = merged_in_memory(self.held)
        self.held = [merged]
        if len(merged.keys) > self.most // 2:
            self.runs.append(written([merged], self.folder / f"run{len(self.runs)}"))
            self.held = []

    def counts(self) -> Counts:
        """All pairs: in memory where nothing had to be stored, else in a file that is mapped."""
        last = merged_in_memory(self.held)
        return merged_on_disk([*self.runs, last], self.folder / "all", self.most) if self.runs else last


def merged_in_memory(some: Sequence[Counts]) -> Counts:
    """Several sorted counts as one."""
    if len(some) == 1:
        return some[0]
    keys = [np.empty(0, np.int64), *(one.keys for one in some)]
    return summed(np.concatenate(keys), np.concatenate([np.empty(0), *(one.sums for one in some)]))


def merged_on_disk(runs: Sequence[Counts], path: Path, most: int) -> Counts:
    """Several sorted counts as one in a file: range by range of keys, so that no more than about `most` are held."""
    every = max(1, most // (4 * len(runs)))
    sample = np.unique(np.concatenate([run.keys[::every] for run in runs]))
    borders = sample[2 * len(runs) :: 2 * len(runs)]  # between two of them no run has many keys
    places = [np.concatenate([[0], np.searchsorted(run.keys, borders), [len(run.keys)]]) for run in runs]

    def part(number: int) -> Counts:
        slices = [slice(place[number], place[number + 1]) for place in places]
        return merged_in_memory([Counts(run.keys[at], run.sums[at]) for run, at in zip(runs, slices, strict=True)])

    return written(map(part, range(len(borders) + 1)), path)


def written(parts: Iterable[Counts], path: Path) -> Counts:
    """Parts that follow each other, in files that are mapped."""
    keys, sums = path.with_suffix(".keys"), path.with_suffix(".sums")
    with keys.open("wb") as key_file, sums.open("wb") as sum_file:
        for part in parts:
            part.keys.tofile(key_file)
            part.sums.tofile(sum_file)
    return Counts(np.memmap(keys, np.int64, "r"), np.memmap(sums, np.float64, "r"))


# --- Running words as numbers in a file: a text is read and split once, however often it is gone through.


END = -1
AT_ONCE = 1 << 20


class NumberedText:
    """Takes texts one by one, as a context manager; then has their words, counted and as numbers."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = path.open("wb")
        self.numbers: dict[str, int] = {}
        self.num_texts = self.num_words = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.file.close()

    def add(self, words: Sequence[str]) -> None:
        """The next text."""
        numbers = self.numbers
        array("i", [*(numbers.setdefault(word, len(numbers)) for word in words), END]).tofile(self.file)
        self.num_texts += 1
        self.num_words += len(words)

    def counts(self) -> NDArray[np.int64]:
        """How often each word stands in the texts, by its number."""
        total = np.zeros(len(self.numbers), np.int64)
        for some in self._parts():
            total += np.bincount(some[some != END], minlength=len(total))
        return total

    def words(self, min_count: int) -> list[str]:
        """The words that are frequent enough, the most frequent first; of equally frequent ones, the earlier."""
        counts, known = self.counts(), list(self.numbers)
        order = np.argsort(-counts, kind="stable")
        return [known[at] for at in order.tolist() if counts[at] >= min_count]

    def renumbered(self, places: Mapping[str, int]) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int64]]]:
        """The running words under other numbers, and the text of each; others are left out, as if they were not there.

        Word by word: (n,), (n,)
        """
        place = np.array([places.get(word, END) for word in self.numbers] + [END], np.int32)  # last, that of END
        texts = 0
        for some in self._parts():
            ends = np.cumsum(some == END)
            new = place[some]
            kept = new != END
            yield new[kept], (texts + ends)[kept]
            texts += int(ends[-1])

    def _parts(self) -> Iterator[NDArray[np.int32]]:
        if self.path.stat().st_size:
            whole = np.memmap(self.path, np.int32, "r")
            yield from (whole[start : start + AT_ONCE] for start in range(0, len(whole), AT_ONCE))


# --- The running words of texts and corpora, as often as they are asked for: nothing is held in memory.


HELD_OUT = re.compile(r"(^|[._-])(test|dev|valid|validation|eval)([._-]|$)", re.IGNORECASE)


@dataclass(frozen=True)
class RunningWords:
    """Files of plain text, where a line is a text, and corpora, where a document is one."""

    paths: Sequence[Path]
    lower_case: bool = False
    splitter: str = "words"
    format: str | None = None

    def __post_init__(self) -> None:
        """Says at once what cannot work."""
        if self.splitter not in SPLITTERS:
            raise ValueError(f"unknown splitter {self.splitter!r}; use one of {', '.join(SPLITTERS)}")

    def __iter__(self) -> Iterator[list[str]]:
        return (words for path in self.paths for words in self.of(path))

    def of(self, path: Path) -> Iterator[list[str]]:
        """The texts of one file as words."""
        split = SPLITTERS[self.splitter]
        for text, given in self._texts(path):
            plain = (text[start:end] for start, end in (given if given is not None else split(text)))
            yield [word.lower() for word in plain] if self.lower_case else list(plain)

    def _texts(self, path: Path) -> Iterator[tuple[str, Iterable[tuple[int, int]] | None]]:
        if self.format is None and path.name.removesuffix(".gz").endswith(".txt"):
            yield from ((line, None) for _, line in read_lines(path))
        else:
            yield from ((document.text, document.words) for document in read(path, self.format))


def looks_held_out(path: Path) -> bool:
    """Whether a file is named as test or dev text."""
    return bool(HELD_OUT.search(path.name))


def print_of(words: Sequence[str]) -> bytes:
    """What equal texts share, whatever their case."""
    return blake2b(" ".join(words).lower().encode("utf-8", "replace"), digest_size=12).digest()


# --- word2vec and fastText by gensim, an extra: `pip install 'wingspan[gensim]'`.


def train_with_gensim(
    method: str, texts: Iterable[list[str]], *, size: int, window: int, min_count: int, epochs: int, seed: int
) -> tuple[list[str], NDArray[np.float32]]:
    """Skip-gram vectors of words; those of fastText are made up of sub-words, and only the words' are kept."""
    try:
        from gensim.models import FastText, Word2Vec
    except ImportError as error:
        raise ValueError(
            f"--method {method} is gensim's, which is not installed; "
            "pip install 'wingspan[gensim]', or leave --method at glove"
        ) from error
    kind: Any = {"word2vec": Word2Vec, "fasttext": FastText}[method]
    model = kind(
        sentences=texts,
        vector_size=size,
        window=window,
        min_count=min_count,
        epochs=epochs,
        seed=seed,
        sg=1,
        workers=1,  # with more, the order of the steps is up to the threads, and so are the vectors
    )
    return list(model.wv.index_to_key), np.asarray(model.wv.vectors, np.float32)
