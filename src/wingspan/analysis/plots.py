"""Tables to figures: one function for each kind of figure. No plot loads a model; all return a matplotlib figure.

See `drawing` for colors, and for SVG and PNG.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wingspan.analysis.choosing import OVERLAPS
from wingspan.analysis.collected import Array
from wingspan.analysis.drawing import INK, OTHER, PALETTE, colors_of, legend_below, panels, say_if_empty, shown, styled
from wingspan.analysis.geometry import ClassNorm, OverlapCosine
from wingspan.analysis.outcomes import Discrepancy, EpochLoss, TrueChances
from wingspan.analysis.projection import PointMap

RIGHT, WRONG = PALETTE[0], PALETTE[5]
MARKERS = {"right": "^", "wrong": "o"}
MOST_WITH_NUMBERS = 16  # classes of a heat map; in larger ones numbers would be too small to read
TAGS = {"Up": PALETTE[5], "Stable": PALETTE[0], "Down": PALETTE[2]}
NAMES = {
    "vector": "span vectors",
    "feature": "features",
    "latent": "latents",
    "chance": "class chances",
    "label": "labels",
}


def points_figure(*maps: PointMap, marks: bool = False, titles: Sequence[str] = ()) -> Any:
    """Maps side by side, colored by group; with `marks`, right ones are triangles and wrong ones circles.

    See: paper 003, Figure 4; paper 000, Figure 2 (two maps); paper 004, Figures 3 and 4; paper 001, Figure 4 (marks).
    """
    colors = colors_of(np.concatenate([points.group for points in maps]).tolist())
    with styled():
        figure, axes = panels(len(maps), width=5.2 * len(maps) + 0.8, height=4.6)
        for at, (panel, points) in enumerate(zip(axes, maps, strict=True)):
            _scatter(panel, points, colors, marks)
            say_if_empty(panel, points.x)
            panel.set_title(titles[at] if titles else _title(points), color=INK)
        if any(points.what != "label" or len(colors) < len(points.group) for points in maps):
            legend_below(figure, _point_handles(colors, marks))
    return figure


def _scatter(panel: Any, points: PointMap, colors: Mapping[str, str], marks: bool) -> None:
    paints = np.array([colors[name] for name in points.group.tolist()] or [OTHER])
    size = 26 if len(points.x) <= 600 else 12
    for mark, shape in MARKERS.items() if marks else {"": "o"}.items():
        chosen = points.mark == mark if marks else np.ones(len(points.x), dtype=bool)
        if chosen.any():
            panel.scatter(
                points.x[chosen], points.y[chosen], s=size, marker=shape, c=paints[chosen], alpha=0.75, linewidths=0
            )
    if points.what == "label":
        for x, y, name in zip(points.x, points.y, points.text.tolist(), strict=True):
            panel.annotate(shown(name), (x, y), xytext=(4, 4), textcoords="offset points", fontsize=8, color=INK)
        panel.margins(0.2)
    axis = ["first component", "second component"] if points.method == "pca" else ["", ""]
    if points.shares is not None:
        axis = [f"{name} ({share:.0%})" for name, share in zip(axis, points.shares, strict=True)]
    else:
        panel.set_xticks([])
        panel.set_yticks([])  # distances on a t-SNE have no unit
        panel.spines[:].set(visible=True, linewidth=0.5)
    panel.set_xlabel(axis[0])
    panel.set_ylabel(axis[1])


def _title(points: PointMap) -> str:
    apart = f", silhouette {points.silhouette:.2f}" if points.silhouette is not None else ""
    method = "PCA" if points.method == "pca" else "t-SNE"
    return f"{method} of {NAMES[points.what]}{apart}"


def _point_handles(colors: Mapping[str, str], marks: bool) -> list[Any]:
    from matplotlib.lines import Line2D

    def handle(name: str, color: str, shape: str) -> Any:
        return Line2D([], [], linestyle="none", marker=shape, color=color, label=name)

    named = {name: color for name, color in colors.items() if color != OTHER}
    handles = [handle(shown(name), color, "s" if marks else "o") for name, color in named.items()]
    if len(named) < len(colors):
        handles.append(handle(f"{len(colors) - len(named)} others", OTHER, "s" if marks else "o"))
    return handles + ([handle(name, INK, shape) for name, shape in MARKERS.items()] if marks else [])


def overlap_figure(tables: Mapping[str, Sequence[OverlapCosine]]) -> Any:
    """Cosine of entities and their neighbors by overlap, for one system or several.  See: paper 003, Table 4."""
    with styled():
        figure, (panel,) = panels(height=3.4)
        width = 0.8 / max(len(tables), 1)
        handles = []
        for at, (system, table) in enumerate(tables.items()):
            places = np.arange(len(OVERLAPS)) + (at - (len(tables) - 1) / 2) * width
            heights = [0.0 if np.isnan(row.mean) else row.mean for row in table]
            spread = [0.0 if np.isnan(row.deviation) else row.deviation for row in table]
            bars = panel.bar(places, heights, width * 0.92, color=PALETTE[at % len(PALETTE)], label=shown(system))
            panel.errorbar(places, heights, spread, fmt="none", ecolor=INK, elinewidth=1, capsize=3)
            handles.append(bars)
        panel.axhline(0, color=INK, linewidth=0.8)
        panel.set_xticks(
            range(len(OVERLAPS)), [f"{kind} overlap" if kind != "none" else "no overlap" for kind in OVERLAPS]
        )
        panel.set_ylabel("cosine with the entity (± sd)")
        if len(tables) > 1:
            legend_below(figure, handles)
    return figure


def norms_figure(table: Sequence[ClassNorm]) -> Any:
    """The length of features, type by type.  See: paper 003, Table 5 (l2-norm)."""
    with styled():
        figure, (panel,) = panels(height=max(1.6, 0.34 * len(table) + 0.9))
        spread = [0.0 if np.isnan(row.deviation) else row.deviation for row in table]
        colors = [OTHER if not row.label else PALETTE[0] for row in table]
        panel.barh(range(len(table)), [row.mean for row in table], color=colors, height=0.7)
        panel.errorbar([row.mean for row in table], range(len(table)), xerr=spread, fmt="none", ecolor=INK, capsize=3)
        panel.set_yticks(range(len(table)), [f"{shown(row.label)} ({row.rows:,})" for row in table])
        panel.invert_yaxis()
        panel.set_xlabel("length of the features (± sd)")
        say_if_empty(panel, table)
    return figure


def cosines_figure(names: Sequence[str], matrix: Array, title: str = "") -> Any:
    """Cosines of classes or templates as a heat map with numbers.  See: paper 003, Table 5."""
    count = len(names)
    with styled():
        side = max(3.0, 0.55 * count + 1.8)
        figure, (panel,) = panels(width=side + 0.8, height=side)
        panel.set_title(title, color=INK)
        panel.spines[:].set_visible(False)
        panel.tick_params(length=0)
        say_if_empty(panel, names)
        if not count:
            return figure
        image = panel.imshow(np.ma.masked_invalid(matrix), cmap="RdBu_r", vmin=-1, vmax=1)
        for (row, column), value in np.ndenumerate(matrix):
            if count <= MOST_WITH_NUMBERS and not np.isnan(value):
                ink = "white" if abs(value) > 0.6 else "#222222"
                panel.text(column, row, f"{value:.2f}", ha="center", va="center", color=ink, fontsize=8)
        ticks = [shown(name) for name in names]
        panel.set_xticks(range(count), ticks, rotation=40, ha="right", rotation_mode="anchor")
        panel.set_yticks(range(count), ticks)
        bar = figure.colorbar(image, shrink=0.8, label="cosine")
        bar.outline.set_visible(False)
    return figure


def violins_figure(table: Sequence[TrueChances]) -> Any:
    """The chance of the true label, type by type: right predictions on the left half, wrong ones on the right.

    A white bar marks the median.  See: paper 001, Figure 5.
    """
    from matplotlib.patches import Patch

    with styled():
        figure, (panel,) = panels(width=max(5.0, 0.85 * len(table) + 1.6), height=3.8)
        for at, row in enumerate(table):
            for values, side, color in ((row.right, "low", RIGHT), (row.wrong, "high", WRONG)):
                _half_violin(panel, at, values, side, color)
        panel.set_xticks(range(len(table)), [shown(row.label) for row in table], rotation=30, ha="right")
        panel.set_ylim(-0.02, 1.02)
        panel.set_ylabel("chance of the true label")
        say_if_empty(panel, table)
        legend_below(figure, [Patch(color=RIGHT, label="right"), Patch(color=WRONG, label="wrong")])
    return figure


def _half_violin(panel: Any, at: int, values: Array, side: str, color: str) -> None:
    if not len(values):
        return
    sign = -1 if side == "low" else 1
    if len(np.unique(values)) > 1:
        drawn = panel.violinplot([values], [at], widths=0.8, showextrema=False, side=side)
        for body in drawn["bodies"]:
            body.set(facecolor=color, alpha=0.8, linewidth=0)
            vertices = body.get_paths()[0].vertices
            vertices[:, 1] = np.clip(vertices[:, 1], 0.0, 1.0)  # a density goes on beyond what a chance can be
    else:  # a single value has no density
        panel.plot([at, at + sign * 0.3], [values[0]] * 2, color=color, linewidth=3, solid_capstyle="butt")
    middle = float(np.median(values))
    for paint, thick in (("#222222", 4.5), ("white", 2.2)):  # white with a rim: it shows on any page
        panel.plot([at + sign * 0.02, at + sign * 0.14], [middle] * 2, color=paint, lw=thick, solid_capstyle="butt")


def volcano_figure(table: Sequence[Discrepancy]) -> Any:
    """How far off each gold span is against the paper's D, on a logarithmic scale.  See: paper 001, Figure 6."""
    from matplotlib.lines import Line2D

    with styled():
        figure, (panel,) = panels(height=4.0)
        handles = []
        for tag, color in TAGS.items():
            rows = [row for row in table if row.tag == tag]
            if rows:
                heights = [max(row.desire, 1e-6) for row in rows]
                panel.scatter([row.fold for row in rows], heights, s=16, c=color, alpha=0.7, linewidths=0)
                handles.append(
                    Line2D([], [], linestyle="none", marker="o", color=color, label=f"{tag} ({len(rows):,})")
                )
        panel.set_yscale("log")
        panel.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        panel.minorticks_off()
        panel.axvline(0, color=INK, linewidth=0.8, linestyle=":")
        panel.set_xlabel("log2 (chance of what was said / chance of the true label)")
        panel.set_ylabel("D (variance / true chance)")
        say_if_empty(panel, table)
        legend_below(figure, handles)
    return figure


def losses_figure(table: Sequence[EpochLoss]) -> Any:
    """Losses against epochs, and the dev F1 or accuracy where there is one.  See: paper 001, Figure 3."""
    with styled():
        figure, (panel,) = panels(height=3.4)
        epochs = [row.epoch for row in table]
        handles = []
        names = list(dict.fromkeys(name for row in table for name in row.losses))
        if len(names) == 2:  # one term is the whole loss
            names.remove("loss")
        for at, name in enumerate(names):
            values = [row.losses.get(name, np.nan) for row in table]
            handles += panel.plot(epochs, values, color=PALETTE[at % len(PALETTE)], marker=".", label=shown(name))
        panel.set_xlabel("epoch")
        panel.set_ylabel("loss")
        say_if_empty(panel, table)
        if any(row.dev is not None for row in table):
            other = panel.twinx()
            other.spines["right"].set_visible(True)
            values = [np.nan if row.dev is None else row.dev for row in table]
            figure_name = f"dev {table[0].figure}"
            handles += other.plot(epochs, values, color=OTHER, linestyle="--", marker=".", label=figure_name)
            other.set_ylabel(figure_name)
            other.patch.set_alpha(0.0)
        legend_below(figure, handles)
    return figure
