"""Tables in, tables of entities out, in the library of the table; and lists as a Hugging Face pipeline gives them."""

from __future__ import annotations

from pathlib import Path

import pytest

import wingspan
from wingspan.corpora.demo import corpus

TEXTS = [document.text for document in corpus()[0][:5]]
MODEL = Path(__file__).parent / "frozen" / "models" / "baseline"
OPTIONS = {"threshold": 0.1}


@pytest.fixture(scope="module")
def model():
    return wingspan.load(MODEL, device="cpu")


@pytest.fixture(scope="module")
def rows(model) -> list[dict]:
    """The entities with the number of their text."""
    documents = model.predict(TEXTS, **OPTIONS)
    found = [{"row": n, **e} for n, document in enumerate(documents) for e in document.to_dict()["entities"]]
    assert len({row["row"] for row in found}) > 1
    return found


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_tables_without_an_index(library, model, rows):
    module = pytest.importorskip(library)
    make = module.DataFrame if library == "polars" else module.table
    frame = make({"pmid": [7, 8, 9, 10, 11, 12], "abstract": [*TEXTS, None]})
    found = model.predict_table(frame, "abstract", keep=["pmid"], **OPTIONS)
    assert type(found) is type(frame)
    listed = found.to_dicts() if library == "polars" else found.to_pylist()
    names = ["row", "pmid", "start", "end", "label", "score", "text", "fragments"]
    assert [*listed[0]] == names
    assert [{key: value for key, value in row.items() if key != "pmid"} for row in listed] == [
        {key: row[key] for key in names if key != "pmid"} for row in rows
    ]
    assert [row["pmid"] for row in listed] == [7 + row["row"] for row in rows]
    none = model.predict_table(frame, "abstract", threshold=1.0)
    assert len(none) == 0
    assert [*(none.columns if library == "polars" else none.column_names)] == [n for n in names if n != "pmid"]
    one = model.predict_table(frame, "abstract", **OPTIONS)
    schema = none.schema == one.schema if library == "polars" else none.schema.equals(one.schema)
    assert schema, "the types do not depend on what was found"


def test_a_table_of_pandas_keeps_its_index(model, rows):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"abstract": [TEXTS[0], None, *TEXTS[1:]], "year": range(6)}, index=[*"abcdef"])
    found = model.predict_table(frame, "abstract", keep=["year"], **OPTIONS)
    place = {0: "a", 1: "c", 2: "d", 3: "e", 4: "f"}
    assert found.index.to_list() == [place[row["row"]] for row in rows]
    for name in ("start", "end", "label", "text", "fragments", "score"):
        assert found[name].to_list() == [row[name] for row in rows]
    assert (found["year"] == frame["year"].reindex(found.index)).all()
    joined = frame[["abstract"]].join(found)
    assert len(joined) == len(rows) + len(set("abcdef") - set(found.index))
    none = model.predict_table(frame, "abstract", threshold=1.0)
    assert (len(none), str(none["start"].dtype), str(none["score"].dtype)) == (0, "int64", "float64")


def test_an_index_of_several_levels_and_missing_values_of_pandas(model, rows):
    pandas = pytest.importorskip("pandas")
    index = pandas.MultiIndex.from_tuples([(1, "x"), (1, "y"), (2, "x")], names=["article", "part"])
    frame = pandas.DataFrame({"text": pandas.array([TEXTS[2], pandas.NA, TEXTS[3]], dtype="string")}, index=index)
    found = model.predict_table(frame, **OPTIONS)
    assert found.index.names == ["article", "part"]
    assert set(found.index) == {(1, "x"), (2, "x")}


@pytest.mark.parametrize(
    ("given", "options", "error", "message"),
    [
        ({"text": ["x"]}, {"text": "abstract"}, ValueError, "the table has no column 'abstract'; it has text"),
        ({"text": ["x"]}, {"keep": ["pmid"]}, ValueError, "no column 'pmid'"),
        ({"text": ["x"], "label": [1]}, {"keep": ["label"]}, ValueError, "keep has 'label', which is a column of the"),
        ({"text": [1.5]}, {}, ValueError, "row 0 of column 'text' is a float, not a text"),
        (None, {}, TypeError, "takes a table of pandas, Polars or pyarrow, not list"),
    ],
)
def test_tables_that_are_refused(model, given, options, error, message):
    pyarrow = pytest.importorskip("pyarrow")
    with pytest.raises(error, match=message):
        model.predict_table([] if given is None else pyarrow.table(given), **options)


def test_a_lazy_frame_has_to_be_collected(model):
    polars = pytest.importorskip("polars")
    with pytest.raises(TypeError, match="collect a LazyFrame first"):
        model.predict_table(polars.LazyFrame({"text": TEXTS}))


def test_a_pipeline_has_the_shape_of_hugging_faces(model, rows, folders):
    from transformers import AutoTokenizer, BertConfig, BertForTokenClassification, pipeline

    config = BertConfig.from_pretrained(folders["bert"], num_labels=2)
    theirs = pipeline(
        "token-classification",
        model=BertForTokenClassification(config).eval(),
        tokenizer=AutoTokenizer.from_pretrained(folders["bert"]),
        aggregation_strategy="simple",
        device="cpu",
    )
    given = ["a drug in the cell .", "the gene"]
    listed, one = theirs(given), theirs(given[0])
    ours, single = model.pipeline(TEXTS, **OPTIONS), model.pipeline(TEXTS[2], **OPTIONS)
    assert [type(listed), type(listed[0]), type(listed[0][0])] == [type(ours), type(ours[2]), type(ours[2][0])]
    assert [type(one), type(one[0])] == [type(single), type(single[0])]
    assert set(one[0]) == set(single[0])
    assert single == ours[2]
    assert [e["word"] for row in ours for e in row] == [row["text"] for row in rows]
    assert [TEXTS[n][e["start"] : e["end"]] for n, row in enumerate(ours) for e in row] == [
        e["word"] for row in ours for e in row
    ]
