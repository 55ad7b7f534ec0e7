"""Every figure is a real SVG and PNG, made from tables alone, that survives odd labels and few rows."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from collected_rows import rows_of

import wingspan
from trainings import dev_documents, tiny, train_documents
from wingspan.report import plots
from wingspan.report.collect import collect
from wingspan.report.geometry import (
    Collected,
    cosine_by_overlap,
    discrepancies,
    label_map,
    load_collected,
    losses_by_epoch,
    norms_by_class,
    span_map,
    true_chances,
)
from wingspan.report.plots import (
    INK,
    OTHER,
    colors_of,
    png_of,
    save_figure,
    short_name,
    svg_of,
)
from wingspan.views.entities import PALETTE, label_colors


def figures_of(rows: Collected, journal, method: str) -> dict:
    """One figure of each kind."""
    return {
        "features": plots.points_figure(span_map(rows)),
        "before-after": plots.points_figure(*(span_map(rows, kind, method) for kind in ("vector", "feature"))),
        "datasets": plots.points_figure(span_map(rows, method=method, by="dataset", only=rows.classes[1])),
        "chances": plots.points_figure(span_map(rows, "chance"), marks=True),
        "labels": plots.points_figure(label_map(rows.templates, rows.classes, method=method)),
        "overlap": plots.overlap_figure({"one": cosine_by_overlap(rows), "other": cosine_by_overlap(rows, "vector")}),
        "norms": plots.norms_figure(norms_by_class(rows)),
        "violins": plots.violins_figure(true_chances(rows)),
        "volcano": plots.volcano_figure(discrepancies(rows)),
        "losses": plots.losses_figure(losses_by_epoch(journal)),
    }


def check(figure, name: str) -> str:
    drawn = svg_of(figure, name)
    root = ET.fromstring(drawn)
    assert root.tag.endswith("svg")
    ids = [part.get("id") for part in root.iter() if part.get("id")]
    assert len(ids) == len(set(ids))
    assert all(key.startswith(f"{name}-") for key in ids)
    used = set(re.findall(r'(?:href="|url\()#([\w-]+)', drawn))
    assert used <= set(ids)
    assert INK not in drawn
    assert "currentColor" in drawn
    picture = png_of(figure)
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    assert len(picture) > 2000
    return drawn


@pytest.mark.slow
def test_from_training_to_every_figure(tmp_path):
    pytest.importorskip("sklearn")
    model = wingspan.train(tiny("baseline", epochs=2), train=train_documents(8), output=tmp_path / "run", device="cpu")
    collect(model, dev_documents(3)).save(tmp_path / "rows.npz")
    rows = load_collected(tmp_path / "rows.npz")
    figures = figures_of(rows, tmp_path / "run" / "journal.jsonl", "tsne")
    drawn = {name: check(figure, name) for name, figure in figures.items()}
    assert ">Chemical</text>" in drawn["features"]
    assert drawn["features"] == svg_of(figures["features"], "features")  # though a PNG was written in between


@pytest.mark.slow
def test_odd_labels_and_few_rows(tmp_path):
    """Dollar signs, underscores, markup, other scripts, a single row of a type."""
    (tmp_path / "journal.jsonl").write_text("")
    names = ("", "_hidden$x_2$", "<b>&", "药物", "a label that is much longer than any legend can show")
    rows = rows_of(
        feature=[[1, 2], [2, 1], [3, 3], [0, 1], [1, 1]],
        gold=[1, 1, 2, 3, 4],
        classes=names,
        templates=np.eye(5)[:, :2],
    )
    for name, figure in figures_of(rows, tmp_path / "journal.jsonl", "pca").items():
        check(figure, name)
    drawn = svg_of(plots.points_figure(span_map(rows)), "odd")
    texts = {part.text.strip() for part in ET.fromstring(drawn).iter() if part.tag.endswith("text") and part.text}
    assert {"_hidden$x_2$", "<b>&", "药物", short_name(names[4])} <= texts


def test_no_rows_at_all(tmp_path):
    (tmp_path / "journal.jsonl").write_text("")
    rows = rows_of(np.zeros((0, 2)), [], templates=np.zeros((3, 2)))
    for name, figure in figures_of(rows, tmp_path / "journal.jsonl", "pca").items():
        check(figure, name)


def test_the_most_frequent_types_are_colored_as_on_the_page():
    names = [f"type {at:02}" for at in range(13) for _ in range(13 - at)]
    colors = colors_of(names)
    frequent = [f"type {at:02}" for at in range(8)]
    assert {name: colors[name] for name in frequent} == label_colors(frequent)
    assert {colors[name] for name in frequent} == set(PALETTE)
    assert {colors[f"type {at:02}"] for at in range(8, 13)} == {OTHER}
    rows = rows_of(
        np.random.default_rng(0).normal(size=(len(names), 3)),
        [1 + int(n[-2:]) for n in names],
        ("", *sorted(set(names))),
    )
    drawn = svg_of(plots.points_figure(span_map(rows)), "many")
    assert "5 others" in drawn


def test_palette_can_be_seen_on_light_and_dark():
    """Contrast of at least 2 with white and 3 with a dark page, for graphics that also have shapes and legends."""

    def luminance(color: str) -> float:
        parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))

    for color in (*PALETTE, OTHER):
        light, dark = 1.05 / (luminance(color) + 0.05), (luminance(color) + 0.05) / (luminance("#161616") + 0.05)
        assert light >= 2, color
        assert dark >= 3, color


def test_files_by_suffix(tmp_path):
    figure = plots.norms_figure(norms_by_class(rows_of([[1.0, 2]], [1])))
    save_figure(figure, tmp_path / "a figure.svg")
    save_figure(figure, tmp_path / "b.png")
    assert ET.parse(tmp_path / "a figure.svg").getroot().tag.endswith("svg")
    assert (tmp_path / "b.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="figures are written as .svg or .png"):
        save_figure(figure, tmp_path / "c.pdf")
    with pytest.raises(ValueError, match="cannot begin ids"):
        svg_of(figure, "1 bad")


def test_plots_load_no_model():
    code = "import sys, wingspan.report.plots; print('torch' in sys.modules, 'matplotlib' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "False"]


def test_what_is_missing_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "sklearn.manifold", None)
    with pytest.raises(ImportError, match=r"pip install 'wingspan-ner\[plots\]'"):
        plots.losses_figure([])
    with pytest.raises(ImportError, match=r"t-SNE needs scikit-learn; .*wingspan-ner\[plots\]"):
        span_map(rows_of([[1.0, 2]], [1]), method="tsne")
