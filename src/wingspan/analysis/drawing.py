"""Figures that look the same everywhere: colors, sizes, and SVG and PNG that can be read on light and dark pages."""

from __future__ import annotations

import io
import math
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PALETTE = (
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
MOST_COLORS = len(PALETTE)
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
    return {name: PALETTE[at] if at < MOST_COLORS else OTHER for at, name in enumerate(ordered)}


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
