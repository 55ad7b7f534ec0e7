"""Learning curves of an experiment: a figure over the share of training documents, one line for each recipe."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from wingspan.experiments.plan import Plan
from wingspan.experiments.tables import Results, over_lines, said

Series = dict[str, tuple[list[float], list[float]]]


def write_curves(plan: Plan, results: Results) -> list[Path]:
    """Writes curve-CORPUS-PART-FIGURE as SVG and PNG where a plan has several fractions and matplotlib is there."""
    if len(plan.fractions) < 2 or find_spec("matplotlib") is None:
        return []
    from wingspan.analysis.drawing import save_figure
    from wingspan.analysis.report.charts import lines

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
