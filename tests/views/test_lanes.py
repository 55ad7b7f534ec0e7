from hypothesis import given
from hypothesis import strategies as st

from wingspan.text import Entity, Span
from wingspan.views.html import lanes, pieces

LENGTH = 12
SPANS = st.tuples(st.integers(0, LENGTH - 1), st.integers(1, 4)).map(lambda p: Span(p[0], min(LENGTH, p[0] + p[1])))
ENTITIES = st.lists(
    st.builds(lambda spans: Entity("L", tuple(spans)), st.lists(SPANS, min_size=1, max_size=3)), max_size=8
)


def test_what_is_around_lies_below_and_neighbors_share_a_lane():
    inner, outer, beside = Entity.at("A", 4, 9), Entity.at("B", 0, 9), Entity.at("C", 9, 12)
    assert lanes([outer, inner, beside]) == [1, 0, 0]


def test_fragments_of_one_entity_keep_others_out_of_their_gap():
    split, within = Entity("A", (Span(0, 2), Span(8, 10))), Entity.at("B", 4, 6)
    assert lanes([split, within]) == [1, 0]
    assert [(p.span, p.inside, p.between, p.closing) for p in pieces(11, [split, within])] == [
        ((0, 2), (0,), (), ()),
        ((2, 4), (), (0,), ()),
        ((4, 6), (1,), (0,), (1,)),
        ((6, 8), (), (0,), ()),
        ((8, 10), (0,), (), (0,)),
        ((10, 11), (), (), ()),
    ]


def test_of_two_that_end_together_the_shorter_is_named_first():
    (_, last, _) = pieces(10, [Entity.at("long", 0, 8), Entity.at("short", 4, 8)])
    assert last.closing == (1, 0)


@given(ENTITIES)
def test_overlapping_entities_never_share_a_lane(entities):
    places = lanes(entities)
    for one, first in zip(entities, places, strict=True):
        for other, second in zip(entities, places, strict=True):
            if one is not other and one.hull.overlaps(other.hull):
                assert first != second
            if one.hull != other.hull and one.hull.contains(other.hull):
                assert first > second


@given(ENTITIES)
def test_pieces_are_the_text_and_know_every_character(entities):
    found = list(pieces(LENGTH, entities))
    assert [n for piece in found for n in range(*piece.span)] == list(range(LENGTH))
    for piece in found:
        for at in range(*piece.span):
            assert {n for n, e in enumerate(entities) if any(s <= at < t for s, t in e.spans)} == set(piece.inside)
            held = {n for n, e in enumerate(entities) if e.start <= at < e.end}
            assert held == set(piece.inside) | set(piece.between)
    assert sorted(n for piece in found for n in piece.closing) == list(range(len(entities)))
