import json
from dataclasses import replace
from pathlib import Path

import pytest

from wingspan.corpora.formats import read, write


@pytest.fixture
def predictions(shell, tmp_path) -> list[Path]:
    """Two systems that lose every second and every third entity of the dev documents."""
    documents = list(read(shell.dev))
    paths = [tmp_path / "half.jsonl", tmp_path / "third.jsonl"]
    for step, path in enumerate(paths, 2):
        write([replace(one, entities=[e for n, e in enumerate(one.entities) if n % step]) for one in documents], path)
    return paths


def test_documents_are_enough_for_a_report(shell, predictions, tmp_path):
    half, third = predictions
    folder = tmp_path / "out"
    options = ["--gold", shell.dev, "--predicted", half, "--predicted", f"better={third}", "--train", shell.train]
    out, _ = shell("analyze", *options, "--output", folder, "--samples", 20, "--json", tmp_path / "figures.json")
    assert out.strip() == str(folder / "report.html")
    page = (folder / "report.html").read_text()
    assert "better wins over half" in page or "No clear winner: better" in page
    assert (folder / "tables" / "systems.csv").read_text().startswith("system,precision,recall,F1")
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert [row[0] for row in figures["systems"]["rows"]] == ["half", "better"]
    assert figures["scores"]["columns"][:4] == ["label", "precision", "recall", "F1"]


def test_figures_come_as_png_and_svg(shell, predictions, tmp_path):
    pytest.importorskip("matplotlib")
    shell("analyze", "--gold", shell.dev, "--predicted", predictions[0], "--output", tmp_path / "out", "--samples", 5)
    figures = {path.name for path in (tmp_path / "out" / "figures").iterdir()}
    assert {"buckets-entity_length-figure.png", "buckets-entity_length-figure.svg"} <= figures


@pytest.mark.slow
def test_an_earlier_report_leaves_nothing_behind(shell, predictions, tmp_path):
    folder = tmp_path / "out"
    options = ["--gold", shell.dev, "--predicted", predictions[0], "--samples", 5, "--attribute", "entity_length"]
    more = ["--predicted", predictions[1], "--train", shell.train, "--attribute", "training_frequency"]
    shell("analyze", *options, *more, "--output", folder)
    before = {path.name for path in folder.rglob("*")}
    (folder / "notes.txt").write_text("mine")
    shell("analyze", *options, "--output", folder)
    after = {path.name for path in folder.rglob("*")}
    shell("analyze", *options, "--output", tmp_path / "new")
    assert after - {"notes.txt"} == {path.name for path in (tmp_path / "new").rglob("*")} < before


def test_compare_writes_its_report_into_one_file(shell, predictions, tmp_path):
    report = tmp_path / "new" / "compare.html"
    shell("compare", shell.dev, *predictions, "--samples", 20, "--report", report)
    assert [path.name for path in report.parent.iterdir()] == ["compare.html"]
    assert 'id="bucket-gaps"' in report.read_text()
    assert "tables/" not in report.read_text()


def test_analyze_wants_a_model_or_predictions(shell, tmp_path):
    said = shell.refuses("analyze", shell.model, "--output", tmp_path / "out")
    assert "give MODEL and CORPUS, or --gold GOLD with --predicted FILE" in said
    assert "no such file" in shell.refuses(
        "analyze", "--gold", shell.dev, "--predicted", "no.jsonl", "--output", tmp_path
    )


@pytest.mark.slow
def test_compare_with_training_data_has_its_buckets(shell, predictions, tmp_path):
    report = tmp_path / "compare.html"
    shell("compare", shell.dev, *predictions, "--samples", 5, "--report", report, "--train", shell.train)
    for name in ("buckets-training_frequency", "buckets-label_consistency", "label-conflicts", "training-corpus"):
        assert f'id="{name}"' in report.read_text()
    said = shell.refuses("compare", shell.dev, *predictions, "--train", shell.train)
    assert "--train is for the report; give --report FILE too" in said


def test_attributes_of_the_corpus_have_tables_and_figures(shell, tmp_path):
    """Keys may hold what no link and no file name can."""
    documents = [
        replace(one, meta={"from/where": {"x": "a" if n % 2 else "b"}}) for n, one in enumerate(read(shell.dev))
    ]
    gold, out = tmp_path / "gold.jsonl", tmp_path / "out"
    write(documents, gold)
    options = ["--gold", gold, "--predicted", gold, "--samples", 5, "--output", out]
    shell("analyze", *options, "--attribute", "document:from/where.x")
    assert (out / "tables" / "buckets-document-from-where-x.csv").read_text().splitlines()[1].split(",")[0] in "ab"
    assert 'id="buckets-document-from-where-x"' in (out / "report.html").read_text()
    said = shell.refuses("analyze", *options, "--attribute", "document:from/here")
    assert "document:from/here: nothing in the corpus has this key" in said
    assert "give it (`training`, --train)" in shell.refuses("analyze", *options, "--attribute", "training_frequency")


def test_a_report_says_what_predictions_lack(shell, tmp_path):
    documents = list(read(shell.dev))
    write(
        [replace(one, entities=[e for e in one.entities if e.label == "Gene"]) for one in documents[1:]],
        tmp_path / "some.jsonl",
    )
    some, options = tmp_path / "some.jsonl", ["--samples", 5, "--attribute", "entity_length"]
    options += ["--gold", shell.dev, "--predicted", some, "--output", tmp_path / "out"]
    assert "(--allow-missing)" in shell.refuses("analyze", *options)
    shell("analyze", *options, "--allow-missing")
    page = (tmp_path / "out" / "report.html").read_text()
    assert f"some: 1 of {len(documents)} documents have no prediction and count as predicted empty." in page
    assert "some: the gold has labels that were never predicted: " in page


@pytest.mark.slow
def test_a_folder_where_a_file_is_to_be_written_is_named(shell, predictions, tmp_path):
    (tmp_path / "taken").mkdir()
    said = shell.refuses("compare", shell.dev, *predictions, "--samples", 5, "--report", tmp_path / "taken")
    assert said == f"wingspan: {tmp_path / 'taken'}: a folder of this name is there; name a file\n"


def test_buckets_of_equal_size_on_request(shell, tmp_path):
    gold, out = shell.dev, tmp_path / "out"
    asked = ["--attribute", "text_length", "--quantiles", "2", "--samples", "5"]
    shell("analyze", "--gold", gold, "--predicted", gold, "--output", out, *asked)
    with (out / "tables" / "buckets-text_length.csv").open() as file:
        assert len(file.readlines()) == 3  # the names of the columns, and two halves
    assert "2 quantiles" in (out / "report.html").read_text()
