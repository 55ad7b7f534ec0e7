"""What a mention would be called, by its spelling alone: logistic regression over hashed parts of names, in numpy.

It learns in seconds on one core from the mentions of a corpus and from other words of its texts, and so can say which
label of one corpus the mentions of another would get, or that they would be none of them.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from random import Random
from typing import Any

import numpy as np

from wingspan.corpora.word_level import WordRanges
from wingspan.corpora.words import kind, split_words, word_strings
from wingspan.text import Document, Span

Array = np.ndarray[Any, np.dtype[Any]]

BUCKETS = 1 << 17
"""Places for parts of names; parts that share one are rare, and their words differ in others."""
LONGEST = 80  # characters of a name that are looked at
SIZES = (2, 3, 4)  # of the runs of characters
BATCH, EPOCHS, RATE = 64, 6, 0.3


@dataclass(frozen=True)
class MentionClassifier:
    """Weights of the parts of names, for "nothing" and each label."""

    labels: tuple[str | None, ...]
    weights: Array  # (BUCKETS, labels)

    @classmethod
    def of(cls, documents: Iterable[Document], seed: int = 0) -> MentionClassifier:
        """Learns from a corpus: its mentions, and as many spans that touch none of them, drawn at random."""
        named, other = mentions_and_others(documents, seed)
        labels: tuple[str | None, ...] = (None, *sorted({label for _, label in named}))
        examples = [(name, labels.index(label), count) for (name, label), count in named.items()]
        examples += [(name, 0, count) for name, count in other.items()]
        parts, real = padded([name for name, _, _ in examples])
        answer = np.array([at for _, at, _ in examples], dtype=np.int64)
        # a name that occurs often says more than one that occurs once, but not in proportion
        weight = np.sqrt([count for _, _, count in examples])
        return cls(labels, learned(parts, real, answer, weight, len(labels), seed))

    def chances(self, names: Sequence[str]) -> Array:
        """The chance of "nothing" and of each label, for each name.  (N, labels)"""
        found = [softmax(scores(self.weights, *padded(names[at : at + 1024]))) for at in range(0, len(names), 1024)]
        return np.concatenate(found) if found else np.zeros((0, len(self.labels)))


def mentions_and_others(documents: Iterable[Document], seed: int) -> tuple[Counter[tuple[str, str]], Counter[str]]:
    """How often names have each label, and how often spans occur that touch no entity: as many, of the same widths."""
    named: Counter[tuple[str, str]] = Counter()
    widths: list[int] = []
    free: list[tuple[Document, Sequence[Span], int]] = []  # where a span of words outside of entities may start
    for document in documents:
        ranges = WordRanges(split_words(document.text))
        taken = np.zeros(len(ranges.words) + 1, dtype=bool)
        for entity in document.entities:
            named[document.text_of(entity), entity.label] += 1
            touched = ranges.touched(entity.hull)
            taken[touched.start : touched.end] = True
            widths.append(max(touched.width, 1))
        taken[-1] = True
        free += [(document, ranges.words, int(at)) for at in np.flatnonzero(~taken)]
    random = Random(seed)
    others: Counter[str] = Counter()
    for width in widths if free else ():
        document, words, start = free[random.randrange(len(free))]
        inside = document.entities
        end = min(start + width, len(words))
        span = Span(words[start].start, words[end - 1].end)
        if not any(span.overlaps(entity.hull) for entity in inside):
            others[document.text[span.start : span.end]] += 1
    return named, others


def plain(name: str) -> str:
    """What two spellings of a name share: words in small letters, cut as one cuts all texts, whatever a corpus does."""
    return " ".join(word_strings(name)).casefold()


def parts_of(name: str) -> list[int]:
    """The hashed parts of a name: its words, runs of their characters, shapes, first and last word, length."""
    cut = " ".join(word_strings(name))[:LONGEST]
    words = plain(cut).split() or [""]
    inside = f"^{plain(cut)}$"
    shape = "".join(key for key, _ in groupby(map(kind, cut)))
    found = {f"w{word}" for word in words} | {inside[at : at + n] for n in SIZES for at in range(len(inside) - n + 1)}
    found |= {f"first {words[0]}", f"last {words[-1]}", f"shape {shape}", f"length {min(len(words), 6)}"}
    return sorted({zlib.crc32(part.encode("utf-8", "surrogatepass")) % BUCKETS for part in found})


def padded(names: Sequence[str]) -> tuple[Array, Array]:
    """The parts of names side by side, and which of them are real.  (N, P), (N, P)"""
    rows = [parts_of(name) for name in names]
    parts = np.zeros((len(rows), max(map(len, rows), default=0)), dtype=np.int64)
    real = np.zeros(parts.shape, dtype=np.float32)
    for at, row in enumerate(rows):
        parts[at, : len(row)] = row
        real[at, : len(row)] = 1.0 / np.sqrt(len(row))  # long names have many parts, and must not shout
    return parts, real


def scores(weights: Array, parts: Array, real: Array) -> Array:
    """Sums of weights.  (N, P) -> (N, labels)"""
    found: Array = np.einsum("np,npc->nc", real, weights[parts])
    return found


def softmax(scores: Array) -> Array:
    """Chances of scores."""
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    chances: Array = powers / powers.sum(-1, keepdims=True)
    return chances


def learned(parts: Array, real: Array, answer: Array, weight: Array, classes: int, seed: int) -> Array:
    """Weights by gradient steps whose size falls with what a weight has moved so far (AdaGrad)."""
    weights = np.zeros((BUCKETS, classes), dtype=np.float32)
    moved = np.full_like(weights, 1e-6)
    random = np.random.default_rng(seed)
    target = np.eye(classes, dtype=np.float32)[answer]
    for _ in range(EPOCHS):
        order = random.permutation(len(answer))
        for at in range(0, len(order), BATCH):
            rows = order[at : at + BATCH]
            used = parts[rows][:, : max(1, int((real[rows] > 0).sum(1).max(initial=1)))]
            scale = real[rows][:, : used.shape[1]]
            off = (softmax(scores(weights, used, scale)) - target[rows]) * weight[rows, None]
            places, inverse = np.unique(used, return_inverse=True)
            gradient = np.zeros((len(places), classes), dtype=np.float32)
            np.add.at(gradient, inverse.reshape(used.shape), scale[:, :, None] * off[:, None])
            moved[places] += gradient**2
            weights[places] -= RATE * gradient / np.sqrt(moved[places])
    return weights
