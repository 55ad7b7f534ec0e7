"""Schemas: https://huggingface.co/docs/datasets/main/en/about_dataset_features (ClassLabel, as in conll2003) and
https://github.com/bigscience-workshop/biomedical/blob/main/bigbio/utils/schemas/kb.py."""

import builtins
from pathlib import Path
from typing import Any

import pytest

from wingspan.corpora.formats import hub
from wingspan.files import CorpusError, Problems
from wingspan.text import Document, Entity

datasets = pytest.importorskip("datasets", reason="the extra `hub` is not installed")


@pytest.fixture(autouse=True)
def quiet() -> None:
    datasets.disable_progress_bars()


def tagged(names: list[str], rows: list[tuple[list[str], list[str]]], **columns: list[Any]) -> Any:
    features = {
        "tokens": datasets.List(datasets.Value("string")),
        "ner_tags": datasets.List(datasets.ClassLabel(names=names)),
        **{name: datasets.Value("string") for name in columns},
    }
    content = {"tokens": [row[0] for row in rows], "ner_tags": [row[1] for row in rows], **columns}
    return datasets.Dataset.from_dict(content, features=datasets.Features(features))


def surfaces(document: Document) -> list[tuple[str, str]]:
    return [(entity.label, document.text_of(entity)) for entity in document.entities]


@pytest.mark.parametrize(
    ("scheme", "tags"),
    [
        ("IOB2", ["B-PER", "I-PER", "O", "B-LOC"]),
        ("IOB1", ["I-PER", "I-PER", "O", "I-LOC"]),
        ("BIOES", ["B-PER", "E-PER", "O", "S-LOC"]),
        ("BILOU", ["B-PER", "L-PER", "O", "U-LOC"]),
    ],
)
def test_class_labels_of_every_scheme_are_read_from_a_saved_folder(
    tmp_path: Path, scheme: str, tags: list[str]
) -> None:
    names = sorted({*tags, "B-LOC", "I-PER", "O"})
    rows = [(["Ada", "Quill", "in", "Oslo"], tags), ([], [])]
    tagged(names, rows, document_id=["d1", "d1"]).save_to_disk(tmp_path / "saved")
    problems = Problems()
    first, second = hub.read(tmp_path / "saved", problems)
    assert surfaces(first) == [("PER", "Ada Quill"), ("LOC", "Oslo")]
    assert (first.group, second.text) == ("d1", "")
    assert f"follow {scheme}" in problems.notes[0]


def test_all_splits_of_a_dataset_dict_are_read_and_named(tmp_path: Path) -> None:
    part = tagged(["O", "B-X"], [(["a"], ["B-X"])], id=["0"])
    datasets.DatasetDict({"train": part, "test": part}).save_to_disk(tmp_path / "saved")
    assert [document.id for document in hub.read(tmp_path / "saved", Problems())] == ["train-0", "test-0"]
    assert [document.id for document in hub.read(tmp_path / "saved" / "test", Problems())] == ["0"]


def test_parquet_keeps_the_names_of_the_tags(tmp_path: Path) -> None:
    tagged(["O", "B-X"], [(["a", "b"], ["O", "B-X"])]).to_parquet(str(tmp_path / "x.parquet"))
    (document,) = hub.read(tmp_path / "x.parquet", Problems())
    assert surfaces(document) == [("X", "b")]
    assert [surfaces(document) for document in hub.read(tmp_path, Problems())] == [[("X", "b")]]


def test_bigbio_rows_are_read_with_fragments_and_concepts(tmp_path: Path) -> None:
    title, abstract = "Marfan syndrome.", "left and right arm pain 😀"
    row = {
        "id": "0",
        "document_id": "101",
        "passages": [
            {"id": "1", "type": "title", "text": [title], "offsets": [[0, 16]]},
            {"id": "2", "type": "abstract", "text": [abstract], "offsets": [[17, 17 + len(abstract)]]},
        ],
        "entities": [
            {
                "id": "3",
                "type": "Disease",
                "text": ["Marfan syndrome"],
                "offsets": [[0, 15]],
                "normalized": [{"db_name": "MESH", "db_id": "D008382"}],
            },
            {"id": "4", "type": "Body", "text": ["left", "arm"], "offsets": [[17, 21], [32, 35]], "normalized": []},
        ],
        "relations": [{"id": "5", "type": "in", "arg1_id": "3", "arg2_id": "4"}],
    }
    datasets.Dataset.from_list([row]).save_to_disk(tmp_path / "kb")
    (document,) = hub.read(tmp_path / "kb", Problems())
    assert document.id == "101"
    assert document.text == f"{title} {abstract}"
    assert surfaces(document) == [("Disease", "Marfan syndrome"), ("Body", "left arm")]
    assert document.entities[0].meta["normalized"] == [{"db_name": "MESH", "db_id": "D008382"}]
    assert document.meta["relations"][0]["type"] == "in"


def test_writing_gives_equal_documents(tmp_path: Path) -> None:
    documents = [
        Document.from_words("a", ("Ada", "Quill", "!"), (Entity.at("two words", 0, 2),), group="g"),
        Document.from_words("b", ()),
    ]
    for name in ("folder", "file.parquet"):
        hub.write(documents, tmp_path / name)
        hub.write(documents, tmp_path / name)  # over an earlier one
        assert list(hub.read(tmp_path / name, Problems())) == documents
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file.parquet", "folder"]


def test_what_tags_cannot_hold_is_refused(tmp_path: Path) -> None:
    nested = Document.from_words("a", ("Lund", "Robotics"), (Entity.at("X", 0, 1), Entity.at("Y", 0, 2)))
    with pytest.raises(CorpusError, match="no overlapping and no discontinuous"):
        hub.write([nested], tmp_path / "x")
    (tmp_path / "mine").mkdir()
    with pytest.raises(CorpusError, match="holds something else than a dataset"):
        hub.write([], tmp_path / "mine")


def test_rows_that_do_not_fit_are_told(tmp_path: Path) -> None:
    tagged(["O"], [(["a", "b"], ["O"]), (["c"], ["O"])]).save_to_disk(tmp_path / "saved")
    problems = Problems("skip")
    assert [document.text for document in hub.read(tmp_path / "saved", problems)] == ["c"]
    assert "2 words and 1 tags" in problems.messages[0]
    datasets.Dataset.from_dict({"words": [["a"]], "pos": [["N"]]}).save_to_disk(tmp_path / "other")
    with pytest.raises(CorpusError, match="there is no column 'ner_tags' or"):
        list(hub.read(tmp_path / "other", Problems()))
    datasets.Dataset.from_dict({"tokens": [["a"]], "ner_tags": [[3]]}).save_to_disk(tmp_path / "numbers")
    with pytest.raises(CorpusError, match="numbers without names"):
        list(hub.read(tmp_path / "numbers", Problems()))


def test_without_datasets_one_sentence_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *others: Any, **named: Any) -> Any:
        if name == "datasets":
            raise ImportError(name)
        return real(name, *others, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(CorpusError, match=r"pip install 'wingspan-ner\[hub\]'"):
        list(hub.read(tmp_path, Problems()))


def test_a_path_that_is_not_there_is_not_asked_of_the_hub(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(hub.read(tmp_path / "missing", Problems()))
