"""The nested role of a span against the gold entities (paper 003, Section 4.5 and Figure 3)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

from wingspan.corpora.overlaps import joined
from wingspan.evaluation.matching import overlaps
from wingspan.text import Entity, Span, reading_order

Role = Literal["flat", "nested", "covering", "both"]
ROLES: tuple[Role, ...] = get_args(Role)

Place = tuple[Span, ...]


def nested_roles(gold: Iterable[Entity], spans: Iterable[Entity]) -> dict[Place, Role]:
    """The role of every place in `spans`, whatever its label; gold has the say, whoever asks.

    nested: inside of a gold entity that covers another gold entity. covering: around a gold entity that lies inside of
    another one. Inside means all its characters and not all of the other's, so the gap of a discontinuous entity holds
    nothing.
    """
    known = _places(gold)
    outer: set[int] = set()
    inner: set[int] = set()
    for g, other in overlaps(known, known) if len(known) > 1 else ():
        if _inside(known[g].spans, known[other].spans):
            inner.add(g)
            outer.add(other)
    asked = _places(spans)
    nested: set[int] = set()
    covering: set[int] = set()
    for g, s in overlaps(known, asked) if inner else ():
        if g in outer and _inside(asked[s].spans, known[g].spans):
            nested.add(s)
        if g in inner and _inside(known[g].spans, asked[s].spans):
            covering.add(s)
    return {entity.spans: ROLES[(s in nested) + 2 * (s in covering)] for s, entity in enumerate(asked)}


def _places(entities: Iterable[Entity]) -> list[Entity]:
    """One entity for each place, whatever the labels there."""
    return sorted({entity.spans: entity for entity in entities}.values(), key=reading_order)


def _inside(one: Place, other: Place) -> bool:
    """Whether all characters of one belong to the other, and not the other way round."""
    return one != other and all(any(whole.contains(span) for whole in joined(other)) for span in one)
