"""The schema is that of SpERT's own data: https://github.com/lavis-nlp/spert (README, "Dataset", and data/datasets)."""

import json
from pathlib import Path

import pytest

from wingspan.corpora.formats import research_json, write
from wingspan.files import CorpusError, Problems
from wingspan.text import Document, Entity

FIXTURE = Path(__file__).parent / "fixtures" / "spert.json"


def test_words_entities_and_nesting_are_read_with_half_open_ends() -> None:
    first, second = research_json.SPERT.read(FIXTURE, Problems())
    assert first.id == "17"
    assert first.text == "Ada Quill joined Lund Robotics in Oslo ."
    assert [(e.label, first.text_of(e)) for e in first.entities] == [
        ("PER", "Ada Quill"),
        ("LOC", "Lund"),
        ("ORG", "Lund Robotics"),
        ("LOC", "Oslo"),
    ]
    assert first.meta["source"] == "desk"
    assert second.entities == ()
    assert second.text.endswith("😀")


def test_relations_name_the_same_entities_after_writing_in_another_order(tmp_path: Path) -> None:
    documents = list(research_json.SPERT.read(FIXTURE, Problems()))
    write(documents, tmp_path / "out.json", research_json.SPERT)
    assert list(research_json.SPERT.read(tmp_path / "out.json", Problems())) == documents
    record = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))[0]
    words, entities = record["tokens"], record["entities"]
    named = {
        (r["type"], *(" ".join(words[entities[r[k]]["start"] : entities[r[k]]["end"]]) for k in ("head", "tail")))
        for r in record["relations"]
    }
    assert named == {("Works_For", "Ada Quill", "Lund Robotics"), ("Based_In", "Lund Robotics", "Oslo")}
    assert record["source"] == "desk"


def test_an_entity_past_the_end_is_told_with_line_and_fix(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text('[\n{"tokens": ["a"], "entities": [{"type": "X", "start": 0, "end": 2}]}\n]')
    with pytest.raises(CorpusError, match=r"bad.json:2: record 1: entity 1: 0-2 goes past the end .* 1 words"):
        list(research_json.SPERT.read(path, Problems()))
    problems = Problems("skip")
    assert [document.text for document in research_json.SPERT.read(path, problems)] == ["a"]
    assert len(problems.messages) == 1


def test_a_list_that_is_cut_off_gives_what_stands_before(tmp_path: Path) -> None:
    path = tmp_path / "cut.json"
    path.write_text('[{"tokens": ["a"]}, {"tokens": ["b"')
    problems = Problems("skip")
    assert [document.text for document in research_json.SPERT.read(path, problems)] == ["a"]
    assert "no valid JSON" in problems.messages[0]


def test_discontinuous_entities_and_broken_words_are_refused(tmp_path: Path) -> None:
    fragments = Document("d", "a b c", (Entity("X", ((0, 1), (4, 5))),))
    with pytest.raises(CorpusError, match=r"SpERT cannot hold the discontinuous 'X' at 0-5"):
        write([fragments], tmp_path / "x.json", research_json.SPERT)
    inside = Document("d", "abc", (Entity.at("X", 0, 2),))
    with pytest.raises(CorpusError, match=r"'X' at 0-2 does not fall on word boundaries"):
        write([inside], tmp_path / "x.json", research_json.SPERT)
    assert not (tmp_path / "x.json").exists()
