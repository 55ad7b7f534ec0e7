from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny import LABELS, arrays_of, of_length, piece_inputs, sentence, word_inputs

from wingspan.batch import SHAPES, Found, batches, entities_found, gold_spans, narrowed, near_of, shape_of, unit_ranges
from wingspan.corpora.segment import place
from wingspan.text import Entity, Span


@pytest.mark.parametrize(
    ("word", "shape"),
    [
        ("levels", "lower"),
        ("Paris", "Title"),
        ("A", "Title"),
        ("DNA", "UPPER"),
        ("BRCA1", "UPPER"),
        ("mRNA", "mIxed"),
        ("McKay", "mIxed"),
        ("2024", "digit"),
        ("٣٤", "digit"),
        (",", "punctuation"),
        ("--", "punctuation"),
        ("3.5", "other"),
        ("東京", "other"),
        ("مرض", "other"),
        ("", "punctuation"),
        ("Örebro", "Title"),
    ],
)
def test_shapes(word, shape):
    assert SHAPES[shape_of(word)] == shape


def test_gold_spans_are_sorted_padded_and_counted_once():
    discontinuous = Entity("Drug", (Span(0, 1), Span(2, 3)))
    one = of_length(5, ("Gene", 2, 4), ("Drug", 0, 2), ("Gene", 0, 2), ("Unknown", 1, 2))
    one = type(one)(one.words, (*one.entities, discontinuous, one.entities[0]), one.core, one.reach, ())
    two = of_length(2)
    gold = gold_spans([one, two], arrays_of(word_inputs([one, two])), LABELS)
    assert gold.mask.tolist() == [[True] * 3, [False] * 3]
    assert list(zip(gold.start[0], gold.end[0], gold.label[0], strict=True)) == [(0, 2, 1), (0, 2, 2), (2, 4, 2)]


def test_gold_spans_in_pieces_and_back():
    one = of_length(3, ("Gene", 1, 3), ("Drug", 0, 1))
    inputs = arrays_of(piece_inputs([one], [[2, 1, 3]]))
    gold = gold_spans([one], inputs, LABELS)
    assert list(zip(gold.start[0], gold.end[0], strict=True)) == [(0, 2), (2, 6)]
    found = Found(np.zeros(2, int), gold.start[0], gold.end[0], gold.label[0], np.array([0.5, 0.25]))
    (entities,) = entities_found(found, inputs, LABELS)
    assert set(entities) == set(one.entities)
    assert [entity.score for entity in entities] == [0.5, 0.25]


@given(data=st.data())
def test_gold_spans_are_those_of_each_sentence_alone(data):
    """Sentences of different lengths and pieces; some with context around their reach, which is left out."""
    sentences, counts = [], []
    for length in data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4)):
        within = st.tuples(st.integers(0, length - 1), st.integers(1, length)).filter(lambda pair: pair[0] < pair[1])
        first, past = reach = data.draw(within)
        inside = within.filter(lambda pair, first=first, past=past: first <= pair[0] and pair[1] <= past)
        entities = data.draw(st.lists(st.tuples(st.sampled_from(["Drug", "Gene"]), inside), max_size=4))
        sentences.append(of_length(length, *((label, *span) for label, span in entities), core=reach, reach=reach))
        counts.append(data.draw(st.lists(st.integers(1, 3), min_size=length, max_size=length)))
    inputs = arrays_of(piece_inputs(sentences, counts))
    narrow = narrowed(inputs._replace(near=near_of(inputs)))
    gold = gold_spans(sentences, narrow, LABELS)
    for row, one in enumerate(sentences):
        first, past = unit_ranges(narrow.words[row], int(narrow.unit_mask[row].sum()))
        labels = {"Drug": 1, "Gene": 2}
        expected = {(int(first[e.start]), int(past[e.end - 1]), labels[e.label]) for e in one.entities}
        found = zip(*(part[row].tolist() for part in gold), strict=True)
        padded = [*((*span, True) for span in sorted(expected)), *[(0, 0, 0, False)] * gold.mask.shape[1]]
        assert list(found) == padded[: gold.mask.shape[1]]


def test_an_empty_batch_of_gold_has_room_for_one():
    gold = gold_spans([sentence("a")], arrays_of(word_inputs([sentence("a")])), LABELS)
    assert gold.mask.shape == (1, 1)
    assert not gold.mask.any()


@given(counts=st.lists(st.integers(1, 4), max_size=6))
def test_unit_ranges_are_the_pieces_of_each_word(counts):
    units = np.repeat(np.arange(len(counts)), counts)
    first, past = unit_ranges(units, len(units))
    at = 0
    for word, count in enumerate(counts):
        assert (first[word], past[word]) == (at, at + count)
        at += count
    assert len(first) == len(counts)


@given(
    lengths=st.lists(st.integers(1, 50), max_size=80),
    size=st.integers(1, 9),
    budget=st.none() | st.integers(1, 200),
    seed=st.none() | st.integers(0, 5),
)
def test_batches_share_the_sentences_out(lengths, size, budget, seed):
    found = batches(lengths, size, budget=budget, seed=None if seed is None else [seed, 1])
    assert sorted(index for batch in found for index in batch) == list(range(len(lengths)))
    for batch in found:
        longest = max(lengths[index] for index in batch)
        assert 1 <= len(batch) <= size
        assert budget is None or len(batch) == 1 or longest * len(batch) <= budget


def test_batches_are_repeatable_and_differ_by_epoch():
    lengths = list(range(1, 60))
    assert batches(lengths, 4, seed=[1, 0]) == batches(lengths, 4, seed=[1, 0])
    assert batches(lengths, 4, seed=[1, 0]) != batches(lengths, 4, seed=[1, 1])


def test_without_a_seed_the_longest_come_first():
    assert batches([3, 9, 5], 2) == [[1, 2], [0]]


@given(st.data())
def test_entities_are_found_in_characters_as_in_words(data):
    """In the text `w0 w1 w2 ...` of each sentence; pieces are words here."""
    rows = [of_length(length) for length in data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))]
    placed = []
    for row in rows:
        ends = np.cumsum([len(word) + 1 for word in row.words])
        offsets = np.stack([ends - [len(word) + 1 for word in row.words], ends - 1], -1)
        placed.append(replace(row, offsets=offsets + data.draw(st.integers(0, 50))))
    spans = []
    for at, row in enumerate(placed):
        starts = data.draw(st.lists(st.integers(0, len(row.words) - 1), max_size=3))
        spans += [(at, start, data.draw(st.integers(start + 1, len(row.words)))) for start in starts]
    sentence, start, end = np.array(spans, dtype=np.int64).reshape(-1, 3).T
    found = Found(sentence, start, end, np.ones_like(start), np.linspace(0, 1, len(start)))
    inputs = arrays_of(word_inputs(placed))
    in_words = entities_found(found, inputs, LABELS)
    in_characters = entities_found(found, inputs, LABELS, placed)
    assert in_characters == [list(place(*pair)) for pair in zip(placed, in_words, strict=True)]
    assert [[e.score for e in row] for row in in_characters] == [[e.score for e in row] for row in in_words]
