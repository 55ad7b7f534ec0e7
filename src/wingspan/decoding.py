"""From scored entities to final ones: overlaps are resolved, fragments joined into discontinuous entities. No torch."""

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from operator import attrgetter, le
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from wingspan.batch import CALIBRATED, Array, Found, Inputs, places_within
from wingspan.corpora.fragments import Fragments, maximal_cliques
from wingspan.labels import LabelSet
from wingspan.text import Entity, Span, reading_order

Overlap = Literal["flat", "nested", "any"]
"""Which entities may stay together: none that overlap, none that cross, or all."""

start_of = attrgetter("start")


def resolve(entities: Sequence[Entity], overlap: Overlap) -> tuple[Entity, ...]:
    """Greedy by score: an entity stays if it does not clash with one that scored higher. In reading order.

    Not the heuristic of Fu et al., whose code always keeps the last span: see docs/papers.md, Bundling.
    """
    ordered = sorted(entities, key=reading_order)
    if apart(ordered):
        return tuple(ordered)
    best: dict[Entity, Entity] = {}  # repeated entities count once, with their highest score
    for entity in entities:
        if entity not in best or entity.score > best[entity].score:
            best[entity] = entity
    ordered = sorted(best.values(), key=reading_order)
    if overlap == "any":
        return tuple(ordered)
    kept: list[Entity] = []
    for cluster in clusters(ordered):
        chosen: list[Entity] = []  # sorted by start, so that only neighbors are compared
        widest = 0
        for entity in sorted(cluster, key=lambda e: (-e.score, reading_order(e))):
            first = bisect_left(chosen, entity.start - widest, key=start_of)
            past = bisect_left(chosen, entity.end, key=start_of)
            if not any(clash(entity, chosen[at], overlap) for at in range(first, past)):
                insort(chosen, entity, key=start_of)
                widest = max(widest, entity.end - entity.start)
        kept.extend(sorted(chosen, key=reading_order))
    return tuple(kept)


MOST_PAIRS = 1000  # of overlapping entities in a sentence that are compared at once


def without_clashes(
    found: Found, inputs: Inputs, labels: LabelSet, overlap: Overlap, alone: Array
) -> tuple[Found, Array]:
    """What `resolve` keeps of the entities in one piece, for many sentences at once, in reading order.

    Only sentences that are `alone` are decided, whose entities meet none of other sentences; the second value is true
    for them, unless too much overlaps there. In each round all entities stay that scored higher than everything they
    clash with, and what clashes with them goes.  (B,) -> (B,)
    """
    rank = labels.ranks[inputs.dataset[found.sentence], found.label]
    # what was found twice counts once, with its highest score
    order = np.lexsort((-found.score, rank, found.end, found.start, found.sentence))
    keys = np.stack([found.sentence, found.start, found.end, rank])[:, order]  # (4, N)
    new = (keys[:, 1:] != keys[:, :-1]).any(0)
    found = found.rows(order[np.append(True, new)[: len(order)]])
    if overlap == "any":
        return found, alone
    # with all sentences in one row, an entity overlaps those after it that start before its end
    row = found.sentence * (int(found.end.max(initial=0)) + 1)
    start, end = row + found.start, row + found.end
    number = np.arange(len(start))
    overlapped = np.searchsorted(start, end) - number - 1
    alone = alone & (np.bincount(found.sentence, overlapped, len(alone)) <= MOST_PAIRS)
    overlapped[~alone[found.sentence]] = 0
    first = np.repeat(number, overlapped)  # (pairs,)
    second = first + 1 + places_within(overlapped)
    if overlap == "nested":
        crossing = (start[first] < start[second]) & (end[first] < end[second])
        first, second = first[crossing], second[crossing]
    place = np.empty_like(number)
    place[np.argsort(-found.score, kind="stable")] = number  # of equals the one that is read first
    better, worse = np.where(place[first] < place[second], (first, second), (second, first))
    stays = np.ones(len(start), dtype=bool)
    while len(better):
        beaten = np.zeros_like(stays)
        beaten[worse] = True
        stays[worse[~beaten[better]]] = False
        left = stays[better] & stays[worse]
        better, worse = better[left], worse[left]
    return found.rows(stays), alone


def apart(ordered: Sequence[Entity]) -> bool:
    """Whether each entity ends before the next begins."""
    starts = [entity.spans[0][0] for entity in ordered]
    ends = [entity.spans[0][1] if len(entity.spans) == 1 else entity.end for entity in ordered]
    return all(map(le, ends, starts[1:]))


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


# Fragments joined into discontinuous entities, by scored links or by a rule
#
# A link joins two fragments; an entity is a maximal set of fragments that are all linked with each other, so that two
# entities may share a fragment ("muscle pain and fatigue") and one may have three or more.


MOST_FRAGMENTS = 200  # the most fragments of one label in one sentence that are joined; the likeliest ones
BUCKETS = 24  # buckets of distances: half octaves, up to 4,096 units


@dataclass(frozen=True)
class Joining:
    """How discontinuous entities are handled.

    `fragments` is how training treats them: `join` needs the term `links`. `bar` is the least chance of a fragment or
    link. A `gap` of 1 or more joins entities by rule, see `join_nearest`. `auto` values are chosen on the dev documents
    after training, and stored.
    """

    fragments: Fragments = "drop"
    bar: float | Literal["auto"] = "auto"
    gap: int | Literal["auto"] = 0

    def __post_init__(self) -> None:
        if self.fragments not in get_args(Fragments):
            raise ValueError(f"joining.fragments is {self.fragments!r}; use {', '.join(get_args(Fragments))}")
        if self.bar != "auto" and not 0 < self.bar < 1:
            raise ValueError(f"joining.bar is {self.bar}; it is a chance between 0 and 1, or auto")
        if self.gap != "auto" and self.gap < 0:
            raise ValueError(f"joining.gap is {self.gap}; give 0 words (no joining by rule) or more, or auto")

    @property
    def joins(self) -> bool:
        """Whether entities of several fragments can be found."""
        return self.fragments == "join" or self.most_between > 0

    @property
    def least_chance(self) -> float:
        """The bar; one half until it is chosen."""
        return 0.5 if self.bar == "auto" else self.bar

    @property
    def most_between(self) -> int:
        """The gap; 0 until it is chosen."""
        return 0 if self.gap == "auto" else self.gap


class Linkable(NamedTuple):
    """Found fragments, and the vectors that score their links."""

    found: Found
    left: Array  # (N, K) of a fragment as the first of a link
    right: Array  # (N, K) of a fragment as the second of a link
    distance: Array  # (BUCKETS,) added to the score, by the distance between two fragments
    core: Array  # (B, 2) units of each sentence in which an entity must begin
    temperature: float = 1.0  # of the calibrated scores

    def without_padding(self) -> "Linkable | None":
        """As arrays, only the fragments that were found; None if these are more than there was room for."""
        found = self.found.without_padding()
        if found is None:
            return None
        number = len(found.start)
        return self._replace(found=found, left=self.left[:number], right=self.right[:number])


def buckets(gap: Array) -> Array:
    """The buckets of distances in units: a logarithmic scale with two steps per doubling."""
    return np.minimum((2 * np.log2(np.maximum(gap, 0) + 1) + 1e-4).astype(np.int64), BUCKETS - 1)


def link_chances(linkable: Linkable, rows: Array) -> Array:
    """The chance that each pair of these fragments belongs to one entity; 0 unless the second follows the first.

    score(i, j) = left(i) · right(j) + bias of the distance  -> (n, n)
    """
    start, end = linkable.found.start[rows], linkable.found.end[rows]
    gap = start[None, :] - end[:, None]
    scores = linkable.left[rows] @ linkable.right[rows].T + linkable.distance[buckets(gap)]
    return np.where(gap >= 0, 1 / (1 + np.exp(-np.clip(scores, -60, 60))), 0.0)


def join(
    scores: Sequence[float], chances: Array, least_chance: float = 0.5
) -> tuple[list[tuple[tuple[int, ...], float]], bool]:
    """Maximal sets of fragments of one label and sentence whose links all have at least this chance, with their scores.

    `chances[i, j]` is the chance of a link from i to a later j. The score of a set is the least of its fragments and
    links. At most `MOST_FRAGMENTS` fragments are considered, with the work limit of `maximal_cliques`; the second value
    says whether that cut some off.
    """
    order = sorted(range(len(scores)), key=lambda at: -scores[at])[:MOST_FRAGMENTS]
    table = np.asarray(chances)[np.ix_(order, order)]
    table = np.maximum(table, table.T)
    linked = table >= least_chance
    np.fill_diagonal(linked, False)
    connected = np.flatnonzero(linked.any(0))  # a fragment without a link is no entity
    rows = linked[np.ix_(connected, connected)]
    cliques, complete = maximal_cliques(len(rows), np.argwhere(np.triu(rows)).tolist())
    links, names = table[np.ix_(connected, connected)].tolist(), [order[node] for node in connected]
    groups = []
    for clique in cliques:
        weakest = min(links[first][second] for first, second in combinations(clique, 2))
        members = tuple(sorted(names[node] for node in clique))
        groups.append((members, min(weakest, *(scores[at] for at in members))))
    return groups, not complete or len(scores) > MOST_FRAGMENTS


def entities_joined(
    linkable: Linkable, inputs: Inputs, labels: LabelSet, least_chances: Sequence[float]
) -> tuple[list[list[Entity]], int]:
    """Discontinuous entities in words, sentence by sentence, and how often the work limit cut some off.

    `least_chances` of fragments and links are by class. An entity belongs to the window whose core has its first word.
    """
    names = labels.answers
    sentences: list[list[Entity]] = [[] for _ in range(len(inputs.words))]
    capped = 0
    found = linkable.found
    likely = np.flatnonzero(found.score >= np.asarray(least_chances)[found.label])
    for row, label, members in by_label(found, likely):
        groups, cut_off = join(found.score[members].tolist(), link_chances(linkable, members), least_chances[label])
        capped += cut_off
        name = names[inputs.dataset[row]][label]
        assert name is not None, "no fragment is decoded as the class of no entity"
        words, (first, past) = inputs.words[row], linkable.core[row].tolist()
        spans = [
            Span(int(start), int(last) + 1)
            for start, last in zip(words[found.start[members]], words[found.end[members] - 1], strict=True)
        ]
        owned = [first <= start < past for start in found.start[members].tolist()]
        for group, score in groups:
            if owned[group[0]]:  # members are in the order of the text
                meta = {CALIBRATED: tempered(score, linkable.temperature)} if linkable.temperature != 1.0 else {}
                sentences[row].append(Entity(name, tuple(spans[at] for at in group), score, meta))
    return sentences, capped


def by_label(found: Found, likely: Array) -> Iterator[tuple[int, int, Any]]:
    """Each sentence and class with two or more likely fragments, and the indices of these."""
    order = likely[np.lexsort([part[likely] for part in (found.end, found.start, found.label, found.sentence)])]
    keys = np.stack([found.sentence, found.label], -1)[order]
    borders = np.flatnonzero((keys[1:] != keys[:-1]).any(-1)) + 1
    for members in np.split(order, borders):
        if len(members) > 1:
            yield int(found.sentence[members[0]]), int(found.label[members[0]]), members


def tempered(chance: float, temperature: float) -> float:
    """The calibrated chance: its log-odds divided by the temperature."""
    inside = min(max(chance, 1e-7), 1 - 1e-7)
    return float(1 / (1 + np.exp(-np.log(inside / (1 - inside)) / temperature)))


def join_nearest(entities: Sequence[Entity], gap: int) -> list[Entity]:
    """Joins entities of one label by rule, while the next begins 1 to `gap` words after the last one's end."""
    if gap < 1:
        return list(entities)
    joined: list[Entity] = []
    for label in sorted({entity.label for entity in entities}):
        mine = sorted((entity for entity in entities if entity.label == label), key=lambda entity: entity.spans)
        groups: list[list[Entity]] = []
        for entity in mine:
            if groups and 1 <= entity.start - groups[-1][-1].end <= gap:
                groups[-1].append(entity)
            else:
                groups.append([entity])
        for group in groups:
            spans = tuple(span for entity in group for span in entity.spans)
            least = min(entity.score for entity in group)
            shown = [entity.meta[CALIBRATED] for entity in group if CALIBRATED in entity.meta]
            whole = Entity(label, spans, least, {CALIBRATED: min(shown)} if shown else {})
            joined.append(whole if len(group) > 1 else group[0])
    return joined
