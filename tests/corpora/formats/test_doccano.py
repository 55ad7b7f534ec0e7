"""Both exports of doccano: https://doccano.github.io/doccano/tutorial/ and https://github.com/doccano/doccano/issues/1729."""

import json
from pathlib import Path

import pytest

from wingspan.corpora.formats import annotators, write
from wingspan.files import CorpusError, Problems
from wingspan.text import Document, Entity

FIXTURE = Path(__file__).parent / "fixtures" / "doccano.jsonl"


def test_both_shapes_are_read_from_a_file_with_crlf() -> None:
    assert b"\r\n" in FIXTURE.read_bytes()
    rows, objects = annotators.DOCCANO.read(FIXTURE, Problems())
    # behind an emoji and a CR LF in the text: offsets are code points, and line ends are kept
    assert [(e.label, rows.text_of(e)) for e in rows.entities] == [
        ("PER", "Tove"),
        ("PER", "Erik"),
        ("LOC", "Malmö"),
        ("LOC", "Lund"),
    ]
    assert rows.id == "41"
    assert [(e.label, objects.text_of(e)) for e in objects.entities] == [("PER", "Nora"), ("ORG", "Fjord AS")]
    assert objects.meta["relations"] == [{"id": 3, "from_id": 7, "to_id": 8, "type": "leads"}]
    assert [entity.meta["id"] for entity in objects.entities] == [7, 8]


def test_writing_gives_the_same_records_back(tmp_path: Path) -> None:
    documents = list(annotators.DOCCANO.read(FIXTURE, Problems()))
    write(documents, tmp_path / "out.jsonl", annotators.DOCCANO)
    assert list(annotators.DOCCANO.read(tmp_path / "out.jsonl", Problems())) == documents
    read = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert read == [json.loads(line) for line in FIXTURE.read_text(encoding="utf-8").splitlines() if line]


def test_the_old_key_labels_is_read(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"text": "in Ribe", "labels": [[3, 7, "LOC"]]}')
    (document,) = annotators.DOCCANO.read(tmp_path / "x.jsonl", Problems())
    assert document.entities == (Entity.at("LOC", 3, 7),)
    assert document.id == "x-1"


def test_label_numbers_cannot_be_read(tmp_path: Path) -> None:
    record = {"text": "in Ribe", "annotations": [{"label": 3, "start_offset": 3, "end_offset": 7}]}
    (tmp_path / "x.jsonl").write_text(json.dumps(record))
    with pytest.raises(CorpusError, match="export from doccano as JSONL with label names"):
        list(annotators.DOCCANO.read(tmp_path / "x.jsonl", Problems()))


def test_discontinuous_entities_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="doccano cannot hold the discontinuous 'X'"):
        write([Document("1", "a b c", (Entity("X", ((0, 1), (4, 5))),))], tmp_path / "x.jsonl", annotators.DOCCANO)
