"""Figures of matplotlib for the page and beside it: inline SVG in the reader's own ink, PNG and SVG files."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wingspan.analysis.report.blocks import Figure
from wingspan.views.markup import escaped

INK = "#23272f"
"""Stands for the color of the page's text: dark in files, whatever the reader's theme has on the page."""
STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "wingspan",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.titlesize": 9,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": INK,
    "grid.alpha": 0.15,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}
INKS = (INK, "#000000", "#262626", "#333333")
_PAPER = re.compile(r"fill: #ffffff")
_DROPPED = re.compile(r"<\?xml.*?\?>|<!DOCTYPE.*?>|<metadata>.*?</metadata>", re.DOTALL)


def available() -> bool:
    """Whether figures can be drawn at all."""
    try:
        import matplotlib  # noqa: F401  only whether it is there
    except ImportError:
        return False
    return True


@contextmanager
def axes(width: float = 4.6, height: float = 3.0) -> Iterator[Any]:
    """Axes of a new figure in the report's style; `axes.figure` is the figure."""
    import matplotlib
    from matplotlib.figure import Figure as Canvas

    with matplotlib.rc_context(STYLE):
        yield Canvas(figsize=(width, height), layout="constrained").add_subplot()


def plain(text: str, longest: int = 40) -> str:
    """A text as matplotlib shall show it: no formula, not too long."""
    cut = text if len(text) <= longest else text[: longest - 1] + "…"
    return cut.replace("$", r"\$")


def drawn(figure: Any, name: str, caption: str, folder: Path | None = None) -> Figure:
    """A figure as a block of the report; PNG and SVG go to the folder."""
    import matplotlib

    stream = io.StringIO()
    with warnings.catch_warnings(), matplotlib.rc_context(STYLE):
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # the browser has the fonts that matplotlib lacks
        figure.savefig(stream, format="svg", metadata={"Date": None})
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{name}.svg").write_text(stream.getvalue(), encoding="utf-8")
            figure.savefig(folder / f"{name}.png", dpi=200, facecolor="white")
    return Figure(name, caption, inline(stream.getvalue(), name, caption))


def inline(svg: str, name: str, caption: str) -> str:
    """The SVG as a part of a page: names of its own, the page's ink, no paper, as wide as there is room."""
    svg = _DROPPED.sub("", svg).strip()
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'(url\(#|href="#)', rf"\g<1>{name}-", svg)
    head, rest = svg.split(">", 1)
    head = re.sub(r' (width|height)="[^"]*"', "", head)
    head = head.replace("<svg", f'<svg role="img" aria-label="{escaped(caption)}"', 1)
    for ink in INKS:
        rest = rest.replace(ink, "currentColor")
    return f"{head}>{_PAPER.sub('fill: none', rest)}"
