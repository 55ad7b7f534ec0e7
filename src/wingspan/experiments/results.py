"""The tables of an experiment: one row per recipe, one column per corpus, mean and deviation over seeds.

Recipes that differ from the baseline by more than chance are marked, published figures get a column of their own, and
the notes below each table say what was run on what.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from string import ascii_lowercase
from typing import Any, NamedTuple

import numpy as np

from wingspan.evaluation.comparison import FEW
from wingspan.evaluation.scores import Counts, Spread, spread
from wingspan.evaluation.significance import CountTable, differences, holm, system_intervals
from wingspan.experiments.plan import PARTS, ExperimentPlan, figure_name, part_name
from wingspan.files import TomlTable, load_toml, number, word

NAMES = {"micro": "micro", "macro": "macro", "document_macro": "document macro", "f1": "F1"}
LEVELS = {"‡": 0.01, "†": 0.05}
"""A mark and the p-value it stays below, the stricter one first."""

Results = Mapping[tuple[str, str, float], Sequence[Mapping[str, Any]]]
"""Lines of finished runs by recipe name, corpus name and fraction, one per finished seed."""


class CellKey(NamedTuple):
    """What a cell is about: a recipe trained on a fraction of a corpus and scored on a part of it."""

    system: str
    corpus: str
    fraction: float
    part: str


@dataclass(frozen=True)
class ResultCell:
    """One entry: a mean over seeds, or a published figure with the letter of its source, or nothing."""

    spread: Spread | None = None
    missing: int = 0
    """Planned seeds that are not finished."""
    best: bool = False
    p: float | None = None
    """The p-value of the difference from the baseline."""
    published: float | None = None
    source: str = ""

    @property
    def mark(self) -> str:
        """The mark of a significant difference, or the letter of a published figure's source."""
        reached = (mark for mark, level in LEVELS.items() if self.p is not None and self.p < level)
        return next(reached, self.source)

    @property
    def text(self) -> str:
        """The entry without emphasis or mark."""
        if self.published is not None:
            return f"{self.published:.2f}"
        if self.spread is None:
            return "–"
        return f"{self.spread} (n={len(self.spread.values)})" if self.missing else str(self.spread)

    def to_dict(self) -> dict[str, Any]:
        """The cell as plain data."""
        if self.published is not None:
            return {"published": self.published, "source": self.source}
        figures = self.spread.to_dict() if self.spread is not None else {}
        return {**figures, "missing": self.missing, "best": self.best, "p": self.p}


@dataclass(frozen=True)
class ResultTable:
    """One table, ready to be written or shown."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[ResultCell, ...]], ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The table as plain data."""
        rows = [{"name": name, "cells": [cell.to_dict() for cell in cells]} for name, cells in self.rows]
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


def make_tables(
    plan: ExperimentPlan,
    results: Results,
    p_values: Mapping[CellKey, float],
    remarks: Sequence[str] = (),
    published: Published | None = None,
) -> list[ResultTable]:
    """One table for each part and figure of the plan, with the remarks below each."""
    return [
        _make_table(plan, results, part, figure, p_values, remarks, published)
        for part, figure in product(plan.evaluate, plan.figures)
    ]


def _make_table(
    plan: ExperimentPlan,
    results: Results,
    part: str,
    figure: str,
    p_values: Mapping[CellKey, float],
    remarks: Sequence[str],
    published: Published | None,
) -> ResultTable:
    """Recipes down, corpora and fractions across; published figures beside the corpus they are of."""
    if published is not None and (published.part, published.figure) != (part, figure):
        published = None
    tested = {key: p for key, p in p_values.items() if key.part == part and figure == "micro.f1"}
    columns: dict[str, tuple[ResultCell, ...]] = {}
    for corpus in plan.corpora:
        for fraction in plan.fractions:
            name = corpus.name if plan.fractions == (1.0,) else f"{corpus.name}, {100 * fraction:g} %"
            keys = [CellKey(system.name, corpus.name, fraction, part) for system in plan.systems]
            spreads = [over_lines(results.get(key[:3], ()), part, figure) for key in keys]
            columns[name] = _column(spreads, len(plan.seeds), [tested.get(key) for key in keys])
        if published is not None and any(name == corpus.name for _, name in published.values):
            columns[f"{corpus.name}, published"] = tuple(
                published.cell(system.name, corpus.name) for system in plan.systems
            )
    notes = [_seeds_note(plan, columns.values()), *([_marks_note(plan, results, part)] if tested else []), *remarks]
    if published is not None:
        notes += [
            f"Published{f' {letter}' if letter else ''}: {source}" for source, letter in published.letters.items()
        ]
    rows = zip([system.name for system in plan.systems], zip(*columns.values(), strict=True), strict=True)
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


def _column(spreads: Sequence[Spread | None], seeds: int, ps: Sequence[float | None]) -> tuple[ResultCell, ...]:
    """One column; the best mean, as printed, is emphasized where means differ."""
    means = [f"{spread.mean:.2f}" if spread is not None else None for spread in spreads]
    distinct = {mean for mean in means if mean is not None}
    top = max(distinct, key=float) if len(distinct) > 1 else None
    return tuple(
        ResultCell(spread, seeds - (len(spread.values) if spread else 0), mean is not None and mean == top, p)
        for spread, mean, p in zip(spreads, means, ps, strict=True)
    )


def _seeds_note(plan: ExperimentPlan, columns: Iterable[Sequence[ResultCell]]) -> str:
    """What the numbers are, and whether any are still to come."""
    seeds = len(plan.seeds)
    what = f"Mean ± standard deviation over {seeds} seeds" if seeds > 1 else f"One run each, seed {plan.seeds[0]}"
    missing = any(cell.missing for column in columns for cell in column)
    return f"{what}; the best of a column is bold." + (
        " Runs are missing: (n=...) is the number of finished ones." if missing else ""
    )


def _marks_note(plan: ExperimentPlan, results: Results, part: str) -> str:
    """What the marks mean, with a warning where there are few documents."""
    fewest = min(line[part]["document_macro"]["documents"] for lines in results.values() for line in lines)
    levels = ", ".join(f"{mark} p < {level:g}" for mark, level in reversed(LEVELS.items()))
    few = f" With {fewest} documents the test can hardly say anything." if fewest < FEW else ""
    return (
        f"{levels} against {plan.baseline or plan.systems[0].name}: two-sided, over documents and seeds, "
        f"Holm-corrected for the columns.{few}"
    )


def in_words(figure: str) -> str:
    """`labels.Disease.f1` as `Disease F1`."""
    row, _, name = figure.rpartition(".")
    return f"{NAMES.get(row, row.removeprefix('labels.'))} {NAMES.get(name, name)}"


# Significance: a paired test over documents and seeds.

Documents = Callable[[Mapping[str, Any], str], Sequence[Counts]]
"""The counts of every document of a part, for the line of a run."""


def p_values(plan: ExperimentPlan, results: Results, documents: Documents) -> dict[CellKey, float]:
    """For each recipe but the baseline, two-sided, micro F1; corrected for the corpora that it is tried on (Holm)."""
    baseline = plan.baseline or plan.systems[0].name
    corrected: dict[CellKey, float] = {}
    for part, system in product(plan.evaluate, plan.systems):
        raw: dict[CellKey, float] = {}
        for corpus, fraction in product(plan.corpora, plan.fractions):
            first, second = (results.get((name, corpus.name, fraction)) for name in (baseline, system.name))
            if system.name != baseline and first and second:
                raw[CellKey(system.name, corpus.name, fraction, part)] = p_value(
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
    runs = ". ".join(f"{name}: {', '.join(dict.fromkeys(values))}" for name, values in facts.items())
    prints = {line["corpus"]["name"]: line["corpus"]["fingerprints"] for line in lines}
    corpora = [f"{corpus.name}: {_contents(prints[corpus.name])}" for corpus in plan.corpora if corpus.name in prints]
    leaks = {line["corpus"]["name"]: line.get("leaks", {}) for line in lines}
    handling = {"drop": "dropped", "allow": "trained on all the same"}
    return [f"{runs}.", "; ".join(corpora) + "."] + [
        f"{name}: {about['leaking_train_documents']:,} training documents are in dev or test, "
        f"{handling[about['on_leak']]}."
        for name, about in leaks.items()
        if about.get("leaking_train_documents")
    ]


def _contents(fingerprints: Mapping[str, str]) -> str:
    """Documents and entities of each part, with the beginning of its fingerprint."""
    described = []
    for part in ("train", *PARTS):
        if part in fingerprints:
            digest, documents, entities = fingerprints[part].removeprefix("sha256:").split("-")
            described.append(f"{part} {int(documents):,} documents with {int(entities):,} entities ({digest[:8]})")
    return ", ".join(described)


# Published figures, from a TOML file with their sources.


@dataclass(frozen=True)
class Published:
    """Published values of one figure, by the names of recipe and corpus in the plan."""

    part: str
    figure: str
    values: dict[tuple[str, str], tuple[float, str]]
    """Each value with its source."""

    @property
    def letters(self) -> dict[str, str]:
        """Every source once, in order, with a letter where there is more than one."""
        sources = list(dict.fromkeys(source for _, source in self.values.values()))
        return {source: ascii_lowercase[at % 26] if len(sources) > 1 else "" for at, source in enumerate(sources)}

    def cell(self, system: str, corpus: str) -> ResultCell:
        """The cell of a recipe and corpus, empty where nothing is published."""
        if (system, corpus) not in self.values:
            return ResultCell()
        value, source = self.values[system, corpus]
        return ResultCell(published=value, source=self.letters[source])


def read_published(path: Path, plan: ExperimentPlan) -> Published:
    """Reads the file and checks that its recipes and corpora are in the plan."""
    table = load_toml(path)
    source = table.need("source", word, "the paper and table the figures are from")
    part = table.take("part", part_name, "dev or test", "test")
    figure = table.take("figure", figure_name, "such as micro.f1", "micro.f1")
    scores = table.need("scores", _table, "a table for each recipe, [scores.NAME]")
    table.close()
    values: dict[tuple[str, str], tuple[float, str]] = {}
    for system, row in scores.items():
        _check_known(system, [system.name for system in plan.systems], path, "recipe")
        for corpus, content in (_table(row) or {}).items():
            _check_known(corpus, [corpus.name for corpus in plan.corpora], path, "corpus")
            fields = content if isinstance(content, dict) else {"value": content}
            entry = TomlTable(fields, f"{path}: {system}, {corpus}")
            value = entry.need("value", number, "a number")
            values[system, corpus] = value, entry.take("source", word, "a text", source)
            entry.close()
    return Published(part, figure, values)


def _check_known(name: str, names: Sequence[str], path: Path, kind: str) -> None:
    if name not in names:
        raise ValueError(f"{path}: the plan has no {kind} {name!r}; there are {', '.join(map(repr, names))}")


def _table(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None


# Learning curves: a figure over the share of training documents, one line per recipe.

Series = dict[str, tuple[list[float], list[float]]]


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


def curves(plan: ExperimentPlan, results: Results) -> Iterator[tuple[str, str, str, Series]]:
    """For each corpus, part and figure: shares in percent and means over the finished seeds, by recipe."""
    for corpus, part, figure in product(plan.corpora, plan.evaluate, plan.figures):
        series: Series = {}
        for system in plan.systems:
            shares, means = series.setdefault(system.name, ([], []))
            for fraction in sorted(plan.fractions):
                spread = over_lines(results.get((system.name, corpus.name, fraction), ()), part, figure)
                if spread is not None:
                    shares.append(100 * fraction)
                    means.append(spread.mean)
        yield corpus.name, part, figure, series
