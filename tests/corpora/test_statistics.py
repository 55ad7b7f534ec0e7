import json
import os
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from wingspan.corpora.formats import jsonl
from wingspan.corpora.statistics import describe, quantiles
from wingspan.files import Problems
from wingspan.text import Document, Entity, Span

ODD = Document(
    "odd",
    "Lund Robotics, left and right arm",
    (
        Entity.at("ORG", 0, 13),
        Entity.at("LOC", 0, 4),
        Entity.at("LOC", 4, 13),
        Entity.at("GPE", 0, 4),
        Entity.at("X", 2, 8),
        Entity("BODY", (Span(15, 19), Span(30, 33))),
        Entity.at("BODY", 15, 15),
        Entity.at("BODY", 30, 99),
    ),
)


def test_counts_and_findings() -> None:
    copy = Document("copy", "lund  robotics, left and right arm", group="odd")
    found = describe([ODD, copy, copy])
    assert (found.documents, found.groups, found.entities, found.documents_without_entities) == (3, 1, 8, 2)
    assert (found.words, found.discontinuous) == (3 * 7, 1)
    assert found.labels == {"BODY": 3, "LOC": 2, "GPE": 1, "ORG": 1, "X": 1}
    assert {name: finding.count for name, finding in found.findings.items()} == {
        "zero length or out of range": 2,
        "same id twice": 1,
        "same text twice": 2,
        "same text, other entities": 2,
        "same span, two labels": 1,
        "same entity twice": 0,
        "white space at an edge": 1,
        "crossing pairs": 4,
    }
    assert found.findings["same span, two labels"].examples == ["odd: GPE and LOC at 0-4"]
    assert json.loads(json.dumps(asdict(found)))["findings"]["crossing pairs"]["count"] == 4


def test_the_fingerprint_depends_on_content_alone() -> None:
    a, b = Document("1", "in Oslo", (Entity.at("LOC", 3, 7),)), Document("2", "in Ribe")
    name = describe([a, b]).fingerprint
    assert name.startswith("sha256:")
    assert name.endswith("-2-1")
    renamed = replace(a, id="other", words=(Span(0, 2), Span(3, 7)), meta={"k": 1})
    assert describe([b, renamed]).fingerprint == name
    assert describe([a, replace(b, text="in ribe")]).fingerprint != name
    assert describe([replace(a, entities=(Entity.at("GPE", 3, 7),)), b]).fingerprint != name
    assert describe([a, a, b]).fingerprint != name


def test_quantiles_are_lengths_that_occur() -> None:
    assert quantiles(Counter({1: 98, 5: 1, 9: 1})) == {"min": 1, "p50": 1, "p90": 1, "p95": 1, "p99": 5, "max": 9}
    assert quantiles(Counter({1: 1, 2: 1, 3: 1})) == {"min": 1, "p50": 2, "p90": 3, "p95": 3, "p99": 3, "max": 3}
    assert quantiles(Counter()) == {}


@pytest.mark.skipif("WINGSPAN_DATA" not in os.environ, reason="WINGSPAN_DATA is not set")
@pytest.mark.parametrize(
    ("name", "documents", "words", "entities", "nested", "discontinuous"),
    [
        ("genia/dev.jsonl", 1669, 41111, 4371, 421, 0),
        ("genia/test.jsonl", 1854, 48179, 5511, 631, 0),
        ("genia-disc/dev.jsonl", 1765, 45495, 4932, 556, 125),
    ],
)
def test_real_corpora_have_the_counts_of_the_index(
    name: str, documents: int, words: int, entities: int, nested: int, discontinuous: int
) -> None:
    found = describe(jsonl.read(Path(os.environ["WINGSPAN_DATA"]) / name, Problems()))
    assert (found.documents, found.words, found.entities) == (documents, words, entities)
    assert (found.nested, found.discontinuous) == (nested, discontinuous)
