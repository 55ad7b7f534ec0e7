"""Which recipes differ from the baseline by more than chance: a paired test over documents and seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wingspan.evaluation.counting import CountTable
from wingspan.evaluation.scores import Counts
from wingspan.evaluation.significance import differences, holm, system_intervals
from wingspan.experiments.plan import Plan
from wingspan.experiments.tables import Place, Results

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
