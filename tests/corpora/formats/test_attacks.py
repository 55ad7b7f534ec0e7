"""Files that once were misread, or took long, or were refused by the writer of their own format: one test for each."""

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from wingspan.corpora.formats import brat, conll, format_named, pubtator, read, research_json, write
from wingspan.corpora.formats.conversion_loss import fit
from wingspan.files import CorpusError, Problems
from wingspan.text import Document, Entity, Span


def put(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def seconds(work: Any) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


# Time


def test_a_long_line_of_pubtator_takes_linear_time(tmp_path: Path) -> None:
    path = put(tmp_path / "a.pubtator", "1|t|Title\n" + "no sign of a column " * 20_000)
    problems = Problems("skip")
    assert seconds(lambda: list(pubtator.read(path, problems))) < 2
    assert "belongs to no document" in problems.messages[0]


def test_many_mentions_that_are_off_take_linear_time(tmp_path: Path) -> None:
    words = [f"word{at}" for at in range(20_000)]
    lines = [f"1\t{at * 9 + 3}\t{at * 9 + 8}\tmissing\tX" for at in range(10_000)]
    path = put(tmp_path / "a.pubtator", "\n".join([f"1|t|{' '.join(words)}", "1|a|", *lines, ""]))
    problems = Problems("skip")
    assert seconds(lambda: list(pubtator.read(path, problems))) < 4
    assert len(problems.messages) == 10_000


def test_many_concepts_are_written_to_brat_in_linear_time() -> None:
    entities = tuple(Entity("X", (Span(at, at + 1),), meta={"concept_id": f"D{at}"}) for at in range(10_000))
    document = Document("a", "x" * 10_000, entities)
    assert seconds(lambda: list(brat.lines_of(document))) < 2
    named = tuple(replace(entity, meta={**entity.meta, "id": f"T{at}"}) for at, entity in enumerate(entities))
    others = [f"N{at}\tReference T{at} ID:D{at}" for at in range(10_000)]
    again = replace(document, entities=named, meta={"brat": others})
    assert seconds(lambda: list(brat.lines_of(again))) < 2


# Columns


def test_chunks_of_a_file_without_entities_are_no_entities(tmp_path: Path) -> None:
    path = put(tmp_path / "a.conll", "Rain NN B-NP O\nfalls VBZ B-VP O\n\nSnow NN B-NP O\n")
    documents = list(conll.read(path, Problems()))
    assert [document.entities for document in documents] == [(), ()]
    assert documents[0].meta["columns"] == [["NN", "VBZ"], ["B-NP", "B-VP"]]
    write(documents, tmp_path / "b.conll")
    assert [document.entities for document in read(tmp_path / "b.conll")] == [(), ()]


def test_one_value_that_is_no_tag_costs_its_sentence_and_not_the_layer(tmp_path: Path) -> None:
    rows = "a\tB-X\tO\nb\tI-X\tB-Y\n\nc\tB-X\tO\n\nd\toops\tB-Y\n"
    problems = Problems("skip")
    one, two = conll.read(put(tmp_path / "a.conll", rows), problems)
    assert one.entities == (Entity.at("X", 0, 3), Entity.at("Y", 2, 3))
    assert two.entities == (Entity.at("X", 0, 1),)
    assert "'oops' in column 2 is no tag of scheme IOB2" in problems.messages[0]


def test_a_column_that_would_be_read_as_tags_is_not_written(tmp_path: Path) -> None:
    document = Document.from_words("a-1", ("Ada", "lives"), meta={"columns": [["NN", "VB"], ["B-PER", "O"]]})
    fitted, lost = fit(document, conll.FORMAT, "a-1")
    assert lost == {"'columns' of {documents}": 1}
    write([fitted], tmp_path / "a.conll")
    assert next(read(tmp_path / "a.conll")).entities == ()


@pytest.mark.parametrize("tag", ["B-", "B- ", "B-\u00a0", "B-X\ry"])
def test_a_tag_needs_a_label(tmp_path: Path, tag: str) -> None:
    with pytest.raises(CorpusError, match="is no tag of scheme IOB2"):
        list(conll.read(put(tmp_path / "a.conll", f"a\tB-Y\nb\t{tag}\tx\nc\tO\n".replace("\tx", "")), Problems()))


def test_a_mark_after_a_blank_is_a_mark(tmp_path: Path) -> None:
    path = put(tmp_path / "a.conll", "-DOCSTART- O\n\na O\n\n -DOCSTART- O\n\nb B-X\n")
    assert [(document.text, document.group) for document in conll.read(path, Problems())] == [
        ("a", "a-doc1"),
        ("b", "a-doc2"),
    ]


# JSON


def test_a_key_that_stands_twice_is_told(tmp_path: Path) -> None:
    passage = '{"offset": 0, "text": "a", "annotations": []}'
    half = f'"documents": [{{"id": "1", "passages": [{passage}]}}]'
    with pytest.raises(CorpusError, match="an object has the key 'documents' twice; leave one of them out"):
        list(read(put(tmp_path / "a.bioc.json", f"{{{half}, {half}}}")))
    lines = '{"id": 1, "text": "a", "entities": [], "id": 2}\n{"id": 3, "text": "b"}\n'
    problems = Problems("skip")
    assert [document.id for document in read(put(tmp_path / "a.jsonl", lines), problems=problems)] == ["3"]
    assert "a.jsonl:1: an object has the key 'id' twice" in problems.messages[0]
    with pytest.raises(CorpusError, match=r"a.json:1: JSON that cannot be read \(an object has the key 'tokens' twice"):
        list(read(put(tmp_path / "a.json", '[{"tokens": ["a"], "entities": [], "tokens": []}]'), "spert"))


def test_a_document_of_bioc_without_passages_is_told(tmp_path: Path) -> None:
    path = put(tmp_path / "a.bioc.json", {"documents": [{"id": "1", "pasages": []}]})
    with pytest.raises(CorpusError, match="document 1: there is no key 'passages'"):
        list(read(path))


def test_keys_of_bioc_annotations_that_are_not_kept_are_noted(tmp_path: Path) -> None:
    annotation = {"infons": {"type": "X"}, "locations": [{"offset": 0, "length": 1}], "text": "a", "checked": "by Mo"}
    passage = {"offset": 0, "text": "a", "annotations": [annotation]}
    problems = Problems()
    path = put(tmp_path / "a.bioc.json", {"documents": [{"id": "1", "passages": [passage]}]})
    assert next(read(path, problems=problems)).entities == (Entity.at("X", 0, 1),)
    assert "'checked' of sentences or annotations is not kept" in problems.notes[0]


def test_a_relation_without_ends_is_told_and_others_keep_theirs(tmp_path: Path) -> None:
    entities = [{"type": "Y", "start": 1, "end": 2}, {"type": "X", "start": 0, "end": 1}]
    record = {"tokens": ["a", "b"], "entities": entities, "relations": [{"type": "r", "head": 0}]}
    with pytest.raises(CorpusError, match="relation 1 has no numbers of entities as its head and tail"):
        list(research_json.SPERT.read(put(tmp_path / "a.json", [record]), Problems()))
    record["relations"] = [{"type": "r", "head": 0, "tail": 1}]
    write(research_json.SPERT.read(put(tmp_path / "a.json", [record]), Problems()), tmp_path / "b.spert.json")
    (back,) = json.loads((tmp_path / "b.spert.json").read_text())
    assert back["relations"] == [{"type": "r", "head": 1, "tail": 0}]


@pytest.mark.parametrize(
    ("name", "record", "reason"),
    [
        ("spert", {"tokens": ["a"], "orig_id": ["x"]}, "orig_id is a list, not a string or a number"),
        ("spert", {"tokens": ["a"], "dataset": 3}, "dataset is a number, not a string"),
        ("spert", {"tokens": ["a"], "entities": [{"type": "X", "start": 0, "end": 1, "score": "1"}]}, "the score is a"),
        ("w2ner", {"sentence": ["a"], "ner": [{"index": [0, 0], "type": "X"}]}, "index is empty or has a word twice"),
        ("label-studio", {"data": {"text": [], "page": "4"}, "annotations": []}, "none is named 'text'"),
        ("jsonl", {"text": "a", "entities": [{"label": "X\n", "start": 0, "end": 1}]}, "holds a tab or line end"),
        ("jsonl", {"text": "a", "entities": [{"label": "X", "start": 0, "end": 1, "text": 1}]}, "not a string"),
    ],
)
def test_values_that_were_dropped_silently_are_told(tmp_path: Path, name: str, record: Any, reason: str) -> None:
    content: Any = json.dumps(record) if name == "jsonl" else [record]
    with pytest.raises(CorpusError, match=reason):
        list(format_named(name).read(put(tmp_path / "a.json", content), Problems()))


@pytest.mark.parametrize("about", [{"by": "Mo"}, 5, {"tokens": 3}])
def test_a_key_named_like_ours_for_other_keys_is_kept(tmp_path: Path, about: Any) -> None:
    record = {"tokens": ["a"], "entities": [], "relations": [], "orig_id": "1", "_meta": about}
    (document,) = read(put(tmp_path / "a.json", [record]), "spert")
    write([document], tmp_path / "b.spert.json")
    (back,) = read(tmp_path / "b.spert.json")
    assert back.meta == document.meta
    assert about in (document.meta.get("_meta"), {"tokens": document.meta.get("tokens")})


def test_who_annotated_in_label_studio_and_other_values_are_kept(tmp_path: Path) -> None:
    value = {"start": 0, "end": 3, "text": "Ada", "labels": ["PER"], "globalOffsets": {"start": 0}}
    region = {"id": "r", "from_name": "l", "to_name": "t", "type": "hypertextlabels", "value": value}
    annotation = {"id": 8, "completed_by": 2, "result": [region]}
    task = {"id": 5, "data": {"review": "Ada"}, "annotations": [annotation]}
    write(read(put(tmp_path / "a.json", [task]), "label-studio"), tmp_path / "b.json", "label-studio")
    assert json.loads((tmp_path / "b.json").read_text()) == [task]
    problems = Problems()
    canceled = {**task, "annotations": [{**annotation, "was_cancelled": True}]}
    assert next(read(put(tmp_path / "a.json", [canceled]), "label-studio", problems=problems)).entities == ()
    assert "0 of 1 annotations are used" in problems.notes[0]


# PubTator


def test_a_passage_of_another_document_starts_that_document(tmp_path: Path) -> None:
    one, two = pubtator.read(put(tmp_path / "a.pubtator", "1|t|Title\n1|a|Text\n2|a|Other\n"), Problems())
    assert [(one.id, one.text), (two.id, two.text)] == [("1", "Title Text"), ("2", "Other")]


def test_files_that_were_put_together_with_their_marks(tmp_path: Path) -> None:
    articles = [f"{name}|t|Ada\n{name}|a|\n{name}\t0\t3\tAda\tPER\n\n" for name in (1, 2)]
    path = put(tmp_path / "a.pubtator", "\ufeff".join(["", *articles]))
    assert [(document.id, len(document.entities)) for document in pubtator.read(path, Problems())] == [
        ("1", 1),
        ("2", 1),
    ]


# Binary files


def test_words_that_end_after_the_text_are_told(tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy", reason="the extra `spacy` is not installed")
    docs = []
    for carried in ({"words": [[0, 3], [4, 99]]}, {"words": [[4, 7], [0, 3]]}, {"id": [1]}, {"id": "fine"}):
        doc = spacy.tokens.Doc(spacy.vocab.Vocab(), words=["Ada", "saw"], spaces=[True, False])
        doc.user_data["wingspan"] = carried
        docs.append(doc)
    spacy.tokens.DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "a.spacy")
    problems = Problems("skip")
    (document,) = read(tmp_path / "a.spacy", problems=problems)
    assert document.id == "fine"
    assert [message.partition("document ")[2].split(";")[0] for message in problems.messages] == [
        "1: words 1 ends at character 99 but the text has 7 characters",
        "2: words 0 and 1 overlap or are out of order",
        "3: id is a list, not a string or a number",
    ]


def test_a_tag_without_a_label_in_parquet_is_told(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="the extra `hub` is not installed")
    names = ["O", "B-", "B-PER"]
    features = datasets.Features(
        tokens=datasets.List(datasets.Value("string")), ner_tags=datasets.List(datasets.ClassLabel(names=names))
    )
    rows = {"tokens": [["Ada"], ["Bo"]], "ner_tags": [[1], [2]]}
    datasets.disable_progress_bars()
    datasets.Dataset.from_dict(rows, features=features).to_parquet(str(tmp_path / "a.parquet"))
    problems = Problems("skip")
    documents = list(read(tmp_path / "a.parquet", problems=problems))
    assert [document.entities for document in documents] == [(Entity.at("PER", 0, 2),)]
    assert "'B-' is no tag of scheme IOB2; write O, or B- and a label" in problems.messages[0]
    write(documents, tmp_path / "b.parquet")
    assert [document.entities for document in read(tmp_path / "b.parquet")] == [(Entity.at("PER", 0, 2),)]


def test_an_article_with_a_line_end_in_its_id_is_reported(tmp_path: Path) -> None:
    (tmp_path / "x.pubtator").write_bytes(b"10\r1|t|A title\n\n11|t|Another\n")
    problems = Problems("skip")
    assert [document.id for document in read(tmp_path / "x.pubtator", "pubtator", problems=problems)] == ["11"]
    assert len(problems.messages) == 1
    assert "belongs to no document" in problems.messages[0]
