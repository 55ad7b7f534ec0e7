import json
from pathlib import Path
from typing import Any

import pytest

from wingspan.corpora.formats import by_suffix, detect
from wingspan.files import CorpusError

RECORDS: list[tuple[str, Any]] = [
    ("jsonl", {"id": "1", "text": "a b", "entities": [{"label": "X", "start": 0, "end": 1}]}),
    ("jsonl", {"id": "1", "text": "a b", "entities": []}),
    ("jsonl", {"id": "1", "tokens": ["a"], "entities": [{"label": "X", "fragments": [[0, 1]]}]}),
    ("doccano", {"id": 1, "text": "a b", "label": [[0, 1, "X"]]}),
    ("doccano", {"text": "a b", "entities": [{"id": 1, "label": "X", "start_offset": 0, "end_offset": 1}]}),
    ("doccano", {"id": 1, "text": "a b", "entities": [], "relations": [], "Comments": []}),
    ("prodigy", {"text": "a b", "spans": [{"start": 0, "end": 1, "label": "X"}]}),
    ("pure", {"doc_key": "1", "sentences": [["a"]], "ner": [[[0, 0, "X"]]]}),
    ("w2ner", {"sentence": ["a"], "ner": [{"index": [0], "type": "X"}]}),
    ("w2ner", {"tokens": ["a"], "entity_mentions": [{"start": 0, "end": 1, "entity_type": "X"}]}),
    ("spert", {"tokens": ["a"], "entities": [{"type": "X", "start": 0, "end": 1}], "relations": []}),
    ("label-studio", {"data": {"text": "a"}, "annotations": [{"result": []}]}),
    ("bioc-json", {"id": "1", "passages": []}),
]


@pytest.mark.parametrize(("name", "record"), RECORDS)
def test_json_is_told_by_its_keys(tmp_path: Path, name: str, record: Any) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(record) + "\n")
    (tmp_path / "b.jsonlines").write_text("\ufeff" + json.dumps(record) + "\n")
    (tmp_path / "c.json").write_text(json.dumps([record], indent=1))
    assert [detect(tmp_path / file) for file in ("a.jsonl", "b.jsonlines", "c.json")] == [name] * 3


def test_a_record_without_entities_does_not_decide(tmp_path: Path) -> None:
    records = [{"text": "a b", "label": []}, {"text": "a b", "label": [{"start": 0, "end": 1, "labels": ["X"]}]}]
    (tmp_path / "a.json").write_text(json.dumps(records))
    assert detect(tmp_path / "a.json") == "label-studio"


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.txt", "\n12|t|Title\n12|a|Text\n", "pubtator"),
        ("a.PubTator", "", "pubtator"),
        ("a.txt", "# a comment\n-DOCSTART- O\n\nRain\tO\nOslo\tB-LOC\n", "conll"),
        ("a.TSV", "", "conll"),
        ("a.iob2", "", "conll"),
        ("a.spacy", "", "docbin"),
        ("a.BioC.XML", "", "bioc-xml"),
        ("a.json", '{"source": "x",\n "documents": []}', "bioc-json"),
        ("a.jsonl", "", "jsonl"),
        ("a.jsonl", "{broken", "jsonl"),
    ],
)
def test_other_files(tmp_path: Path, name: str, content: str, expected: str) -> None:
    (tmp_path / name).write_text(content)
    assert detect(tmp_path / name) == expected


def test_brat_is_a_folder_or_a_pair(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Rain O\n")
    (tmp_path / "a.ann").write_text("")
    assert [detect(tmp_path), detect(tmp_path / "a.ann"), detect(tmp_path / "a.txt")] == ["brat"] * 3


@pytest.mark.parametrize(("name", "content"), [("a.txt", "It rains.\nAnd B\n"), ("a.json", "[]"), ("a", "")])
def test_what_cannot_be_told_is_asked_for(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(CorpusError, match="name it with --format"):
        detect(tmp_path / name)


def test_a_folder_without_a_corpus(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no .ann files in this folder"):
        detect(tmp_path)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        detect(tmp_path / "none.jsonl")


def test_writing_goes_by_the_name(tmp_path: Path) -> None:
    names = [
        "x.jsonl",
        "x.jsonl.gz",
        "x.spert.json",
        "x.conll",
        "x.bioc.json",
        "x.doccano.jsonl",
        "x.jsonlines",
        tmp_path,
    ]
    assert [by_suffix(name) for name in names] == [
        "jsonl", "jsonl", "spert", "conll", "bioc-json", "doccano", "jsonl", "brat",
    ]  # fmt: skip
    with pytest.raises(CorpusError, match=r"name it with --to \(--format of predict\)"):
        by_suffix("x.json")
