"""The charts of the report: lines over a range, bars side by side. Colors are the systems', dashes say them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wingspan.analysis.drawing import INK, legend_below, panels, shown, styled
from wingspan.views.colors import PALETTE

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
