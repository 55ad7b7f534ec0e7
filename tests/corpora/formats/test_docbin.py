"""DocBin and span groups: https://spacy.io/api/docbin and https://spacy.io/api/spancategorizer (key "sc")."""

import builtins
from pathlib import Path
from typing import Any

import pytest

from wingspan.corpora.formats import docbin
from wingspan.files import CorpusError, Problems
from wingspan.text import Document, Entity, Span

spacy = pytest.importorskip("spacy", reason="the extra `spacy` is not installed")


@pytest.fixture
def made_by_spacy(tmp_path: Path) -> Path:
    nlp = spacy.blank("en")
    doc = nlp("Ada Quill joined\n Lund Robotics 😀 in Oslo.")
    oslo = doc.text.index("Oslo")
    doc.ents = [doc.char_span(0, 9, label="PER"), doc.char_span(oslo, oslo + 4, label="LOC")]
    doc.spans["sc"] = [doc.char_span(18, 31, label="ORG"), doc.char_span(18, 22, label="LOC"), doc.ents[0]]
    doc.spans["other"] = [doc[0:1]]
    spacy.tokens.DocBin(docs=[doc, nlp("")]).to_disk(tmp_path / "made.spacy")
    return tmp_path / "made.spacy"


def test_ents_and_span_groups_are_read_once_each(made_by_spacy: Path) -> None:
    problems = Problems()
    first, second = docbin.read(made_by_spacy, problems)
    assert [(e.label, first.text_of(e)) for e in first.entities] == [
        ("PER", "Ada Quill"),
        ("LOC", "Lund"),
        ("ORG", "Lund Robotics"),
        ("LOC", "Oslo"),
    ]
    assert first.words is not None
    assert [first.text[w.start : w.end] for w in first.words][:4] == ["Ada", "Quill", "joined", "Lund"]
    assert (second.text, second.words) == ("", ())
    assert "'other'" in problems.notes[0]


def test_everything_survives_writing(tmp_path: Path) -> None:
    documents = [
        Document("a", "  Hi   there\n\nEva Müller 😀.  ", (Entity.at("PER", 14, 24, 0.5), Entity.at("X", 14, 17))),
        Document("b", ""),
        Document("c", " \n "),
        Document("d", "a\r\nb", words=(Span(0, 1), Span(3, 4)), sentences=(Span(0, 1), Span(3, 4)), group="g"),
        Document("e", "a b c", words=(Span(0, 1), Span(4, 5)), dataset="two", meta={"k": [1, {"z": 2}]}),
        Document("f", "same span", (Entity.at("X", 0, 4), Entity.at("Y", 0, 4))),
    ]
    docbin.write(documents, tmp_path / "x.spacy")
    back = list(docbin.read(tmp_path / "x.spacy", Problems()))
    assert back == documents
    assert [entity.score for entity in back[0].entities] == [entity.score for entity in documents[0].entities]
    assert back[4].meta == {"k": [1, {"z": 2}]}


def test_flat_entities_are_written_as_ents_too(tmp_path: Path) -> None:
    flat = Document("a", "Eva in Oslo", (Entity.at("PER", 0, 3), Entity.at("LOC", 7, 11)))
    nested = Document("b", "Lund Robotics", (Entity.at("LOC", 0, 4), Entity.at("ORG", 0, 13)))
    docbin.write([flat, nested], tmp_path / "x.spacy")
    docs = list(spacy.tokens.DocBin().from_disk(tmp_path / "x.spacy").get_docs(spacy.blank("en").vocab))
    assert [(span.text, span.label_) for span in docs[0].ents] == [("Eva", "PER"), ("Oslo", "LOC")]
    assert list(docs[1].ents) == []
    assert len(docs[1].spans["sc"]) == 2


def test_entities_off_the_words_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="does not fall on word boundaries"):
        docbin.write([Document("a", "Evas", (Entity.at("PER", 0, 3),))], tmp_path / "x.spacy")
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "x.spacy").write_bytes(b"no zlib stream")
    with pytest.raises(CorpusError, match="no DocBin that spaCy can read"):
        list(docbin.read(tmp_path / "x.spacy", Problems()))


def test_without_spacy_one_sentence_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *others: Any, **named: Any) -> Any:
        if name.startswith("spacy"):
            raise ImportError(name)
        return real(name, *others, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(CorpusError, match=r"pip install 'wingspan-ner\[spacy\]'"):
        list(docbin.read(tmp_path / "x.spacy", Problems()))
