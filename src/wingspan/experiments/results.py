"""The tables of an experiment: one row per recipe, one column per corpus, mean and deviation over seeds.

Significant differences from the baseline are marked; notes below each table say what was run on what.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from string import ascii_lowercase
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from wingspan.corpora.groups import FEW
from wingspan.evaluation.scores import Counts, Spread, spread
from wingspan.evaluation.significance import CountTable, differences, holm, system_intervals
from wingspan.experiments.plan import PARTS, ExperimentPlan, figure_name, part_name
from wingspan.files import TomlTable, load_toml, number, word

NAMES = {"micro": "micro", "macro": "macro", "document_macro": "document macro", "f1": "F1"}
LEVELS = {"‡": 0.01, "†": 0.05}
"""A mark and the p-value it stays below, the stricter one first."""

Results = Mapping[tuple[str, str, float], Sequence[Mapping[str, Any]]]
"""Lines of finished runs by recipe name, corpus name and fraction, one per finished seed."""


Key = tuple[str, str, float, str]
"""A recipe, a corpus, the fraction it was trained on, and the part that was scored."""
PublishedFigures = tuple[str, str, Mapping[tuple[str, str], tuple[float, str]]]
"""The part, the figure, and by recipe and corpus each value with its source."""


class ResultCell(NamedTuple):
    """One entry: a mean over seeds, a published figure, or nothing."""

    text: str = "–"
    mark: str = ""
    """The mark of a significant difference, or the letter of a published figure's source."""
    best: bool = False
    facts: Mapping[str, Any] = MappingProxyType({"missing": 0, "best": False, "p": None})
    """The cell as plain data."""


class ResultTable(NamedTuple):
    """One table, ready to be written or shown."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[ResultCell, ...]], ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The table as plain data."""
        rows = [{"name": name, "cells": [dict(cell.facts) for cell in cells]} for name, cells in self.rows]
        return {"title": self.title, "columns": list(self.columns), "rows": rows, "notes": list(self.notes)}

    def to_markdown(self) -> str:
        """A pipe table with its title and notes; the best of each column is bold."""

        def entry(cell: ResultCell) -> str:
            text = f"{cell.text} {cell.mark}".rstrip()
            return f"**{text}**" if cell.best else text

        def escaped(text: str) -> str:
            return text.replace("|", "\\|")

        lines = [f"### {self.title}", "", f"| | {' | '.join(map(escaped, self.columns))} |"]
        lines.append("|---|" + "---:|" * len(self.columns))
        lines += [f"| {escaped(name)} | {' | '.join(map(entry, cells))} |" for name, cells in self.rows]
        return "\n".join([*lines, "", *(f"{note}  " for note in self.notes)]).rstrip() + "\n"


def make_table(
    plan: ExperimentPlan,
    results: Results,
    part: str,
    figure: str,
    p_values: Mapping[Key, float],
    remarks: Sequence[str] = (),
    published: PublishedFigures | None = None,
) -> ResultTable:
    """Recipes down, corpora and fractions across; published figures beside the corpus they are of."""
    names, baseline = [system.name for system in plan.systems], plan.baseline or plan.systems[0].name
    tested = {key: p for key, p in p_values.items() if key[-1] == part and figure == "micro.f1"}
    values = published[2] if published is not None and published[:2] == (part, figure) else {}
    sources = list(dict.fromkeys(source for _, source in values.values()))
    letters = {source: ascii_lowercase[at % 26] if len(sources) > 1 else "" for at, source in enumerate(sources)}
    columns: dict[str, list[ResultCell]] = {}
    for corpus in plan.corpora:
        for fraction in plan.fractions:
            title = corpus.name if plan.fractions == (1.0,) else f"{corpus.name}, {100 * fraction:g} %"
            spreads = [over_lines(results.get((name, corpus.name, fraction), ()), part, figure) for name in names]
            ps = [tested.get((name, corpus.name, fraction, part)) for name in names]
            columns[title] = _column(spreads, len(plan.seeds), ps)
        if any(name == corpus.name for _, name in values):
            cells = columns[f"{corpus.name}, published"] = [ResultCell()] * len(names)
            for at, name in enumerate(names):
                if (name, corpus.name) in values:
                    value, source = values[name, corpus.name]
                    facts = {"published": value, "source": letters[source]}
                    cells[at] = ResultCell(f"{value:.2f}", letters[source], False, facts)
    notes = [f"Mean ± standard deviation over {len(plan.seeds)} seeds; the best of a column is bold."]
    if len(plan.seeds) == 1:
        notes = [f"One run each, seed {plan.seeds[0]}; the best of a column is bold."]
    if any(cell.facts.get("missing") for column in columns.values() for cell in column):
        notes[0] += " Runs are missing: (n=...) is the number of finished ones."
    if tested:
        fewest = min(line[part]["document_macro"]["documents"] for lines in results.values() for line in lines)
        levels = ", ".join(f"{mark} p < {level:g}" for mark, level in reversed(LEVELS.items()))
        few = f" With {fewest} documents the test can hardly say anything." if fewest < FEW else ""
        test = "two-sided, over documents and seeds, Holm-corrected for the columns"
        notes.append(f"{levels} against {baseline}: {test}.{few}")
    notes += remarks
    notes += [f"Published{f' {letter}' if letter else ''}: {source}" for source, letter in letters.items()]
    rows = zip(names, zip(*columns.values(), strict=True), strict=True)
    return ResultTable(f"{plan.title}: {part} {in_words(figure)}", tuple(columns), tuple(rows), tuple(notes))


def over_lines(lines: Sequence[Mapping[str, Any]], part: str, figure: str) -> Spread | None:
    """Mean and deviation of a figure over the runs that have it; a label that a run never saw counts as zero."""
    row, _, name = figure.rpartition(".")
    if row.startswith("labels."):
        label = row.removeprefix("labels.")
        values = [line[part]["labels"].get(label, {}).get(name, 0.0) for line in lines]
    else:
        values = [line[part][row][name] for line in lines]
    return spread(values) if values else None


def _column(spreads: Sequence[Spread | None], seeds: int, ps: Sequence[float | None]) -> list[ResultCell]:
    """One column; the best mean, as printed, is emphasized where means differ."""
    means = {f"{spread.mean:.2f}" for spread in spreads if spread is not None}
    top = max(means, key=float) if len(means) > 1 else None
    cells = []
    for over, p in zip(spreads, ps, strict=True):
        missing = seeds - (len(over.values) if over else 0)
        best = over is not None and f"{over.mean:.2f}" == top
        text = "–" if over is None else f"{over} (n={len(over.values)})" if missing else str(over)
        mark = next((mark for mark, level in LEVELS.items() if p is not None and p < level), "")
        figures = over.to_dict() if over is not None else {}
        cells.append(ResultCell(text, mark, best, {**figures, "missing": missing, "best": best, "p": p}))
    return cells


def in_words(figure: str) -> str:
    """`labels.Disease.f1` as `Disease F1`."""
    row, _, name = figure.rpartition(".")
    return f"{NAMES.get(row, row.removeprefix('labels.'))} {NAMES.get(name, name)}"


# Significance: a paired test over documents and seeds.


def p_values(
    plan: ExperimentPlan, results: Results, documents: Callable[[Mapping[str, Any], str], Sequence[Counts]]
) -> dict[Key, float]:
    """For each recipe but the baseline, two-sided, micro F1; corrected for the corpora that it is tried on (Holm).

    `documents` gives the counts of every document of a part, for the line of a run.
    """
    baseline = plan.baseline or plan.systems[0].name
    corrected: dict[Key, float] = {}
    for part, system in product(plan.evaluate, plan.systems):
        raw: dict[Key, float] = {}
        for corpus, fraction in product(plan.corpora, plan.fractions):
            first, second = (results.get((name, corpus.name, fraction)) for name in (baseline, system.name))
            if system.name != baseline and first and second:
                raw[system.name, corpus.name, fraction, part] = p_value(
                    [documents(line, part) for line in first], [documents(line, part) for line in second]
                )
        corrected |= dict(zip(raw, holm(list(raw.values())), strict=True))
    return corrected


def p_value(first: Sequence[Sequence[Counts]], second: Sequence[Sequence[Counts]]) -> float:
    """The p-value of equal micro F1 of two systems, each a list of runs on the same documents."""
    runs = [[(counts.tp, counts.found, counts.gold) for counts in run] for run in (*first, *second)]
    table = np.array(runs, dtype=np.float32).transpose(1, 0, 2)[:, :, None]  # (documents, runs, 1, 3)
    counts = CountTable(tuple(map(str, range(len(table)))), (), table)
    systems = (range(len(first)), range(len(first), len(runs)))
    _, drawn = system_intervals(counts, systems)
    return differences(counts, systems, drawn).micro.p


# Provenance: encoder, device, commit, and the exact corpora, below every table.


def provenance(plan: ExperimentPlan, results: Results) -> list[str]:
    """One sentence about the runs, one about the corpora, one about each corpus with leaks."""
    lines = [line for runs in results.values() for line in runs]
    if not lines:
        return []
    facts = {
        "Encoder": [line["encoder"] for line in lines],
        "Device": [line["device"] for line in lines],
        "Commit": [line["commit"] or "not given" for line in lines],
    }
    remarks = [". ".join(f"{name}: {', '.join(dict.fromkeys(values))}" for name, values in facts.items()) + "."]
    prints = {line["corpus"]["name"]: line["corpus"]["fingerprints"] for line in lines}
    corpora = []
    for name in (corpus.name for corpus in plan.corpora if corpus.name in prints):
        parts = []
        for part in ("train", *PARTS):
            if part in prints[name]:
                digest, documents, entities = prints[name][part].removeprefix("sha256:").split("-")
                parts.append(f"{part} {int(documents):,} documents with {int(entities):,} entities ({digest[:8]})")
        corpora.append(f"{name}: {', '.join(parts)}")
    remarks.append("; ".join(corpora) + ".")
    handling = {"drop": "dropped", "allow": "trained on anyway"}
    for name, leaks in {line["corpus"]["name"]: line.get("leaks", {}) for line in lines}.items():
        if count := leaks.get("leaking_train_documents"):
            remarks.append(f"{name}: {count:,} training documents are in dev or test, {handling[leaks['on_leak']]}.")
    return remarks


# Published figures, from a TOML file with their sources.


def read_published(path: Path, plan: ExperimentPlan) -> PublishedFigures:
    """Reads the file and checks that its recipes and corpora are in the plan."""

    def check_known(kind: str, name: str, names: Sequence[str]) -> None:
        if name not in names:
            raise ValueError(f"{path}: the plan has no {kind} {name!r}; there are {', '.join(map(repr, names))}")

    def as_table(value: Any) -> dict[str, Any] | None:
        return value if isinstance(value, dict) else None

    table = load_toml(path)
    source = table.need("source", word, "the paper and table the figures are from")
    part = table.take("part", part_name, "dev or test", "test")
    figure = table.take("figure", figure_name, "such as micro.f1", "micro.f1")
    scores = table.need("scores", as_table, "a table for each recipe, [scores.NAME]")
    table.close()
    values: dict[tuple[str, str], tuple[float, str]] = {}
    for system, row in scores.items():
        check_known("recipe", system, [system.name for system in plan.systems])
        for corpus, content in (as_table(row) or {}).items():
            check_known("corpus", corpus, [corpus.name for corpus in plan.corpora])
            entry = TomlTable(as_table(content) or {"value": content}, f"{path}: {system}, {corpus}")
            value = entry.need("value", number, "a number")
            values[system, corpus] = value, entry.take("source", word, "a text", source)
            entry.close()
    return part, figure, values


# Learning curves: a figure over the share of training documents, one line per recipe.


def write_curves(plan: ExperimentPlan, results: Results) -> list[Path]:
    """Writes curve-CORPUS-PART-FIGURE as SVG and PNG if the plan has several fractions and matplotlib is installed."""
    if len(plan.fractions) < 2 or find_spec("matplotlib") is None:
        return []
    from wingspan.report.plots import lines, save_figure

    written = []
    for corpus, part, figure, series in curves(plan, results):
        drawing = lines(series, "training documents, %", f"{corpus}, {part} {in_words(figure)}")
        name = re.sub(r"[^\w.]+", "-", f"curve-{corpus}-{part}-{figure}")
        for suffix in ("svg", "png"):
            path = plan.output / f"{name}.{suffix}"
            save_figure(drawing, path)
            written.append(path)
    return written


def curves(plan: ExperimentPlan, results: Results) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """For each corpus, part and figure: shares in percent and means over the finished seeds, by recipe."""
    for corpus, part, figure in product(plan.corpora, plan.evaluate, plan.figures):
        series: dict[str, tuple[list[float], list[float]]] = {}
        for system in plan.systems:
            shares, means = series.setdefault(system.name, ([], []))
            for fraction in sorted(plan.fractions):
                spread = over_lines(results.get((system.name, corpus.name, fraction), ()), part, figure)
                if spread is not None:
                    shares.append(100 * fraction)
                    means.append(spread.mean)
        yield corpus.name, part, figure, series
