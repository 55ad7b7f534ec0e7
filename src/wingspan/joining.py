"""Fragments into discontinuous entities: by scored links, or by a rule. Numpy only.

Links join two fragments; an entity is a largest set of fragments that are all linked with each other, so that two
entities may share a fragment ("muscle pain and fatigue") and one may have three or more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from wingspan.batch import CALIBRATED, Array, Found, Inputs
from wingspan.cliques import maximal_cliques
from wingspan.labels import LabelSet
from wingspan.text import Entity, Span

MOST_FRAGMENTS = 200
"""Fragments of one label in one sentence that are joined, the likeliest ones."""
BUCKETS = 24
"""How finely distances are told apart: half octaves, up to 4,096 units."""


class Linkable(NamedTuple):
    """Found fragments, and what their links are scored with."""

    found: Found
    left: Array  # (N, K) what a fragment is to those behind it
    right: Array  # (N, K) what it is to those before it
    distance: Array  # (BUCKETS,) what the distance between two fragments adds
    core: Array  # (B, 2) units of each sentence in which an entity must begin
    temperature: float = 1.0  # of the scores that users see


class Joined(NamedTuple):
    """Sets of fragments with their scores, and whether the limits on the work cut some off."""

    groups: list[tuple[tuple[int, ...], float]]
    capped: bool


def buckets(gap: Array) -> Array:
    """Distances of 0, 1, 2 and more units on a logarithmic scale, two steps for each doubling."""
    return np.minimum((2 * np.log2(np.maximum(gap, 0) + 1) + 1e-4).astype(np.int64), BUCKETS - 1)


def link_chances(linkable: Linkable, rows: Array) -> Array:
    """The chance that each pair of these fragments belongs to one entity; 0 unless the second comes behind the first.

    score(i, j) = left(i) · right(j) + bias of the distance  -> (n, n)
    """
    start, end = linkable.found.start[rows], linkable.found.end[rows]
    gap = start[None, :] - end[:, None]
    scores = linkable.left[rows] @ linkable.right[rows].T + linkable.distance[buckets(gap)]
    return np.where(gap >= 0, 1 / (1 + np.exp(-np.clip(scores, -60, 60))), 0.0)


def join(scores: Sequence[float], chances: Array, bar: float = 0.5) -> Joined:
    """Sets of two or more fragments of one label and sentence that all have links with a chance of at least `bar`.

    `chances[i, j]` is that of a link from i to j behind it. A set's score is the least of its fragments and links. At
    most `MOST_FRAGMENTS` fragments are looked at, with the effort of `maximal_cliques` for each.
    """
    order = sorted(range(len(scores)), key=lambda at: -scores[at])[:MOST_FRAGMENTS]
    table = np.asarray(chances)[np.ix_(order, order)]
    table = np.maximum(table, table.T)
    linked = table >= bar
    np.fill_diagonal(linked, False)
    connected = np.flatnonzero(linked.any(0))  # a fragment without any link is no entity
    rows = linked[np.ix_(connected, connected)]
    packed = np.packbits(rows, axis=1, bitorder="little")
    found, complete = maximal_cliques([int.from_bytes(row.tobytes(), "little") for row in packed])
    links, names = table[np.ix_(connected, connected)].tolist(), [order[node] for node in connected]
    groups = []
    for clique in found:
        weakest = min(links[one][other] for one, other in combinations(clique, 2))
        members = tuple(sorted(names[node] for node in clique))
        groups.append((members, min(weakest, *(scores[at] for at in members))))
    return Joined(groups, not complete or len(scores) > MOST_FRAGMENTS)


def entities_joined(
    linkable: Linkable, inputs: Inputs, labels: LabelSet, bars: Sequence[float]
) -> tuple[list[list[Entity]], int]:
    """Discontinuous entities in words, sentence by sentence, and how many times a limit cut some off.

    `bars` is the least chance of a link, by class. An entity belongs to the window whose core has its first word.
    """
    names = labels.names()
    sentences: list[list[Entity]] = [[] for _ in range(len(inputs.words))]
    capped = 0
    found = linkable.found
    for row, label, members in by_label(found):
        joined = join(found.score[members].tolist(), link_chances(linkable, members), bars[label])
        capped += joined.capped
        name = names[label]
        assert name is not None, "no fragment is read as the class of no entity"
        words, (first, past) = inputs.words[row], linkable.core[row].tolist()
        spans = [
            Span(int(start), int(last) + 1)
            for start, last in zip(words[found.start[members]], words[found.end[members] - 1], strict=True)
        ]
        owned = [first <= start < past for start in found.start[members].tolist()]
        for group, score in joined.groups:
            if owned[group[0]]:  # members are in the order of the text
                meta = {CALIBRATED: tempered(score, linkable.temperature)} if linkable.temperature != 1.0 else {}
                sentences[row].append(Entity(name, tuple(spans[at] for at in group), score, meta))
    return sentences, capped


def by_label(found: Found) -> Iterator[tuple[int, int, Any]]:
    """Sentence, class and the places of the fragments of each that has two or more."""
    order = np.lexsort((found.end, found.start, found.label, found.sentence))
    keys = np.stack([found.sentence, found.label], -1)[order]
    borders = np.flatnonzero((keys[1:] != keys[:-1]).any(-1)) + 1
    for members in np.split(order, borders):
        if len(members) > 1:
            yield int(found.sentence[members[0]]), int(found.label[members[0]]), members


def tempered(chance: float, temperature: float) -> float:
    """The chance that users see: its log-odds divided by the temperature."""
    inside = min(max(chance, 1e-7), 1 - 1e-7)
    return float(1 / (1 + np.exp(-np.log(inside / (1 - inside)) / temperature)))


def join_nearest(entities: Sequence[Entity], gap: int) -> list[Entity]:
    """The rule: entities of one label become one while the next begins at most `gap` words behind the last's end.

    Those that overlap are left as they are, and so is everything where the gap is 0.
    """
    if gap < 1:
        return list(entities)
    joined: list[Entity] = []
    for label in sorted({entity.label for entity in entities}):
        mine = sorted((entity for entity in entities if entity.label == label), key=lambda entity: entity.spans)
        groups: list[list[Entity]] = []
        for entity in mine:
            near = groups and 1 <= entity.start - groups[-1][-1].end <= gap
            if near:
                groups[-1].append(entity)
            else:
                groups.append([entity])
        joined += [as_one(group) for group in groups]
    return joined


def as_one(group: Sequence[Entity]) -> Entity:
    """One entity of all their fragments; its score is the least of theirs."""
    if len(group) == 1:
        return group[0]
    weakest = min(group, key=lambda entity: entity.score)
    spans = tuple(span for entity in group for span in entity.spans)
    shown = [entity.meta[CALIBRATED] for entity in group if CALIBRATED in entity.meta]
    return Entity(group[0].label, spans, weakest.score, {CALIBRATED: min(shown)} if shown else {})
