"""Draws dev F1 by epoch of the trainings with a base-size encoder, from their result files, as `docs/curves.svg`.

python benchmarks/curves_plot.py
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from system_tables import DEEP_SPANS, MPNET_FILES, SECOND, TRIED
from table_rows import rows

TARGET = Path(__file__).parent.parent / "docs" / "curves.svg"
PANELS: dict[str, tuple[tuple[str, ...], float]] = {
    "NCBI-disease, bundling": (("bundling-mpnet",), 83),
    "NCBI-disease, bottleneck": (("compress_generate-mpnet",), 83),
    "GENIA": (MPNET_FILES, 76),
    "BioRED beside nine corpora": (("conditional-mpnet",), 84),
}
"""Result files of each panel, and the F1 that it starts at."""
NAMES = {f"deep_span/{grid}": spans for spans, (grid, _) in DEEP_SPANS.items()}
NAMES |= {name: title for name, (title, base) in TRIED.items() if base is None or "cnn" in name}


def name_of(recipe: str) -> str:
    """As the tables call it."""
    variant = recipe.rpartition("/")[2]
    return NAMES.get(recipe) or SECOND.get(variant) or {"bl-span": "BL-SpanNER"}.get(variant, variant)


def curves(files: Sequence[str]) -> dict[str, list[float]]:
    """The mean dev F1 of all runs of a recipe, epoch by epoch."""
    found: defaultdict[str, list[list[float]]] = defaultdict(list)
    for row in (row for name in files for row in rows(name)):
        found[name_of(row["recipe"])].append([f1 for _, f1, *_ in row["curve"]])
    return {name: list(map(fmean, zip(*runs, strict=True))) for name, runs in found.items()}


def main() -> None:
    """A panel for each corpus and claim; the first epochs, in which all are far below, are cut off."""
    plt.rcParams.update({"svg.hashsalt": "wingspan", "font.size": 9})
    figure, panels = plt.subplots(2, 2, figsize=(9, 6.4), layout="constrained")
    for panel, (title, (files, least)) in zip(panels.flat, PANELS.items(), strict=True):
        known = curves(files)
        for name, f1 in known.items():
            panel.plot(range(1, len(f1) + 1), f1, marker="o", markersize=2.5, linewidth=1.3, label=name)
        panel.set(title=title, ylim=(least, max(map(max, known.values())) + 0.5), xlabel="epoch", ylabel="dev F1")
        panel.xaxis.get_major_locator().set_params(integer=True)
        panel.grid(alpha=0.25)
        panel.legend(frameon=False, loc="lower right", fontsize=8)
    figure.savefig(TARGET, metadata={"Date": None})
    print(f"wrote {TARGET}")


if __name__ == "__main__":
    main()
