from itertools import combinations
from typing import Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wingspan.corpora.overlaps import flatten, nested_and_crossing, overlapping
from wingspan.text import Document, Entity, Span

TEXT = "x" * 30
NESTED = (Entity.at("ORG", 0, 10), Entity.at("LOC", 0, 4), Entity.at("PER", 12, 16), Entity.at("TITLE", 14, 20))


@pytest.mark.parametrize(
    ("overlap", "kept"),
    [
        ("keep", ["LOC", "ORG", "PER", "TITLE"]),
        ("outer", ["ORG", "TITLE"]),
        ("inner", ["LOC", "PER"]),
        ("none", []),
    ],
)
def test_nested_and_crossing_entities(overlap: Literal["keep", "outer", "inner", "none"], kept: list[str]) -> None:
    document, removed = flatten(Document("d", TEXT, NESTED), overlap)
    assert [entity.label for entity in document.entities] == kept
    assert removed == 4 - len(kept)


def test_touching_entities_do_not_overlap() -> None:
    touching = (Entity.at("A", 0, 4), Entity.at("B", 4, 8))
    assert flatten(Document("d", TEXT, touching), "none")[1] == 0


def test_of_two_labels_on_one_span_the_first_stays() -> None:
    document, removed = flatten(Document("d", TEXT, (Entity.at("B", 0, 4), Entity.at("A", 0, 4))), "outer")
    assert ([entity.label for entity in document.entities], removed) == (["A"], 1)


def test_an_entity_in_the_gap_of_another_does_not_overlap_it() -> None:
    apart = (Entity("A", (Span(0, 2), Span(8, 10))), Entity.at("B", 4, 6))
    assert overlapping(apart) == set()


def test_nesting_counts_inner_entities_and_crossing_counts_pairs() -> None:
    assert nested_and_crossing(NESTED) == (1, 1)
    assert nested_and_crossing((Entity.at("A", 0, 4), Entity.at("B", 0, 4))) == (0, 0)
    assert nested_and_crossing((Entity.at("A", 0, 9), Entity.at("B", 1, 8), Entity.at("C", 2, 3))) == (2, 0)


spans = st.tuples(st.integers(0, 25), st.integers(1, 6)).map(lambda pair: Span(pair[0], sum(pair)))
entities = st.builds(Entity, st.sampled_from("AB"), st.lists(spans, min_size=1, max_size=2).map(tuple))


def share(one: Entity, other: Entity) -> bool:
    return any(left.overlaps(right) for left in one.spans for right in other.spans)


@example([Entity("A", (Span(0, 3), Span(1, 2))), Entity.at("B", 2, 3)])  # an entity does not overlap itself
@given(st.lists(entities, max_size=8))
def test_against_all_pairs(found: list[Entity]) -> None:
    expected = {at for pair in combinations(range(len(found)), 2) if share(*(found[i] for i in pair)) for at in pair}
    assert overlapping(found) == expected
    for overlap in ("outer", "inner", "none"):
        document, removed = flatten(Document("d", TEXT, tuple(found)), overlap)
        assert len(document.entities) + removed == len(found)
        assert not any(share(*pair) for pair in combinations(document.entities, 2))
    hulls = [entity.hull for entity in found]
    inside = sum(any(other != hull and other.contains(hull) for other in hulls) for hull in hulls)
    crossing = sum(left.crosses(right) for left, right in combinations(hulls, 2))
    assert nested_and_crossing(found) == (inside, crossing)
