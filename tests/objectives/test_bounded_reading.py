"""What is read in a fixed room, so that no GPU is waited for, is what is read without."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainings import train_documents, untrained
from wingspan.objectives import limits, where
from wingspan.objectives.classification import Classification
from wingspan.objectives.tagging import runs
from wingspan.recipe import Term
from wingspan.text import Sentence


def bounded(model, sentences: list[Sentence], threshold, bounded: bool):
    return model._read(sentences, threshold, bounded=bounded).read()


SIGMOID = {"terms": {"spans": Term(partial(Classification, link="sigmoid", most_labels=1))}}
MODELS = {
    "softmax": {},
    "sigmoid": SIGMOID,
    "tags": {"name": "bundling/bl-seq"},
    "links": {"name": "discontinuous"},
    "types": {"name": "typed_spans"},
}


@pytest.mark.parametrize("kind", MODELS)
def test_the_same_is_found_in_a_fixed_room(kind):
    model = untrained(**MODELS[kind])
    documents = [replace(document, words=None) for document in train_documents(8)]
    sentences = list(model.segment(documents, gold=kind == "types"))
    sizes = set()
    for threshold in (None, 0.2, {"Drug": 0.6}):
        free, fixed = (bounded(model, sentences, threshold, room) for room in (False, True))
        assert len(fixed.found.start) == free.inputs.unit_mask.size
        read = fixed.without_padding()
        sizes.add(len(free.found.start))
        if int(fixed.found.total) > len(fixed.found.start):
            assert read is None
            continue
        for one, other in zip(free.found, read.found, strict=True):
            np.testing.assert_array_equal(one, other)
        if kind == "links":
            np.testing.assert_array_equal(free.linkable.left, read.linkable.left)
            np.testing.assert_array_equal(free.linkable.found.score, read.linkable.found.score)
    assert max(sizes) > 0


def test_more_than_fits_is_noticed():
    model = untrained()
    sentences = list(model.segment(train_documents(3)))
    read = bounded(model, sentences, 0.0, True)
    assert read.found.total > len(read.found.start)
    assert read.without_padding() is None


def test_places_of_a_mask():
    mask = torch.tensor([[True, False], [True, True]])
    (rows, columns), total = where(mask, None)
    assert (rows.tolist(), columns.tolist(), total) == ([0, 1, 1], [0, 0, 1], None)
    (rows, columns), total = where(mask, 5)
    assert (rows.tolist(), columns.tolist(), int(total)) == ([0, 1, 1, 0, 0], [0, 0, 1, 0, 0], 3)
    (rows, columns), total = where(mask, 2)
    assert (rows.tolist(), columns.tolist(), int(total)) == ([0, 1], [0, 0], 3)


def test_limits_are_by_label_and_kept_in_the_type_of_the_chances():
    chances = torch.zeros(2, dtype=torch.double)
    found = limits([None, "Drug", "Gene"], {"Gene": 0.25}, 0.5, chances)
    assert found.tolist() == [0.5, 0.5, 0.25]
    assert found.dtype == torch.double
    assert limits(["Drug"], 0, 0.5, chances).tolist() == [0.0]


def runs_by_hand(tags: list[int], sure: list[float]) -> list[tuple[int, int, float]]:
    """First word, last word and least certainty of each entity, word by word."""
    found, at = [], 0
    while at < len(tags):
        end = at + 1
        if tags[at]:
            kind = (tags[at] + 1) // 2
            while end < len(tags) and tags[end] == 2 * kind:
                end += 1
            found.append((at, end - 1, min(sure[at:end])))
        at = end
    return found


@given(st.lists(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 99)), min_size=7, max_size=7), min_size=1))
def test_entities_in_tags_as_word_by_word(rows):
    tags, sure = (torch.tensor([[pair[part] for pair in row] for row in rows]) for part in (0, 1))
    begins, last, least = runs(tags, sure.double())
    for row, (own, certain) in enumerate(zip(tags.tolist(), sure.tolist(), strict=True)):
        at = begins[row].nonzero().flatten().tolist()
        found = [(first, int(last[row, first]), float(least[row, first])) for first in at]
        assert found == runs_by_hand(own, certain)
