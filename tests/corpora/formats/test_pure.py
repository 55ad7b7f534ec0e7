"""The schema is DyGIE++'s: https://github.com/dwadden/dygiepp/blob/master/doc/data.md (PURE uses it too)."""

import json
from pathlib import Path

import pytest

from wingspan.corpora.formats import research_json, write
from wingspan.files import CorpusError, Problems
from wingspan.text import Document, Entity, Span

FIXTURE = Path(__file__).parent / "fixtures" / "pure.jsonl"


def test_inclusive_document_level_ends_become_half_open_characters() -> None:
    first, second = research_json.PURE.read(FIXTURE, Problems())
    assert first.id == "note-1"
    assert [(e.label, first.text_of(e)) for e in first.entities] == [
        ("PER", "Mira Holt"),
        ("ORG", "a bakery"),
        ("PER", "Holt"),
        ("LOC", "Bergen"),
    ]
    assert [first.text[s.start : s.end] for s in first.sentences or ()] == [
        "Mira Holt runs a bakery .",
        "Holt lives in Bergen .",
    ]
    assert first.meta["relations"] == [[[0, 1, 3, 4, "Manages"]], [[6, 6, 9, 9, "Lives_In"]]]
    assert second.entities == ()


def test_writing_gives_the_same_records_back(tmp_path: Path) -> None:
    documents = list(research_json.PURE.read(FIXTURE, Problems()))
    write(documents, tmp_path / "out.jsonl", research_json.PURE)
    assert list(research_json.PURE.read(tmp_path / "out.jsonl", Problems())) == documents
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert written == [json.loads(line) for line in FIXTURE.read_text(encoding="utf-8").splitlines()]


def test_a_document_without_sentences_stays_without(tmp_path: Path) -> None:
    document = Document.from_words("d", ("a", "b"), (Entity.at("X", 1, 2),), group="g")
    write([document], tmp_path / "out.jsonl", research_json.PURE)
    assert list(research_json.PURE.read(tmp_path / "out.jsonl", Problems())) == [document]


def test_an_entity_stands_with_the_sentence_it_starts_in(tmp_path: Path) -> None:
    document = Document.from_words("d", ("a", "b", "c"), (Entity.at("X", 0, 3),), sentences=(Span(0, 3), Span(4, 5)))
    write([document], tmp_path / "out.jsonl", research_json.PURE)
    assert json.loads((tmp_path / "out.jsonl").read_text())["ner"] == [[[0, 2, "X"]], []]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"sentences": [["a"]], "ner": [[[0, 1, "X"]]]}, "0-2 goes past the end of the text, which has 1 words"),
        ({"sentences": [["a"]], "ner": []}, None),
        ({"sentences": [["a"], ["b"]], "ner": [[]]}, "ner has 1 lists for 2 sentences"),
        ({"sentences": [["a", ""]]}, "word 1 of sentence 0 is empty"),
        ({"doc_key": "x"}, "there is no key 'sentences'"),
    ],
)
def test_what_does_not_fit_is_told(tmp_path: Path, record: dict[str, object], message: str | None) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps(record))
    if message is None:
        assert len(list(research_json.PURE.read(path, Problems()))) == 1
    else:
        with pytest.raises(CorpusError, match=message):
            list(research_json.PURE.read(path, Problems()))
