"""brat standoff, as https://brat.nlplab.org/standoff.html describes it."""

from pathlib import Path

import pytest

from wingspan.corpora.formats.brat import file_name, read, write
from wingspan.corpora.formats.records import positions
from wingspan.corpora.formats.standoff import Mention, placed
from wingspan.files import CorpusError, Problems
from wingspan.text import Document, Entity, Span

TEXT = "Pain in left\nand right 🦅 arm.\n"
ANNOTATIONS = (
    "T1\tSymptom 0 4;23 24;25 28\tPain 🦅 arm\n"
    "T2\tBody Part 8 12;13 22\tleft and right\n"
    "A1\tNegated T1\nA2\tDegree T1 high\nN1\tReference T2 UMLS:C1 Arm\tarm\n#1\tAnnotatorNotes T1\tsure?\n"
    "R1\tPart Arg1:T1 Arg2:T2\nE1\tSymptom:T1 Site:T2\n*\tEquiv T1 T2\nM1\tSpeculated E1\n"
)


def pair(folder: Path, text: str, annotations: str | None, name: str = "a") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.txt").write_bytes(text.encode())
    if annotations is not None:
        (folder / f"{name}.ann").write_bytes(annotations.encode())
    return folder


def surfaces(document: Document) -> list[str]:
    return [document.text_of(entity) for entity in document.entities]


def test_entities_fragments_and_line_ends(tmp_path: Path) -> None:
    problems = Problems()
    (document,) = read(pair(tmp_path, TEXT, ANNOTATIONS), problems)
    assert document.id == "a"
    assert [(entity.label, entity.spans) for entity in document.entities] == [
        ("Symptom", (Span(0, 4), Span(23, 24), Span(25, 28))),
        ("Body Part", (Span(8, 22),)),
    ]
    assert document.entities[0].meta == {
        "id": "T1",
        "attributes": {"Negated": True, "Degree": "high"},
        "notes": ["sure?"],
    }
    assert document.entities[1].meta["concept_id"] == "UMLS:C1 Arm"
    assert problems.notes == [
        f"{tmp_path / 'a.ann'}: 1 entities were cut at line ends only; their fragments are joined"
    ]


def test_every_line_is_written_back(tmp_path: Path) -> None:
    documents = list(read(pair(tmp_path / "in", TEXT, ANNOTATIONS), Problems()))
    write(documents, tmp_path / "out")
    assert (tmp_path / "out" / "a.txt").read_text() == TEXT
    assert (tmp_path / "out" / "a.ann").read_text() == ANNOTATIONS


def test_lines_about_an_entity_that_is_gone_go_with_it(tmp_path: Path) -> None:
    (document,) = read(pair(tmp_path / "in", TEXT, ANNOTATIONS), Problems())
    write([Document("a", document.text, document.entities[1:], meta=document.meta)], tmp_path / "out")
    assert (tmp_path / "out" / "a.ann").read_text().splitlines() == [
        "T2\tBody Part 8 12;13 22\tleft and right",
        "N1\tReference T2 UMLS:C1 Arm\tarm",
        "M1\tSpeculated E1",
    ]


def test_fragments_that_only_a_line_end_divides_stay_apart_if_they_were(tmp_path: Path) -> None:
    document = Document("a", TEXT, (Entity("X", (Span(8, 12), Span(13, 16))), Entity.at("X", 8, 16)))
    write([document], tmp_path / "out")
    assert list(read(tmp_path / "out", Problems())) == [document]


def test_concept_ids_become_normalizations(tmp_path: Path) -> None:
    document = Document("a", TEXT, (Entity("X", (Span(0, 4),), meta={"concept_id": "D010146"}),))
    write([document], tmp_path / "out")
    assert "N1\tReference T1 ID:D010146\n" in (tmp_path / "out" / "a.ann").read_text()
    (again,) = read(tmp_path / "out", Problems())
    assert again.entities[0].meta["concept_id"] == "D010146"


@pytest.mark.parametrize("annotations", [None, "", "\n"])
def test_no_annotations_are_fine(tmp_path: Path, annotations: str | None) -> None:
    assert list(read(pair(tmp_path, TEXT, annotations), Problems())) == [Document("a", TEXT)]


def test_folders_start_the_id(tmp_path: Path) -> None:
    pair(tmp_path / "train" / "x", "One", "T1\tX 0 3\tOne", "b.1")
    pair(tmp_path / "test", "Two", None)
    pair(tmp_path / ".hidden", "Three", None)
    assert [document.id for document in read(tmp_path, Problems())] == ["test/a", "train/x/b.1"]
    (single,) = read(tmp_path / "train" / "x" / "b.1.ann", Problems())
    assert (single.id, surfaces(single)) == ("b.1", ["One"])


@pytest.mark.parametrize(
    ("text", "start", "kept"),
    [
        ("a\r\nSalt", 3, "a\r\nSalt"),  # CR LF counts two
        ("a\r\nSalt", 2, "a\nSalt"),  # CR LF counts one
        ("\ufeffa Salt", 3, "\ufeffa Salt"),  # the mark counts
        ("\ufeffa Salt", 2, "a Salt"),  # the mark does not count
        ("\ufeffa\r\nSalt", 2, "a\nSalt"),
        ("🦅 Salt", 2, "🦅 Salt"),
        ("🦅 Salt", 3, "🦅 Salt"),  # UTF-16 units
        ("🦅 Salt", 5, "🦅 Salt"),  # bytes
    ],
)
def test_the_surfaces_tell_what_offsets_count(tmp_path: Path, text: str, start: int, kept: str) -> None:
    (document,) = read(pair(tmp_path, text, f"T1\tX {start} {start + 4}\tSalt\n"), Problems())
    assert document.text == kept
    assert surfaces(document) == ["Salt"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("T1\tX 1 4\tPain", "'ain' in the text, but the file says 'Pain', which is at 0-4"),
        ("T1\tX 4 4\t", "holds nothing"),
        ("T1\tX 0 99\tPain", "goes past the end of the text, which ends at 30"),
        ("T1\tX\tPain", "is no line of brat"),
        ("T1 X 0 4 Pain", "is no line of brat"),
    ],
)
def test_what_does_not_fit_has_its_line(tmp_path: Path, line: str, reason: str) -> None:
    pair(tmp_path, TEXT, f"\n{line}\nT2\tX 0 4\tPain\n")
    with pytest.raises(CorpusError, match=rf"a.ann:2: .*{reason}"):
        list(read(tmp_path, Problems()))
    problems = Problems("skip")
    (document,) = read(tmp_path, problems)
    assert (surfaces(document), len(problems.messages)) == (["Pain"], 1)


def test_a_missing_text_is_told(tmp_path: Path) -> None:
    (tmp_path / "b.ann").write_text("T1\tX 0 4\tPain\n")
    for path in (tmp_path, tmp_path / "b.ann"):
        with pytest.raises(CorpusError, match="b.ann: there is no b.txt beside it"):
            list(read(path, Problems()))


def test_a_surface_of_numbers_is_no_place(tmp_path: Path) -> None:
    (document,) = read(pair(tmp_path, "0 0 kg", "T1\tGrade 3 4 0 3\t0 0\n"), Problems())
    assert document.entities == (Entity.at("Grade 3 4", 0, 3),)


def test_an_empty_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no .txt and .ann files in this folder"):
        list(read(tmp_path, Problems()))


@pytest.mark.parametrize(
    "name", ["../up", "a/b", "a//b", "/root", "..", ".x", "a%20b", "50%", "a:b?", "x ", "é", "a\\b"]
)
def test_any_id_is_a_file_inside_of_the_folder(tmp_path: Path, name: str) -> None:
    write([Document(name, "Rain")], tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert list(read(tmp_path / "out", Problems())) == [Document(name, "Rain")]


def test_no_id_is_no_file_name() -> None:
    with pytest.raises(CorpusError, match="without an id"):
        file_name("")


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    pair(tmp_path, "Old", None, "old")
    with pytest.raises(CorpusError, match="already holds old.txt"):
        write([Document("new", "New")], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["old.txt"]
    write([Document("old", "Newer")], tmp_path)
    assert list(read(tmp_path, Problems())) == [Document("old", "Newer")]


def test_two_documents_of_one_id_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="two documents have this id"):
        write([Document("a", ""), Document("a", "")], tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_one_pair_of_files(tmp_path: Path) -> None:
    write([Document("a", "Rain", (Entity.at("X", 0, 4),))], tmp_path / "a.ann")
    assert [len(document.entities) for document in read(tmp_path / "a.txt", Problems())] == [1]
    with pytest.raises(CorpusError, match="2 documents for one .ann file"):
        write([Document("a", ""), Document("b", "")], tmp_path / "a.ann")


def test_an_offset_inside_of_a_character_is_refused() -> None:
    places = positions("é!", "bytes")
    assert placed(Mention("X", ((0, 2),), None), places) == (Span(0, 1),)
    for start, end in ((0, 1), (1, 3)):
        assert "cuts a character in half" in placed(Mention("X", ((start, end),), None), places)
