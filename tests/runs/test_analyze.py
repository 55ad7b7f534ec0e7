import json
from pathlib import Path

import pytest

from wingspan.corpora import read, write


@pytest.fixture
def predictions(shell, tmp_path) -> list[Path]:
    """Two systems that lose every second and every third entity of the dev documents."""
    from dataclasses import replace

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
