"""Words with one tag each: JSON of Hugging Face, and CSV with one word a row. GLiNER's JSON."""

import json
from pathlib import Path
from typing import Any

import pytest

from wingspan.cli.convert import convert_corpus
from wingspan.cli.validate import validate_corpora
from wingspan.corpora.formats import Format, detect, format_named, read, write
from wingspan.corpora.formats.tagged import label_names
from wingspan.files import CorpusError, CorpusWarning, Problems
from wingspan.text import Document, Entity

WORDS = ("Ada", "Byron", "in", "Oslo")
FOUND = Document.from_words("7", WORDS, (Entity.at("PER", 0, 2), Entity.at("LOC", 3, 4)))
NUMBERS = {"id": 7, "tokens": list(WORDS), "ner_tags": [1, 2, 0, 3]}
NAMES = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]


def json_lines(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("key", ["ner_tags", "tags", "labels", "ner"])
@pytest.mark.parametrize("words", ["tokens", "words"])
def test_tags_as_strings(tmp_path: Path, key: str, words: str) -> None:
    row = {"id": 7, words: list(WORDS), key: ["B-PER", "I-PER", "O", "B-LOC"], "pos_tags": [1, 1, 2, 1]}
    path = json_lines(tmp_path / "a.jsonl", row)
    (document,) = read(path)
    assert (detect(path), document) == ("ner-tags", FOUND)
    assert document.meta["pos_tags"] == [1, 1, 2, 1]


SIDECARS: list[tuple[str, Any]] = [
    ("labels.json", NAMES),
    ("a.labels.json", NAMES),
    ("label.json", {name: at for at, name in enumerate(NAMES)}),
    ("labels.json", {"id2label": {str(at): name for at, name in enumerate(NAMES)}}),
    ("features.json", {"pos_tags": {"names": ["NN"]}, "ner_tags": {"feature": {"names": NAMES, "id": None}}}),
    (
        "dataset_infos.json",
        {"en": {"description": "", "features": {"ner_tags": {"feature": {"num_classes": 5, "names": NAMES}}}}},
    ),
]


@pytest.mark.parametrize(("name", "content"), SIDECARS)
def test_tags_as_numbers_get_the_names_beside_the_file(tmp_path: Path, name: str, content: Any) -> None:
    path = json_lines(tmp_path / "a.jsonl", NUMBERS)
    (tmp_path / name).write_text(json.dumps(content))
    problems = Problems()
    assert list(read(path, problems=problems)) == [FOUND]
    assert f"get the names in {name}" in problems.notes[0]


def test_names_in_lines_and_names_that_are_given(tmp_path: Path) -> None:
    path = json_lines(tmp_path / "a.jsonl", NUMBERS)
    (tmp_path / "own.txt").write_text("\n".join(NAMES))
    assert list(read(path, labels=NAMES)) == [FOUND]
    assert label_names("O, B-PER ,I-PER") == ("O", "B-PER", "I-PER")
    assert label_names(str(tmp_path / "own.txt")) == tuple(NAMES)
    (tmp_path / "none.json").write_text("{}")
    with pytest.raises(CorpusError, match="there is no list of labels in it"):
        label_names(str(tmp_path / "none.json"))
    (tmp_path / "labels.txt").write_text("\n".join(NAMES))
    assert list(read(path)) == [FOUND]


def test_numbers_without_names_are_refused_with_the_way_out(tmp_path: Path) -> None:
    path = json_lines(tmp_path / "a.jsonl", NUMBERS)
    with pytest.raises(CorpusError, match="into labels.json beside it, or give them with `wingspan convert --labels"):
        list(read(path))
    with pytest.raises(CorpusError, match="no number from 0 to 1"):
        list(read(path, labels=["O", "B-PER"]))
    with pytest.raises(CorpusError, match="format 'jsonl' has no tags in numbers"):
        read(path, "jsonl", labels=["O"])


def test_commands_take_the_names(tmp_path: Path) -> None:
    path = json_lines(tmp_path / "a.jsonl", NUMBERS)
    assert convert_corpus(path, tmp_path / "b.jsonl", labels=NAMES).entities == 2
    assert list(read(tmp_path / "b.jsonl")) == [FOUND]
    (report,) = validate_corpora([path], labels=NAMES)
    assert (report.statistics.labels, report.problems) == ({"LOC": 1, "PER": 1}, [])


@pytest.mark.parametrize("number", [-1, len(NAMES), True, 1.0])
def test_a_number_without_a_name_is_told(tmp_path: Path, number: object) -> None:
    path = json_lines(tmp_path / "a.jsonl", {"tokens": ["a"], "ner_tags": [number]})
    with pytest.raises(CorpusError, match="is no number from 0 to"):
        list(read(path, "ner-tags", labels=NAMES))


def test_rows_that_do_not_fit_are_told_with_their_line(tmp_path: Path) -> None:
    rows = [
        {"tokens": ["a"], "ner_tags": ["O", "O"]},
        {"tokens": ["a"], "ner_tags": ["B-"]},
        {"tokens": ["a"], "ner_tags": ["B-X"]},
        {"tokens": ["a"]},
    ]
    problems = Problems("skip")
    (document,) = read(json_lines(tmp_path / "a.jsonl", *rows), "ner-tags", problems=problems)
    assert document.id == "a-3"
    assert [message.partition("a.jsonl:")[2].split("; mend")[0] for message in problems.messages] == [
        "1: record 1: 1 words and 2 tags; give one tag for each word",
        "2: record 2: 'B-' is no tag of scheme IOB2; write O, or B- and a label",
        "4: record 4: 1 words and 0 tags; give one tag for each word",
    ]


def test_an_annotation_that_is_not_read_is_told(tmp_path: Path) -> None:
    spans = [{"start": 0, "end": 3, "label": "PER"}]
    path = json_lines(tmp_path / "a.jsonl", {"text": "Ada", "Entities": spans}, {"text": "b", "tags": ["news"]})
    with pytest.warns(CorpusWarning, match="the key 'Entities' of 1 record looks like annotation and is not read"):
        assert [document.entities for document in read(path, "jsonl")] == [(), ()]
    (report,) = validate_corpora([path])
    assert ["Entities" in note for note in report.notes] == [True]
    tagged = json_lines(tmp_path / "b.jsonl", {"tokens": ["Ada"], "ner_tags": ["B-PER"]})
    with pytest.warns(CorpusWarning, match="the key 'ner_tags' of 1 record"):
        list(read(tagged, "jsonl"))


# CSV

KAGGLE = '''Sentence #,Word,POS,Tag
Sentence: 1,Ada,NNP,B-per
,lives,VBZ,O
,in,IN,O
,Oslo,NNP,B-geo
Sentence: 2,"""",``,O
,",",",",O
'''


def csv(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_sentence_is_named_in_its_first_row(tmp_path: Path) -> None:
    one, two = read(csv(tmp_path / "a.csv", KAGGLE))
    assert one == Document.from_words(
        "Sentence: 1", ("Ada", "lives", "in", "Oslo"), (Entity.at("per", 0, 1), Entity.at("geo", 3, 4))
    )
    assert (two.id, two.text, two.meta["csv_columns"]) == ("Sentence: 2", '" ,', {"POS": ["``", ","]})


@pytest.mark.parametrize(
    ("name", "text", "sentences"),
    [
        ("a.csv", "sentence_id,words,labels\n1,a,O\n1,b,B-X\n2,c,O\n", ["a b", "c"]),
        ("a.csv", "token;ner_tag\na;O\nb;B-X\n\nc;O\n", ["a b", "c"]),
        ("a.tsv", "Word\tTag\na\tO\nb\tB-X\n\t\nc\tO\n", ["a b", "c"]),
        ("a.csv", "doc_id,sentence_id,token,label\nx,1,a,O\nx,1,b,B-X\ny,1,c,O\n", ["a b", "c"]),
        ("a.csv", ",word,tag\n0,a,O\n1,b,B-X\n", ["a b"]),  # as pandas writes it, with its index
    ],
)
def test_other_headings_and_signs(tmp_path: Path, name: str, text: str, sentences: list[str]) -> None:
    path = csv(tmp_path / name, text)
    documents = list(read(path))
    assert (detect(path), [document.text for document in documents]) == ("csv", sentences)
    assert documents[0].entities == (Entity.at("X", 2, 3),)
    assert [document.group for document in documents] == (["x", "y"] if "doc_id" in text else [None] * len(sentences))


def test_numbers_in_csv(tmp_path: Path) -> None:
    path = csv(tmp_path / "a.csv", "word,tag\nAda,1\nByron,2\nin,0\nOslo,3\n")
    (document,) = read(path, labels=NAMES)
    assert document.entities == FOUND.entities
    with pytest.raises(CorpusError, match="the tags are numbers"):
        list(read(path))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a,b\nc,d\n", "a.csv: the first line has to name the columns of words and tags"),
        ("word,tag\na,O,x\n", "a.csv:2: 3 columns where the first line names 2"),
        ("word,tag\na,O\n,B-X\n", "a.csv:3: the word is empty"),
        ('word,tag\n",O\nb,O\n",O\n', "a.csv:4: a cell goes over several lines"),
        ('word,tag\n"a"b,O\n', "a.csv:2: no valid CSV"),
        ("word,tag\na,B-X\nb,Y\n", "a.csv:2: record 1: 'Y' is no tag of scheme IOB2"),
    ],
)
def test_what_does_not_fit_has_its_line(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(CorpusError) as error:
        list(read(csv(tmp_path / "a.csv", text)))
    assert str(error.value).startswith(f"{tmp_path}/{reason}")


def test_columns_groups_empty_sentences_and_equal_ids_come_back(tmp_path: Path) -> None:
    columns = {"csv_columns": {"": ["1", "2", "3"]}}
    documents = [
        Document.from_words("1", ("a", '"', ","), (Entity.at("X y", 1, 3),), meta=columns),
        Document.from_words("1", ("b",), group="g"),
        Document.from_words("2", ()),
    ]
    write(documents, tmp_path / "a.csv")
    back = list(read(tmp_path / "a.csv"))
    assert back == documents
    assert back[0].meta["csv_columns"] == columns["csv_columns"]


@pytest.mark.parametrize("name", ["csv", "ner-tags"])
def test_one_tag_for_each_word_holds_no_nesting(tmp_path: Path, name: str) -> None:
    nested = Document.from_words("1", ("a", "b"), (Entity.at("X", 0, 2), Entity.at("Y", 0, 1)))
    form: Format = format_named(name)
    assert form.write is not None
    with pytest.raises(CorpusError, match="holds no overlapping and no discontinuous entities"):
        form.write([nested], tmp_path / "a")


# GLiNER


def test_gliner_has_inclusive_ends(tmp_path: Path) -> None:
    row = {"tokenized_text": list(WORDS), "ner": [[0, 1, "PER"], [3, 3, "LOC"]], "label": ["PER", "LOC", "ORG"]}
    path = tmp_path / "a.json"
    path.write_text(json.dumps([row]))
    (document,) = read(path)
    assert (detect(path), document.entities, document.text) == ("gliner", FOUND.entities, FOUND.text)
    write([document], tmp_path / "b.gliner.json")
    (back,) = json.loads((tmp_path / "b.gliner.json").read_text())
    assert back == {"id": "a-1", **row}
    path.write_text(json.dumps([{**row, "ner": [[0, 4, "PER"]]}]))
    with pytest.raises(CorpusError, match="goes past the end of the text, which has 4 words"):
        list(read(path))
