"""Figures for the page and beside it: inline SVG in the reader's own ink, PNG and SVG files of the same name."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from wingspan.analysis.drawing import png_of, svg_of
from wingspan.analysis.report.blocks import Figure
from wingspan.views.markup import escaped

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
