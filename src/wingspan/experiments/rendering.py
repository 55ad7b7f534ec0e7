"""Tables in Markdown, LaTeX and HTML."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

from wingspan.experiments.tables import Cell, ResultTable

LATEX = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
    "–": "--",
    "<": "$<$",
    ">": "$>$",
}
STYLE = """
:root { color-scheme: light dark; --line: light-dark(#d0d7de, #3d444d); --soft: light-dark(#59636e, #9198a1); }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem;
       color: light-dark(#1f2328, #f0f6fc); background: light-dark(#ffffff, #0d1117); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: .5rem 0; }
th, td { padding: .35rem .8rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
.note { color: var(--soft); margin: .3rem 0; font-size: .9rem; }
@media print { body { margin: 0; } }
"""


def markdown(tables: Sequence[ResultTable]) -> str:
    """Pipe tables, each with its title and notes."""
    return "\n".join(map(_markdown, tables))


def latex(tables: Sequence[ResultTable]) -> str:
    """Tables for LaTeX with the package booktabs."""
    return "\n".join(["% needs \\usepackage{booktabs}", *map(_latex, tables)])


def html(tables: Sequence[ResultTable]) -> str:
    """One page that needs nothing from the network."""
    title = escape(tables[0].title.rpartition(":")[0]) if tables else ""
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n" + "\n".join(map(_html, tables)) + "\n</body>\n</html>\n"
    )


RENDERINGS: dict[str, Callable[[Sequence[ResultTable]], str]] = {"md": markdown, "tex": latex, "html": html}
"""What an experiment writes beside its results: table.md, table.tex, table.html."""


def _markdown(table: ResultTable) -> str:
    def cell(entry: Cell) -> str:
        text = entry.text + (f" {entry.mark}" if entry.mark else "")
        return f"**{text}**" if entry.best else text

    lines = [f"### {table.title}", "", f"| | {' | '.join(map(_piped, table.columns))} |"]
    lines.append("|---|" + "---:|" * len(table.columns))
    lines += [f"| {_piped(name)} | {' | '.join(map(cell, cells))} |" for name, cells in table.rows]
    return "\n".join([*lines, "", *(f"{note}  " for note in table.notes)]).rstrip() + "\n"


def _piped(text: str) -> str:
    return text.replace("|", "\\|")


def _latex(table: ResultTable) -> str:
    def cell(entry: Cell) -> str:
        text = _escaped(entry.text)
        text = f"\\textbf{{{text}}}" if entry.best else text
        return text + (f"$^{{{_inside(entry.mark)}}}$" if entry.mark else "")

    lines = [
        "\\begin{table}",
        "\\centering",
        f"\\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
        "\\toprule",
        " & ".join(["", *map(_escaped, table.columns)]) + r" \\",
        "\\midrule",
        *(" & ".join([_escaped(name), *map(cell, cells)]) + r" \\" for name, cells in table.rows),
        "\\bottomrule",
        "\\end{tabular}",
        f"\\caption{{{_escaped('. '.join([table.title, *table.notes]))}}}",
        "\\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return "".join(LATEX.get(sign, sign) for sign in text)


def _inside(mark: str) -> str:
    """A mark in math mode."""
    return _escaped(mark).replace("$", "")


def _html(table: ResultTable) -> str:
    def cell(entry: Cell) -> str:
        text = escape(entry.text)
        mark = f"<sup>{escape(entry.mark)}</sup>" if entry.mark else ""
        return f"<td>{f'<strong>{text}</strong>' if entry.best else text}{mark}</td>"

    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in ("", *table.columns))
    rows = "\n".join(
        f'<tr><th scope="row">{escape(name)}</th>{"".join(map(cell, cells))}</tr>' for name, cells in table.rows
    )
    notes = "\n".join(f'<p class="note">{escape(note)}</p>' for note in table.notes)
    return (
        f'<div class="wide"><table>\n<caption>{escape(table.title)}</caption>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody>\n</table></div>\n{notes}"
    )
