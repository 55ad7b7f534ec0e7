"""Tables as HTML: numbers as people read them, raw values beside them for sorting and CSV, tints for heat maps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from wingspan.analysis.report.blocks import Cell, Column, Row, Table
from wingspan.views.markup import escaped

MISSING = "–"
SIGNED = ("change", "cost")
LONG_LABEL = 24  # characters; longer ones may be broken on a phone, shorter ones stay on a line with their dot
STRONGEST = 0.45  # of a tint: text on it keeps a contrast of 4.5, in the dark too


def shown(value: Cell, column: Column) -> str:
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


def table_parts(table: Table, colors: Mapping[str, str], folder: bool) -> Iterator[str]:
    """The table, then what is to be said of it. Rows beyond the first are counted, not kept."""
    name = escaped(table.caption)
    yield f'<div class="scroll" tabindex="0" role="region" aria-label="{name}"><table><thead><tr>'
    for column in table.columns:
        about = f' title="{escaped(column.about)}"' if column.about else ""
        kind = "text" if column.kind in ("text", "label") else "number"
        yield f'<th scope="col" class="{kind}"{about}>{escaped(column.name)}</th>'
    yield "</tr></thead>\n<tbody>\n"
    rows = iter(table.rows)
    first = list(islice(rows, table.shown))
    tints = Tints(table, first)
    for row in first:
        yield _row(row, table.columns, colors, tints)
    yield "</tbody>"
    if table.totals:
        yield "<tfoot>" + "".join(_row(row, table.columns, colors, tints) for row in table.totals) + "</tfoot>"
    yield "</table></div>\n"
    left = sum(1 for _ in rows)
    notes = [table.note] if table.note else []
    if not first:
        notes.append("Nothing to list.")
    if left:
        where = f"; all are in tables/{table.name}.csv" if folder else ""
        notes.append(f"The first {len(first):,} of {len(first) + left:,} rows{where}.")
    for note in notes:
        yield f'<p class="soft">{escaped(note)}</p>\n'


class Tints:
    """How strongly a cell is tinted: changes by sign and size, a heat map's numbers by size."""

    def __init__(self, table: Table, rows: Sequence[Row]) -> None:
        self.shade = table.shade
        kinds = [column.kind for column in table.columns]
        cells = [
            (kind, abs(cell))
            for row in rows
            for kind, cell in zip(kinds, row, strict=True)
            if isinstance(cell, int | float)
        ]
        self.change = max((size for kind, size in cells if kind in SIGNED), default=0.0)
        self.number = max((size for kind, size in cells if kind == "number"), default=0.0)

    def of(self, value: Cell, column: Column) -> str:
        """Class and strength for the style sheet."""
        if not isinstance(value, int | float):
            return ""
        if column.kind in SIGNED and self.change:
            kind = "up" if (value > 0) == (column.kind == "change") else "down"
            return f' class="tint {kind}" style="--t:{STRONGEST * abs(value) / self.change:.2f}"'
        if self.shade and column.kind == "number" and self.number:
            kind = "tint down" if value < 0 else "tint"
            return f' class="{kind}" style="--t:{STRONGEST * abs(value) / self.number:.2f}"'
        return ""


def _row(row: Row, columns: Sequence[Column], colors: Mapping[str, str], tints: Tints) -> str:
    cells = []
    for number, (value, column) in enumerate(zip(row, columns, strict=True)):
        tag = 'th scope="row"' if number == 0 else "td"
        said = shown(value, column)
        text = escaped(said)
        if column.kind == "label" and value in colors:
            text = f'<span class="dot" style="background:{colors[str(value)]}"></span>{text}'
        raw = f' data-v="{value!r}"' if isinstance(value, int | float) else ""
        long = " long" if column.kind == "label" and len(said) > LONG_LABEL else ""
        kind = f' class="{column.kind}{long}"' if column.kind in ("text", "label") else tints.of(value, column)
        cells.append(f"<{tag}{kind}{raw}>{text}</{tag.split()[0]}>")
    return f"<tr>{''.join(cells)}</tr>\n"
