"""Draws the cost of deep spans by length and width, from `results/deep_scaling.jsonl`, as `docs/deep-scaling.svg`.

python benchmarks/deep_plot.py
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from table_rows import rows

TARGET = Path(__file__).parent.parent / "docs" / "deep-scaling.svg"


def main() -> None:
    """Time of the span part and memory, both against the length of the sentence."""
    curves: dict[str, list[tuple[int, float, float]]] = defaultdict(list)
    for row in rows("deep_scaling"):
        if "scope" in row:
            each = row["span_ms"] / row["sentences"]
            curves[row["scope"]].append((row["length"], each, row["peak_mib"] / 1024))
    plt.rcParams.update({"svg.hashsalt": "wingspan", "font.size": 9})
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for scope, points in curves.items():
        lengths, times, memory = zip(*sorted(points), strict=True)
        style = {"linewidth": 2.5, "color": "black"} if "any width" in scope else {"linewidth": 1.3}
        for panel, values in zip(panels, (times, memory), strict=True):
            panel.plot(lengths, values, marker="o", markersize=3, label=scope, **style)
    titles = ("span part of a training step, ms per sentence", "peak memory of a step of four sentences, GiB")
    for panel, title, ticks in zip(panels, titles, ([5, 10, 20, 40], [1, 2, 5, 10, 20, 40]), strict=True):
        panel.set(xscale="log", yscale="log", xlabel="words in the sentence", title=title)
        panel.set_xticks([16, 32, 64, 128, 256, 512], ["16", "32", "64", "128", "256", "512"], minor=False)
        panel.set_yticks(ticks, list(map(str, ticks)))
        panel.minorticks_off()
        panel.grid(alpha=0.25)
    panels[0].legend(frameon=False)
    figure.savefig(TARGET, metadata={"Date": None})
    print(f"wrote {TARGET}")


if __name__ == "__main__":
    main()
