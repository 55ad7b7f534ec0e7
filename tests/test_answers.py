"""Answers for other programs, checked against the programs where they are installed, and against our own readers."""

import json

import pytest

from wingspan.answers import SHAPES, gliner, hugging_face, own
from wingspan.corpora.formats import read
from wingspan.corpora.formats.jsonl import documents_of_records
from wingspan.text import Document, Entity, Span

TEXT = "Tumors of the colon and lung — 😀 of TGFB1-mice."
PLAIN = Document("7", TEXT, (Entity.at("Gene", 36, 41, 0.9), Entity.at("Organ", 14, 19, 0.8)))
NESTED = Document("8", TEXT, (Entity.at("Gene", 36, 41, 0.9), Entity.at("Mouse", 36, 46, 0.75)))
SPLIT = Document("9", TEXT, (Entity("Tumor", (Span(0, 13), Span(24, 28)), 0.7), Entity.at("Organ", 14, 19, 0.8)))


@pytest.mark.parametrize("document", [PLAIN, NESTED, SPLIT])
@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_every_shape_is_json(document, shape):
    answer = SHAPES[shape](document)
    assert json.loads(json.dumps(answer)) == answer


def test_own_is_what_predict_writes():
    record = {"id": SPLIT.id, "text": TEXT, **SHAPES["own"](SPLIT)}
    assert list(documents_of_records([record], "answer")) == [SPLIT]
    assert own(PLAIN)[0] == {
        "start": 14, "end": 19, "text": "colon", "label": "Organ", "score": 0.8, "fragments": [[14, 19]]
    }  # fmt: skip


def test_shapes_of_libraries_have_their_keys():
    assert hugging_face(PLAIN)[1] == {"entity_group": "Gene", "score": 0.9, "word": "TGFB1", "start": 36, "end": 41}
    assert gliner(PLAIN)[1] == {"start": 36, "end": 41, "text": "TGFB1", "label": "Gene", "score": 0.9}


@pytest.mark.parametrize("rows", [hugging_face, gliner])
def test_fragments_are_not_lost(rows):
    tumor, organ = rows(SPLIT)
    assert (tumor["start"], tumor["end"], tumor["fragments"]) == (0, 28, [[0, 13], [24, 28]])
    assert "fragments" not in organ


def test_spacy_reads_the_answer():
    tokens = pytest.importorskip("spacy.tokens", reason="spaCy is not installed")
    vocabulary = pytest.importorskip("spacy.vocab").Vocab()
    for document, flat in ((PLAIN, True), (NESTED, False)):
        answer = SHAPES["spacy"](document)
        doc = tokens.Doc(vocabulary).from_json(answer)
        assert doc.text == TEXT
        found = [(span.start_char, span.end_char, span.label_) for span in doc.spans["sc"]]
        assert found == [(entity.start, entity.end, entity.label) for entity in document.entities]
        assert len(doc.ents) == (len(found) if flat else 0)
    assert SHAPES["spacy"](SPLIT)["spans"]["sc"][0]["fragments"] == [[0, 13], [24, 28]]


def test_our_readers_read_the_texts(tmp_path):
    for document in (PLAIN, NESTED, SPLIT):
        answer = SHAPES["brat"](document)
        (tmp_path / f"{document.id}.txt").write_text(answer["txt"])
        (tmp_path / f"{document.id}.ann").write_text(answer["ann"])
    assert list(read(tmp_path, "brat")) == [PLAIN, NESTED, SPLIT]
    path = tmp_path / "all.pubtator"
    path.write_text("\n".join(SHAPES["pubtator"](document)["pubtator"] for document in (PLAIN, NESTED)))
    assert [document.entities for document in read(path)] == [PLAIN.entities, NESTED.entities]
    path = tmp_path / "all.bioc.json"
    path.write_text(json.dumps({"documents": [SHAPES["bioc"](document) for document in (PLAIN, NESTED, SPLIT)]}))
    assert [document.entities for document in read(path)] == [PLAIN.entities, NESTED.entities, SPLIT.entities]


def test_what_a_text_format_changes_is_said():
    answer = SHAPES["pubtator"](SPLIT)
    assert "1 discontinuous entity (an entity is made of each fragment)" in " ".join(answer["notes"])
    assert "Tumors of the" in answer["pubtator"]
    assert "lung" in answer["pubtator"].splitlines()[-1]
