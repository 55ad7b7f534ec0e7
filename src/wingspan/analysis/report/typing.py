"""The chapter on a model that types given spans: how many types are right, and which is taken for which. No F1."""

from __future__ import annotations

from wingspan.analysis.report.blocks import Column, Row, Section, Table
from wingspan.analysis.report.subject import Subject
from wingspan.evaluation.confusion import confusion
from wingspan.evaluation.given_spans import Share, typing

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


def _cells(share: Share) -> tuple[float, int, int]:
    return share.accuracy, share.correct, share.total
