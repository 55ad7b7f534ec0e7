"""The tables of an experiment: one row per recipe, one column per corpus, mean and deviation over seeds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wingspan.evaluation.comparison import FEW
from wingspan.evaluation.scores import Counts, Spread, spread
from wingspan.evaluation.significance import CountTable, differences, holm, system_intervals
from wingspan.experiments.plan import FIGURE, PARTS, Plan
from wingspan.files import TomlTable, load_toml, number, word

NAMES = {"micro": "micro", "macro": "macro", "document_macro": "document macro", "f1": "F1"}


LEVELS = {"‡": 0.01, "†": 0.05}
"""A mark and the p-value it stays below, the stricter one first."""


class Place(NamedTuple):
    """Where a cell stands: what was trained on what, and what part was scored."""

    system: str
    corpus: str
    fraction: float
    part: str


@dataclass(frozen=True)
class Cell:
    """One entry: a mean over seeds, or a published figure with the letter of its source, or nothing."""

    spread: Spread | None = None
    missing: int = 0
    """How many seeds are not there yet."""
    best: bool = False
    p: float | None = None
    """Of the difference from the baseline."""
    published: float | None = None
    source: str = ""

    @property
    def mark(self) -> str:
        """A raised sign: how sure a difference is, or the source of a published figure."""
        sure = [mark for mark, level in LEVELS.items() if self.p is not None and self.p < level]
        return sure[0] if sure else self.source

    @property
    def text(self) -> str:
        """The entry without emphasis."""
        if self.published is not None:
            return f"{self.published:.2f}"
        if self.spread is None:
            return "–"
        seeds = f" (n={len(self.spread.values)})" if self.missing else ""
        return f"{self.spread}{seeds}"

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        if self.published is not None:
            return {"published": self.published, "source": self.source}
        figures = self.spread.to_dict() if self.spread is not None else {}
        return {**figures, "missing": self.missing, "best": self.best, "p": self.p}


@dataclass(frozen=True)
class ResultTable:
    """A table before it is written in some language."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        rows = [{"name": name, "cells": [cell.to_dict() for cell in cells]} for name, cells in self.rows]
        return {"title": self.title, "columns": list(self.columns), "rows": rows, "notes": list(self.notes)}


Results = Mapping[tuple[str, str, float], Sequence[Mapping[str, Any]]]
"""Lines of finished runs by recipe name, corpus name and fraction, one for each seed that is done."""


def make_tables(
    plan: Plan,
    results: Results,
    p_values: Mapping[Place, float],
    remarks: Sequence[str] = (),
    published: Published | None = None,
) -> list[ResultTable]:
    """One table for each part and figure that the plan asks for, with the remarks below each."""
    return [
        make_table(plan, results, part, figure, p_values, remarks, published)
        for part in plan.evaluate
        for figure in plan.figures
    ]


def make_table(
    plan: Plan,
    results: Results,
    part: str,
    figure: str,
    p_values: Mapping[Place, float],
    remarks: Sequence[str],
    published: Published | None,
) -> ResultTable:
    """Recipes down, corpora and fractions across; published figures beside the corpus they are of."""
    theirs = published if published is not None and (published.part, published.figure) == (part, figure) else None
    tested = {place: p for place, p in p_values.items() if place.part == part and figure == "micro.f1"}
    columns: list[str] = []
    filled: list[tuple[Cell, ...]] = []
    for corpus in plan.corpora:
        for fraction in plan.fractions:
            columns.append(corpus.name if plan.fractions == (1.0,) else f"{corpus.name}, {100 * fraction:g} %")
            spreads = [
                over_lines(results.get((system.name, corpus.name, fraction), ()), part, figure)
                for system in plan.systems
            ]
            places = [Place(system.name, corpus.name, fraction, part) for system in plan.systems]
            filled.append(emphasized(spreads, len(plan.seeds), [tested.get(place) for place in places]))
        if theirs is not None and any(name == corpus.name for _, name in theirs.values):
            columns.append(f"{corpus.name}, published")
            found = [theirs.values.get((system.name, corpus.name)) for system in plan.systems]
            filled.append(tuple(_published(value, theirs) for value in found))
    notes = [seeds_note(plan, filled), *([marks_note(plan, results, part)] if tested else []), *remarks]
    if theirs is not None:
        notes += [f"Published{letter(source, theirs)}: {source}" for source in theirs.sources]
    rows = zip([system.name for system in plan.systems], zip(*filled, strict=True), strict=True)
    return ResultTable(f"{plan.title}: {part} {said(figure)}", tuple(columns), tuple(rows), tuple(notes))


def over_lines(lines: Sequence[Mapping[str, Any]], part: str, figure: str) -> Spread | None:
    """Mean and deviation of a figure over the runs that have it; a label that a run never saw counts as zero."""
    row, _, name = figure.rpartition(".")
    values = []
    for line in lines:
        scores = line[part]
        if row.startswith("labels."):
            values.append(scores["labels"].get(row.removeprefix("labels."), {}).get(name, 0.0))
        else:
            values.append(scores[row][name])
    return spread(values) if values else None


def emphasized(spreads: Sequence[Spread | None], seeds: int, p_values: Sequence[float | None]) -> tuple[Cell, ...]:
    """One column: the best mean is emphasized, as it is printed, where there is more than one to choose from."""
    means = {f"{one.mean:.2f}" for one in spreads if one is not None}
    top = max(means, key=float) if len(means) > 1 else None
    return tuple(
        Cell(
            one,
            seeds - len(one.values) if one is not None else seeds,
            one is not None and f"{one.mean:.2f}" == top,
            p,
        )
        for one, p in zip(spreads, p_values, strict=True)
    )


def seeds_note(plan: Plan, filled: Sequence[Sequence[Cell]]) -> str:
    """What the numbers are, and whether any are still to come."""
    number = len(plan.seeds)
    what = f"Mean ± standard deviation over {number} seeds" if number > 1 else f"One run each, seed {plan.seeds[0]}"
    short = any(cell.missing for column in filled for cell in column if cell.published is None)
    return f"{what}; the best of a column is bold." + (
        " Runs are missing: (n=...) says how many are in." if short else ""
    )


def marks_note(plan: Plan, results: Results, part: str) -> str:
    """What the marks mean, and how much they can mean on so few documents."""
    fewest = min(line[part]["document_macro"]["documents"] for lines in results.values() for line in lines)
    levels = ", ".join(f"{mark} p < {level:g}" for mark, level in reversed(LEVELS.items()))
    few = f" With {fewest} documents the test can hardly say anything." if fewest < FEW else ""
    return (
        f"{levels} against {plan.baseline or plan.systems[0].name}: two-sided, over documents and seeds, "
        f"Holm-corrected for the columns.{few}"
    )


def said(figure: str) -> str:
    """`labels.Disease.f1` in words."""
    row, _, name = figure.rpartition(".")
    return f"{NAMES.get(row, row.removeprefix('labels.'))} {NAMES.get(name, name)}"


def letter(source: str, published: Published) -> str:
    """A letter for each source, where there is more than one."""
    return (
        f" {'abcdefghijklmnopqrstuvwxyz'[published.sources.index(source) % 26]}" if len(published.sources) > 1 else ""
    )


def _published(value: Value | None, published: Published) -> Cell:
    if value is None:
        return Cell()
    return Cell(published=value.value, source=letter(value.source, published).strip())


# --- Tables in Markdown, LaTeX and HTML.


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


# --- Which recipes differ from the baseline by more than chance: a paired test over documents and seeds.


Documents = Callable[[Mapping[str, Any], str], Sequence[Counts]]
"""The counts of every document of a part, for the line of a run."""


def p_values(plan: Plan, results: Results, documents: Documents) -> dict[Place, float]:
    """For each recipe but the baseline, two-sided, micro F1; corrected for the corpora that it is tried on (Holm)."""
    baseline = plan.baseline or plan.systems[0].name
    found: dict[Place, float] = {}
    for part in plan.evaluate:
        for system in plan.systems:
            asked: dict[Place, float] = {}
            for corpus in plan.corpora:
                for fraction in plan.fractions:
                    first = results.get((baseline, corpus.name, fraction), ())
                    second = results.get((system.name, corpus.name, fraction), ())
                    if system.name != baseline and first and second:
                        place = Place(system.name, corpus.name, fraction, part)
                        asked[place] = p_value(
                            [documents(line, part) for line in first], [documents(line, part) for line in second]
                        )
            found |= dict(zip(asked, holm(list(asked.values())), strict=True))
    return found


def p_value(first: Sequence[Sequence[Counts]], second: Sequence[Sequence[Counts]]) -> float:
    """Whether two systems, each a list of runs on the same documents, have the same micro F1."""
    runs = [[(one.tp, one.found, one.gold) for one in run] for run in (*first, *second)]
    counts = np.array(runs, dtype=np.float32).transpose(1, 0, 2)[:, :, None]  # (documents, runs, 1, 3)
    table = CountTable(tuple(map(str, range(len(counts)))), (), counts)
    systems = (range(len(first)), range(len(first), len(runs)))
    _, drawn = system_intervals(table, systems)
    return differences(table, systems, drawn).micro.p


# --- What stands below every table: encoder, device, commit, and which corpora exactly.


def provenance(plan: Plan, results: Results) -> list[str]:
    """One sentence about the runs, one about the corpora."""
    lines = [line for runs in results.values() for line in runs]
    if not lines:
        return []
    about = {
        "Encoder": [line["encoder"] for line in lines],
        "Device": [line["device"] for line in lines],
        "Commit": [line["commit"] or "not given" for line in lines],
    }
    runs = ". ".join(f"{name}: {', '.join(dict.fromkeys(values))}" for name, values in about.items())
    corpora = {line["corpus"]["name"]: line["corpus"]["fingerprints"] for line in lines}
    named = [f"{corpus.name}: {contents(corpora[corpus.name])}" for corpus in plan.corpora if corpus.name in corpora]
    return [f"{runs}.", "; ".join(named) + ".", *about_leaks(lines)]


def about_leaks(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    """What became of training documents that are in dev or test, for each corpus that has some."""
    told = {
        line["corpus"]["name"]: line["leaks"] for line in lines if line.get("leaks", {}).get("leaking_train_documents")
    }
    kept = {"drop": "dropped", "allow": "trained on all the same"}
    return [
        f"{name}: {leaks['leaking_train_documents']:,} training documents are in dev or test, {kept[leaks['on_leak']]}."
        for name, leaks in told.items()
    ]


def contents(fingerprints: Mapping[str, Any]) -> str:
    """Documents and entities of each part, with the beginning of its fingerprint."""
    parts = [part for part in ("train", *PARTS) if part in fingerprints]
    found: Sequence[str] = [f"{part} {_content(fingerprints[part])}" for part in parts]
    return ", ".join(found)


def _content(fingerprint: str) -> str:
    digest, documents, entities = fingerprint.removeprefix("sha256:").split("-")
    return f"{int(documents):,} documents with {int(entities):,} entities ({digest[:8]})"


# --- Published figures beside ours: a TOML file with its sources.


class Value(NamedTuple):
    """A published figure and where it stands."""

    value: float
    source: str


@dataclass(frozen=True)
class Published:
    """What a paper reports of one figure, by recipe and corpus."""

    part: str
    figure: str
    values: dict[tuple[str, str], Value]
    """By the names of recipe and corpus in the plan."""

    @property
    def sources(self) -> list[str]:
        """Every source once, in order."""
        return list(dict.fromkeys(value.source for value in self.values.values()))


def read_published(path: Path, plan: Plan) -> Published:
    """Reads the file and checks that it speaks of recipes and corpora of the plan."""
    table = load_toml(path)
    source = table.need("source", word, "the paper and table the figures are from")
    part = table.take("part", lambda value: value if value in PARTS else None, "dev or test", "test")
    figure = table.take(
        "figure",
        lambda value: value if isinstance(value, str) and FIGURE.fullmatch(value) else None,
        "such as micro.f1",
        "micro.f1",
    )
    scores = table.need("scores", _table, "a table for each recipe, [scores.NAME]")
    table.close()
    values: dict[tuple[str, str], Value] = {}
    for system, row in scores.items():
        known(system, [one.name for one in plan.systems], path, "recipe")
        for corpus, given in (_table(row) or {}).items():
            known(corpus, [one.name for one in plan.corpora], path, "corpus")
            values[system, corpus] = _value(given, source, f"{path}: {system}, {corpus}")
    return Published(part, figure, values)


def known(name: str, names: Sequence[str], path: Path, kind: str) -> None:
    """A name that the plan does not have would be passed over in silence."""
    if name not in names:
        raise ValueError(f"{path}: the plan has no {kind} {name!r}; there are {', '.join(map(repr, names))}")


def _value(given: Any, source: str, place: str) -> Value:
    """A number, or a table with a number and a source of its own."""
    table = TomlTable(given if isinstance(given, dict) else {"value": given}, place)
    value = Value(table.need("value", number, "a number"), table.take("source", word, "a text", source))
    table.close()
    return value


def _table(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None


# --- Learning curves of an experiment: a figure over the share of training documents, one line for each recipe.


Series = dict[str, tuple[list[float], list[float]]]


def write_curves(plan: Plan, results: Results) -> list[Path]:
    """Writes curve-CORPUS-PART-FIGURE as SVG and PNG where a plan has several fractions and matplotlib is there."""
    if len(plan.fractions) < 2 or find_spec("matplotlib") is None:
        return []
    from wingspan.report.plots import lines, save_figure

    written = []
    for corpus, part, figure, series in curves(plan, results):
        drawing = lines(series, "training documents, %", f"{corpus}, {part} {said(figure)}")
        name = re.sub(r"[^\w.]+", "-", f"curve-{corpus}-{part}-{figure}")
        for suffix in ("svg", "png"):
            path = plan.output / f"{name}.{suffix}"
            save_figure(drawing, path)
            written.append(path)
    return written


def curves(plan: Plan, results: Results) -> Iterator[tuple[str, str, str, Series]]:
    """For each corpus, part and figure: shares in percent and means over the seeds that are in, recipe by recipe."""
    shares = sorted(plan.fractions)
    for corpus in plan.corpora:
        for part in plan.evaluate:
            for figure in plan.figures:
                series: Series = {}
                for system in plan.systems:
                    found = [over_lines(results.get((system.name, corpus.name, x), ()), part, figure) for x in shares]
                    points = [(100 * x, one.mean) for x, one in zip(shares, found, strict=True) if one is not None]
                    series[system.name] = ([x for x, _ in points], [y for _, y in points])
                yield corpus.name, part, figure, series
