"""The report as one HTML file: a table of contents, the sections, nothing from the network."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from wingspan.report.blocks import (
    Block,
    Cell,
    Column,
    Example,
    Examples,
    Facts,
    Figure,
    Points,
    Prose,
    Report,
    Row,
    Section,
    Table,
)
from wingspan.views.html import asset, escaped, label_colors, legend, marked, page, write_page

HERE = "wingspan.report"
SCRIPTS = ("tables.js", "points.js", "examples.js", "contents.js")


def write_report(report: Report, path: Path) -> None:
    """Writes the page section by section; what is streamed into it is never whole in memory."""
    sheet = asset(HERE, "report.css")
    write_page(path, page(report.title, body(report), [sheet], [asset(HERE, script) for script in SCRIPTS]))


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
                for rows in (table.rows, table.totals):
                    writer.writerows(["" if cell is None else cell for cell in row] for row in rows)
            written.append(path)
    return written


def body(report: Report) -> Iterator[str]:
    """Everything between the page's head and its scripts."""
    made = " · ".join(f"{name} {value}" for name, value in report.made.items())
    yield '<a class="skip" href="#content">To the content</a>\n<div class="layout">\n'
    yield from contents(report)
    yield f'<main id="content">\n<header class="top"><h1>{escaped(report.title)}</h1>\n'
    yield f'<p class="lead">{escaped(report.lead)}</p>\n' if report.lead else ""
    yield f"{legend(report.labels) if report.labels else ''}\n</header>\n"
    for section in report.sections:
        yield from chapter(section, report)
    yield f'<footer class="soft"><p>{escaped(made)}</p></footer>\n</main>\n</div>\n'


def contents(report: Report) -> Iterator[str]:
    """The table of contents: beside the text on a wide screen, folded above it on a narrow one."""
    yield '<nav class="contents" aria-label="Contents"><details open><summary>Contents</summary>\n<ol>\n'
    for section in report.sections:
        yield f'<li><a href="#{escaped(section.name)}">{escaped(section.title)}</a></li>\n'
    yield "</ol></details></nav>\n"


def chapter(section: Section, report: Report) -> Iterator[str]:
    """One section with its blocks."""
    yield f'<section class="chapter" id="{escaped(section.name)}">\n<h2>{escaped(section.title)}</h2>\n'
    yield f'<p class="lead">{escaped(section.lead)}</p>\n' if section.lead else ""
    for block in section.blocks:
        yield from rendered(block, report.labels, report.folder)
    yield "</section>\n"


# --- Blocks as HTML, piece by piece: nothing but what a browser shows, every text escaped.


def rendered(block: Block, labels: Sequence[str], folder: bool = True) -> Iterator[str]:
    """The HTML of a block. `labels` are those of the whole report, for their colors; `folder`: files lie beside it."""
    match block:
        case Table():
            yield from _table(block, label_colors(labels), folder)
        case Figure():
            yield from _framed("figure", block.name, [f'<div class="drawing">{block.svg}</div>'], block.caption)
        case Points():
            yield from _framed("figure", block.name, _points(block, label_colors(labels)), block.caption)
        case Examples():
            yield from _examples(block, labels)
        case Prose():
            kind = ' class="statement"' if block.statement else ""
            for number, paragraph in enumerate(block.paragraphs):
                name = f' id="{escaped(block.name)}"' if block.name and not number else ""
                yield f"<p{name}{kind}>{escaped(_unbroken(paragraph))}</p>\n"
        case Facts():
            yield from _framed("section", block.name, ["<dl>", *_facts(block.values), "</dl>"], block.caption, "facts")


def _unbroken(text: str) -> str:
    """Text in which no line ends between a number and its percent sign."""
    return re.sub(r"(?<=\d) %", "\u00a0%", text)


def embedded(data: Any) -> str:
    """Data for a script on the page; nothing in it can end the element that holds it."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _framed(tag: str, name: str, inside: Iterable[str], caption: str, kind: str = "", tools: str = "") -> Iterator[str]:
    """A block with its heading, which is what the table of contents and other pages can point to."""
    yield f'<{tag} class="block {kind}" id="{escaped(name)}">\n<header><h3>{escaped(caption)}</h3>{tools}</header>\n'
    yield from inside
    yield f"</{tag}>\n"


def _table(table: Table, colors: Mapping[str, str], folder: bool) -> Iterator[str]:
    tools = f'<button type="button" class="csv" data-name="{escaped(table.name)}" hidden>CSV</button>'
    yield from _framed("section", table.name, table_parts(table, colors, folder), table.caption, "tabular", tools)


def _facts(values: Mapping[str, Any]) -> Iterator[str]:
    for name, value in values.items():
        yield f"<dt>{escaped(str(name).replace('_', ' '))}</dt><dd>"
        if isinstance(value, Mapping):
            yield f"<details><summary>{escaped(', '.join(map(str, islice(value, 4))))}</summary><dl>"
            yield from _facts(value)
            yield "</dl></details>"
        elif isinstance(value, str) and "\n" in value:
            yield f"<details><summary>show</summary><pre>{escaped(value)}</pre></details>"
        else:
            yield escaped(_said(value))
        yield "</dd>"


def _said(value: Any) -> str:
    """A value in words."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, list | tuple):
        return ", ".join(map(_said, value)) or "none"
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}" if isinstance(value, float) else str(value)


def _points(points: Points, colors: Mapping[str, str]) -> Iterator[str]:
    names = sorted(set(points.groups))
    number = {name: place for place, name in enumerate(names)}
    palette = label_colors(names)
    data = {
        "x": [round(float(value), 4) for value in points.x],
        "y": [round(float(value), 4) for value in points.y],
        "group": [number[name] for name in points.groups],
        "words": list(points.words),
        "right": None if points.right is None else [int(value) for value in points.right],
        "names": names,
        "colors": [colors.get(name, palette[name]) for name in names],
        "axes": list(points.axes),
    }
    yield (
        f'<div class="cloud"><canvas tabindex="0" role="img" aria-label="{escaped(points.caption)}"></canvas>'
        '<div class="tip" role="status" hidden></div></div>\n'
        f'<script type="application/json">{embedded(data)}</script>\n'
    )


def _examples(block: Examples, labels: Sequence[str]) -> Iterator[str]:
    yield from _framed("section", block.name, _items(block, labels), block.caption, "examples")


def _items(block: Examples, labels: Sequence[str]) -> Iterator[str]:
    yield f'<p class="soft">{escaped(block.note)}</p>\n' if block.note else ""
    for item in block.items:
        yield _example(item, labels)
    if block.left_out:
        yield f'<p class="soft">{block.left_out:,} more are not shown.</p>\n'


def _example(item: Example, labels: Sequence[str]) -> str:
    note = f'<p class="soft">{escaped(item.note)}</p>' if item.note else ""
    texts = "".join(
        (f'<p class="soft">{escaped(name)}</p>' if name else "") + marked(document, item.gold, labels)
        for name, document in item.versions
    )
    return (
        f'<article class="doc" data-kinds="{escaped(json.dumps(item.kinds))}" '
        f'data-labels="{escaped(json.dumps(item.labels))}"><h4>{escaped(item.title)}</h4>\n{texts}{note}</article>\n'
    )


# --- Tables as HTML: numbers as people read them, raw values beside them for sorting and CSV, tints for heat maps.


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
