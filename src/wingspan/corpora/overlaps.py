"""Overlapping entities: finding them, and documents without them."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal

from wingspan.text import Document, Entity, Span

Flattening = Literal["keep", "outer", "inner", "none"]  # which of overlapping entities stay


def flatten(document: Document, flattening: Flattening) -> tuple[Document, int]:
    """The document with the entities that stay, and how many were removed.

    `outer` keeps the widest of overlapping entities, `inner` the narrowest, `none` removes every entity that overlaps
    another (as Ji et al. did for ACE), `keep` changes nothing. Of two labels on one span, the first in the alphabet
    stays.
    """
    if flattening == "keep" or len(document.entities) < 2:
        return document, 0
    if flattening == "none":
        involved = overlapping(document.entities)
        kept = [entity for at, entity in enumerate(document.entities) if at not in involved]
    else:
        kept = []
        taken: list[Span] = []  # sorted and without overlap, so that two neighbors decide
        wide_first = flattening == "outer"
        for entity in sorted(document.entities, key=lambda e: sum(span.width for span in e.spans), reverse=wide_first):
            places = ((span, bisect_left(taken, Span(span.start, span.start))) for span in entity.spans)
            if not any(span.overlaps(other) for span, at in places for other in taken[max(0, at - 1) : at + 1]):
                kept.append(entity)
                for span in joined(entity.spans):  # the fragments of one entity may overlap each other
                    insort(taken, span)
    return replace(document, entities=tuple(kept)), len(document.entities) - len(kept)


def overlapping(entities: Sequence[Entity]) -> set[int]:
    """The indices of all entities that share a character with another one."""
    shared: set[int] = set()
    fragments = sorted((span.start, span.end, at) for at, entity in enumerate(entities) for span in entity.spans)
    # the two ends that reach furthest, of different entities: enough, because all entities that are open at one place
    # overlap each other, and the earlier ones have been shared when the later ones began
    furthest: list[tuple[int, int]] = []
    for start, end, at in fragments:
        for reached, other in furthest:
            if other != at and start < reached:
                shared |= {at, other}
        ends = dict(sorted([*((owner, reached) for reached, owner in furthest), (at, end)], key=lambda item: item[1]))
        furthest = sorted(((reached, owner) for owner, reached in ends.items()), reverse=True)[:2]
    return shared


def joined(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The spans in order, with overlapping ones merged."""
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and span.start < merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return tuple(merged)


def nested_and_crossing(entities: Sequence[Entity]) -> tuple[int, int]:
    """How many entities lie inside a wider one, and how many pairs cross, by their hulls."""
    hulls = sorted((entity.hull for entity in entities), key=lambda hull: (hull.start, -hull.end))
    inside: set[int] = set()
    crossing = 0
    open_hulls: list[Span] = []
    for at, hull in enumerate(hulls):
        open_hulls = [other for other in open_hulls if other.end > hull.start]
        for other in open_hulls:
            if other.crosses(hull):
                crossing += 1
            elif other != hull and other.contains(hull):
                inside.add(at)
        open_hulls.append(hull)
    return len(inside), crossing
