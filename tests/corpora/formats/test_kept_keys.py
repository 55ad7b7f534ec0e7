"""What a format says of the keys it keeps is true: round trips through `convert` give equal documents and `meta`."""

import os
import shutil
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from wingspan.cli.convert import convert_corpus
from wingspan.corpora.formats import FORMATS, format_named, read, write
from wingspan.corpora.formats.conversion_loss import IDS, described, fit
from wingspan.text import Document, Entity, Span

FIXTURES = Path(__file__).parent / "fixtures"
OWN = {
    "bioc-json": "bioc-json.json",
    "bioc-xml": "bioc-xml.xml",
    "brat": "brat",
    "conll": "conll.conll",
    "doccano": "doccano.jsonl",
    "jsonl": "jsonl.jsonl",
    "label-studio": "label-studio.json",
    "prodigy": "prodigy.jsonl",
    "pubtator": "pubtator.txt",
    "pure": "pure.jsonl",
    "w2ner": "w2ner.json",
}
PARTLY = ("brat", "pubtator", "bioc-xml", "bioc-json", "conll")
"""Formats that keep the keys they name, and no others."""


def with_meta(documents: list[Document]) -> list[tuple[Document, Mapping[str, Any], list[Mapping[str, Any]]]]:
    """Everything that equality of documents leaves out, laid open."""
    return [(document, document.meta, [entity.meta for entity in document.entities]) for document in documents]


def round_trip(source: Path, target: Path, name: str, form: str | None = None) -> None:
    convert_corpus(source, target, from_format=form or name, to_format=name)
    assert with_meta(list(read(target, name))) == with_meta(list(read(source, form or name)))


@pytest.mark.parametrize("name", OWN)
def test_the_own_fixture_comes_back_with_its_keys(tmp_path: Path, name: str) -> None:
    source = FIXTURES / OWN[name]
    round_trip(source, tmp_path / source.name, name)  # the same name: files without ids are named by it


@pytest.mark.parametrize(("form", "name"), [("bioc-json", "bioc-xml"), ("bioc-xml", "bioc-json")])
def test_bioc_between_xml_and_json(tmp_path: Path, form: str, name: str) -> None:
    round_trip(FIXTURES / OWN[form], tmp_path / "out", name, form)


def test_relations_of_spert_come_back_under_new_numbers(tmp_path: Path) -> None:
    convert_corpus(FIXTURES / "spert.json", tmp_path / "out.spert.json")
    found = [named_relations(document) for document in read(tmp_path / "out.spert.json")]
    assert found == [named_relations(document) for document in read(FIXTURES / "spert.json")]
    assert found[0] == [("Works_For", "Ada Quill", "Lund Robotics"), ("Based_In", "Lund Robotics", "Oslo")]


def named_relations(document: Document) -> list[tuple[str, str, str]]:
    surface = {entity.meta.get("spert_index"): document.text_of(entity) for entity in document.entities}
    relations = document.meta.get("relations", [])
    return [(relation["type"], surface[relation["head"]], surface[relation["tail"]]) for relation in relations]


def test_relations_that_lose_an_entity_are_counted(tmp_path: Path) -> None:
    done = convert_corpus(FIXTURES / "spert.json", tmp_path / "out.spert.json", flattening="none")
    assert (done.flattened, done.losses) == (2, {"relations whose entity is no longer there (left out)": 2})
    assert not any(document.meta.get("relations") for document in read(tmp_path / "out.spert.json"))
    assert not convert_corpus(FIXTURES / "spert.json", tmp_path / "outer.spert.json", flattening="outer").losses


@pytest.mark.parametrize("name", PARTLY)
def test_a_key_that_is_not_named_is_told_and_really_lost(tmp_path: Path, name: str) -> None:
    entity = Entity("X", (Span(0, 1),), meta={"certainty": "high"})
    source = tmp_path / "in.jsonl"
    write([Document("out-1", "a", (entity,), meta={"year": 1999})], source)
    target = tmp_path / ("out" if name == "brat" else f"out{FORMATS[name].suffixes[0]}")
    done = convert_corpus(source, target, to_format=name)
    assert described(done.losses, of_entities=False) == "'year' of 1 document, 'certainty' of 1 entity"
    (document,) = read(target, name)
    assert "year" not in document.meta
    assert "certainty" not in document.entities[0].meta


def lost(name: str, document: Mapping[str, Any], *entities: Mapping[str, Any]) -> list[str]:
    """The keys that the format says it loses; entities are found one letter each."""
    found = tuple(Entity("X", (Span(2 * at, 2 * at + 1),), meta=meta) for at, meta in enumerate(entities))
    words = tuple(Span(2 * at, 2 * at + 1) for at in range(3))
    _, losses = fit(Document("out-1", "a b c", found, words=words, meta=document), format_named(name), "out-1")
    return sorted(what.split("'")[1] for what in losses if what.startswith("'"))


@pytest.mark.parametrize(
    ("name", "document", "entity", "expected"),
    [
        ("brat", {}, {"id": "T7", "concept_id": "D01,D02"}, []),
        ("brat", {}, {"id": "7"}, ["id"]),  # no id of brat; a new one is made
        ("brat", {}, {"concept_id": "ID:7"}, ["concept_id"]),  # would be read as 7
        ("brat", {}, {"notes": ["a town"], "attributes": {"Negated": True}}, ["attributes", "notes"]),
        ("brat", {"brat": ["#1\tAnnotatorNotes T1\ta town"]}, {"id": "T1", "notes": ["a town"]}, []),
        ("brat", {"brat": ["R1\tIn Arg1:T1 Arg2:T9"]}, {"id": "T1"}, ["brat"]),  # T9 is gone
        ("bioc-json", {}, {"id": "T7", "concept_id": "D01", "infons": {"n": 1}}, []),
        ("bioc-xml", {}, {"id": "T7", "concept_id": "D01", "infons": {"n": "1"}}, []),
        ("bioc-xml", {}, {"infons": {"n": 1}}, ["infons"]),  # XML has strings only
        ("bioc-json", {}, {"id": 7}, ["id"]),  # comes back as "7"
        ("bioc-json", {"bioc": {"relations": [{"id": "r"}]}}, {}, ["bioc"]),  # without passages: comes back with them
        ("pubtator", {}, {"concept_id": "D01", "pubtator_columns": ["x"]}, []),
        ("pubtator", {}, {"concept_id": 7}, ["concept_id"]),
        ("pubtator", {"pubtator": {"passages": [["t", 2]]}}, {}, ["pubtator"]),  # of another text
        ("conll", {"comments": ["# a"], "columns": [["P", "Q", "R"]]}, {}, []),
        ("conll", {"comments": ["a"], "columns": [["P"]]}, {}, ["columns", "comments"]),
        ("conll", {"comments": ["# a\tO"]}, {}, ["comments"]),  # would be a word
    ],
)
def test_a_value_counts_as_kept_only_if_it_comes_back(
    name: str, document: dict[str, Any], entity: dict[str, Any], expected: list[str]
) -> None:
    assert lost(name, document, entity) == expected


@pytest.mark.skipif(find_spec("spacy") is None, reason="the extra spacy is not installed")
def test_spans_of_spacy_keep_two_ids() -> None:
    assert lost("docbin", {"year": 1999}, {"id": "7", "kb_id": "Q1"}) == []
    assert lost("docbin", {}, {"id": 7}, {"kb_id": ""}, {"notes": []}) == ["id", "kb_id", "notes"]


def test_columns_of_some_sentences_are_kept(tmp_path: Path) -> None:
    some = [
        Document.from_words("out-1", ("a", "b"), meta={"columns": [["P", "Q"]]}),
        Document.from_words("out-2", ("c",), (Entity.at("X", 0, 1),)),
    ]
    write(some, tmp_path / "in.jsonl")
    convert_corpus(tmp_path / "in.jsonl", tmp_path / "out.conll")
    found = list(read(tmp_path / "out.conll"))
    assert found == some
    assert [document.meta["columns"] for document in found] == [[["P", "Q"]], [["_"]]]


@pytest.mark.parametrize("name", FORMATS)
def test_between_formats_what_is_not_lost_comes_back(tmp_path: Path, name: str) -> None:
    """The brat fixture to every format: each key either is listed as lost or comes back with its value."""
    extra = {"docbin": "spacy", "hub": "datasets"}.get(name)
    if extra and find_spec(extra) is None:
        pytest.skip(f"the extra {extra} is not installed")
    target = tmp_path / ("out" if name == "brat" else f"out{FORMATS[name].suffixes[0]}")
    done = convert_corpus(FIXTURES / "brat", target, to_format=name, lossy=True)
    (before,), (after,) = read(FIXTURES / "brat"), read(target, name)
    told = {what.split("'")[1] for what in done.losses if what.startswith("'")}
    for key in before.meta.keys() - told:
        assert after.meta[key] == before.meta[key]
    for entity in before.entities:
        same = [other for other in after.entities if after.text_of(other) in before.text_of(entity)]
        for key in entity.meta.keys() - told:
            assert any(other.meta.get(key) == entity.meta[key] for other in same)


ROOT = Path(os.environ.get("WINGSPAN_DATA", "/nowhere"))


@pytest.mark.skipif(not ROOT.is_dir(), reason="WINGSPAN_DATA does not name the folder of corpora")
@pytest.mark.parametrize(
    ("path", "form", "name"),
    [
        ("ncbi-disease/original/brat-standoff", "brat", "brat"),
        ("biored/original/Dev.BioC.JSON.gz", "bioc-json", "bioc-json"),
        ("biored/original/Dev.BioC.XML", "bioc-xml", "bioc-xml"),
        ("biored/original/Dev.BioC.XML", "bioc-xml", "bioc-json"),
        ("biored/original/Dev.BioC.JSON.gz", "bioc-json", "bioc-xml"),
        ("biored/original/BioRED_Test.PubTator", "pubtator", "pubtator"),
        ("ncbi-disease/original/pubtator/NCBItestset_corpus.txt", "pubtator", "pubtator"),
        ("germeval14/original/NER-de-dev.tsv", "conll", "conll"),
        ("wnut17/original/emerging.dev.conll", "conll", "conll"),
        ("genia/original/W2NER-format/dev.json", "w2ner", "w2ner"),
    ],
)
def test_an_original_comes_back_with_its_keys(tmp_path: Path, path: str, form: str, name: str) -> None:
    round_trip(ROOT / path, tmp_path / Path(path).name, name, form)


def test_ids_are_kept_only_if_the_reader_will_make_them_again(tmp_path: Path) -> None:
    shutil.copy(FIXTURES / "conll.conll", tmp_path / "train.conll")
    convert_corpus(tmp_path / "train.conll", tmp_path / "train.jsonl")
    assert not convert_corpus(tmp_path / "train.jsonl", tmp_path / "again" / "train.conll").losses
    assert convert_corpus(tmp_path / "train.jsonl", tmp_path / "other.conll").losses == {IDS: 2}
    write([Document("train-0", "a"), Document("train-2", "b")], tmp_path / "shifted.jsonl")
    done = convert_corpus(tmp_path / "shifted.jsonl", tmp_path / "train.iob")
    assert done.losses == {IDS: 1}
    assert [document.id for document in read(tmp_path / "train.iob")] == ["train-1", "train-2"]
