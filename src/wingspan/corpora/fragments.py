"""Discontinuous gold: substitutes for models without links, and which entities links can express."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, combinations
from typing import Literal

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
            pieces = (
                replace(entity, spans=(span,))
                for entity in document.entities
                for span in (entity.spans if policy == "split" else (entity.hull,))
            )
            yield replace(document, entities=tuple(dict.fromkeys(pieces)))


def mistaken(entities: Sequence[Entity]) -> tuple[list[Entity], list[Entity]]:
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
    return lost, extra


def rejoined(entities: Sequence[Entity]) -> list[tuple[Span, ...]]:
    """The entities that links make of these entities of one label: the maximal cliques of their fragments."""
    nodes = sorted({span for entity in entities for span in entity.spans})
    place = {span: at for at, span in enumerate(nodes)}
    links = {pair for entity in entities for pair in combinations(sorted(place[span] for span in entity.spans), 2)}
    return [tuple(nodes[at] for at in clique) for clique in maximal_cliques(len(nodes), links)[0]]


EFFORT, LEAST = 100, 5_000  # per node, and for small graphs in all: enough for any text that people annotate


def maximal_cliques(
    nodes: int, links: Collection[Sequence[int]], effort: int | None = None
) -> tuple[list[tuple[int, ...]], bool]:
    """All sets of nodes that are linked with each other and to which no node can be added, and if the search ended.

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
            return found, False
        found.append(tuple(sorted([*clique, *shared])))
    return found, True
