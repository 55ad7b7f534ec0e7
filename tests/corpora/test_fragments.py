from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wingspan.cli.convert import convert_corpus
from wingspan.corpora.formats import FORMATS, format_named, read, write
from wingspan.corpora.fragments import arranged, mistaken, rejoined
from wingspan.text import Document, Entity, Span


def entity(*starts: int, label: str = "A") -> Entity:
    """An entity of one-word fragments."""
    return Entity(label, tuple(Span(start, start + 1) for start in starts))


FAMILIES = st.lists(st.sets(st.integers(0, 7), min_size=2, max_size=4).map(sorted).map(tuple), max_size=6, unique=True)


def cliques_of(family: list[tuple[int, ...]]) -> set[tuple[int, ...]]:
    """By the definition: largest sets in which all pairs are linked."""
    links = {pair for group in family for pair in combinations(group, 2)}
    nodes = sorted({node for group in family for node in group})
    linked = [
        set(group)
        for size in range(2, len(nodes) + 1)
        for group in combinations(nodes, size)
        if all(pair in links for pair in combinations(group, 2))
    ]
    return {tuple(sorted(group)) for group in linked if not any(group < other for other in linked)}


@given(family=FAMILIES)
def test_what_links_cannot_say_is_detected(family):
    entities = [entity(*group) for group in family]
    again = {tuple(span.start for span in spans) for spans in rejoined(entities)}
    assert again == cliques_of(family)
    lost, extra = ([tuple(span.start for span in one.spans) for one in part] for part in mistaken(entities))
    assert lost == [group for group in family if group not in again]
    assert set(extra) == again - set(family)


def test_shared_fragments_and_three_fragments_are_no_trouble():
    assert mistaken([entity(0, 5), entity(0, 7), entity(1, 3, 9)]) == ([], [])


def test_a_part_of_another_entity_and_a_ring_are_lost():
    part, whole = entity(0, 2), entity(0, 2, 4)
    assert mistaken([part, whole]) == ([part], [])
    ring = [entity(0, 2), entity(2, 4), entity(0, 4)]
    assert mistaken(ring) == (ring, [entity(0, 2, 4)])


def test_a_set_that_no_entity_is_can_be_made_of_their_links():
    assert mistaken([entity(0, 2, 6), entity(2, 4, 8), entity(0, 4, 10)]) == ([], [entity(0, 2, 4)])


def test_labels_are_joined_apart_and_contiguous_entities_do_not_matter():
    assert mistaken([entity(0, 2), entity(0, 2, 4, label="B"), entity(2), entity(4)]) == ([], [])


def test_policies():
    text = "muscle pain and fatigue"
    pain, fatigue = Entity.at("Finding", 0, 11), Entity("Finding", (Span(0, 6), Span(16, 23)), 0.5, {"note": 1})
    document = Document("1", text, (pain, fatigue), group="g", meta={"kept": True})
    other = Document("2", "pain", (Entity.at("Finding", 0, 4),))

    def texts(policy):
        changed, same = arranged([document, other], policy)
        assert same is other
        assert changed.group == "g"
        assert changed.meta == {"kept": True}
        return {changed.text_of(one) for one in changed.entities}

    assert texts("split") == {"muscle pain", "muscle", "fatigue"}
    assert texts("hull") == {"muscle pain", "muscle pain and fatigue"}
    assert next(arranged([document], "drop")) is document
    assert next(arranged([document], "join")) is document
    muscle = next(one for one in next(arranged([document], "split")).entities if one.end == 6)
    assert muscle.score == 0.5
    assert muscle.meta == {"note": 1}


def test_two_entities_that_become_one_are_one():
    one, other = Entity("A", (Span(0, 1), Span(4, 5))), Entity("A", (Span(0, 1), Span(2, 3), Span(4, 5)))
    document = Document("1", "a b c", (one, other))
    assert next(arranged([document], "hull")).entities == (Entity.at("A", 0, 5),)
    split = next(arranged([document], "split")).entities
    assert [tuple(entity.spans[0]) for entity in split] == [(0, 1), (2, 3), (4, 5)]


WRITTEN = [name for name in FORMATS if format_named(name).write is not None and name not in ("docbin", "hub")]
KEPT = {"jsonl", "brat", "bioc", "bioc-xml", "bioc-json", "w2ner"}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_format_keeps_fragments_or_refuses_them(name, tmp_path):
    """spaCy's and the hub's formats need extras, and are tested with them."""
    fatigue = Entity("Finding", (Span(0, 6), Span(16, 23)))
    write(
        [Document.from_words("1", ("muscle", "pain", "and", "fatigue"), (entity(0, 3, label="Finding"),))],
        tmp_path / "in.jsonl",
    )
    target = tmp_path / "out"
    if name in KEPT:
        convert_corpus(tmp_path / "in.jsonl", target, to_format=name, lossy=True)  # ids and the like may be lost
        (document,) = read(target, name)
        assert document.entities == (fatigue,)
        return
    with pytest.raises(ValueError, match="--lossy"):
        convert_corpus(tmp_path / "in.jsonl", target, to_format=name)
    assert not target.exists()
    convert_corpus(tmp_path / "in.jsonl", target, to_format=name, lossy=True)
    (document,) = read(target, name)
    assert [document.text_of(one) for one in document.entities] == ["muscle", "fatigue"]
