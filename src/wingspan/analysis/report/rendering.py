"""Blocks as HTML, piece by piece: nothing but what a browser shows, every text escaped."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from wingspan.analysis.report.blocks import Block, Example, Examples, Facts, Figure, Points, Prose, Table
from wingspan.analysis.report.tabular import table_parts
from wingspan.views.colors import label_colors
from wingspan.views.markup import escaped, marked


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
