"""Synonyms that a corpus itself shows."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from wingspan.corpora.formats import read
from wingspan.corpora.lexicon.concepts import Concept
from wingspan.corpora.lexicon.synonyms import abbreviations, found_synonyms
from wingspan.text import Document, Entity, Span


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("We saw breast cancer (BC) twice.", [("BC", "breast cancer")]),
        ("We saw BC (breast cancer) twice.", [("BC", "breast cancer")]),
        ("adenomatous polyposis coli ( APC ) tumour", [("APC", "adenomatous polyposis coli")]),
        ("heat shock transcription factor (HSF)", [("HSF", "heat shock transcription factor")]),
        ("Older text. Gamma-glutamyl transferase (GGT, 40 U)", [("GGT", "Gamma-glutamyl transferase")]),
        ("type 2 diabetes (T2D) and lung scars (LS)", [("T2D", "type 2 diabetes"), ("LS", "lung scars")]),
        ("an alpha (1) and a beta (2, 3)", []),
        ("no letters fit here (XQ)", []),
        ("the BC gene (BC)", []),
        ("Breast is before. Cancer (BC)", []),
        ("(BC) starts a text", []),
        ("a sign alone (see the figure above)", []),
    ],
)
def test_definitions_of_abbreviations(text, found):
    assert list(abbreviations(text)) == found


def test_the_first_character_starts_a_word():
    # the b of "tubular" would do for BC, if it stood at the start of a word
    assert list(abbreviations("one big tubular carcinoma (BC)")) == [("BC", "big tubular carcinoma")]


def document(text: str, *mentions: tuple[str, str, str | None]) -> Document:
    entities = [
        Entity(label, (Span(text.index(surface), text.index(surface) + len(surface)),), meta={"concept_id": concept})
        for surface, label, concept in mentions
    ]
    return Document("d", text, tuple(entities))


def test_mentions_that_share_an_id():
    first = document(
        "lung scar and Scar of lung; dust", ("lung scar", "Disease", "D1"), ("Scar of lung", "Disease", "D1")
    )
    second = document("Lung scar, cicatrix, powder", ("Lung scar", "Sign", "D1"), ("cicatrix", "Disease", "-1"))
    third = document("lung scar, powder", ("lung scar", "Disease", "D1"), ("powder", "Dust", "D2|D3"))
    found = found_synonyms([first, second, third])
    assert found["concept ids"] == [Concept("D1", ("lung scar", "Scar of lung"), ("Disease", "Sign"))]
    assert found["abbreviations"] == found["coreference chains"] == []


def test_ids_as_bigbio_has_them():
    rows = [{"db_name": "MESH", "db_id": "D1"}, {"db_name": "OMIM", "db_id": "2"}]
    text = "lung scar, cicatrix, dust"
    mentions = [
        Entity("Disease", (Span(0, 9),), meta={"normalized": rows}),
        Entity("Disease", (Span(11, 19),), meta={"normalized": rows}),
        Entity("Dust", (Span(21, 25),), meta={"normalized": []}),
    ]
    found = found_synonyms([Document("d", text, tuple(mentions))])["concept ids"]
    assert found == [Concept("D1|2", ("lung scar", "cicatrix"), ("Disease",))]


def test_abbreviations_of_mentions():
    text = "Lung scar (LS) was seen. Gross national product (GNP) was not. LS again."
    found = found_synonyms([document(text, ("LS", "Disease", None))] * 2)
    assert found["abbreviations"] == [Concept("abbreviation:lung scar", ("Lung scar", "LS"), ("Disease",))]
    assert found_synonyms([Document("d", text)])["abbreviations"] == []


def test_mentions_of_one_chain(tmp_path: Path):
    words = ["Ann", "Lund", "slept", ".", "She", "and", "the", "engineer", "woke", "."]
    record = {
        "doc_key": "d",
        "sentences": [words],
        "ner": [[[0, 1, "PER"], [4, 4, "PER"], [6, 7, "PER"]]],
        "clusters": [[[0, 1], [4, 4], [6, 7]], [[8, 8], [2, 2]], [[0, 99], "x"], "y"],
    }
    path = tmp_path / "a.pure.jsonl"
    path.write_text(json.dumps(record) + "\n")
    documents = list(read(path))
    found = found_synonyms(documents)["coreference chains"]
    assert found == [Concept("d:chain-0", ("Ann Lund", "the engineer"), ("PER",))]
    assert found_synonyms([replace(documents[0], meta={"clusters": None})])["coreference chains"] == []
