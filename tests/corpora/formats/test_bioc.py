"""BioC: http://bioc.sourceforge.net (DTD), https://github.com/bionlplab/bioc (JSON)."""

import json
from pathlib import Path
from typing import Any

import pytest

from wingspan.corpora.formats import bioc, write
from wingspan.files import CorpusError, Problems
from wingspan.text import Document, Entity, Span

XML = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE collection SYSTEM "BioC.dtd">
<collection><source>made up</source><date>2024-01-01</date><key>x.key</key><infon key="c">all</infon>
<document><id>7</id><infon key="year">1999</infon>
<passage><infon key="type">title</infon><offset>0</offset><text>Salt &amp; pain</text>
<annotation id="A"><infon key="type">Chemical</infon><infon key="identifier">D1</infon><infon key="by">Mo</infon>
<location offset="0" length="4"/><text>Salt</text></annotation></passage>
<passage><infon key="type">abstract</infon><offset>12</offset><text>Left and right arm</text>
<annotation id="B"><infon key="type">Part</infon><location offset="12" length="4"/><location offset="27" length="3"/>
<text>Left arm</text></annotation>
<relation id="R0"><infon key="type">in</infon><node refid="A" role="what"/><node refid="B" role="where"/></relation>
</passage><relation id="R1"><infon key="type">of</infon><node refid="A" role="x"/></relation></document></collection>
"""
RELATION = {
    "id": "R0",
    "infons": {"type": "in"},
    "nodes": [{"refid": "A", "role": "what"}, {"refid": "B", "role": "where"}],
}
JSON = {
    "source": "made up",
    "date": "2024-01-01",
    "key": "x.key",
    "infons": {"c": "all"},
    "documents": [
        {
            "id": "7",
            "infons": {"year": "1999"},
            "passages": [
                {
                    "offset": 0,
                    "infons": {"type": "title"},
                    "text": "Salt & pain",
                    "sentences": [],
                    "annotations": [
                        {
                            "id": "A",
                            "infons": {"type": "Chemical", "identifier": "D1", "by": "Mo"},
                            "text": "Salt",
                            "locations": [{"offset": 0, "length": 4}],
                        }
                    ],
                    "relations": [],
                },
                {
                    "offset": 12,
                    "infons": {"type": "abstract"},
                    "text": "Left and right arm",
                    "sentences": [],
                    "annotations": [
                        {
                            "id": "B",
                            "infons": {"type": "Part"},
                            "text": "Left arm",
                            "locations": [{"offset": 12, "length": 4}, {"offset": 27, "length": 3}],
                        }
                    ],
                    "relations": [RELATION],
                },
            ],
            "relations": [{"id": "R1", "infons": {"type": "of"}, "nodes": [{"refid": "A", "role": "x"}]}],
        }
    ],
}
EXPECTED = Document(
    "7",
    "Salt & pain Left and right arm",
    (Entity.at("Chemical", 0, 4), Entity("Part", (Span(12, 16), Span(27, 30)))),
)


def xml(tmp_path: Path, content: str = XML) -> Path:
    (tmp_path / "a.xml").write_text(content)
    return tmp_path / "a.xml"


def as_json(tmp_path: Path, value: Any) -> Path:
    (tmp_path / "a.json").write_text(json.dumps(value))
    return tmp_path / "a.json"


def passage(text: str, *annotations: tuple[str, int, int], offset: int = 0, unit: int = 0) -> dict[str, Any]:
    return {
        "offset": offset,
        "text": text,
        "annotations": [
            {"infons": {"type": "X"}, "text": surface, "locations": [{"offset": start, "length": length}]}
            for surface, start, length in annotations
        ],
    }


def surfaces(document: Document) -> list[str]:
    return [document.text_of(entity) for entity in document.entities]


def test_both_are_read_alike(tmp_path: Path) -> None:
    (from_xml,) = bioc.BIOC_XML.read(xml(tmp_path), Problems())
    (from_json,) = bioc.BIOC_JSON.read(as_json(tmp_path, JSON), Problems())
    assert from_xml == from_json == EXPECTED
    assert from_xml.meta == from_json.meta
    assert from_xml.entities[0].meta == {"id": "A", "concept_id": "D1", "infons": {"by": "Mo"}}


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_everything_is_written_back(tmp_path: Path, suffix: str) -> None:
    documents = list(bioc.BIOC_JSON.read(as_json(tmp_path, JSON), Problems()))
    write(documents, tmp_path / f"b.json{suffix}", bioc.BIOC_JSON)
    write(documents, tmp_path / f"b.xml{suffix}", bioc.BIOC_XML)
    for again in (
        list(bioc.BIOC_JSON.read(tmp_path / f"b.json{suffix}", Problems())),
        list(bioc.BIOC_XML.read(tmp_path / f"b.xml{suffix}", Problems())),
    ):
        assert again == documents
        assert again[0].meta == documents[0].meta
        assert [entity.meta for entity in again[0].entities] == [entity.meta for entity in documents[0].entities]
    if not suffix:
        assert json.loads((tmp_path / "b.json").read_text()) == JSON


@pytest.mark.parametrize(("start", "size"), [(9, 3), (10, 3), (13, 4)])  # code points, UTF-16 units, bytes
def test_the_surfaces_tell_what_offsets_count(tmp_path: Path, start: int, size: int) -> None:
    second = {3: {9: 4, 10: 5}, 4: {13: 8}}[size][start]
    value = {
        "documents": [
            {"id": "1", "passages": [passage("🦅 é"), passage("ab cdé!", ("cdé", start - 2, size), offset=second)]}
        ]
    }
    problems = Problems()
    (document,) = bioc.BIOC_JSON.read(as_json(tmp_path, value), problems)
    assert document.text == "🦅 é ab cdé!"
    assert surfaces(document) == ["cdé"]
    assert bool(problems.notes) == (start != 9)
    write([document], tmp_path / "b.json", bioc.BIOC_JSON)
    assert list(bioc.BIOC_JSON.read(tmp_path / "b.json", Problems())) == [document]


def test_passages_keep_their_distance(tmp_path: Path) -> None:
    near = [passage("One."), passage("Two.", ("Two", 6, 3), offset=6), passage("Odd.", ("Odd", 3, 3), offset=3)]
    far = [passage("Far.", ("Far", 90000, 3), offset=90000)]
    (document,) = bioc.BIOC_JSON.read(as_json(tmp_path, {"id": "1", "passages": near + far}), Problems())
    assert document.text == "One.  Two. Odd. Far."
    assert surfaces(document) == ["Two", "Odd", "Far"]
    write([document], tmp_path / "b.json", bioc.BIOC_JSON)
    assert list(bioc.BIOC_JSON.read(tmp_path / "b.json", Problems())) == [document]


def test_sentences_of_a_passage_make_its_text(tmp_path: Path) -> None:
    sentences = [passage("It rains."), passage("It pours.", ("pours", 13, 5), offset=10)]
    value = [{"id": "1", "passages": [{"offset": 0, "sentences": sentences}]}]
    (document,) = bioc.BIOC_JSON.read(as_json(tmp_path, value), Problems())
    assert document.text == "It rains. It pours."
    assert document.sentences == (Span(0, 9), Span(10, 19))
    assert surfaces(document) == ["pours"]


def test_an_entity_across_passages_survives(tmp_path: Path) -> None:
    (document,) = bioc.BIOC_JSON.read(as_json(tmp_path, JSON), Problems())
    wide = Document(
        "7", document.text, (Entity.at("X", 7, 16), Entity("X", (Span(0, 4), Span(12, 16)))), meta=document.meta
    )
    for format in (bioc.BIOC_XML, bioc.BIOC_JSON):
        format.write([wide], tmp_path / "b")
        assert list(format.read(tmp_path / "b", Problems())) == [wide]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"text": "Sand"}, "but the file says 'Sand'"),
        ({"locations": [{"offset": 99, "length": 4}]}, "goes past the end of the text, which ends at 30"),
        ({"locations": [{"offset": 0, "length": 0}]}, "holds nothing"),
        ({"locations": [{"offset": -3, "length": 4}]}, "offsets start at 0"),
        ({"locations": []}, "annotation 'A' has no location"),
        ({"infons": {}}, "annotation 'A' has no infon 'type'"),
        ({"locations": [{"offset": "x"}]}, "not a whole number"),
    ],
)
def test_what_does_not_fit_names_the_document(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    value = json.loads(json.dumps(JSON))
    value["documents"][0]["passages"][0]["annotations"][0] |= change
    with pytest.raises(CorpusError, match=rf"a.json: document 7: .*{reason}"):
        list(bioc.BIOC_JSON.read(as_json(tmp_path, value), Problems()))
    problems = Problems("skip")
    (document,) = bioc.BIOC_JSON.read(as_json(tmp_path, value), problems)
    assert (surfaces(document), len(problems.messages)) == (["Left arm"], 1)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (XML[:-20], r"a.xml:\d+: not valid XML"),
        ("<other/>", "the root is <other>, not <collection>"),
        (
            XML.replace("<offset>12</offset>", "<offset>x</offset>"),
            "document 1: offset is a string, not a whole number",
        ),
        ("", "not valid XML"),
    ],
)
def test_broken_xml_is_one_sentence(tmp_path: Path, content: str, reason: str) -> None:
    with pytest.raises(CorpusError, match=reason):
        list(bioc.BIOC_XML.read(xml(tmp_path, content), Problems()))


def test_json_of_another_kind_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="not BioC: a collection has the key 'documents'"):
        list(bioc.BIOC_JSON.read(as_json(tmp_path, {"text": "x"}), Problems()))
    assert list(bioc.BIOC_JSON.read(as_json(tmp_path, {"documents": []}), Problems())) == []


def test_what_xml_cannot_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"U\+0001, which XML cannot hold"):
        write([Document("1", "a\x01")], tmp_path / "a.xml", bioc.BIOC_XML)
    write([Document('1"<&', "a\r\n\tb\n", (Entity.at("x<'\"", 0, 4),))], tmp_path / "a.xml", bioc.BIOC_XML)
    (document,) = bioc.BIOC_XML.read(tmp_path / "a.xml", Problems())
    assert (document.id, document.text, document.entities[0].label) == ('1"<&', "a\r\n\tb\n", "x<'\"")


def test_annotations_without_a_text_are_told(tmp_path: Path) -> None:
    annotation = passage("x", ("x", 0, 1))["annotations"]
    with pytest.raises(CorpusError, match="goes past the end of the text, which ends at 0"):
        list(bioc.BIOC_JSON.read(as_json(tmp_path, {"id": "1", "passages": [], "annotations": annotation}), Problems()))


def test_no_documents_are_written_as_such(tmp_path: Path) -> None:
    for format in (bioc.BIOC_XML, bioc.BIOC_JSON):
        format.write([], tmp_path / "a")
        assert list(format.read(tmp_path / "a", Problems())) == []
