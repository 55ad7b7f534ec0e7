"""Our own format, as /docs describe it: records of characters and records of words."""

import json
from pathlib import Path
from typing import Any

import pytest

from wingspan.corpora.formats.jsonl import read, write
from wingspan.files import CorpusError, Problems
from wingspan.text import Document, Entity, Span

CHARACTERS = {
    "id": "a",
    "doc_id": "article 7",
    "text": "Sore left 🦅 arm\r\nand leg.",
    "entities": [
        {"label": "Pain", "fragments": [[0, 4], [12, 15]], "score": 0.5, "annotator": "Mo"},
        {"label": "Pain", "start": 0, "end": 15},
    ],
    "tokens": [[0, 4], [5, 9], [10, 11], [12, 15], [17, 20], [21, 24], [24, 25]],
    "sentences": [[0, 25]],
    "source": {"page": 3},
}
WORDS = {
    "id": "b",
    "tokens": ["Familial", "breast cancer", "and", "🦅"],
    "entities": [
        {"label": "Disease", "start": 1, "end": 2, "concept_id": "D1943"},
        {"label": "Disease", "fragments": [[0, 1], [3, 4]], "text": "Familial 🦅"},
    ],
    "text_start": 12,
}


def lines(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def broken(tmp_path: Path, record: dict[str, Any]) -> str:
    with pytest.raises(CorpusError) as caught:
        list(read(lines(tmp_path / "ace04.jsonl", record), Problems()))
    return str(caught.value).removeprefix(f"{tmp_path}/")


def test_both_shapes_are_read(tmp_path: Path) -> None:
    characters, words = read(lines(tmp_path / "a.jsonl", CHARACTERS, WORDS), Problems())
    assert characters == Document(
        "a",
        CHARACTERS["text"],
        (Entity("Pain", (Span(0, 4), Span(12, 15))), Entity.at("Pain", 0, 15)),
        words=tuple(Span(*pair) for pair in CHARACTERS["tokens"]),
        sentences=(Span(0, 25),),
        group="article 7",
    )
    assert [characters.text_of(entity) for entity in characters.entities] == ["Sore arm", "Sore left 🦅 arm"]
    assert [entity.score for entity in characters.entities] == [0.5, 1.0]
    assert words.text == "Familial breast cancer and 🦅"
    assert [words.text_of(entity) for entity in words.entities] == ["Familial 🦅", "breast cancer"]


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_records_are_written_back_as_they_were(tmp_path: Path, suffix: str) -> None:
    documents = list(read(lines(tmp_path / "a.jsonl", CHARACTERS, WORDS), Problems()))
    write(documents, tmp_path / f"b{suffix}")
    again = list(read(tmp_path / f"b{suffix}", Problems()))
    assert again == documents
    assert [document.meta for document in again] == [document.meta for document in documents]
    if suffix == ".jsonl":
        first, second = map(json.loads, (tmp_path / "b.jsonl").read_text().splitlines())
        assert first == CHARACTERS
        assert {**second, "entities": second["entities"][::-1]} == WORDS


def test_words_that_are_not_divided_by_single_spaces_become_characters(tmp_path: Path) -> None:
    document = Document(
        "x", "ab  c", (Entity.at("L", 4, 5),), words=(Span(0, 2), Span(4, 5)), meta={"record_shape": "words"}
    )
    write([document], tmp_path / "a.jsonl")
    assert json.loads((tmp_path / "a.jsonl").read_text())["text"] == "ab  c"
    assert list(read(tmp_path / "a.jsonl", Problems())) == [document]


def test_words_given_as_strings_beside_a_text_are_found_in_it(tmp_path: Path) -> None:
    record = {"text": "No-one  came.", "tokens": ["No", "-", "one", "came", "."]}
    (document,) = read(lines(tmp_path / "a.jsonl", record), Problems())
    assert document.words == (Span(0, 2), Span(2, 3), Span(3, 6), Span(8, 12), Span(12, 13))
    assert document.id == "a-1"
    assert "tokens 1 is 'one'" in broken(tmp_path, {"text": "No-one", "tokens": ["No", "one"]})


def test_other_datasets_are_named(tmp_path: Path) -> None:
    write([Document("x", "", dataset="ncbi"), Document("y", "")], tmp_path / "a.jsonl")
    assert [document.dataset for document in read(tmp_path / "a.jsonl", Problems())] == ["ncbi", "main"]


def test_meta_named_like_a_key_of_ours_survives(tmp_path: Path) -> None:
    document = Document(
        "x", "abc", (Entity("L", (Span(0, 1),), meta={"start": "x"}),), meta={"text": 5, "tokens": None}
    )
    write([document], tmp_path / "a.jsonl")
    (again,) = read(tmp_path / "a.jsonl", Problems())
    assert (again.meta, again.entities[0].meta) == (document.meta, document.entities[0].meta)


def test_an_entity_past_the_end_is_one_clear_sentence(tmp_path: Path) -> None:
    record = {"tokens": ["w"] * 12, "entities": [{"label": "Cell", "start": 10, "end": 14}]}
    assert broken(tmp_path, record) == (
        'ace04.jsonl:1: entity "Cell" ends at word 14 but the sentence has 12 words; offsets are half-open'
    )


@pytest.mark.parametrize(
    ("entity", "reason"),
    [
        ({"label": "L", "start": 2, "end": 2}, "holds nothing"),
        ({"label": "L", "start": 3, "end": 1}, "holds nothing"),
        ({"label": "L", "start": -1, "end": 1}, "offsets start at 0"),
        ({"label": "L", "start": 0, "end": 7}, "ends at character 7 but the text has 6 characters"),
        ({"label": "L", "start": "0", "end": 1}, "not a whole number"),
        ({"label": "", "start": 0, "end": 1}, "the label is empty"),
        ({"start": 0, "end": 1}, "the label is missing"),
        ({"label": "L", "fragments": [[0, 1], [2]]}, r"where \[start, end\] is needed"),
        ({"label": "L", "fragments": [[0, 1], [2, 3]], "start": 0, "end": 4}, "leave one of the two out"),
        ({"label": "L", "start": 0, "end": 3, "text": "abd"}, "the file says 'abd'; correct the offsets"),
        ({"label": "L", "start": 0, "end": 3, "score": "high"}, "the score of entity"),
        (["L", 0, 3], "is a list, not an object"),
    ],
)
def test_a_bad_entity_is_reported_and_can_be_skipped(tmp_path: Path, entity: Any, reason: str) -> None:
    path = lines(tmp_path / "a.jsonl", {"text": "abc de", "entities": [entity, {"label": "K", "start": 4, "end": 6}]})
    with pytest.raises(CorpusError, match=rf"a.jsonl:1: .*{reason}"):
        list(read(path, Problems()))
    problems = Problems("skip")
    (document,) = read(path, problems)
    assert [entity.label for entity in document.entities] == ["K"]
    assert len(problems.messages) == 1


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"id": "x"}, "needs the key 'text' or the key 'tokens'"),
        ({"text": 5}, "text is a number, not a string"),
        ({"tokens": ["a", ""]}, "word 1 of tokens is empty"),
        ({"tokens": "abc"}, "not a list of words"),
        ({"text": "abc", "tokens": [[0, 2], [1, 3]]}, "tokens 0 and 1 overlap"),
        ({"text": "abc", "entities": {}}, "entities is an object, not a list"),
    ],
)
def test_a_bad_record_is_reported_with_its_line(tmp_path: Path, record: dict[str, Any], reason: str) -> None:
    assert reason in broken(tmp_path, record)


def test_empty_files_and_texts_are_fine(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("")
    assert list(read(tmp_path / "a.jsonl", Problems())) == []
    assert list(read(lines(tmp_path / "a.jsonl", {"id": 7, "text": ""}), Problems())) == [Document("7", "")]
