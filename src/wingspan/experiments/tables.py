"""The tables of an experiment: one row per recipe, one column per corpus, mean and deviation over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from wingspan.evaluation.comparison import FEW
from wingspan.evaluation.seeds import Spread, spread
from wingspan.experiments.plan import Plan
from wingspan.experiments.published import Published, Value

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
