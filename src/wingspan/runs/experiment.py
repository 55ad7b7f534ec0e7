"""`wingspan experiment`: the runs of a plan that are not done yet, side by side, then the tables."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from wingspan.corpora.files import atomic_write
from wingspan.experiments.ledger import Ledger
from wingspan.experiments.marks import p_values
from wingspan.experiments.plan import Plan
from wingspan.experiments.provenance import provenance
from wingspan.experiments.published import read_published
from wingspan.experiments.rendering import RENDERINGS
from wingspan.experiments.schedule import Schedule, Task
from wingspan.experiments.tables import ResultTable, make_tables
from wingspan.recognizer import usable_device
from wingspan.runs.experiment_checks import check
from wingspan.runs.experiment_curves import write_curves
from wingspan.runs.experiment_run import Assignment, Outcome
from wingspan.runs.experiment_workers import in_this_process, in_workers
from wingspan.runs.speaking import say
from wingspan.runs.tables import Sheet


@dataclass(frozen=True)
class Summary:
    """What an experiment came to: how many runs are done, which failed and why, the tables."""

    runs: int
    done: int
    failed: Mapping[str, str]
    tables: tuple[ResultTable, ...]

    @property
    def remaining(self) -> int:
        """Runs that did not start in the time budget, or failed."""
        return self.runs - self.done

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        counts = {"runs": self.runs, "done": self.done, "remaining": self.remaining}
        return {**counts, "failed": dict(self.failed), "tables": [table.to_dict() for table in self.tables]}


def experiment(plan: Plan, console: Console, *, time_budget: float | None = None, tables_only: bool = False) -> Summary:
    """Does what is missing and writes the tables. Killed at any moment and called again, it goes on."""
    if plan.published is not None:
        read_published(plan.published, plan)  # a mistake in it is said now, not after a night of training
    assignments, ledger = check(plan), Ledger(plan.output)
    before = {name: line for name, line in ledger.lines().items() if name in assignments}
    say(console, f"{plan.title}: {len(assignments):,} runs, {len(before):,} of them done; results in {plan.output}")
    failed: dict[str, str] = {}
    if not tables_only:
        tasks = [Task(name, one.run) for name, one in assignments.items() if name not in before]
        failed = follow(plan, assignments, Schedule(tasks, before.values(), time_budget), len(before), console)
    done = {name: line for name, line in ledger.lines().items() if name in assignments}
    tables = tuple(write_tables(plan, assignments, done))
    for table in tables:
        show(table, console)
    if len(done) == len(assignments):
        shutil.rmtree(ledger.claims, ignore_errors=True)  # whoever comes later finds every run done
    elif not tables_only:
        left = len(assignments) - len(done) - len(failed)
        say(console, f"{len(failed):,} runs failed, {left:,} are still to do: the same command goes on with them.")
    return Summary(len(assignments), len(done), failed, tables)


def follow(
    plan: Plan, assignments: Mapping[str, Assignment], schedule: Schedule, done: int, console: Console
) -> dict[str, str]:
    """Starts runs and says what became of each. Returns the failures by the name of the run."""
    workers = min(plan.workers, len(schedule.waiting))
    threads = plan.threads or (1 if plan.workers > 1 else None)
    outcomes: Iterable[tuple[Task, Outcome]] = (
        in_workers(schedule, assignments, workers, threads, usable_device(plan.device).type)
        if workers
        else in_this_process(schedule, assignments)
    )
    failed: dict[str, str] = {}
    waited = False
    for task, outcome in outcomes:
        if outcome.status == "failed":
            failed[str(task.run)] = outcome.problem
            say(console, f"FAILED {task.run}: {outcome.problem}")
        elif outcome.line is not None:
            done += 1
            scores = ", ".join(f"{part} {outcome.line[part]['micro']['f1']:.2f}" for part in plan.evaluate)
            seconds = f"{outcome.line['seconds']['total']:.0f} s"
            say(console, f"[{done}/{len(assignments)}] {task.run}: {scores} ({seconds})")
        elif not waited:
            waited = True
            say(console, f"Another process is at {task.run}; waiting for it in between.")
    return failed


def write_tables(
    plan: Plan, assignments: Mapping[str, Assignment], done: Mapping[str, Mapping[str, Any]]
) -> list[ResultTable]:
    """Writes table.md, table.tex and table.html beside the results, and learning curves where there are any."""
    results: dict[tuple[str, str, float], list[Mapping[str, Any]]] = defaultdict(list)
    for name, one in assignments.items():
        if name in done:
            results[one.run.system.name, one.run.corpus.name, one.run.fraction].append(done[name])
    ledger = Ledger(plan.output)
    published = read_published(plan.published, plan) if plan.published is not None else None
    tested = p_values(plan, results, lambda line, part: ledger.documents(line["id"], part))
    tables = make_tables(plan, results, tested, provenance(plan, results), published)
    for suffix, render in RENDERINGS.items():
        with atomic_write(plan.output / f"table.{suffix}") as file:
            file.write(render(tables))
    write_curves(plan, results)
    return tables


def show(table: ResultTable, console: Console) -> None:
    """A table on the terminal; the best of a column has a star."""
    rows = [
        (name, *(f"{cell.text}{cell.mark and f' {cell.mark}'}{' *' if cell.best else ''}" for cell in cells))
        for name, cells in table.rows
    ]
    Sheet(table.title, ("recipe", *table.columns), rows).show(console)
    for note in table.notes:
        say(console, note.replace("is bold", "has a *"))
