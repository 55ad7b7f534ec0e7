"""Where the bars of overlapping entities go: a lane for each below the text, which is cut where anything changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from wingspan.text import Entity, Span


class Piece(NamedTuple):
    """A stretch of text in which nothing begins or ends; entities by their number."""

    span: Span
    inside: tuple[int, ...]  # those with a fragment here
    between: tuple[int, ...]  # those that go on behind a gap
    closing: tuple[int, ...]  # those that end with this piece, the shortest first


def lanes(entities: Sequence[Entity]) -> list[int]:
    """A lane for each entity, 0 next to the text: what is around another lies below it."""
    chosen = [0] * len(entities)
    for cluster in clusters(entities):
        placed: list[int] = []
        for number in sorted(cluster, key=lambda n: (entities[n].hull.width, entities[n].hull, entities[n].label)):
            touched = [chosen[other] for other in placed if entities[other].hull.overlaps(entities[number].hull)]
            chosen[number] = max(touched, default=-1) + 1
            placed.append(number)
    return chosen


def clusters(entities: Sequence[Entity]) -> Iterator[list[int]]:
    """Entities that hang together by overlaps of their hulls; each is compared with its own cluster only."""
    cluster: list[int] = []
    reach = 0
    for number in sorted(range(len(entities)), key=lambda n: entities[n].start):
        if cluster and entities[number].start >= reach:
            yield cluster
            cluster = []
        cluster.append(number)
        reach = max(reach, entities[number].end)
    if cluster:
        yield cluster


def pieces(length: int, entities: Sequence[Entity]) -> Iterator[Piece]:
    """The text from 0 to `length`, cut at every border of a fragment."""
    opening: dict[int, list[int]] = {}
    for number, entity in enumerate(entities):
        opening.setdefault(entity.start, []).append(number)
    borders = {0, length, *(border for entity in entities for span in entity.spans for border in span)}
    active: list[int] = []
    for start, end in pairwise(sorted(borders)):
        active += opening.get(start, [])
        inside = [n for n in active if any(s <= start and end <= e for s, e in entities[n].spans)]
        closing = sorted((n for n in active if entities[n].end == end), key=lambda n: entities[n].hull.width)
        between = (n for n in active if n not in inside)
        yield Piece(Span(start, end), tuple(inside), tuple(between), tuple(closing))
        active = [n for n in active if entities[n].end > end]
