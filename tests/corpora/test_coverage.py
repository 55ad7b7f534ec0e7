"""What can never be found is counted, once, under one reason."""

from itertools import combinations

import pytest
from covered import measure_coverage
from hypothesis import given
from hypothesis import strategies as st

from tables import tables_of
from wingspan.corpora.coverage import Census, Coverage, auto_overlap, auto_width
from wingspan.corpora.segment import Segmenting, place, segment
from wingspan.text import Document, Entity, Sentence, Span

WORDS = tuple("abcdefghijklmnopqrst")
ALL = Segmenting()


def document(*entities: tuple[str, tuple[tuple[int, int], ...]]) -> Document:
    """Twenty words of one letter, with entities in words."""
    return Document.from_words("d", WORDS, tuple(Entity(label, tuple(Span(*s) for s in at)) for label, at in entities))


def sentences(*documents: Document) -> list[Sentence]:
    return [s for d in documents for s in segment(d, ALL)]


WIDE = ("A", ((0, 12),))
INNER = ("A", ((2, 4),))
OTHER_LABEL = ("B", ((2, 4),))
CROSSING = ("B", ((3, 6),))
SPLIT = ("A", ((14, 15), (16, 17)))


def test_each_limit_loses_what_it_cannot_hold() -> None:
    doc = document(WIDE, INNER, OTHER_LABEL, CROSSING, SPLIT)

    def lost(**limits: object) -> dict[str, int]:
        found = measure_coverage([doc], ALL, **{"max_width": None, "overlap": "any", **limits})  # type: ignore[arg-type]
        assert found.total == 5
        assert found.found == 5 - sum(found.lost.values())
        return dict(found.lost)

    joined = {"discontinuous": True, "one_label_per_span": False}
    assert lost(**joined) == {}
    assert lost(discontinuous=True) == {"same_span": 1}
    assert lost(one_label_per_span=False) == {"discontinuous": 1}
    assert lost(**joined, max_width=11) == {"too_wide": 1}
    assert lost(**joined, max_width=1) == {"too_wide": 4}
    assert lost(**joined, overlap="nested") == {"crossing": 1}
    assert lost(**joined, overlap="flat") == {"overlapping": 3}
    assert lost(**joined, tags=True) == {"discontinuous": 1, "same_type": 2}
    assert lost(max_width=5, tags=True, overlap="flat") == {"discontinuous": 1, "overlapping": 3}


def test_as_many_as_possible_stay_where_none_may_overlap() -> None:
    doc = document(("A", ((0, 20),)), *(("A", ((i, i + 2),)) for i in range(0, 20, 2)))
    assert measure_coverage([doc], ALL, max_width=None, overlap="flat").lost == {"overlapping": 1}


def test_cut_by_windows_and_by_sentences_of_prediction() -> None:
    doc = document(WIDE, INNER)
    assert measure_coverage([doc], Segmenting(max_length=8, overlap=2), max_width=20).lost == {"cut": 1}
    text = Document("d", "In St. Mary. Hospital was closed.", (Entity.at("A", 3, 21),))
    assert measure_coverage([text], ALL, max_width=9).lost == {"cut": 1}
    assert measure_coverage([text], ALL, max_width=9, gold=True).lost == {}


def test_moved_entities_count_as_missed_but_are_trained_on() -> None:
    doc = Document("d", "xylocin and pretolol", (Entity.at("A", 0, 4), Entity.at("A", 12, 20), Entity.at("A", 7, 8)))
    census = Census(ALL)
    made = list(census.sentences([doc]))
    assert [len(s.entities) for s in made] == [2]
    found = census.coverage(made, max_width=1)
    assert (found.total, found.found, found.moved, dict(found.lost)) == (3, 1, 1, {"misaligned": 2})
    assert measure_coverage([doc], Segmenting(misaligned="drop"), max_width=1).moved == 0


def test_words_that_no_window_holds_are_counted() -> None:
    doc = Document("d", "short " + "long" * 100, (Entity.at("A", 0, 5),))
    found = measure_coverage([doc], Segmenting(max_length=256), max_width=1, tables=tables_of())
    assert (found.capped_words, found.found) == (1, 1)
    assert found.lines()[-1] == "1 word longer than a window: only the beginning is seen"


def test_lines_say_it_in_sentences() -> None:
    lost = {"too_wide": 71, "discontinuous": 14}
    assert Coverage(3034, lost, max_width=10).lines() == [
        "Coverage: 97.1% of 3,034 entities can be found (14 discontinuous, 71 wider than 10 words)"
    ]
    assert Coverage(1, {}, max_width=1).lines() == ["Coverage: 100.0% of 1 entity can be found"]
    assert Coverage(0).lines() == ["Coverage: there are no entities to find"]
    assert Coverage(10_000, {"cut": 1}).lines()[0].startswith("Coverage: 99.9% of 10,000 entities")
    moved = Coverage(4, {"misaligned": 2}, moved=1)
    assert moved.lines()[1] == "Of those not on word borders, 1 is trained on with its borders moved to words"
    assert moved.to_dict() == {
        "entities": 4,
        "found": 2,
        "percent": 50.0,
        "lost": {"misaligned": 2},
        "moved": 1,
        "capped_words": 0,
        "max_width": None,
    }


def test_auto_width_covers_the_share() -> None:
    doc = document(*(("A", ((i, i + 1),)) for i in range(9)), ("A", ((10, 15),)))
    assert auto_width(sentences(doc)) == 5
    assert auto_width(sentences(doc), share=0.9) == 1
    assert auto_width(sentences(document(SPLIT))) == 1
    assert auto_width([]) == 1


@pytest.mark.parametrize(
    ("entities", "expected"),
    [
        ([], "flat"),
        ([INNER, ("A", ((4, 6),))], "flat"),
        ([SPLIT, ("B", ((15, 16),))], "flat"),
        ([WIDE, INNER], "nested"),
        ([INNER, OTHER_LABEL], "nested"),
        ([WIDE, INNER, CROSSING], "any"),
    ],
)
def test_auto_overlap(entities: list[tuple[str, tuple[tuple[int, int], ...]]], expected: str) -> None:
    assert auto_overlap(sentences(document(), document(*entities))) == expected


random_spans = st.tuples(st.sampled_from("AB"), st.integers(0, 19), st.integers(1, 6))


@given(st.sets(random_spans, max_size=8), st.sampled_from(["flat", "nested", "any"]), st.integers(1, 6), st.booleans())
def test_a_perfect_model_finds_what_coverage_promises(
    drawn: set[tuple[str, int, int]], overlap: str, width: int, one_label: bool
) -> None:
    """The best set that the limits allow, by trying all of them, is never smaller; flat, it is the same."""
    doc = document(*((label, ((start, min(start + w, 20)),)) for label, start, w in drawn))
    found = measure_coverage([doc], ALL, max_width=width, overlap=overlap, one_label_per_span=one_label)  # type: ignore[arg-type]
    (sentence,) = sentences(doc)
    fitting = [e for e in sentence.entities if e.hull.width <= width]

    def together(a: Entity, b: Entity) -> bool:
        if overlap == "flat":
            return not a.hull.overlaps(b.hull)
        if one_label and a.hull == b.hull:
            return False
        return overlap == "any" or not a.hull.crosses(b.hull)

    best = max(
        size
        for size in range(len(fitting) + 1)
        if any(all(together(a, b) for a, b in combinations(c, 2)) for c in combinations(fitting, size))
    )
    duplicates = found.total - len(sentence.entities)
    assert found.found - duplicates <= best
    if overlap != "nested":
        assert found.found - duplicates == best


@given(st.sets(random_spans, max_size=8), st.integers(1, 12), st.integers(0, 4))
def test_every_entity_is_in_one_sentence_or_counted(
    drawn: set[tuple[str, int, int]], max_length: int, overlap: int
) -> None:
    doc = document(*{(label, ((start, min(start + w, 20)),)) for label, start, w in drawn})
    census = Census(Segmenting(max_length=max_length, overlap=overlap))
    made = list(census.sentences([doc]))
    found = census.coverage(made, max_width=None, overlap="any", one_label_per_span=False)
    placed = [e for s in made for e in place(s, s.entities)]
    assert len(placed) == len(set(placed)) == found.found
    assert found.total == len(doc.entities) == len(placed) + found.lost.get("cut", 0)


def test_widths_can_count_pieces() -> None:
    entities = (Entity.at("Disease", 0, 30), Entity.at("Disease", 9, 20))
    doc = Document("d", "Familial adenomatous polyposis", entities)

    def measure(words):  # five letters are a piece
        return [(len(word) + 4) // 5 for word in words]

    tables, settings = tables_of(measure), Segmenting(max_length=50)
    assert auto_width(segment(doc, settings, tables), pieces=True) == 2 + 3 + 2
    found = measure_coverage([doc], settings, max_width=3, tables=tables, pieces=True)
    assert found.lost == {"too_wide": 1}
    assert "1 wider than 3 pieces" in found.lines()[0]
    assert not measure_coverage([doc], settings, max_width=3, tables=tables).lost
