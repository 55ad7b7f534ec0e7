"""Tables to figures: one function for each kind of figure. No plot loads a model; all return a matplotlib figure."""

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

from wingspan.report import geometry
from wingspan.report.blocks import Figure
from wingspan.report.geometry import OVERLAPS, Array, PointMap
from wingspan.views.entities import PALETTE, label_colors
from wingspan.views.html import escaped

OTHER = "#8c8c8c"  # for everything without a color of the palette
INK = "#5b5c5d"  # text and lines; replaced in the SVG by the page's own color
RIGHT, WRONG = PALETTE[0], PALETTE[5]
MARKERS = {"right": "^", "wrong": "o"}
TAGS = {"Up": PALETTE[5], "Stable": PALETTE[0], "Down": PALETTE[2]}
DASHES = ("-", "--", ":", "-.")
LONGEST_NAME = 28
WIDTH, HEIGHT = 4.8, 3.1  # inches of a chart: half of a page, and a phone without too small letters
VECTOR_NAMES = {"vector": "span vectors", "chance": "class chances"}  # others take an s
STYLE: Any = {
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
XML = '<?xml version="1.0" encoding="utf-8"?>\n'
# a separate file follows the reader's theme; inside a page the rule does not apply and the page's color does
THEME = (
    "<style>svg:root{color:#333;background:#fff}"
    "@media (prefers-color-scheme:dark){svg:root{color:#ddd;background:#161616}}</style>"
)


# Drawing: one style, no window and no global state; SVG for the page, PNG and SVG as files.


def available() -> bool:
    """Whether figures can be drawn at all: they need matplotlib, the rest of the report does not."""
    return find_spec("matplotlib") is not None


@contextmanager
def styled(**others: Any) -> Iterator[None]:
    """Everything that is drawn or saved inside has our style."""
    try:
        from matplotlib import rc_context
    except ImportError as error:
        raise ImportError("figures need matplotlib; install it with: pip install 'wingspan-ner[plots]'") from error
    with rc_context(STYLE | others), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # rare scripts: the text is in the table too
        yield


@contextmanager
def canvas(number: int = 1, *, width: float = 6.0, height: float = 4.0) -> Iterator[tuple[Any, ...]]:
    """An empty figure, then its axes side by side."""
    with styled():
        from matplotlib.figure import Figure as Canvas

        figure = Canvas(figsize=(width, height), layout="constrained")
        panels = figure.subplots(1, number, squeeze=False)[0].tolist()
        for part in (figure, *panels):
            part.patch.set_alpha(0.0)
        yield figure, *panels


def note_if_empty(panel: Any, rows: Sized) -> None:
    """An empty figure says so."""
    if not len(rows):
        panel.text(0.5, 0.5, "nothing to show", ha="center", va="center", color=INK, transform=panel.transAxes)
        panel.set(xticks=[], yticks=[])


def colors_of(groups: Iterable[str]) -> dict[str, str]:
    """A color for each of the most frequent names, in the order of their frequency; gray for the others."""
    ordered = [name for name, _ in sorted(Counter(groups).items(), key=lambda item: (-item[1], item[0]))]
    colors = label_colors(ordered[: len(PALETTE)])
    return {name: colors.get(name, OTHER) for name in ordered}


def short_name(name: str) -> str:
    """A label as figures show it: "nothing" has a name, long ones are cut, and none is hidden by its underscore."""
    short = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
    return f" {short}" if short.startswith("_") else short or "nothing"


def dot(name: str, color: str, shape: str = "o") -> Any:
    """An entry of a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], linestyle="none", marker=shape, color=color, label=name)


def legend_below(figure: Any, handles: Sequence[Any]) -> None:
    """A legend under the axes, in as many columns as fit; none where nothing is to be told apart."""
    if not handles:
        return
    longest = max(len(handle.get_label()) for handle in handles)
    fitting = max(1, min(len(handles), int(figure.get_figwidth() * 12) // (longest + 4)))
    columns = math.ceil(len(handles) / math.ceil(len(handles) / fitting))  # as even as can be
    figure.legend(handles=list(handles), loc="outside lower center", ncols=columns, handletextpad=0.4)


def _settle(figure: Any) -> None:
    """Lays the figure out once, so that all its files look alike, whichever is written first."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")


def svg_of(figure: Any, name: str) -> str:
    """The figure as an `<svg>` element for a page: text in the page's color, ids that start with the name."""
    if not re.fullmatch(r"[A-Za-z][\w-]*", name):
        raise ValueError(f"{name!r} cannot begin ids; use letters, digits and -")
    buffer = io.StringIO()
    with styled(**{"svg.hashsalt": name}):
        _settle(figure)
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    svg = buffer.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'(href="|url\()#', rf"\1#{name}-", svg)
    svg = svg.replace(INK, "currentColor")
    fluid = f"width:100%;max-width:{figure.get_figwidth() * 110:.0f}px;height:auto"  # as wide as the page allows
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*" height="[^"]*"', rf'\1 style="{fluid}"', svg, count=1)
    return re.sub(r"(<svg[^>]*>)", rf"\1{THEME}", svg, count=1)


def png_of(figure: Any) -> bytes:
    """The figure as a PNG on white, which can be read on any page."""
    buffer = io.BytesIO()
    with styled():
        _settle(figure)
        figure.savefig(buffer, format="png", facecolor="white", metadata={"Software": None})
    return buffer.getvalue()


def save_figure(figure: Any, path: str | Path) -> None:
    """Writes an SVG or a PNG, by the suffix."""
    path = Path(path)
    if path.suffix == ".svg":
        name = re.sub(r"\W", "-", f"figure-{path.stem}")
        path.write_text(XML + svg_of(figure, name), encoding="utf-8")
    elif path.suffix == ".png":
        path.write_bytes(png_of(figure))
    else:
        raise ValueError(f"{path}: figures are written as .svg or .png")


def drawn(figure: Any, name: str, caption: str, folder: Path | None = None) -> Figure:
    """A matplotlib figure as a block of the report; PNG and SVG go to the folder, if there is one."""
    svg = svg_of(figure, name)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.svg").write_text(XML + svg, encoding="utf-8")
        (folder / f"{name}.png").write_bytes(png_of(figure))
    return Figure(name, caption, svg.replace("<svg", f'<svg role="img" aria-label="{escaped(caption)}"', 1))


# Figures of the papers.


def points_figure(*maps: PointMap, marks: bool = False) -> Any:
    """Maps side by side, colored by group; with `marks`, right ones are triangles and wrong ones circles.

    See: Zhu et al., Figure 4; Nguyen et al., Figure 2 (two maps); Oi and Miwa, Figures 3 and 4; SNG, Figure 4 (marks).
    """
    colors = colors_of(np.concatenate([points.group for points in maps]).tolist())
    with canvas(len(maps), width=5.2 * len(maps) + 0.8, height=4.6) as (figure, *panels):
        for panel, points in zip(panels, maps, strict=True):
            _scatter(panel, points, colors, marks)
            note_if_empty(panel, points.x)
            apart = f", silhouette {points.silhouette:.2f}" if points.silhouette is not None else ""
            method = "PCA" if points.method == "pca" else "t-SNE"
            panel.set_title(f"{method} of {VECTOR_NAMES.get(points.kind, f'{points.kind}s')}{apart}", color=INK)
        if any(points.kind != "label" or len(colors) < len(points.group) for points in maps):
            shape = "s" if marks else "o"
            named = [dot(short_name(name), color, shape) for name, color in colors.items() if color != OTHER]
            others = len(colors) - len(named)
            named += [dot(f"{others} others", OTHER, shape)] if others else []
            named += [dot(name, INK, marker) for name, marker in MARKERS.items()] if marks else []
            legend_below(figure, named)
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
    if points.kind == "label":
        for x, y, name in zip(points.x, points.y, points.text.tolist(), strict=True):
            panel.annotate(short_name(name), (x, y), xytext=(4, 4), textcoords="offset points", fontsize=8, color=INK)
        panel.margins(0.2)
    if points.shares is not None:
        first, second = points.shares
        panel.set(xlabel=f"first component ({first:.0%})", ylabel=f"second component ({second:.0%})")
    else:
        panel.set(xticks=[], yticks=[])  # distances on a t-SNE have no unit
        panel.spines[:].set(visible=True, linewidth=0.5)


def overlap_figure(tables: Mapping[str, Sequence[geometry.OverlapCosine]]) -> Any:
    """Cosine of entities and their neighbors by overlap, for one system or several.  See: Zhu et al. 2023, Table 4."""
    means = {system: [row.mean for row in table] for system, table in tables.items()}
    spread = {system: np.nan_to_num([row.deviation for row in table]) for system, table in tables.items()}
    with canvas(height=3.4) as (figure, panel):
        handles = _grouped_bars(panel, means, spread)
        panel.axhline(0, color=INK, linewidth=0.8)
        panel.set_xticks(range(len(OVERLAPS)), [f"{'no' if kind == 'none' else kind} overlap" for kind in OVERLAPS])
        panel.set_ylabel("cosine with the entity (± sd)")
        legend_below(figure, handles if len(tables) > 1 else [])
    return figure


def _grouped_bars(
    panel: Any, series: Mapping[str, Sequence[float | None]], spread: Mapping[str, Array] | None = None
) -> list[Any]:
    """Bars of several series side by side; groups without a value have no bar."""
    width = 0.8 / max(len(series), 1)
    handles = []
    for number, (name, values) in enumerate(series.items()):
        shift = (number - (len(series) - 1) / 2) * width
        heights = np.array(values, dtype=float)  # None is nan
        kept = np.flatnonzero(~np.isnan(heights))
        color = PALETTE[number % len(PALETTE)]
        handles.append(panel.bar(kept + shift, heights[kept], width * 0.92, label=short_name(name), color=color))
        if spread is not None:
            sizes = spread[name][kept]
            panel.errorbar(kept + shift, heights[kept], sizes, fmt="none", ecolor=INK, elinewidth=1, capsize=3)
    return handles


def norms_figure(table: Sequence[geometry.ClassNorm]) -> Any:
    """The length of features, type by type.  See: Zhu et al. 2023, Table 5 (l2-norm)."""
    means, places = [row.mean for row in table], range(len(table))
    with canvas(height=max(1.6, 0.34 * len(table) + 0.9)) as (figure, panel):
        spread = np.nan_to_num([row.deviation for row in table])
        panel.barh(places, means, color=[PALETTE[0] if row.label else OTHER for row in table], height=0.7)
        panel.errorbar(means, places, xerr=spread, fmt="none", ecolor=INK, capsize=3)
        panel.set_yticks(places, [f"{short_name(row.label)} ({row.rows:,})" for row in table])
        panel.invert_yaxis()
        panel.set_xlabel("length of the features (± sd)")
        note_if_empty(panel, table)
    return figure


def violins_figure(table: Sequence[geometry.TrueChances]) -> Any:
    """The chance of the true label by type, right ones left and wrong ones right.  See: SNG, Figure 5."""
    with canvas(width=max(5.0, 0.85 * len(table) + 1.6), height=3.8) as (figure, panel):
        from matplotlib.patches import Patch

        for at, row in enumerate(table):
            _half_violin(panel, at, row.right, "low", RIGHT)
            _half_violin(panel, at, row.wrong, "high", WRONG)
        panel.set_xticks(range(len(table)), [short_name(row.label) for row in table], rotation=30, ha="right")
        panel.set(ylim=(-0.02, 1.02), ylabel="chance of the true label")
        note_if_empty(panel, table)
        legend_below(figure, [Patch(color=RIGHT, label="right"), Patch(color=WRONG, label="wrong")])
    return figure


def _half_violin(panel: Any, at: int, values: Array, side: str, color: str) -> None:
    if not len(values):
        return
    sign = -1 if side == "low" else 1
    if len(np.unique(values)) > 1:
        (body,) = panel.violinplot([values], [at], widths=0.8, showextrema=False, side=side)["bodies"]
        body.set(facecolor=color, alpha=0.8, linewidth=0)
        vertices = body.get_paths()[0].vertices
        vertices[:, 1] = np.clip(vertices[:, 1], 0.0, 1.0)  # a density goes on beyond what a chance can be
    else:  # a single value has no density
        panel.plot([at, at + sign * 0.3], [values[0]] * 2, color=color, linewidth=3, solid_capstyle="butt")
    middle = float(np.median(values))
    for paint, thick in (("#222222", 4.5), ("white", 2.2)):  # white with a rim: it shows on any page
        panel.plot([at + sign * 0.02, at + sign * 0.14], [middle] * 2, color=paint, lw=thick, solid_capstyle="butt")


def volcano_figure(table: Sequence[geometry.Discrepancy]) -> Any:
    """How far off each gold span is against the paper's D, on a logarithmic scale.  See: SNG, Figure 6."""
    with canvas(height=4.0) as (figure, panel):
        handles = []
        for tag, color in TAGS.items():
            rows = [row for row in table if row.tag == tag]
            if rows:
                heights = [max(row.desire, 1e-6) for row in rows]
                panel.scatter([row.fold for row in rows], heights, s=16, c=color, alpha=0.7, linewidths=0)
                handles.append(dot(f"{tag} ({len(rows):,})", color))
        panel.set_yscale("log")
        panel.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        panel.minorticks_off()
        panel.axvline(0, color=INK, linewidth=0.8, linestyle=":")
        panel.set_xlabel("log2 (chance of the predicted label / chance of the true label)")
        panel.set_ylabel("D (variance / true chance)")
        note_if_empty(panel, table)
        legend_below(figure, handles)
    return figure


def losses_figure(table: Sequence[geometry.EpochLoss]) -> Any:
    """Losses against epochs, and the dev F1 or accuracy where there is one.  See: SNG, Figure 3."""
    epochs = [row.epoch for row in table]
    names = list(dict.fromkeys(name for row in table for name in row.losses))
    if len(names) == 2:  # one term is the whole loss
        names.remove("loss")
    with canvas(height=3.4) as (figure, panel):
        handles = []
        for at, name in enumerate(names):
            values = [row.losses.get(name, np.nan) for row in table]
            color = PALETTE[at % len(PALETTE)]
            handles += panel.plot(epochs, values, color=color, marker=".", label=short_name(name))
        panel.set(xlabel="epoch", ylabel="loss")
        panel.xaxis.get_major_locator().set_params(integer=True)
        note_if_empty(panel, table)
        if any(row.dev is not None for row in table):
            other = panel.twinx()
            other.spines["right"].set_visible(True)
            values = [np.nan if row.dev is None else row.dev for row in table]
            name = f"dev {table[0].figure}"
            handles += other.plot(epochs, values, color=OTHER, linestyle="--", marker=".", label=name)
            other.set_ylabel(name)
            other.patch.set_alpha(0.0)
        legend_below(figure, handles)
    return figure


# Charts of the report: lines over a range, bars side by side.


def lines(
    series: Mapping[str, tuple[Sequence[float] | Array, Sequence[float] | Array]],
    across: str,
    upwards: str,
    *,
    diagonal: bool = False,
    whole: bool = False,
    colors: Mapping[str, str] | None = None,
) -> Any:
    """One line for each series (x, y). `whole`: both axes are percentages and go from 0 to 100."""
    with canvas(width=WIDTH, height=HEIGHT) as (figure, panel):
        if diagonal:
            panel.plot([0, 100], [0, 100], color=INK, alpha=0.4, linewidth=0.8)
        handles = []
        for number, (name, (x, y)) in enumerate(series.items()):
            handles += panel.plot(
                x,
                y,
                DASHES[number // len(PALETTE) % len(DASHES)],
                label=short_name(name),
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
    """Groups of bars, one bar for each series, in percent."""
    with canvas(width=WIDTH, height=HEIGHT) as (figure, panel):
        handles = _grouped_bars(panel, series)
        panel.set_xticks(range(len(groups)), [short_name(group) for group in groups])
        panel.set(ylabel=upwards, ylim=(0, 100))
        panel.grid(axis="y", color=INK, alpha=0.15, linewidth=0.6)
        panel.set_axisbelow(True)
        legend_below(figure, handles if len(series) > 1 else [])
    return figure
