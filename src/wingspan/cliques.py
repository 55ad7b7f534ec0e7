"""Maximal cliques of small graphs, with a limit on the work: neighbors are bits of whole numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

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
