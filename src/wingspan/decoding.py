"""Which of the found entities are kept together: flat (none overlap), nested (none cross), any (all)."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from typing import Literal

from wingspan.text import Entity, reading_order

Overlap = Literal["flat", "nested", "any"]


def resolve(entities: Sequence[Entity], overlap: Overlap) -> tuple[Entity, ...]:
    """Greedy by score: an entity stays if it does not clash with one that scored higher. In reading order.

    Not the heuristic of Fu et al., whose code always keeps the last span: see systems.md 4.B.
    """
    best: dict[Entity, Entity] = {}  # found twice, it counts once, with its higher score
    for entity in entities:
        if entity not in best or entity.score > best[entity].score:
            best[entity] = entity
    ordered = sorted(best.values(), key=reading_order)
    if overlap == "any":
        return tuple(ordered)
    kept: list[Entity] = []
    for cluster in clusters(ordered):
        chosen: list[Entity] = []  # by their starts, so that only neighbors need a look
        widest = 0
        for entity in sorted(cluster, key=lambda e: (-e.score, reading_order(e))):
            first = bisect_left(chosen, entity.start - widest, key=start_of)
            past = bisect_left(chosen, entity.end, key=start_of)
            if not any(clash(entity, chosen[at], overlap) for at in range(first, past)):
                insort(chosen, entity, key=start_of)
                widest = max(widest, entity.end - entity.start)
        kept.extend(sorted(chosen, key=reading_order))
    return tuple(kept)


def start_of(entity: Entity) -> int:
    """Where an entity starts."""
    return entity.start


def clusters(ordered: Sequence[Entity]) -> Iterator[list[Entity]]:
    """Runs of entities that touch one another, so that a long document costs no more than its sentences."""
    cluster: list[Entity] = []
    end = -1
    for entity in ordered:
        if cluster and entity.start >= end:
            yield cluster
            cluster = []
        cluster.append(entity)
        end = max(end, entity.end)
    if cluster:
        yield cluster


def clash(one: Entity, other: Entity, overlap: Overlap) -> bool:
    """Whether two entities cannot both stay."""
    if overlap == "flat":
        return any(a.overlaps(b) for a in one.spans for b in other.spans)
    return any(a.crosses(b) for a in one.spans for b in other.spans)
