"""PubTator, as https://www.ncbi.nlm.nih.gov/research/pubtator/tutorial.html (Formats) describes it."""

from pathlib import Path

import pytest

from wingspan.corpora.formats.pubtator import read, write
from wingspan.files import CorpusError, Problems
from wingspan.text import Document, Entity, Span

CONTENT = (
    "\r\n17|t|Salt and stroke.\r\n17|a|Much salt|sugar\tis bad.\r\n17\t0\t4\tSalt\tChemical\tD012965\r\n"
    "17\t9\t15\tstroke\tDisease\r\n17\t22\t26\tsalt\tChemical\tD012965\tnaf|x\r\n17\tCID\tD012965\tD020521\r\n\r\n"
    "18|t|No abstract\r\n18|a|\r\n"
)


def file(tmp_path: Path, content: str) -> Path:
    (tmp_path / "a.pubtator").write_bytes(content.encode())
    return tmp_path / "a.pubtator"


def test_title_and_abstract_are_one_text(tmp_path: Path) -> None:
    first, second = read(file(tmp_path, CONTENT), Problems())
    assert first.id == "17"
    assert first.text == "Salt and stroke. Much salt|sugar\tis bad."
    assert [(entity.label, first.text_of(entity)) for entity in first.entities] == [
        ("Chemical", "Salt"),
        ("Disease", "stroke"),
        ("Chemical", "salt"),
    ]
    assert [entity.meta.get("concept_id") for entity in first.entities] == ["D012965", None, "D012965"]
    assert first.meta["pubtator"]["relations"] == [["CID", "D012965", "D020521"]]
    assert second == Document("18", "No abstract")


def test_everything_is_written_back(tmp_path: Path) -> None:
    documents = list(read(file(tmp_path, CONTENT), Problems()))
    write(documents, tmp_path / "b.pubtator")
    assert (tmp_path / "b.pubtator").read_bytes() == CONTENT.replace("\r\n", "\n").lstrip("\n").encode() + b"\n"


def test_passages_that_share_an_id_are_one_group(tmp_path: Path) -> None:
    documents = list(read(file(tmp_path, "5|t|One\n5|a|\n\n5|t|Two\n5|a|\n\n6|t|Three\n"), Problems()))
    assert [(document.id, document.group, document.text) for document in documents] == [
        ("5-p0", "5", "One"),
        ("5-p1", "5", "Two"),
        ("6", None, "Three"),
    ]


@pytest.mark.parametrize(("unit", "start"), [("code points", 5), ("utf-16", 6), ("bytes", 10)])
def test_the_surfaces_tell_what_offsets_count(tmp_path: Path, unit: str, start: int) -> None:
    problems = Problems()
    (document,) = read(file(tmp_path, f"1|t|🦅 αβ salt\n1\t{start}\t{start + 4}\tsalt\tX\n"), problems)
    assert document.entities == (Entity.at("X", 5, 9),)
    assert (unit in "".join(problems.notes)) == (unit != "code points")


def test_a_surface_in_other_letters_is_kept_and_counted(tmp_path: Path) -> None:
    problems = Problems()
    content = '1|t|TNF-α and "a" Box\n1\t0\t5\tTNF-a\tGene\n1\t10\t13\t a \tGene\n1\t14\t17\tbox\tGene\n'
    (document,) = read(file(tmp_path, content), problems)
    assert len(document.entities) == 3
    assert problems.notes[0].endswith("3 surfaces are written otherwise than the text at their offsets, which is kept")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("1\t1\t5\tSalt\tX", "'alt ' in the text, but the file says 'Salt', which is at 0-4; correct the offsets"),
        ("1\t0\t4\tFish\tX", "but the file says 'Fish'; correct the offsets or the surface"),
        ("1\t4\t4\t\tX", "holds nothing"),
        ("1\t4\t2\tal\tX", "holds nothing"),
        ("1\t-1\t2\tSa\tX", "starts before the text"),
        ("1\t20\t24\tSalt\tX", "goes past the end of the text, which ends at 12"),
        ("1\t0\t4\tSalt", "a mention without a label"),
        ("2\t0\t4\tSalt\tX", "belongs to no document"),
        ("1\tnothing", "neither text, nor mention, nor relation"),
    ],
)
def test_what_does_not_fit_has_its_line(tmp_path: Path, row: str, reason: str) -> None:
    path = file(tmp_path, f"1|t|Salt is good\n{row}\n1\t0\t4\tSalt\tX\n")
    with pytest.raises(CorpusError, match=rf"a.pubtator:2: .*{reason}"):
        list(read(path, Problems()))
    problems = Problems("skip")
    (document,) = read(path, problems)
    assert document.entities == (Entity.at("X", 0, 4),)
    assert len(problems.messages) == 1


def test_line_ends_become_blanks_of_the_same_length(tmp_path: Path) -> None:
    write([Document("1", "One\ntwo\r\nthree", (Entity.at("X", 4, 14),))], tmp_path / "a.pubtator")
    (document,) = read(tmp_path / "a.pubtator", Problems())
    assert (document.text, document.entities) == ("One two  three", (Entity.at("X", 4, 14),))


@pytest.mark.parametrize(
    ("documents", "reason"),
    [
        ([Document("1", "abc", (Entity("X", (Span(0, 1), Span(2, 3))),))], "PubTator cannot hold the discontinuous"),
        ([Document("a|b", "")], "PubTator needs ids without"),
        ([Document("a", ""), Document("a", "")], "two documents have this id"),
        ([Document("a", "b", (Entity.at("x\ty", 0, 1),))], "holds a tab or line end"),
    ],
)
def test_what_it_cannot_hold_is_refused(tmp_path: Path, documents: list[Document], reason: str) -> None:
    with pytest.raises(CorpusError, match=reason):
        write(documents, tmp_path / "a.pubtator")
    assert not (tmp_path / "a.pubtator").exists()


def test_an_empty_file_is_noted(tmp_path: Path) -> None:
    problems = Problems()
    assert list(read(file(tmp_path, ""), problems)) == []
    assert "no document in it" in problems.notes[0]
