"""Schemas: https://github.com/ljynlp/W2NER (README) and https://github.com/yhcc/CNN_Nested_NER."""

import json
import os
from pathlib import Path

import pytest

from wingspan.corpora.formats import research_json, write
from wingspan.files import CorpusError, Problems
from wingspan.text import Document, Entity, Span

FIXTURE = Path(__file__).parent / "fixtures" / "w2ner.json"
needs_data = pytest.mark.skipif("WINGSPAN_DATA" not in os.environ, reason="WINGSPAN_DATA is not set")


def test_gaps_in_the_indices_are_discontinuous_entities() -> None:
    first, second = research_json.W2NER.read(FIXTURE, Problems())
    assert [(e.label, first.text_of(e), len(e.spans)) for e in first.entities] == [
        ("BODY", "left arm", 2),
        ("SYMPTOM", "left arm pain", 2),
        ("BODY", "right arm", 1),
    ]
    assert second.entities == ()


def test_writing_gives_equal_documents(tmp_path: Path) -> None:
    touching = Document.from_words("t", ("a", "b"), (Entity("X", (Span(0, 1), Span(1, 2))),), group="g", dataset="two")
    documents = [*research_json.W2NER.read(FIXTURE, Problems()), touching]
    write(documents, tmp_path / "out.json", research_json.W2NER)
    assert list(research_json.W2NER.read(tmp_path / "out.json", Problems())) == documents
    assert json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))[0]["ner"][1]["index"] == [0, 3, 4]


def test_lines_with_entity_mentions_are_read_and_their_texts_checked(tmp_path: Path) -> None:
    record = {
        "tokens": ["Weak", "left", "arm"],
        "doc_id": "n7",
        "sent_id": "n7-0",
        "entity_mentions": [{"start": 1, "end": 3, "entity_type": "BODY", "text": "left arm"}],
    }
    path = tmp_path / "x.jsonlines"
    path.write_bytes(json.dumps(record).encode() + b"\r\n")
    (document,) = research_json.W2NER.read(path, Problems())
    assert (document.id, document.group) == ("n7-0", "n7")
    assert document.text_of(document.entities[0]) == "left arm"
    record["entity_mentions"] = [{"start": 0, "end": 2, "entity_type": "BODY", "text": "left arm"}]
    path.write_text(json.dumps(record))
    with pytest.raises(CorpusError, match=r"the text at 0-2 is 'Weak left', the file says 'left arm'"):
        list(research_json.W2NER.read(path, Problems()))


@needs_data
@pytest.mark.parametrize(
    ("name", "sentences", "words", "entities"),
    [
        ("genia/original/W2NER-format/dev.json", 1669, 43419, 5365),
        ("genia/original/W2NER-format/test.json.gz", 1854, 48179, 5506),
        ("genia-doc/original/dev.jsonlines", 1765, 45495, 4714),
        ("genia-doc/original/test.jsonlines.gz", 1732, 46873, 5119),
    ],
)
def test_real_files_have_the_counts_of_the_index(
    tmp_path: Path, name: str, sentences: int, words: int, entities: int
) -> None:
    documents = list(research_json.W2NER.read(Path(os.environ["WINGSPAN_DATA"]) / name, Problems()))
    assert len(documents) == sentences
    assert sum(len(document.words or ()) for document in documents) == words
    assert sum(len(document.entities) for document in documents) == entities
    write(documents, tmp_path / "out.json.gz", research_json.W2NER)
    assert list(research_json.W2NER.read(tmp_path / "out.json.gz", Problems())) == documents
