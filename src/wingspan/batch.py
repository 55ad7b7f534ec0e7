"""Sentences to arrays: the encoder's inputs and the gold spans. Numpy only; `model.tensors` makes tensors.

A unit is a word, or a piece where the encoder works on pieces. Legend: B sentences, T tokens, L units, E gold spans.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

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


class Tokenize(ABC):
    """The CPU side of an encoder: picklable, without weights, used by data-loader workers."""

    max_length: int  # the most pieces one input may have
    unit: Literal["word", "piece"] = "word"  # what one vector represents, and in what widths of spans are counted

    @abstractmethod
    def __call__(self, sentences: Sequence[Sentence]) -> Inputs:
        """Sentences as arrays."""

    @abstractmethod
    def measure(self, words: Sequence[str]) -> list[int]:
        """The number of pieces of each word, so that windows respect `max_length`."""


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


@lru_cache(maxsize=100_000)
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


def word_units(sentences: Sequence[Sentence]) -> dict[str, Array]:
    """The fields of `Inputs` for encoders that give one vector per word."""
    longest = max([len(sentence.words) for sentence in sentences] + [1])
    mask = np.zeros((len(sentences), longest), dtype=bool)
    shapes = np.full((len(sentences), longest + 1), len(SHAPES), dtype=np.int64)
    for row, sentence in enumerate(sentences):
        mask[row, : len(sentence.words)] = True
        shapes[row, : len(sentence.words)] = [shape_of(word) for word in sentence.words]
    core = np.array([sentence.core for sentence in sentences], dtype=np.int64).reshape(-1, 2)
    reach = np.array([sentence.reach for sentence in sentences], dtype=np.int64).reshape(-1, 2)
    return {
        "unit_mask": mask,
        "words": np.broadcast_to(np.arange(longest), mask.shape).copy(),
        "starts": mask.copy(),
        "ends": mask.copy(),
        "shapes": shapes,
        "core": core,
        "reach": reach,
        "opens": mask & within(core, longest),
        "closes": mask & within(reach, longest),
        "dataset": np.zeros(len(sentences), dtype=np.int64),
    }


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
    """The spans that an objective predicts, in units, for any number of sentences."""

    sentence: Array  # (N,) row of the batch
    start: Array  # (N,)
    end: Array  # (N,)
    label: Array  # (N,) class ids
    score: Array  # (N,) decides which of two clashing entities is kept
    calibrated: Array | None = None  # (N,) the score that users see, if the model is calibrated


CALIBRATED = "calibrated"  # the key of `Entity.meta` with the score that users will see, until clashes are decided


def entities_found(found: Found, inputs: Inputs, labels: LabelSet) -> list[list[Entity]]:
    """Found spans as entities in words, sentence by sentence. `inputs` are arrays, as the tokenizer made them."""
    names = labels.answers
    sentences: list[list[Entity]] = [[] for _ in range(len(inputs.words))]
    columns = [part.tolist() for part in found if part is not None]
    for row, start, end, label, score, *calibrated in zip(*columns, strict=True):
        name = names[inputs.dataset[row]][label]
        assert name is not None, "an objective never predicts nothing as an entity"
        words = inputs.words[row]
        span = Span(int(words[start]), int(words[end - 1]) + 1)
        sentences[row].append(Entity(name, (span,), score, {CALIBRATED: calibrated[0]} if calibrated else {}))
    return sentences


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
