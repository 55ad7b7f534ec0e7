"""The report as one HTML file: a table of contents, the sections, nothing from the network."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from wingspan.analysis.report.blocks import Report, Section, Table
from wingspan.analysis.report.rendering import rendered
from wingspan.views.markup import escaped, legend
from wingspan.views.page import asset, page, write_page

HERE = "wingspan.analysis.report"
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
