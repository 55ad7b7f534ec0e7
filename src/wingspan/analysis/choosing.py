"""Which spans of a sentence are collected: its gold, neighbors of each entity, and a sample of the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from wingspan.text import Sentence, Span

Overlap = Literal["none", "weak", "strong"]
OVERLAPS: tuple[Overlap, ...] = ("none", "weak", "strong")


class Chosen(NamedTuple):
    """Spans in words, without repetition, and what they are."""

    spans: list[Span]
    labels: list[tuple[int, str]]  # which span has which gold label
    pairs: list[tuple[int, int]]  # an entity's span and its neighbor's
    sampled: list[int]  # which spans were drawn from all that are no entity


def overlap_ratio(one: Span, other: Span) -> float:
    """The share of words that both spans hold, of those that either holds.  See: paper 003, section 5.1 (alpha)."""
    shared = max(0, min(one.end, other.end) - max(one.start, other.start))
    return shared / (one.width + other.width - shared)


def overlap_kind(ratio: float) -> Overlap:
    """None, weak (up to a half) or strong.  See: paper 003, section 5.1."""
    return "none" if ratio == 0 else "weak" if ratio <= 0.5 else "strong"


def choose_spans(
    sentence: Sentence,
    counts: Callable[[Span], bool],
    known: Callable[[str], bool],
    widest: int,
    *,
    neighbors: int,
    negatives: int,
    random: np.random.Generator,
) -> Chosen:
    """Gold spans that count, up to `neighbors` of each kind of overlap around each, and `negatives` random ones.

    A neighbor is no entity, is not wider than `widest` words, and overlaps the entity or touches it. Which
    spans a model can look at is for `counts` to say, which labels it knows for `known`.
    """
    gold = {entity.spans[0] for entity in sentence.entities if not entity.discontinuous}
    labels = sorted(
        {
            (entity.spans[0], entity.label)
            for entity in sentence.entities
            if not entity.discontinuous and known(entity.label) and counts(entity.spans[0])
        }
    )
    others = [span for span in spans_of(sentence, widest) if span not in gold and counts(span)]
    at: dict[Span, int] = {}

    def place(span: Span) -> int:
        return at.setdefault(span, len(at))

    labeled = [(place(span), label) for span, label in labels]
    sampled = [place(span) for span in draw(others, negatives, random)]
    pairs = []
    for entity in sorted({span for span, _ in labels}):
        near = [span for span in others if span.start <= entity.end and span.end >= entity.start]
        for kind in OVERLAPS:
            alike = [span for span in near if overlap_kind(overlap_ratio(entity, span)) == kind]
            pairs += [(at[entity], place(span)) for span in draw(alike, neighbors, random)]
    return Chosen(list(at), labeled, pairs, sampled)


def spans_of(sentence: Sentence, widest: int) -> list[Span]:
    """All spans that start in the core and end in the reach, up to a width in words."""
    return [
        Span(start, end)
        for start in range(*sentence.core)
        for end in range(start + 1, min(start + widest, sentence.reach.end) + 1)
    ]


def draw(spans: Sequence[Span], number: int, random: np.random.Generator) -> list[Span]:
    """So many of the spans at random, in their order; all where there are fewer."""
    if len(spans) <= number:
        return list(spans)
    return [spans[at] for at in sorted(random.choice(len(spans), number, replace=False).tolist())]
