"""Sentences to arrays, sentence by sentence and word by word: what the gathered arrays must be equal to."""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from wingspan.batch import SHAPES, Inputs, Tokenize, shape_of, within
from wingspan.text import Sentence
from wingspan.tokenizing.hashed import FEATURES, HashedTokenize
from wingspan.tokenizing.pieces import PieceTokenize
from wingspan.tokenizing.static import StaticTokenize


def collated(tokenize: Tokenize, sentences: Sequence[Sentence]) -> Inputs:
    """The arrays of the sentences; every word is cut anew."""
    cuts = [[tokenize.cut([word])[0] for word in sentence.words] for sentence in sentences]
    if isinstance(tokenize, PieceTokenize):
        return of_pieces(tokenize, sentences, cuts)
    return (of_features if isinstance(tokenize, HashedTokenize) else of_rows)(tokenize, sentences, cuts)


def of_pieces(tokenize: PieceTokenize, sentences: Sequence[Sentence], cuts: list[Any]) -> Inputs:
    ends = [tokenize.by_corpus.get(sentence.dataset, tokenize.ending) for sentence in sentences]
    ids = [[*tokenize.front, *chain.from_iterable(row), *end] for row, end in zip(cuts, ends, strict=True)]
    longest = max(len(row) for row in ids)
    tokens = np.full((len(ids), longest), tokenize.padding, dtype=np.int64)
    owner = np.full((len(ids), longest), -1, dtype=np.int64)  # the word of each token
    mask = np.zeros((len(ids), longest), dtype=bool)
    for row, (cut, line) in enumerate(zip(cuts, ids, strict=True)):
        tokens[row, : len(line)] = line
        mask[row, : len(line)] = True
        words = np.repeat(np.arange(len(cut)), [len(word) for word in cut])
        owner[row, len(tokenize.front) : len(tokenize.front) + len(words)] = words
    units = word_units(sentences) if tokenize.unit == "word" else piece_units(sentences, cuts)
    if tokenize.unit == "piece":
        at = np.arange(longest) - len(tokenize.front)
        owner = np.where(owner >= 0, at, -1)
    last = units["unit_mask"].shape[1]
    return Inputs(tokens=tokens, token_mask=mask, unit_of_token=np.where(owner < 0, last, owner), **units)


def of_features(tokenize: HashedTokenize, sentences: Sequence[Sentence], cuts: list[Any]) -> Inputs:
    units = word_units(sentences)
    batch, longest = units["unit_mask"].shape
    tokens = np.zeros((batch, longest, FEATURES), dtype=np.int64)
    for row, cut in enumerate(cuts):
        if cut:
            tokens[row, : len(cut)] = cut
    owner = np.where(units["unit_mask"], np.arange(longest), longest)
    return Inputs(
        tokens=tokens.reshape(batch, -1),
        token_mask=np.repeat(units["unit_mask"], FEATURES, axis=1),
        unit_of_token=np.repeat(owner, FEATURES, axis=1),
        **units,
    )


def of_rows(tokenize: StaticTokenize, sentences: Sequence[Sentence], cuts: list[Any]) -> Inputs:
    units = word_units(sentences)
    longest = max([sum(map(len, row)) for row in cuts] + [units["unit_mask"].shape[1]])
    tokens = np.full((len(cuts), longest), tokenize.num_learned, dtype=np.int64)
    owner = np.full((len(cuts), longest), units["unit_mask"].shape[1], dtype=np.int64)
    for row, cut in enumerate(cuts):
        ids = [token for word in cut for token in word]
        tokens[row, : len(ids)] = ids
        owner[row, : len(ids)] = np.repeat(np.arange(len(cut)), [len(word) for word in cut])
    mask = owner < units["unit_mask"].shape[1]
    return Inputs(tokens=tokens, token_mask=mask, unit_of_token=owner, **units)


def word_units(sentences: Sequence[Sentence]) -> dict[str, Any]:
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


def piece_units(sentences: Sequence[Sentence], cuts: Sequence[Sequence[Sequence[int]]]) -> dict[str, Any]:
    words = word_units(sentences)
    counts = [np.array([len(cut) for cut in row], dtype=np.int64) for row in cuts]
    longest = max([int(count.sum()) for count in counts] + [1])
    shape = (len(sentences), longest)
    units: dict[str, Any] = {name: np.zeros(shape, dtype=bool) for name in ("unit_mask", "starts", "ends")}
    units |= {name: np.zeros_like(words[name]) for name in ("core", "reach", "dataset")}
    units["words"] = np.zeros(shape, dtype=np.int64)
    units["shapes"] = np.full((len(sentences), longest + 1), len(SHAPES), dtype=np.int64)
    for row, (sentence, count) in enumerate(zip(sentences, counts, strict=True)):
        edges = np.concatenate([[0], count.cumsum()])  # the first piece of each word, and one past the last
        total = int(edges[-1])
        units["unit_mask"][row, :total] = True
        units["words"][row, :total] = np.repeat(np.arange(len(count)), count)
        units["words"][row, total:] = max(len(count) - 1, 0)
        units["starts"][row, edges[:-1]] = True
        units["ends"][row, edges[1:] - 1] = True
        units["shapes"][row, :total] = np.repeat(words["shapes"][row, : len(count)], count)
        units["core"][row] = edges[list(sentence.core)]
        units["reach"][row] = edges[list(sentence.reach)]
    units["opens"] = units["starts"] & within(units["core"], longest)
    units["closes"] = units["ends"] & within(units["reach"], longest)
    return units
