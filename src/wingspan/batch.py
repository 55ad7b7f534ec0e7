"""Sentences to arrays: the encoder's inputs and the gold spans. Numpy only; `model.tensors` makes tensors.

A unit is a word, or a piece where the encoder works on pieces. Legend: B sentences, T tokens, L units, E gold spans.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from wingspan.corpora.word_table import WordTable
from wingspan.labels import LabelSet
from wingspan.text import Entity, Sentence, Span

Array = Any  # np.ndarray before `model.tensors`, torch.Tensor after it: the same fields travel through both


class Near(NamedTuple):
    """The units that spans can hold (context is encoded, then left out), and the fields of `Inputs` for them."""

    unit: Array  # (B, N)
    unit_mask: Array  # (B, N)
    words: Array  # (B, N)
    starts: Array  # (B, N)
    ends: Array  # (B, N)
    opens: Array  # (B, N)
    closes: Array  # (B, N)
    core: Array  # (B, 2)
    reach: Array  # (B, 2)


class Inputs(NamedTuple):
    """The inputs of a model for a batch, in training and prediction."""

    tokens: Array  # (B, T) ids of pieces, or of hashed features
    token_mask: Array  # (B, T) true for real tokens
    unit_of_token: Array  # (B, T) the unit a token belongs to; L for special tokens and padding
    unit_mask: Array  # (B, L) true for real units
    words: Array  # (B, L) the word a unit belongs to
    starts: Array  # (B, L) the unit starts a word
    ends: Array  # (B, L) the unit ends a word
    shapes: Array  # (B, L + 1) the shape of the unit's word, see `shape_of`; the last is for tokens without a unit
    core: Array  # (B, 2) units in which spans must start
    reach: Array  # (B, 2) units in which they must end
    opens: Array  # (B, L) a span may start here: the unit starts a word of the core
    closes: Array  # (B, L) ... may end here: the unit ends a word of the reach
    dataset: Array  # (B,) which corpus the sentence is from
    near: Near | None = None  # if some units are only context


MOST_WORDS = 200_000  # of a table; then a new one is begun, so that endless streams fill no memory


class Tokenize(ABC):
    """The CPU side of an encoder: picklable, without weights. Each word is cut once; sentences are gathered."""

    max_length: int  # the most places one input may have
    unit: Literal["word", "piece"] = "word"  # what one vector represents, and in what widths of spans are counted
    front: Sequence[int] = ()  # tokens before the first word
    padding: int = 0  # the token after the last
    fewest_tokens: int = 1  # in a batch of sentences without words
    lightness: int = 1  # so many times as many units as of a Transformer are computed at once on a CPU
    _table: WordTable | None = None

    @abstractmethod
    def cut(self, words: Sequence[str]) -> Sequence[Sequence[int]]:
        """The tokens of each word, at least one."""

    def store(self, folder: Path) -> dict[str, Any]:
        """What `restore` needs, as JSON data; larger things are files in the folder of an exported model."""
        raise ValueError(f"{type(self).__name__} cannot be exported: it has no `store`")

    @classmethod
    def restore(cls, folder: Path, settings: Mapping[str, Any]) -> Self:
        """The tokenizer of an exported model; ValueError for settings that are none."""
        raise ValueError(f"{cls.__name__} cannot be restored")

    def places(self, words: Sequence[str], tokens: Sequence[Sequence[int]]) -> Sequence[int]:
        """How many places of a window each word takes, so that windows respect `max_length`; one for each token."""
        return list(map(len, tokens))

    def endings(self, datasets: Sequence[str]) -> Array:
        """The tokens after the last word, by the corpus of each sentence; none by default.  (B, n)"""
        return np.empty((len(datasets), 0), dtype=np.int64)

    def table(self) -> WordTable:
        """The words met so far, with their tokens."""
        table = self._table
        if table is None or len(table) >= MOST_WORDS:
            self._table = table = WordTable(self.cut, self.places, shape_of)
        return table

    def forget(self) -> None:
        """Begins a new table."""
        self._table = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_table"}

    def measure(self, words: Sequence[str]) -> list[int]:
        """How many places of a window each word takes."""
        table = self.table()
        sizes: list[int] = table.sizes(table.numbers(words)).tolist()
        return sizes

    def lengths(self, sentences: Sequence[Sentence]) -> Array:
        """How many places each sentence takes.  (B,)"""
        table = self.table()
        rows = numbers_in(table, sentences)
        return sums(table.sizes(joined(rows)), lengths_of(rows))

    def __call__(self, sentences: Sequence[Sentence]) -> Inputs:
        """Sentences as arrays: the tokens of their words, one after the other, between those at the front and end."""
        table = self.table()
        rows = numbers_in(table, sentences)
        words, num_words = joined(rows), lengths_of(rows)  # (W,), (B,)
        counts = table.counts(words)
        num_tokens = sums(counts, num_words)
        front, endings = len(self.front), self.endings([sentence.dataset for sentence in sentences])
        past = front + num_tokens[:, None]  # (B, 1)
        at = np.arange(max([*(past + endings.shape[1]).flatten().tolist(), self.fewest_tokens]))
        inside = (at >= front) & (at < past)  # (B, T)
        tokens = np.full(inside.shape, self.padding, dtype=np.int64)
        tokens[:, :front] = self.front
        tokens[inside] = table.tokens(words)
        tokens[np.arange(len(rows))[:, None], past + np.arange(endings.shape[1])] = endings
        units = units_of(sentences, table.shapes(words), num_words, counts if self.unit == "piece" else None)
        owner = np.full(inside.shape, units["unit_mask"].shape[1], dtype=np.int64)
        owner[inside] = (
            places_within(num_tokens) if self.unit == "piece" else np.repeat(places_within(num_words), counts)
        )
        return Inputs(tokens=tokens, token_mask=at < past + endings.shape[1], unit_of_token=owner, **units)


class Gold(NamedTuple):
    """Gold spans in units."""

    start: Array  # (B, E)
    end: Array  # (B, E)
    label: Array  # (B, E) class ids
    mask: Array  # (B, E) true for real spans


class Batch(NamedTuple):
    """One step's worth of data."""

    inputs: Inputs
    gold: Gold
    targets: Mapping[str, Any]  # by the name of the objective
    sentences: Sequence[Sentence]


@dataclass(frozen=True)
class Collate:
    """Makes batches in data-loader workers: a tokenizer, and the targets of each objective. Holds no weights."""

    tokenize: Callable[[Sequence[Sentence]], Inputs]
    labels: LabelSet
    targets: Mapping[str, Callable[[Sequence[Sentence], Inputs], Any]]

    def inputs(self, sentences: Sequence[Sentence]) -> Inputs:
        """The inputs of the model, without gold."""
        datasets = np.array([self.labels.dataset_id(sentence.dataset) for sentence in sentences], dtype=np.int64)
        inputs = self.tokenize(sentences)
        return inputs._replace(dataset=datasets, near=near_of(inputs))

    def __call__(self, sentences: Sequence[Sentence]) -> Batch:
        """A batch of these sentences."""
        inputs = self.inputs(sentences)
        inside = narrowed(inputs)
        return Batch(
            inputs,
            gold_spans(sentences, inside, self.labels),
            {name: make(sentences, inside) for name, make in self.targets.items()},
            sentences,
        )


def near_of(inputs: Inputs) -> Near | None:
    """The units in reach, sentence by sentence; None if that is all of them. `inputs` are arrays."""
    first, past = inputs.reach[:, :1], inputs.reach[:, 1:]
    if not first.any() and (past[:, 0] >= inputs.unit_mask.sum(1)).all():
        return None
    unit = first + np.arange(max(int((past - first).max()), 1))  # (B, N)
    real = unit < past
    unit = np.minimum(unit, np.maximum(past - 1, 0))
    words, starts, ends, opens, closes = (
        np.take_along_axis(part, unit, 1)
        for part in (inputs.words, inputs.starts, inputs.ends, inputs.opens, inputs.closes)
    )
    starts, ends, opens, closes = (flag & real for flag in (starts, ends, opens, closes))
    return Near(unit, real, words, starts, ends, opens, closes, inputs.core - first, inputs.reach - first)


def narrowed(inputs: Inputs) -> Inputs:
    """The inputs as everything after the encoder sees them: without context."""
    if inputs.near is None:
        return inputs
    _, *parts = inputs.near
    return inputs._replace(near=None, **dict(zip(Near._fields[1:], parts, strict=True)))


SHAPES = ("lower", "Title", "UPPER", "mIxed", "digit", "punctuation", "other")


def shape_of(word: str) -> int:
    """The shape of a word, as an index into `SHAPES`, which an uncased tokenizer loses."""
    if word.isdigit():
        return 4
    if not any(map(str.isalpha, word)):
        return 5 if not any(map(str.isalnum, word)) else 6
    if word.lower() == word.upper():
        return 6  # a script without capitals
    if word.islower():
        return 0
    if word.isupper():
        return 2 if len(word) > 1 else 1
    return 1 if word[0].isupper() and word[1:].islower() else 3


def units_of(
    sentences: Sequence[Sentence], shapes: Array, num_words: Array, pieces: Array | None = None
) -> dict[str, Array]:
    """The fields of `Inputs` for units: words, or pieces where the number of each word's `pieces` is given.

    `shapes` and `pieces` are those of all words, sentence after sentence.
    """
    num_units = num_words if pieces is None else sums(pieces, num_words)
    longest = max([*num_units.tolist(), 1])
    at = np.arange(longest)
    mask = at < num_units[:, None]  # (B, L)
    core = np.array([sentence.core for sentence in sentences], dtype=np.int64).reshape(-1, 2)
    reach = np.array([sentence.reach for sentence in sentences], dtype=np.int64).reshape(-1, 2)
    of_units = np.full((len(mask), longest + 1), len(SHAPES), dtype=np.int64)
    if pieces is None:
        words, starts, ends = np.broadcast_to(at, mask.shape).copy(), mask.copy(), mask.copy()
        of_units[:, :-1][mask] = shapes
    else:
        edges = np.concatenate([[0], pieces.cumsum()])  # the first piece of each word, and one past the last
        words = np.broadcast_to(np.maximum(num_words - 1, 0)[:, None], mask.shape).copy()
        words[mask] = np.repeat(places_within(num_words), pieces)
        starts, ends = np.zeros((2, *mask.shape), dtype=bool)
        flags = np.zeros((2, edges[-1]), dtype=bool)
        flags[0, edges[:-1]], flags[1, edges[1:] - 1] = True, True
        starts[mask], ends[mask] = flags
        of_units[:, :-1][mask] = np.repeat(shapes, pieces)
        first = (num_words.cumsum() - num_words)[:, None]  # the first word of each sentence
        core, reach = (edges[first + bounds] - edges[first] for bounds in (core, reach))
    return {
        "unit_mask": mask,
        "words": words,
        "starts": starts,
        "ends": ends,
        "shapes": of_units,
        "core": core,
        "reach": reach,
        "opens": starts & within(core, longest),
        "closes": ends & within(reach, longest),
        "dataset": np.zeros(len(sentences), dtype=np.int64),
    }


# Rows of different lengths, one after the other


def numbers_in(table: WordTable, sentences: Sequence[Sentence]) -> list[Array]:
    """The numbers of each sentence's words; of a sentence that was not made with this table they are looked up."""
    rows = [sentence.numbers if sentence.table is table else None for sentence in sentences]
    others = [at for at, row in enumerate(rows) if row is None]
    if others:
        words = [sentences[at].words for at in others]
        found = table.numbers(list(chain.from_iterable(words)))
        for at, row in zip(others, np.split(found, np.cumsum([len(row) for row in words])[:-1]), strict=True):
            rows[at] = row
    return rows


def joined(rows: Sequence[Array]) -> Array:
    """The rows as one array."""
    return np.concatenate(rows) if rows else np.empty(0, dtype=np.int64)


def lengths_of(rows: Sequence[Array]) -> Array:
    """The lengths of the rows."""
    return np.fromiter(map(len, rows), np.int64, len(rows))


def sums(values: Array, lengths: Array) -> Array:
    """The sum of each row, of rows of these lengths, one after the other."""
    running = np.concatenate([[0], values.cumsum()])
    ends = lengths.cumsum()
    return running[ends] - running[ends - lengths]


def places_within(lengths: Array) -> Array:
    """The place of each value in its row, of rows of these lengths, one after the other."""
    ends = lengths.cumsum()
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - lengths, lengths)


def within(bounds: Array, length: int) -> Array:
    """Mask of the units within the bounds of their sentence.  (B, 2) -> (B, L)"""
    at = np.arange(length)
    return (at >= bounds[:, :1]) & (at < bounds[:, 1:])


def unit_ranges(units_to_words: Array, num_units: int) -> tuple[Array, Array]:
    """For one sentence: the first unit of each word, and one past its last.  (L,) -> (words,), (words,)"""
    real = units_to_words[:num_units]
    words = np.arange(int(real[-1]) + 1 if num_units else 0)
    return np.searchsorted(real, words, "left"), np.searchsorted(real, words, "right")


def labeled_spans(sentence: Sentence, labels: LabelSet) -> list[tuple[int, int, int]]:
    """The contiguous entities of a sentence, each once, in order: start and end in words, and class.

    Labels unknown to the model are left out.
    """
    spans = set()
    for entity in sentence.entities:
        if not entity.discontinuous and (label := labels.id(sentence.dataset, entity.label)) is not None:
            spans.add((*entity.spans[0], label))
    return sorted(spans)


def gold_spans(sentences: Sequence[Sentence], inputs: Inputs, labels: LabelSet) -> Gold:
    """The contiguous gold entities of each sentence as units and classes."""
    return in_units(padded_spans([labeled_spans(sentence, labels) for sentence in sentences]), inputs)


def in_units(spans: Gold, inputs: Inputs) -> Gold:
    """Spans of words as spans of units."""
    # the words of all sentences in one row, so that one search finds the units of all spans
    row = np.arange(len(inputs.words))[:, None] * (int(inputs.words.max(initial=0)) + 1)  # (B, 1)
    owner = (row + inputs.words)[inputs.unit_mask]
    before = np.searchsorted(owner, row)  # (B, 1) the units of earlier sentences
    start = np.searchsorted(owner, row + spans.start) - before
    end = np.searchsorted(owner, row + spans.end - 1, "right") - before
    return spans._replace(start=np.where(spans.mask, start, 0), end=np.where(spans.mask, end, 0))


def padded_spans(rows: Sequence[Sequence[tuple[int, int, int]]]) -> Gold:
    """The starts, ends and classes of each sentence's spans as arrays."""
    widest = max([len(row) for row in rows] + [1])
    table = np.zeros((len(rows), widest, 3), dtype=np.int64)
    mask = np.zeros((len(rows), widest), dtype=bool)
    for at, row_spans in enumerate(rows):
        if row_spans:
            table[at, : len(row_spans)] = row_spans
            mask[at, : len(row_spans)] = True
    return Gold(table[..., 0], table[..., 1], table[..., 2], mask)


class Found(NamedTuple):
    """The spans that an objective predicts, in units, for any number of sentences; tensors first, then arrays."""

    sentence: Array  # (N,) row of the batch
    start: Array  # (N,)
    end: Array  # (N,)
    label: Array  # (N,) class ids
    score: Array  # (N,) decides which of two clashing entities is kept
    calibrated: Array | None = None  # (N,) the score that users see, if the model is calibrated
    total: Array | None = None  # () how many were found, where N is fixed: fewer than N, or more than fit

    def without_padding(self) -> "Found | None":
        """As arrays, only what was found; None if that is more than there was room for."""
        if self.total is None:
            return self
        if self.total > len(self.start):
            return None
        return self.rows(slice(int(self.total)))

    def rows(self, rows: Any) -> "Found":
        """As arrays, some of what was found: by a slice, a mask or numbers."""
        return Found(*(None if part is None else part[rows] for part in self[:-1]))


CALIBRATED = "calibrated"  # the key of `Entity.meta` with the score that users will see, until clashes are decided


def entities_found(
    found: Found,
    inputs: Inputs,
    labels: LabelSet,
    sentences: Sequence[Sentence] | None = None,
    settled: Array | None = None,
) -> list[list[Entity]]:
    """Found spans as entities, sentence by sentence: in words, or where `sentences` are given in their characters.

    In sentences that are `settled`, where no clash is left to decide, they have the scores that users see at once.
    `found` and `inputs` are arrays.  (B,)
    """
    if (np.diff(found.sentence) < 0).any():
        found = found.rows(np.argsort(found.sentence, kind="stable"))
    first, last = inputs.words[found.sentence, found.start], inputs.words[found.sentence, found.end - 1]
    if sentences is None:
        spans = np.stack([first, last + 1], -1)
    else:
        offsets = [sentence.offsets for sentence in sentences]
        before = np.cumsum([0, *map(len, offsets)])[found.sentence]  # the words of earlier sentences
        characters = joined(offsets)
        spans = np.stack([characters[before + first, 0], characters[before + last, 1]], -1)
    names, datasets = labels.answers, inputs.dataset[found.sentence].tolist()
    named = [names[dataset][label] for dataset, label in zip(datasets, found.label.tolist(), strict=True)]
    assert None not in named, "an objective never predicts nothing as an entity"
    scores = found.score
    metas: list[dict[str, float]] = [{} for _ in named]
    if found.calibrated is not None:
        done = np.zeros(len(named), dtype=bool) if settled is None else settled[found.sentence]
        scores = np.where(done, found.calibrated, scores)
        for at in np.flatnonzero(~done).tolist():
            metas[at] = {CALIBRATED: float(found.calibrated[at])}
    # a tuple of one span for each; a loop in C takes half the time
    made = list(map(Entity, named, zip(map(Span._make, spans.tolist())), scores.tolist(), metas))
    bounds = np.searchsorted(found.sentence, np.arange(len(inputs.words) + 1)).tolist()
    return [made[start:end] for start, end in pairwise(bounds)]


def batches(
    lengths: Sequence[int], batch_size: int, *, budget: int | None = None, seed: Sequence[int] | None = None
) -> list[list[int]]:
    """Indices batch by batch. Sentences of similar length go together, so that there is little padding.

    `budget` limits the units of a batch including padding; a longer sentence is a batch alone. With a seed the order is
    random and repeatable; without, longest first.
    """
    if seed is None:
        order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
        return list(cut(order, lengths, batch_size, budget))
    random = np.random.default_rng(list(seed))
    shuffled = random.permutation(len(lengths))
    pool = 32 * batch_size  # sorted by length inside a pool only: batches stay different from epoch to epoch
    cuts: list[list[int]] = []
    for at in range(0, len(shuffled), pool):
        order = sorted(shuffled[at : at + pool].tolist(), key=lambda i: -lengths[i])
        cuts.extend(cut(order, lengths, batch_size, budget))
    return [cuts[i] for i in random.permutation(len(cuts))]


def cut(order: Sequence[int], lengths: Sequence[int], batch_size: int, budget: int | None) -> Iterator[list[int]]:
    """Cuts an order (longest first) into batches."""
    batch: list[int] = []
    for index in order:
        longest = max(lengths[batch[0]] if batch else 0, lengths[index])
        full = len(batch) == batch_size or (budget is not None and longest * (len(batch) + 1) > budget)
        if batch and full:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
