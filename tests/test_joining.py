from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny import LABELS, arrays_of, of_length, word_inputs

from wingspan.batch import CALIBRATED, Found
from wingspan.corpora.fragments import mistaken
from wingspan.decoding import (
    BUCKETS,
    MOST_FRAGMENTS,
    Linkable,
    buckets,
    entities_joined,
    join,
    join_nearest,
    link_chances,
    tempered,
)
from wingspan.text import Entity, Span


def linked(nodes: int, pairs: dict[tuple[int, int], float]) -> np.ndarray:
    table = np.zeros((nodes, nodes))
    for (one, other), chance in pairs.items():
        table[one, other] = chance
    return table


@st.composite
def families(draw) -> list[tuple[int, ...]]:
    """Entities as sets of places; fragments may be shared."""
    groups = draw(st.lists(st.sets(st.integers(0, 11), min_size=2, max_size=4), max_size=6))
    return sorted({tuple(sorted(group)) for group in groups})


@given(family=families(), sure=st.floats(0.5, 1.0), other=st.floats(0.0, 0.49))
def test_sets_that_are_their_links_cliques_are_joined_exactly_and_the_rest_is_detected(family, sure, other):
    nodes = 12
    links = {pair for group in family for pair in combinations(group, 2)}
    chances = linked(nodes, {pair: sure if pair in links else other for pair in combinations(range(nodes), 2)})
    groups, capped = join([0.9] * nodes, chances)
    assert not capped
    found = {group for group, _ in groups}
    entities = [Entity("A", tuple(Span(at, at + 1) for at in group)) for group in family]
    lost, extra = ({tuple(span.start for span in one.spans) for one in part} for part in mistaken(entities))
    assert len(found) == len(groups)
    assert found == (set(family) - lost) | extra


def test_the_score_is_the_least_of_fragments_and_links():
    chances = linked(4, {(0, 1): 0.9, (1, 2): 0.8, (0, 2): 0.7, (0, 3): 0.6})
    groups, capped = join([0.95, 0.75, 0.99, 0.55], chances)
    assert not capped
    assert dict(groups) == {(0, 1, 2): 0.7, (0, 3): 0.55}


def test_a_fragment_alone_is_no_entity_and_the_bar_is_the_callers():
    chances = linked(3, {(0, 1): 0.4})
    assert join([0.9, 0.9, 0.9], chances)[0] == []
    assert join([0.9, 0.9, 0.9], chances, least_chance=0.3)[0] == [((0, 1), 0.4)]
    assert join([], np.zeros((0, 0)))[0] == []


def test_of_too_many_fragments_the_likeliest_are_joined_and_it_is_said():
    nodes = MOST_FRAGMENTS + 2
    scores = [0.5, *[0.9] * MOST_FRAGMENTS, 0.6]
    chances = linked(nodes, {(0, 1): 0.9, (1, 2): 0.9, (nodes - 2, nodes - 1): 0.9})
    groups, capped = join(scores, chances)
    assert capped
    assert groups == [((1, 2), 0.9)]


def test_200_fragments_that_are_all_linked_in_any_way_come_to_an_end():
    draw = np.random.default_rng(1)
    for share in (0.1, 0.5, 0.9):
        groups, capped = join([0.9] * 200, np.triu(draw.random((200, 200)) < share, 1) * 0.9)
        assert capped
        assert 0 < len(groups) < 5_000


def linkable(found: Found, **others) -> Linkable:
    """Fragments whose links are all likely, but for those from a fragment to itself."""
    size = len(found.start)
    given = {"distance": np.full(BUCKETS, 3.0), "core": np.array([[0, 50]] * 4), **others}
    return Linkable(found, np.zeros((size, 2)), np.zeros((size, 2)), **given)


def found_at(*rows: tuple[int, int, int, int, float]) -> Found:
    return Found(*(np.array(column) for column in zip(*rows, strict=True)))


def test_links_are_scored_by_vectors_order_and_distance():
    found = found_at((0, 0, 2, 1, 0.9), (0, 3, 4, 1, 0.9), (0, 1, 3, 1, 0.9))
    left, right = np.array([[1.0, 2.0], [0.5, 0.0], [0.0, 1.0]]), np.array([[1.0, 0.0], [0.0, 0.5], [2.0, 2.0]])
    distance = np.arange(BUCKETS) / 10
    chances = link_chances(Linkable(found, left, right, distance, np.zeros((1, 2))), np.arange(3))
    one_between = 1 / (1 + np.exp(-(1.0 + 0.2)))  # left(0) · right(1) = 1; a gap of 1 is bucket 2
    none_between = 1 / (1 + np.exp(-0.5))  # left(2) · right(1) = 0.5; a gap of 0 is bucket 0
    expected = linked(3, {(0, 1): one_between, (2, 1): none_between})
    np.testing.assert_allclose(chances, expected, atol=1e-12)  # what overlaps or comes before is no link


def test_distances_have_buckets():
    assert buckets(np.array([-3, 0, 1, 2, 3, 7, 15, 10**9])).tolist() == [0, 0, 2, 3, 4, 6, 8, BUCKETS - 1]


def test_entities_are_made_sentence_by_sentence_and_label_by_label():
    sentences = [of_length(9), of_length(9)]
    inputs = arrays_of(word_inputs(sentences))
    found = found_at(
        (1, 5, 6, 1, 0.8), (0, 0, 2, 1, 0.9), (0, 4, 5, 1, 0.7), (0, 6, 7, 2, 0.9), (1, 1, 2, 1, 0.6), (1, 3, 4, 2, 0.9)
    )
    entities, capped = entities_joined(linkable(found), inputs, LABELS, [0.5] * 3)
    assert capped == 0
    assert entities == [
        [Entity("Drug", (Span(0, 2), Span(4, 5)))],
        [Entity("Drug", (Span(1, 2), Span(5, 6)))],
    ]
    assert [row[0].score for row in entities] == [0.7, 0.6]
    none, _ = entities_joined(linkable(found), inputs, LABELS, [0.5, 0.99, 0.5])
    assert none == [[], []]


def test_an_entity_belongs_to_the_window_that_owns_its_first_word():
    inputs = arrays_of(word_inputs([of_length(9)]))
    found = found_at((0, 1, 2, 1, 0.9), (0, 4, 5, 1, 0.9), (0, 7, 8, 1, 0.9))
    for core, wanted in (((0, 9), 1), ((0, 3), 1), ((2, 9), 0)):
        entities, _ = entities_joined(linkable(found, core=np.array([core])), inputs, LABELS, [0.5] * 3)
        assert len(entities[0]) == wanted


def test_pieces_become_words():
    inputs = arrays_of(word_inputs([of_length(6)]))
    inputs = inputs._replace(words=np.array([[0, 0, 1, 2, 2, 3]]))
    found = found_at((0, 0, 2, 1, 0.9), (0, 3, 5, 1, 0.9))
    entities, _ = entities_joined(linkable(found), inputs, LABELS, [0.5] * 3)
    assert entities == [[Entity("Drug", (Span(0, 1), Span(2, 3)))]]


def test_scores_that_users_see_are_tempered():
    inputs = arrays_of(word_inputs([of_length(6)]))
    found = found_at((0, 0, 2, 1, 0.8), (0, 3, 5, 1, 0.9))
    ((entity,),), _ = entities_joined(linkable(found, temperature=2.0), inputs, LABELS, [0.5] * 3)
    assert entity.score == 0.8
    assert entity.meta[CALIBRATED] == pytest.approx(2 / 3)  # odds of 4 become odds of 2
    assert tempered(0.8, 1.0) == pytest.approx(0.8)
    assert 0 < tempered(0.0, 2.0) < tempered(1.0, 2.0) < 1


def at(start: int, end: int, label: str = "A", score: float = 0.9) -> Entity:
    return Entity.at(label, start, end, score)


def test_the_rule_joins_the_nearest_of_one_label():
    found = [at(0, 1), at(3, 4, score=0.4), at(2, 3, "B"), at(9, 10)]
    assert set(join_nearest(found, 0)) == set(found)
    assert set(join_nearest(found, 1)) == set(found)
    touching = [at(0, 1, "A"), at(1, 2, "A")]
    assert set(join_nearest(touching, 2)) == set(touching)
    joined = join_nearest(found, 2)
    assert set(joined) == {Entity("A", (Span(0, 1), Span(3, 4))), at(9, 10), at(2, 3, "B")}
    assert next(entity.score for entity in joined if entity.discontinuous) == 0.4
    assert set(join_nearest(found, 5)) == {Entity("A", (Span(0, 1), Span(3, 4), Span(9, 10))), at(2, 3, "B")}


def test_the_rule_leaves_overlaps_alone_and_keeps_calibrated_scores():
    outer, inner, next_to = at(0, 4), at(1, 2), at(4, 5)
    assert set(join_nearest([outer, inner, next_to], 1)) == {outer, inner, next_to}
    one, other = (Entity("A", (Span(n, n + 1),), 0.9, {CALIBRATED: 0.5 + n / 10}) for n in (0, 2))
    (joined,) = join_nearest([other, one], 1)
    assert joined.meta == {CALIBRATED: 0.5}
