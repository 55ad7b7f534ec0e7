"""The charts of the report: lines over a range, bars side by side. Colors are the systems', shapes say them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wingspan.analysis.report.drawing import axes, plain
from wingspan.views.colors import PALETTE

Floats = Sequence[float] | np.ndarray[Any, np.dtype[Any]]
DASHES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


def lines(
    series: Mapping[str, tuple[Floats, Floats]],
    across: str,
    upwards: str,
    *,
    diagonal: bool = False,
    markers: bool = False,
    whole: bool = False,
    colors: Mapping[str, str] | None = None,
) -> Any:
    """One line for each series (x, y). `whole`: both axes are percentages and go from 0 to 100."""
    with axes() as plot:
        if diagonal:
            plot.plot([0, 100], [0, 100], color=plot.xaxis.label.get_color(), alpha=0.35, linewidth=0.8)
        for number, (name, (x, y)) in enumerate(series.items()):
            plot.plot(
                x,
                y,
                DASHES[number // len(PALETTE) % len(DASHES)],
                label=plain(name),
                color=(colors or {}).get(name, PALETTE[number % len(PALETTE)]),
                linewidth=1.6,
                marker=MARKERS[number % len(MARKERS)] if markers else None,
                markersize=4,
            )
        plot.set_xlabel(across)
        plot.set_ylabel(upwards)
        if whole:
            plot.set(xlim=(-1, 101), ylim=(-1, 102))
        plot.grid(True, axis="y")
        if len(series) > 1:
            plot.legend()
        return plot.figure


def bars(groups: Sequence[str], series: Mapping[str, Sequence[float | None]], upwards: str) -> Any:
    """Groups of bars, one bar for each series; what has no value has no bar."""
    with axes(height=2.6) as plot:
        width = 0.8 / max(len(series), 1)
        for number, (name, values) in enumerate(series.items()):
            shift = (number - (len(series) - 1) / 2) * width
            kept = [(place + shift, value) for place, value in enumerate(values) if value is not None]
            plot.bar(
                [place for place, _ in kept],
                [value for _, value in kept],
                width * 0.92,
                label=plain(name),
                color=PALETTE[number % len(PALETTE)],
            )
        plot.set_xticks(range(len(groups)), [plain(group, 14) for group in groups])
        plot.set_ylabel(upwards)
        plot.set_ylim(0, 100)
        plot.grid(True, axis="y")
        plot.set_axisbelow(True)
        if len(series) > 1:
            plot.legend(ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
        return plot.figure
