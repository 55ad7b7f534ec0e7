"""Discontinuous gold: substitutes for models without links, and which entities links can express."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, combinations
from typing import Literal, NamedTuple

from wingspan.text import Document, Entity, Span

Fragments = Literal["drop", "split", "hull", "join"]
"""How training treats discontinuous gold: left out; an entity for each fragment; one from the first to the last word;
or fragments that are joined again."""


def arranged(documents: Iterable[Document], policy: Fragments) -> Iterator[Document]:
    """The documents as a model with this policy learns them; `drop` and `join` leave them as they are."""
    for document in documents:
        if policy in ("drop", "join") or not any(entity.discontinuous for entity in document.entities):
            yield document
        else:
            entities = dict.fromkeys(part for entity in document.entities for part in in_pieces(entity, policy))
            yield replace(document, entities=tuple(entities))


def in_pieces(entity: Entity, policy: Fragments) -> list[Entity]:
    """The contiguous entities that replace one: its fragments, or all words from the first to the last."""
    if not entity.discontinuous:
        return [entity]
    spans = entity.spans if policy == "split" else (entity.hull,)
    return [Entity(entity.label, (span,), entity.score, entity.meta) for span in spans]


class Mistaken(NamedTuple):
    """Errors that remain with perfect fragments and links."""

    lost: list[Entity]
    extra: list[Entity]


def mistaken(entities: Sequence[Entity]) -> Mistaken:
    """The discontinuous entities that perfect fragments and links do not give back, and those they give instead.

    Links join pairs, and entities are the largest sets in which all are linked. {a, b} beside {a, b, c} is lost, and
    {a, b, x}, {b, c, y} and {a, c, z} also make the set {a, b, c}.
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
    """The entities that links make of these entities of one label: the maximal cliques of their fragments."""
    nodes = sorted({span for entity in entities for span in entity.spans})
    place = {span: at for at, span in enumerate(nodes)}
    links = {pair for entity in entities for pair in combinations(sorted(place[span] for span in entity.spans), 2)}
    return [tuple(nodes[at] for at in clique) for clique in maximal_cliques(len(nodes), links).found]


EFFORT, LEAST = 100, 5_000
"""The effort allowed per node, and for small graphs in all: enough for any text that people annotate."""


class Cliques(NamedTuple):
    """Sets of nodes as sorted tuples; `complete` is false where the search had to stop before its end."""

    found: list[tuple[int, ...]]
    complete: bool


def maximal_cliques(nodes: int, links: Collection[Sequence[int]], effort: int | None = None) -> Cliques:
    """All sets of nodes that are linked with each other and to which no node can be added.

    A graph of n nodes can have 3^(n/3) cliques, so `effort` limits the search: each clique costs 10 and the square of
    its size, because its pairs will be scored. The default is `EFFORT` per node, at least `LEAST`.
    See: Bron and Kerbosch 1973 (algorithm 457), with the pivot of Tomita, Tanaka and Takahashi 2006.
    """
    import networkx  # slow to import

    effort = max(EFFORT * nodes, LEAST) if effort is None else effort
    degrees = Counter(chain.from_iterable(links))
    shared = {node for node in range(nodes) if degrees[node] == nodes - 1}  # in every clique: no need to search
    graph = networkx.Graph()
    graph.add_nodes_from(node for node in range(nodes) if node not in shared)
    graph.add_edges_from(link for link in links if shared.isdisjoint(link))
    found: list[tuple[int, ...]] = []
    for clique in networkx.find_cliques(graph) if graph else [[]] if shared else []:
        effort -= 10 + (len(clique) + len(shared)) ** 2
        if effort < 0:
            return Cliques(found, False)
        found.append(tuple(sorted([*clique, *shared])))
    return Cliques(found, True)
