"""The report as one HTML file: a table of contents, the sections, nothing from the network.

The markup is in `report.html` and, with one macro for each kind of block, in `blocks.html`; this module has the values
that they show: numbers as people read them, raw values for sorting and CSV, tints for heat maps.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from markupsafe import Markup

from wingspan.report.blocks import Block, Column, Points, Report, Table, TableCell, TableRow
from wingspan.views.entities import label_colors
from wingspan.views.html import template, write_page

MISSING = "–"
SIGNED = ("change", "cost")
LONG_LABEL = 24  # characters; longer labels may be broken on a phone, shorter ones stay on a line with their dot
STRONGEST = 0.45  # of a tint: text on it keeps a contrast of 4.5, in the dark too


def write_report(report: Report, path: Path) -> None:
    """Writes the page block by block; streamed rows are never whole in memory."""
    write_page(path, "report/report.html", title=report.title, report=report, rendered=rendered)


def write_tables(report: Report, folder: Path) -> list[Path]:
    """Every table as a CSV file, with all its rows and all digits."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for table in report.blocks():
        if isinstance(table, Table):
            path = folder / f"{table.name}.csv"
            with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
                writer = csv.writer(file)
                writer.writerow([column.name for column in table.columns])
                writer.writerows(table.rows)
                writer.writerows(table.totals)
            written.append(path)
    return written


def rendered(block: Block, labels: Sequence[str] = (), folder: bool = True) -> Markup:
    """The HTML of a block. `labels` are all labels of the report; `folder`: tables lie beside the page as files."""
    macro = getattr(_macros(), type(block).__name__.lower())
    html: Markup = macro(TableView(block, labels, folder)) if isinstance(block, Table) else macro(block, labels)
    return html


@cache
def _macros() -> Any:
    names = {"point_data": point_data, "in_words": in_words, "unbroken": unbroken}
    return template("report/blocks.html").make_module(names)


def unbroken(text: str) -> str:
    """Text in which no line ends between a number and its percent sign."""
    return re.sub(r"(?<=\d) %", "\u00a0%", text)


def in_words(value: Any) -> str:
    """A fact as people read it."""
    if value is None or value == {}:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(in_words, value)) or "none"
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}" if isinstance(value, float) else str(value)


def point_data(points: Points, labels: Sequence[str]) -> dict[str, Any]:
    """A cloud of points for `points.js`."""
    names = sorted(set(points.groups))
    colors = label_colors(names) | label_colors(labels)
    return {
        "x": [round(float(value), 4) for value in points.x],
        "y": [round(float(value), 4) for value in points.y],
        "group": [names.index(name) for name in points.groups],
        "words": list(points.words),
        "right": None if points.right is None else [int(value) for value in points.right],
        "names": names,
        "colors": [colors[name] for name in names],
        "axes": list(points.axes),
    }


class TableView:
    """A table as the page shows it: its first rows, the attributes of every cell, and remarks on the rest."""

    def __init__(self, table: Table, labels: Sequence[str], folder: bool) -> None:
        rows = iter(table.rows)
        self.table, self.rows, self.colors = table, list(islice(rows, table.shown)), label_colors(labels)
        shown, left = len(self.rows), sum(1 for _ in rows)
        where = f"; all are in tables/{table.name}.csv beside this page" if folder else ""
        self.notes = [
            *([table.note] if table.note else []),
            *(["Nothing to list."] if not shown else []),
            *([f"The first {shown:,} of {shown + left:,} rows{where}."] if left else []),
        ]
        self.largest = {"number": self._largest("number"), "signed": self._largest(*SIGNED)}

    def _largest(self, *kinds: str) -> float:
        """The largest size of a number in the columns of these kinds."""
        columns = [place for place, column in enumerate(self.table.columns) if column.kind in kinds]
        values = (row[place] for row in self.rows for place in columns)
        return max((abs(value) for value in values if isinstance(value, int | float)), default=0.0)

    def cells(self, row: TableRow) -> Iterator[dict[str, Any]]:
        """Text and attributes of every cell; labels have a dot in their color."""
        for value, column in zip(row, self.table.columns, strict=True):
            text = as_text(value, column)
            attributes: dict[str, str] = {}
            if column.kind in ("text", "label"):
                long = column.kind == "label" and len(text) > LONG_LABEL
                attributes["class"] = f"{column.kind} long" if long else column.kind
            elif isinstance(value, int | float):
                attributes |= self.tint(value, column)
            if isinstance(value, int | float):
                attributes["data-v"] = repr(value)
            color = self.colors.get(str(value)) if column.kind == "label" else None
            yield {"text": text, "attributes": attributes, "color": color}

    def tint(self, value: float, column: Column) -> dict[str, str]:
        """How strongly a number is tinted: a change by sign and size, in a heat map every number by its size."""
        signed = column.kind in SIGNED
        largest = self.largest["signed" if signed else "number"]
        if not largest or not (signed or self.table.shade):
            return {}
        better = (value > 0) == (column.kind == "change")
        color = (" up" if better else " down") if signed else (" down" if value < 0 else "")
        return {"class": f"tint{color}", "style": f"--t:{STRONGEST * abs(value) / largest:.2f}"}


def as_text(value: TableCell, column: Column) -> str:
    """A value as a reader wants it: thousands apart, few digits, a sign where it is a change."""
    if value is None:
        return MISSING
    if isinstance(value, str):
        return value
    sign = "+" if column.kind in SIGNED else ""
    if isinstance(value, int):
        return f"{value:{sign},}"
    if value == int(value) and column.digits < 2:
        return f"{int(value):{sign},}"
    least = 10.0**-column.digits
    if abs(value) < least / 2:
        return f"{0:.{column.digits}f}" if value <= 0 or sign else f"< {least:g}"
    return f"{value:{sign},.{column.digits}f}"
