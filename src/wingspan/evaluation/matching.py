"""Which found entity answers which gold entity of one document: one to one, best total, whatever the order.

The verdicts are those of MUC and SemEval-2013 task 9.1. Among all one-to-one matchings the one with the most credit is
taken (correct 1, partial 1/2), then the most correct pairs, then the most pairs; that fixes every count, so no order of
the entities can change a score. Nested, crossing, multi-label and discontinuous entities need no special case.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from wingspan.evaluation.assignment import NOWHERE, heaviest
from wingspan.text import Entity, reading_order

Mode = Literal["strict", "exact", "partial", "type", "lenient", "fragments"]
Verdict = Literal["correct", "incorrect", "partial", "missed", "spurious"]

HALVES: dict[Verdict, int] = {"correct": 2, "partial": 1, "incorrect": 0}
"""Credit of a pair in halves, so that sums stay integers."""


class Match(NamedTuple):
    """A verdict and whom it is about: `gold` is None for spurious entities, `found` is None for missed ones."""

    verdict: Verdict
    gold: Entity | None
    found: Entity | None


def match(gold: Iterable[Entity], found: Iterable[Entity], mode: Mode = "strict") -> list[Match]:
    """Every gold and every found entity of one document in exactly one match. Repeated entities count once."""
    if mode == "fragments":
        gold, found = fragments(gold), fragments(found)
    wanted, given = set(gold), set(found)
    same = wanted & given
    # An entity found exactly as it is in the gold can be set aside if giving it to another never pays. That holds where
    # being correct needs equal boundaries. By type it does not: two pairs that overlap beat one that is identical.
    if same and (mode not in ("type", "lenient") or wanted == given):
        wanted -= same
        given -= same
        matches = [Match("correct", entity, entity) for entity in sorted(same, key=reading_order)]
    else:
        matches = []
    if wanted and given:
        return matches + _assign(sorted(wanted, key=reading_order), sorted(given, key=reading_order), mode)
    matches += [Match("missed", entity, None) for entity in sorted(wanted, key=reading_order)]
    matches += [Match("spurious", None, entity) for entity in sorted(given, key=reading_order)]
    return matches


def fragments(entities: Iterable[Entity]) -> set[Entity]:
    """Every fragment as an entity of its own."""
    return {Entity(entity.label, (span,)) for entity in entities for span in entity.spans}


def judge(gold: Entity, found: Entity, mode: Mode) -> Verdict | None:
    """What a pair that overlaps is worth, or None if the mode does not allow it as a pair."""
    if mode == "type":
        return "correct" if gold.label == found.label else "incorrect"
    if mode == "lenient":
        return "correct" if gold.label == found.label else None
    if gold.spans == found.spans and (mode in ("exact", "partial") or gold.label == found.label):
        return "correct"
    return "partial" if mode == "partial" else "incorrect"


def _assign(gold: Sequence[Entity], found: Sequence[Entity], mode: Mode) -> list[Match]:
    """The best matching of entities that have no counterpart yet."""
    base = min(len(gold), len(found)) + 1  # no count of pairs reaches it, so the three aims are digits of one number
    edges: list[dict[int, int]] = [{} for _ in gold]
    verdicts: dict[tuple[int, int], Verdict] = {}
    for g, f in overlaps(gold, found):
        verdict = judge(gold[g], found[f], mode)
        if verdict is not None:
            verdicts[g, f] = verdict
            edges[g][f] = (HALVES[verdict] * base + (verdict == "correct")) * base + 1
    placed = heaviest(edges)
    matches = [
        Match("missed", gold[g], None) if f == NOWHERE else Match(verdicts[g, f], gold[g], found[f])
        for g, f in enumerate(placed)
    ]
    taken = set(placed)
    return matches + [Match("spurious", None, entity) for f, entity in enumerate(found) if f not in taken]


def overlaps(gold: Sequence[Entity], found: Sequence[Entity]) -> list[tuple[int, int]]:
    """The pairs (index in gold, index in found) that share a character in some fragment, sorted.

    An empty fragment counts as its next character, so that it overlaps at least itself.
    """
    spans = sorted(
        (span.start, max(span.end, span.start + 1), side, index)
        for side, entities in enumerate((gold, found))
        for index, entity in enumerate(entities)
        for span in entity.spans
    )
    pairs = set()
    open_spans: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    for start, end, side, index in spans:
        others = open_spans[1 - side]
        others[:] = [other for other in others if other[0] > start]
        for _, other in others:
            pairs.add((index, other) if side == 0 else (other, index))
        open_spans[side].append((end, index))
    return sorted(pairs)
