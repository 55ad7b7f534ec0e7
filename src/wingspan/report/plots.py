"""Tables to figures: one function for each kind of figure. No plot loads a model; all return a matplotlib figure.

See `drawing` for colors, and for SVG and PNG.
"""

from __future__ import annotations

import io
import math
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from wingspan.report.blocks import Figure
from wingspan.report.collect import OVERLAPS, Array
from wingspan.report.geometry import ClassNorm, Discrepancy, EpochLoss, OverlapCosine, PointMap, TrueChances
from wingspan.views.entities import PALETTE
from wingspan.views.html import escaped

PALETTE_OF_FIGURES = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#d55e00",
    "#8a6fd1",
    "#a89a00",
    "#a0522d",
    "#14a3a8",
)
"""Ten colors, after Okabe and Ito: for the color-blind too; none is too light for paper or too dark for a screen."""
OTHER = "#8c8c8c"
"""Whatever has no color of its own."""
INK = "#5b5c5d"  # text and lines; found again in the SVG, where it becomes the page's own color
MOST_COLORS = len(PALETTE_OF_FIGURES)
LONGEST_NAME = 28

_STYLE: Any = {
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "text.parse_math": False,  # a label may hold dollar signs
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.use_mathtext": False,
    "axes.unicode_minus": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "svg.fonttype": "none",  # text stays text: it can be read aloud, searched and selected
    "figure.dpi": 100,
    "savefig.dpi": 160,
}
# a file of its own follows the reader's theme; inside a page the rule does not apply and the page's color does
_THEME = (
    "<style>svg:root{color:#333;background:#fff}"
    "@media (prefers-color-scheme:dark){svg:root{color:#ddd;background:#161616}}</style>"
)


@contextmanager
def styled() -> Iterator[None]:
    """Everything that is drawn or saved inside has our looks."""
    try:
        from matplotlib import rc_context
    except ImportError as error:
        raise ImportError("figures need matplotlib; install it with: pip install 'wingspan[plots]'") from error
    with rc_context(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # rare scripts: the text is in the table too
        yield


def panels(number: int = 1, *, width: float = 6.0, height: float = 4.0) -> tuple[Any, list[Any]]:
    """An empty figure with so many axes side by side; no window and no global state. Call it inside `styled`."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    figure.patch.set_alpha(0.0)
    axes = figure.subplots(1, number, squeeze=False)[0].tolist()
    for panel in axes:
        panel.patch.set_alpha(0.0)
    return figure, axes


def say_if_empty(panel: Any, rows: Sized) -> None:
    """An empty figure says so."""
    if not len(rows):
        panel.text(0.5, 0.5, "nothing to show", ha="center", va="center", color=INK, transform=panel.transAxes)
        panel.set_xticks([])
        panel.set_yticks([])


def colors_of(groups: Iterable[str]) -> dict[str, str]:
    """A color for each of the ten most frequent names, in the order of their frequency; gray for the others."""
    counts = Counter(groups)
    ordered = sorted(counts, key=lambda name: (-counts[name], name))
    return {name: PALETTE_OF_FIGURES[at] if at < MOST_COLORS else OTHER for at, name in enumerate(ordered)}


def shown(name: str) -> str:
    """A label as figures show it: "nothing" has a name, long ones are cut, and none is hidden by its underscore."""
    short = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
    return f" {short}" if short.startswith("_") else short or "nothing"


def legend_below(figure: Any, handles: Sequence[Any], title: str | None = None) -> None:
    """A legend under the axes, in as many columns as fit."""
    if not handles:
        return
    longest = max(len(handle.get_label()) for handle in handles)
    fitting = max(1, min(len(handles), int(figure.get_figwidth() * 12) // (longest + 4)))
    columns = math.ceil(len(handles) / math.ceil(len(handles) / fitting))  # as even as can be
    figure.legend(handles=list(handles), loc="outside lower center", ncols=columns, title=title, handletextpad=0.4)


def settle(figure: Any) -> None:
    """Lays the figure out once, so that all its files look alike, whichever is written first."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")


def svg_of(figure: Any, name: str) -> str:
    """The figure as an `<svg>` element for a page: text in the page's color, ids that start with the name."""
    if not re.fullmatch(r"[A-Za-z][\w-]*", name):
        raise ValueError(f"{name!r} cannot begin ids; use letters, digits and -")
    buffer = io.StringIO()
    with styled():
        from matplotlib import rc_context

        settle(figure)
        with rc_context({"svg.hashsalt": name}):
            figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    drawn = buffer.getvalue()
    drawn = drawn[drawn.index("<svg") :]
    drawn = re.sub(r'\bid="', f'id="{name}-', drawn)
    drawn = re.sub(r'(href="|url\()#', rf"\1#{name}-", drawn)
    drawn = drawn.replace(INK, "currentColor")
    fluid = f"width:100%;max-width:{figure.get_figwidth() * 110:.0f}px;height:auto"  # as wide as the page allows
    drawn = re.sub(r'(<svg[^>]*?) width="[^"]*" height="[^"]*"', rf'\1 style="{fluid}"', drawn, count=1)
    return re.sub(r"(<svg[^>]*>)", rf"\1{_THEME}", drawn, count=1)


def png_of(figure: Any) -> bytes:
    """The figure as a PNG on white, which can be read on any page."""
    buffer = io.BytesIO()
    with styled():
        settle(figure)
        figure.savefig(buffer, format="png", facecolor="white", metadata={"Software": None})
    return buffer.getvalue()


def save_figure(figure: Any, path: str | Path) -> None:
    """Writes an SVG or a PNG, by the suffix."""
    path = Path(path)
    if path.suffix == ".svg":
        name = re.sub(r"\W", "-", path.stem)
        header = '<?xml version="1.0" encoding="utf-8"?>\n'
        path.write_text(header + svg_of(figure, f"figure-{name}"), encoding="utf-8")
    elif path.suffix == ".png":
        path.write_bytes(png_of(figure))
    else:
        raise ValueError(f"{path}: figures are written as .svg or .png")


RIGHT, WRONG = PALETTE_OF_FIGURES[0], PALETTE_OF_FIGURES[5]
MARKERS = {"right": "^", "wrong": "o"}
MOST_WITH_NUMBERS = 16  # classes of a heat map; in larger ones numbers would be too small to read
TAGS = {"Up": PALETTE_OF_FIGURES[5], "Stable": PALETTE_OF_FIGURES[0], "Down": PALETTE_OF_FIGURES[2]}
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
            bars = panel.bar(
                places,
                heights,
                width * 0.92,
                color=PALETTE_OF_FIGURES[at % len(PALETTE_OF_FIGURES)],
                label=shown(system),
            )
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
        colors = [OTHER if not row.label else PALETTE_OF_FIGURES[0] for row in table]
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
            handles += panel.plot(
                epochs, values, color=PALETTE_OF_FIGURES[at % len(PALETTE_OF_FIGURES)], marker=".", label=shown(name)
            )
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


# --- The charts of the report: lines over a range, bars side by side. Colors are the systems', dashes say them
# again.


Floats = Sequence[float] | np.ndarray[Any, np.dtype[Any]]
DASHES = ("-", "--", ":", "-.")
WIDTH, HEIGHT = 4.8, 3.1
"""Inches: what fits half of a page, and a phone without too small letters."""


def lines(
    series: Mapping[str, tuple[Floats, Floats]],
    across: str,
    upwards: str,
    *,
    diagonal: bool = False,
    whole: bool = False,
    colors: Mapping[str, str] | None = None,
) -> Any:
    """One line for each series (x, y). `whole`: both axes are percentages and go from 0 to 100."""
    with styled():
        figure, (panel,) = panels(width=WIDTH, height=HEIGHT)
        if diagonal:
            panel.plot([0, 100], [0, 100], color=INK, alpha=0.4, linewidth=0.8)
        handles = []
        for number, (name, (x, y)) in enumerate(series.items()):
            handles += panel.plot(
                x,
                y,
                DASHES[number // len(PALETTE) % len(DASHES)],
                label=shown(name),
                color=(colors or {}).get(name, PALETTE[number % len(PALETTE)]),
                linewidth=1.6,
                marker="o" if len(x) <= 20 else None,
                markersize=4,
            )
        panel.set(xlabel=across, ylabel=upwards)
        panel.grid(axis="y", color=INK, alpha=0.15, linewidth=0.6)
        if whole:
            panel.set(xlim=(-1, 101), ylim=(-1, 102))
        legend_below(figure, handles if len(series) > 1 else [])
    return figure


def bars(groups: Sequence[str], series: Mapping[str, Sequence[float | None]], upwards: str) -> Any:
    """Groups of bars, one bar for each series; what has no value has no bar."""
    with styled():
        figure, (panel,) = panels(width=WIDTH, height=HEIGHT)
        width = 0.8 / max(len(series), 1)
        handles = []
        for number, (name, values) in enumerate(series.items()):
            shift = (number - (len(series) - 1) / 2) * width
            kept = [(place + shift, value) for place, value in enumerate(values) if value is not None]
            color = PALETTE[number % len(PALETTE)]
            places, heights = [place for place, _ in kept], [value for _, value in kept]
            handles.append(panel.bar(places, heights, width * 0.92, label=shown(name), color=color))
        panel.set_xticks(range(len(groups)), [shown(group) for group in groups])
        panel.set(ylabel=upwards, ylim=(0, 100))
        panel.grid(axis="y", color=INK, alpha=0.15, linewidth=0.6)
        panel.set_axisbelow(True)
        legend_below(figure, handles if len(series) > 1 else [])
    return figure


# --- Figures for the page and beside it: inline SVG in the reader's own ink, PNG and SVG files of the same name.


_METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)


def available() -> bool:
    """Whether figures can be drawn at all: they need matplotlib, the rest of the report does not."""
    return find_spec("matplotlib") is not None


def drawn(figure: Any, name: str, caption: str, folder: Path | None = None) -> Figure:
    """A matplotlib figure as a block of the report; PNG and SVG go to the folder."""
    svg = keep(figure, name, folder)
    return Figure(name, caption, svg.replace("<svg", f'<svg role="img" aria-label="{escaped(caption)}"', 1))


def keep(figure: Any, name: str, folder: Path | None) -> str:
    """The figure as SVG; also as files, if there is a folder for them."""
    svg = _METADATA.sub("", svg_of(figure, name))
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.svg").write_text(f'<?xml version="1.0" encoding="utf-8"?>\n{svg}', encoding="utf-8")
        (folder / f"{name}.png").write_bytes(png_of(figure))
    return svg
