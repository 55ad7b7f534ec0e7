"""Which of the found entities are kept together: flat (none overlap), nested (none cross), any (all)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from wingspan.text import Entity, reading_order

Overlap = Literal["flat", "nested", "any"]


def resolve(entities: Sequence[Entity], overlap: Overlap) -> tuple[Entity, ...]:
    """Greedy by score: an entity stays if it does not clash with one that scored higher. In reading order.

    Not the heuristic of Fu et al., whose code always keeps the last span: see systems.md 4.B.
    """
    ordered = sorted(set(entities), key=reading_order)
    if overlap == "any":
        return tuple(ordered)
    kept: list[Entity] = []
    for cluster in clusters(ordered):
        chosen: list[Entity] = []
        for entity in sorted(cluster, key=lambda e: (-e.score, reading_order(e))):
            if not any(clash(entity, other, overlap) for other in chosen):
                chosen.append(entity)
        kept.extend(sorted(chosen, key=reading_order))
    return tuple(kept)


def clusters(ordered: Sequence[Entity]) -> Iterator[list[Entity]]:
    """Runs of entities that touch one another, so that a long document costs no more than its sentences."""
    cluster: list[Entity] = []
    end = -1
    for entity in ordered:
        if cluster and entity.start >= end:
            yield cluster
            cluster = []
        cluster.append(entity)
        end = max(end, entity.end) if len(cluster) > 1 else entity.end
    if cluster:
        yield cluster


def clash(one: Entity, other: Entity, overlap: Overlap) -> bool:
    """Whether two entities cannot both stay."""
    if overlap == "flat":
        return any(a.overlaps(b) for a in one.spans for b in other.spans)
    return any(a.crosses(b) for a in one.spans for b in other.spans)
