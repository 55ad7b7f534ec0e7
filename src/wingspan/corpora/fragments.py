"""Discontinuous gold: what a model without links is given instead, and which of it links can say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Literal, NamedTuple

from wingspan.text import Document, Entity, Span

Fragments = Literal["drop", "split", "hull", "join"]
"""What becomes of discontinuous gold in training: nothing; an entity of each fragment; of all from first to last; or
fragments that are joined again."""


def arranged(documents: Iterable[Document], policy: Fragments) -> Iterator[Document]:
    """The documents as a model with this policy learns them; `drop` and `join` leave them as they are."""
    for document in documents:
        if policy in ("drop", "join") or not any(entity.discontinuous for entity in document.entities):
            yield document
        else:
            entities = dict.fromkeys(part for entity in document.entities for part in in_pieces(entity, policy))
            yield replace(document, entities=tuple(entities))


def in_pieces(entity: Entity, policy: Fragments) -> list[Entity]:
    """The contiguous entities that stand for one: its fragments, or all words from the first to the last."""
    if not entity.discontinuous:
        return [entity]
    spans = entity.spans if policy == "split" else (entity.hull,)
    return [Entity(entity.label, (span,), entity.score, entity.meta) for span in spans]


class Mistaken(NamedTuple):
    """What perfect fragments and links would still get wrong."""

    lost: list[Entity]
    extra: list[Entity]


def mistaken(entities: Sequence[Entity]) -> Mistaken:
    """The discontinuous entities that are not joined again from perfect fragments and links, and what is instead.

    Links join pairs; what is read are the largest sets in which all are linked. {a, b} beside {a, b, c} is lost, and
    of {a, b, x}, {b, c, y} and {a, c, z} the set {a, b, c} is made as well.
    """
    lost: list[Entity] = []
    extra: list[Entity] = []
    joined = [entity for entity in entities if entity.discontinuous]
    for label in sorted({entity.label for entity in joined}):
        mine = [entity for entity in joined if entity.label == label]
        if len(mine) > 1:  # one alone is always joined again
            again = rejoined(mine)
            lost += [entity for entity in mine if entity.spans not in again]
            extra += [Entity(label, spans) for spans in again if Entity(label, spans) not in mine]
    return Mistaken(lost, extra)


def rejoined(entities: Sequence[Entity]) -> list[tuple[Span, ...]]:
    """What links make of these entities of one label: the maximal cliques of their fragments."""
    nodes = sorted({span for entity in entities for span in entity.spans})
    place = {span: at for at, span in enumerate(nodes)}
    neighbors = [0] * len(nodes)
    for entity in entities:
        for one, other in combinations({place[span] for span in entity.spans}, 2):
            neighbors[one] |= 1 << other
            neighbors[other] |= 1 << one
    found = maximal_cliques(neighbors).found
    return [tuple(nodes[at] for at in clique) for clique in found]


# --- Maximal cliques of small graphs, with a limit on the work: neighbors are bits of whole numbers.


EFFORT, LEAST = 100, 5_000
"""How much work there may be for each node, and for small graphs in all: enough for whatever people annotate."""


class Cliques(NamedTuple):
    """Sets of nodes as sorted tuples; `complete` is false where the search had to stop before its end."""

    found: list[tuple[int, ...]]
    complete: bool


def maximal_cliques(neighbors: Sequence[int], effort: int | None = None) -> Cliques:
    """All sets of nodes that are linked with each other and to which no node can be added.

    `neighbors[i]` has bit j where i and j are linked (both ways, no node with itself). A graph of n nodes can
    have 3^(n/3) cliques, so `effort` limits how many nodes are looked at and pairs are given out; without it, `EFFORT`
    for each node or `LEAST`. Nodes that come first are searched first.
    See: Bron and Kerbosch 1973 (algorithm 457), with the pivot of Tomita, Tanaka and Takahashi 2006.
    """
    found: list[tuple[int, ...]] = []
    effort = max(EFFORT * len(neighbors), LEAST) if effort is None else effort
    everyone = (1 << len(neighbors)) - 1
    waiting = [(0, everyone, 0)] if neighbors else []  # chosen so far, may be added, was searched already
    while waiting:
        chosen, open_, done = waiting.pop()
        effort -= (open_ | done).bit_count() + 1
        if effort < 0:
            return Cliques(found, False)
        if not open_:
            if not done:
                found.append(tuple(bits(chosen)))
                effort -= len(found[-1]) ** 2  # whoever scores it looks at its pairs
            continue
        # every maximal clique holds the pivot or a node that is not linked with it
        pivot = max(bits(open_ | done), key=lambda node: (open_ & neighbors[node]).bit_count())
        branches = []
        for node in bits(open_ & ~neighbors[pivot]):
            near = neighbors[node]
            branches.append((chosen | 1 << node, open_ & near, done & near))
            open_ &= ~(1 << node)
            done |= 1 << node
        waiting.extend(reversed(branches))
    return Cliques(found, True)


def bits(number: int) -> Iterator[int]:
    """The places of the bits that are set, from the lowest."""
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest
