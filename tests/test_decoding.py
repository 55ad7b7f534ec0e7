from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny import arrays_of, of_length, word_inputs

from wingspan.batch import Found, entities_found
from wingspan.decoding import MOST_PAIRS, clash, resolve, without_clashes
from wingspan.labels import LabelSet
from wingspan.text import Entity, Span


def at(start: int, end: int, score: float, label: str = "A") -> Entity:
    return Entity.at(label, start, end, score)


@st.composite
def contiguous(draw) -> Entity:
    start = draw(st.integers(0, 14))
    end = start + draw(st.integers(1, 6))
    return at(start, end, draw(st.integers(1, 9)) / 10, draw(st.sampled_from("AB")))


@st.composite
def fragmented(draw) -> Entity:
    cuts = sorted(draw(st.lists(st.integers(0, 20), min_size=2, max_size=4, unique=True)))
    cuts = cuts[: len(cuts) // 2 * 2]
    spans = tuple(Span(*pair) for pair in zip(cuts[::2], cuts[1::2], strict=True))
    return Entity(draw(st.sampled_from("AB")), spans, draw(st.integers(1, 9)) / 10)


ENTITIES = st.lists(contiguous() | fragmented(), max_size=14)


def clashing(one: Entity, other: Entity, overlap: str) -> bool:
    """By sets of positions, not by comparing borders."""
    for a in one.spans:
        for b in other.spans:
            mine, yours = set(range(*a)), set(range(*b))
            if mine & yours and (overlap == "flat" or (mine - yours and yours - mine)):
                return True
    return False


def greedy(entities: list[Entity], overlap: str) -> set[Entity]:
    """The definition: best first, kept if it clashes with nothing kept."""
    best: dict[Entity, float] = {}
    for entity in entities:
        best[entity] = max(best.get(entity, 0.0), entity.score)
    kept: list[Entity] = []
    for entity in sorted(best, key=lambda e: (-best[e], e.spans, e.label)):
        if not any(clashing(entity, other, overlap) for other in kept):
            kept.append(entity)
    return set(kept)


@pytest.mark.parametrize("overlap", ["flat", "nested"])
@given(entities=ENTITIES)
def test_it_is_the_greedy_choice(overlap, entities):
    kept = resolve(entities, overlap)
    assert set(kept) == greedy(entities, overlap)
    assert len(kept) == len(set(kept))
    for one, other in combinations(kept, 2):
        assert not clashing(one, other, overlap)


@given(entities=st.lists(contiguous(), max_size=14))
def test_flat_drops_only_for_something_better(entities):
    kept = resolve(entities, "flat")
    for entity in set(entities) - set(kept):
        assert any(clashing(entity, better, "flat") and better.score >= entity.score for better in kept)


@given(pair=st.tuples(contiguous(), contiguous()))
def test_of_two_that_overlap_the_likelier_stays(pair):
    one, other = pair
    if clashing(one, other, "flat") and one != other and one.score != other.score:
        assert resolve(pair, "flat") == (max(pair, key=lambda e: e.score),)


@pytest.mark.parametrize("overlap", ["flat", "nested", "any"])
@given(entities=ENTITIES, data=st.data())
def test_order_does_not_matter_and_the_answer_is_in_reading_order(overlap, entities, data):
    shuffled = data.draw(st.permutations(entities))
    kept = resolve(entities, overlap)
    assert resolve(shuffled, overlap) == kept
    assert list(kept) == sorted(kept, key=lambda e: (e.spans, e.label))
    assert resolve(kept, overlap) == kept


def test_nested_keeps_what_is_inside_and_drops_what_crosses():
    outer, inner, crossing = at(0, 6, 0.5), at(1, 3, 0.9), at(4, 8, 0.4)
    assert resolve([crossing, outer, inner], "nested") == (outer, inner)
    assert resolve([crossing, outer, inner], "flat") == (inner, crossing)
    assert resolve([crossing, outer, inner], "any") == (outer, inner, crossing)


def test_any_keeps_two_labels_on_one_span_and_flat_the_better():
    drug, gene = at(0, 2, 0.6, "Drug"), at(0, 2, 0.7, "Gene")
    assert resolve([drug, gene], "any") == resolve([drug, gene], "nested") == (drug, gene)
    assert resolve([drug, gene], "flat") == (gene,)


def test_what_was_found_twice_counts_once_with_its_better_score():
    kept = resolve([at(0, 2, 0.3), at(0, 2, 0.8), at(1, 3, 0.5)], "flat")
    assert [(e.start, e.end, e.score) for e in kept] == [(0, 2, 0.8)]


def test_fragments_between_fragments_do_not_clash():
    around, between = Entity("A", (Span(0, 2), Span(5, 7)), 0.9), at(3, 4, 0.5)
    assert not clash(around, between, "flat")
    assert resolve([around, between], "flat") == (around, between)


def test_nothing_in_nothing_out():
    assert resolve([], "flat") == resolve([], "any") == ()


@pytest.mark.parametrize("overlap", ["flat", "nested"])
def test_in_a_long_document_only_neighbors_are_compared(overlap, monkeypatch):
    # each entity overlaps the next one: one chain from the beginning of the document to its end
    chain = [at(2 * n, 2 * n + 3, (n * 7919 % 1000) / 1000) for n in range(20_000)]
    compared = 0

    def counted(*pair) -> bool:
        nonlocal compared
        compared += 1
        return clash(*pair)

    monkeypatch.setattr("wingspan.decoding.clash", counted)
    assert len(resolve(chain, overlap)) >= len(chain) // 3
    assert compared <= 4 * len(chain)


# Many sentences at once

CLASSES = LabelSet({"main": ("B", "A")})  # not in the order of their names


def at_once(rows: list[list[Entity]], overlap: str, alone: list[bool]) -> tuple[list[list[Entity]], list[bool]]:
    """The entities that are kept in each sentence, calibrated, and the sentences that are decided."""
    columns = [(n, e.start, e.end, CLASSES.id("main", e.label)) for n, row in enumerate(rows) for e in row]
    sentence, start, end, label = np.array(columns, dtype=np.int64).reshape(-1, 4).T
    scores = np.array([e.score for row in rows for e in row], dtype=np.float32)
    inputs = arrays_of(word_inputs([of_length(21) for _ in rows]))
    found = Found(sentence, start, end, label, scores, scores / 2)
    kept, settled = without_clashes(found, inputs, CLASSES, overlap, np.array(alone))
    return entities_found(kept, inputs, CLASSES, settled=settled), settled.tolist()


@pytest.mark.parametrize("overlap", ["flat", "nested", "any"])
@given(rows=st.lists(st.lists(contiguous(), max_size=12), min_size=1, max_size=4), data=st.data())
def test_many_sentences_at_once_are_decided_as_each_by_itself(overlap, rows, data):
    rows = [[at(*e.spans[0], float(np.float32(e.score)), e.label) for e in row] for row in rows]
    alone = [data.draw(st.booleans()) for _ in rows]
    found, settled = at_once(rows, overlap, alone)
    assert settled == alone
    for row, own, decided in zip(rows, found, alone, strict=True):
        expected = resolve(row, overlap)
        assert resolve(own, overlap) == expected
        if decided:
            assert tuple(own) == expected
            assert [e.score for e in own] == [e.score / 2 for e in expected]  # what users see
            assert not any(e.meta for e in own)
        else:
            assert all(e.meta for e in own)


def test_a_crowded_sentence_is_left_to_be_decided_by_itself():
    crowd = [at(start, end, (7 * start + end) % 10 / 10) for start in range(20) for end in range(start + 1, 21)]
    few = [at(0, 3, 0.5), at(2, 5, 0.75)]
    assert sum(clash(a, b, "flat") for a, b in combinations(crowd, 2)) > MOST_PAIRS
    (left, decided), settled = at_once([crowd, few], "flat", [True, True])
    assert settled == [False, True]
    assert len(left) == len(crowd)
    assert [(e.start, e.end) for e in decided] == [(2, 5)]
