"""The chapter on several corpora: what their labels mean, how each is found, what one is worth for another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wingspan.corpora.label_map import NONE, LabelMap
from wingspan.evaluation.comparison import SystemFigures
from wingspan.evaluation.scores import Scores
from wingspan.evaluation.transfer import Transfer
from wingspan.report.blocks import Block, Column, Row, Section, Table


def corpora_chapter(
    label_map: LabelMap | None,
    own: Mapping[str, Scores],
    mapped: Mapping[str, Scores],
    transfers: Sequence[Transfer] = (),
) -> Section:
    """Scores go by corpus: in its own labels, and in the target's."""
    blocks: list[Block] = [by_corpus(own, mapped)]
    if transfers:
        blocks.append(transfer_table(transfers))
    if label_map is not None:
        blocks.append(correspondences(label_map))
    lead = "One model, several corpora. What has no counterpart in the target's labels is no part of mapped scores."
    return Section("corpora", "Corpora", blocks, lead)


def correspondences(label_map: LabelMap) -> Table:
    """Which label of each corpus means which of the target's (004, Table 7)."""
    rows: list[Row] = [(corpus, label, target or NONE) for corpus, label, target in label_map]
    columns = (Column("corpus", "text"), Column("label", "text"), Column("in the target's labels", "label"))
    return Table("label-correspondences", "What the labels of other corpora mean", columns, rows)


def by_corpus(own: Mapping[str, Scores], mapped: Mapping[str, Scores]) -> Table:
    """Strict micro scores of each corpus (004, Table 8)."""
    rows: list[Row] = []
    for corpus in dict.fromkeys([*own, *mapped]):  # a model of one corpus knows no other's labels
        figures = [
            getattr(own[corpus].micro, name) if corpus in own else None for name in ("precision", "recall", "f1")
        ]
        rows.append((corpus, *figures, mapped[corpus].micro.f1 if corpus in mapped else None))
    columns = (
        Column("corpus", "text"),
        Column("precision"),
        Column("recall"),
        Column("F1"),
        Column("F1, in the target's labels"),
    )
    return Table("scores-by-corpus", "Strict micro scores of each corpus", columns, rows)


def transfer_table(found: Sequence[Transfer]) -> Table:
    """F1 of each model, or block of classes, on each corpus, mapped to labels that both can mean."""
    tested = list(dict.fromkeys(one.tested for one in found))
    cells = {(one.trained, one.tested): one.scores.micro.f1 if one.scores is not None else None for one in found}
    rows: list[Row] = [
        (trained, *(cells.get((trained, name)) for name in tested))
        for trained in dict.fromkeys(o.trained for o in found)
    ]
    columns = (Column("answers of", "text"), *(Column(name, about=f"F1 on {name}") for name in tested))
    caption = "F1 across corpora: rows answer, columns are scored"
    return Table("transfer-matrix", caption, columns, rows, shade=True)


def type_changes(figures: Sequence[SystemFigures]) -> Table:
    """F1 of each type under the first system, and what the others change: corpora that were added, say."""
    first, *others = figures
    labels = list(dict.fromkeys(label for system in figures for label in system.rows.labels))

    def f1(system: SystemFigures, label: str) -> float:
        return system.rows.labels[label].f1.value if label in system.rows.labels else 0.0

    rows: list[Row] = [
        (label, f1(first, label), *(f1(other, label) - f1(first, label) for other in others)) for label in labels
    ]
    start = first.rows.micro.f1.value
    totals: list[Row] = [("micro", start, *(other.rows.micro.f1.value - start for other in others))]
    columns = (Column("label", "label"), Column(first.name), *(Column(other.name, "change") for other in others))
    return Table("type-effects", f"F1 by type, and changes from {first.name}", columns, rows, totals=totals)
