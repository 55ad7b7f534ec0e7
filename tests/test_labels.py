"""Classes of one and several corpora."""

from __future__ import annotations

import json

import numpy as np
import pytest

from wingspan.labels import LabelSet

OWN = LabelSet({"one": ("A", "B"), "two": ("B", "C")}, annotates={"two": ("C",)}, main="two")
SHARED = LabelSet(OWN.types, OWN.annotates, shared=True)


def test_own_blocks_stand_one_after_the_other():
    assert OWN.meanings() == (("one", None), ("one", "A"), ("one", "B"), ("two", None), ("two", "B"), ("two", "C"))
    assert OWN.num_classes == 6
    assert [OWN.nothing(name) for name in ("one", "two", "other")] == [0, 3, 3]
    assert (OWN.id("one", "B"), OWN.id("two", "B"), OWN.id("two", "A"), OWN.id("other", "C")) == (2, 4, None, 5)
    assert (OWN.dataset_id("one"), OWN.dataset_id("other"), OWN.target) == (0, 1, "two")
    assert np.array_equal(OWN.allowed(), [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]])
    assert np.array_equal(OWN.silent(), [[0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 0]])


def test_shared_labels_are_one_block():
    assert SHARED.names() == (None, "A", "B", "C")
    assert [SHARED.nothing(name) for name in ("one", "two", "other")] == [0, 0, 0]
    assert (SHARED.id("one", "B"), SHARED.id("two", "B"), SHARED.id("one", "C"), SHARED.target) == (2, 2, None, "one")
    assert np.array_equal(SHARED.allowed(), [[1, 1, 1, 0], [1, 0, 1, 1]])
    assert np.array_equal(SHARED.silent(), [[0, 0, 0, 1], [0, 1, 1, 0]])


MAPPED = LabelSet(OWN.types, main="two", counterparts={"one": {"A": "C"}})


def test_what_classes_mean_in_the_targets_labels():
    assert MAPPED.target_classes() == (0, 2, None, 0, 1, 2)  # A is C, B of the other corpus has no counterpart
    assert OWN.target_classes() == (0, None, None, 0, 1, 2)
    assert SHARED.target_classes() == (0, 1, 2, None)
    assert LabelSet({"main": ("A",)}).target_classes() == (0, 1)


@pytest.mark.parametrize("labels", [OWN, SHARED, MAPPED, LabelSet({"main": ("A",)}), LabelSet({"a": ("A",), "b": ()})])
def test_labels_are_the_same_after_json(labels):
    read = LabelSet.from_dict(json.loads(json.dumps(labels.to_dict())))
    assert read.meanings() == labels.meanings()
    assert read.target == labels.target
    assert read.target_classes() == labels.target_classes()
    assert np.array_equal(read.silent(), labels.silent())
    assert np.array_equal(read.allowed(), labels.allowed())


def test_one_corpus_is_written_as_it_always_was():
    assert LabelSet({"main": ("A", "B")}).to_dict() == {"main": ["A", "B"]}


@pytest.mark.parametrize(
    "found",
    [
        {},
        {"main": "A"},
        {"corpora": {}},
        {"corpora": {"a": ["A"]}, "target": "b"},
        {"corpora": {"a": ["A"]}, "target": "a", "annotates": {"b": ["A"]}},
        {"corpora": {"a": ["A"]}, "target": "a", "annotates": ["A"]},
    ],
)
def test_damaged_labels_are_refused(found):
    with pytest.raises(ValueError, match=r"labels"):
        LabelSet.from_dict(found)
