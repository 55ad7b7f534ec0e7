"""The first chapter: who is how good, how sure that is, on what corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wingspan.corpora.statistics import describe
from wingspan.evaluation.comparison import SystemFigures, figures_of
from wingspan.evaluation.errors import confusion
from wingspan.evaluation.matching import Mode
from wingspan.evaluation.scores import MODES, PARTS, TypingCounts, by_continuity, recognition, typing
from wingspan.evaluation.significance import system_intervals, tabulate
from wingspan.report.blocks import Block, Column, Facts, Prose, Row, Section, Subject, Table, anchored, titled
from wingspan.report.corpora import type_changes
from wingspan.text import Document

FIGURES = (Column("precision"), Column("recall"), Column("F1"))
LOW, HIGH = (
    Column("low", about="interval of F1, lower end"),
    Column("high", about="interval of F1, upper end"),
)
COUNTS = (Column("tp", digits=0), Column("fp", digits=0), Column("fn", digits=0))


def single(subject: Subject, samples: int, seed: int) -> SystemFigures:
    """The figures of the only system, with bootstrap intervals over documents."""
    (name,) = subject.names
    runs = subject.systems[name]
    table = tabulate(subject.gold, runs)
    places = list(range(len(runs)))
    (found,), _ = system_intervals(table, [places], samples=samples, seed=seed)
    return figures_of(table, name, places, found)


def overview(
    subject: Subject, figures: Sequence[SystemFigures], statement: str, notes: Sequence[str], mode: Mode = "strict"
) -> Section:
    """Scores of the systems, by label, under every rule for a match; what is in the corpora."""
    blocks: list[Block] = [Prose((statement,), statement=True, name="verdict")]
    if len(figures) > 1:
        blocks += [systems_table(figures, mode), type_changes(figures)]
    for number, system in enumerate(figures):
        blocks.append(labels_table(system, anchored("scores", number), subject, mode))
    blocks.append(modes_table(subject))
    blocks += continuity_table(subject)
    blocks.append(Facts("corpus", "The gold corpus", corpus_facts(subject.gold)))
    if subject.training is not None:
        blocks.append(Facts("training-corpus", "The training corpus", corpus_facts(subject.training)))
    said_too = [f"Note: {note}." for note in dict.fromkeys([*notes, *subject.notes])]
    blocks += [Prose(tuple(said_too), name="notes")] if said_too else []
    return Section("overview", "Overview", blocks)


def said(system: SystemFigures) -> str:
    """One system's result in one sentence."""
    f1 = system.f1
    return (
        f"{system.name} reaches a strict micro F1 of {f1.value:.2f} (95 % interval {f1.low:.2f} to {f1.high:.2f}), "
        f"with a precision of {system.rows.micro.precision.value:.2f} and a recall of "
        f"{system.rows.micro.recall.value:.2f}."
    )


def systems_table(figures: Sequence[SystemFigures], mode: Mode) -> Table:
    """All systems, one below the other."""
    several = any(system.runs > 1 for system in figures)
    over_runs = (Column("runs"), Column("sd of F1")) if several else ()
    columns = (Column("system", "text"), *FIGURES, LOW, HIGH, Column("macro F1"), *over_runs)
    rows: list[Row] = []
    for system in figures:
        micro = system.rows.micro
        row: Row = (system.name, *_three(micro), micro.f1.low, micro.f1.high, system.rows.macro.f1.value)
        rows.append((*row, system.runs, micro.over_runs.deviation) if several else row)
    return Table("systems", f"{mode.capitalize()} micro scores with bootstrap intervals", columns, rows)


def labels_table(system: SystemFigures, name: str, subject: Subject, mode: Mode) -> Table:
    """One system by label (003, Table 8; 004, Table 1)."""
    rows: list[Row] = [(label, *_figures(row)) for label, row in system.rows.labels.items()]
    totals: list[Row] = [("micro", *_figures(system.rows.micro)), ("macro", *_figures(system.rows.macro))]
    columns = (Column("label", "label"), *FIGURES, LOW, HIGH, *COUNTS)
    return Table(
        name, titled(f"{mode.capitalize()} scores by label", system.name, subject), columns, rows, totals=totals
    )


def _three(row: Any) -> tuple[float, float, float]:
    return row.precision.value, row.recall.value, row.f1.value


def _figures(row: Any) -> tuple[float | None, ...]:
    return *_three(row), row.f1.low, row.f1.high, *(row.counts.get(name) for name in ("tp", "fp", "fn"))


def modes_table(subject: Subject) -> Table:
    """The same predictions under every rule of what counts as a match."""
    rows: list[Row] = []
    for mode in MODES:
        for name in subject.names:
            micro = recognition(subject.gold, subject.found(name), mode).micro
            own: Row = (mode, name) if len(subject.names) > 1 else (mode,)
            rows.append((*own, micro.precision, micro.recall, micro.f1, micro.missed, micro.spurious))
    columns = (Column("rule", "text"), *((Column("system", "text"),) if len(subject.names) > 1 else ()), *FIGURES)
    return Table(
        "rules",
        "Micro scores under other rules of what counts as a match",
        (*columns, Column("missed"), Column("spurious")),
        rows,
        note=" ".join(["docs/scoring.md says what each rule is.", subject.first_runs_only]).strip(),
    )


def continuity_table(subject: Subject) -> list[Block]:
    """Discontinuous entities by themselves and the rest, where there are any."""
    rows: list[Row] = []
    for name in subject.names:
        for part, counts in by_continuity(subject.gold, subject.found(name)).items():
            own: Row = (PARTS[part], name) if len(subject.names) > 1 else (PARTS[part],)
            figures = (counts.precision, counts.recall, counts.f1, counts.tp, counts.fp, counts.fn)
            rows.append((*own, *figures))
    columns = (Column("of", "text"), *((Column("system", "text"),) if len(subject.names) > 1 else ()), *FIGURES)
    note = subject.first_runs_only
    caption = "Strict micro scores of discontinuous entities and of the others"
    return [Table("continuity", caption, (*columns, *COUNTS), rows, note=note)] if rows else []


def corpus_facts(documents: Sequence[Document]) -> Mapping[str, Any]:
    """What is in a corpus (000, Table 1; 003, Table 6; 004, Tables 5 and 6), and its fingerprint."""
    found = describe(documents)
    return {
        "documents": found.documents,
        "articles they belong to": found.groups,
        "words": found.words,
        "entities": found.entities,
        "of these nested": found.nested,
        "of these discontinuous": found.discontinuous,
        "documents without entities": found.documents_without_entities,
        "words of a mention": ", ".join(f"{name} {value}" for name, value in found.mention_words.items()),
        "words of a document": ", ".join(f"{name} {value}" for name, value in found.text_words.items()),
        "labels": ", ".join(f"{label} {count:,}" for label, count in found.labels.items()),
        "fingerprint": found.fingerprint,
    }


# --- The chapter on a model that types given spans: how many types are right, and which is taken for which. No F1.


LEAD = (
    "The spans were given, so nothing could be missed or invented: these are accuracies, not to be compared with the "
    "scores of systems that find their spans."
)


def typed(subject: Subject, system: str) -> Section:
    """Accuracy by label, and the confusion matrix of the types."""
    scores = typing(subject.gold, subject.found(system))
    rows: list[Row] = [(label, *_cells(share)) for label, share in scores.labels.items()]
    columns = (Column("label", "label"), Column("accuracy"), Column("right"), Column("spans"))
    table = Table(
        "typing", "Typing accuracy, gold spans given", columns, rows, totals=[("all", *_cells(scores.overall))]
    )
    found = confusion(subject.gold, subject.found(system))
    taken: list[Row] = [
        (label, *cells[:-1]) for label, cells in zip(found.labels, found.matrix[:-1], strict=True)
    ]  # the last column is nothing, which is never said
    matrix = Table(
        "taken-for",
        "Which type is taken for which: rows are gold",
        (Column("gold", "label"), *(Column(label, digits=0) for label in found.labels)),
        taken,
        shade=True,
    )
    return Section("typing", "Typing", [table, matrix], LEAD)


def _cells(share: TypingCounts) -> tuple[float, int, int]:
    return share.accuracy, share.correct, share.total
