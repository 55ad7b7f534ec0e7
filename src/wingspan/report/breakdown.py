"""The chapter on buckets: scores by attributes of the entities, and where systems differ (papers 002 and 003)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from wingspan.evaluation.buckets import NOT_GIVEN, BucketTable, Gap, buckets, gaps
from wingspan.report.blocks import Block, Column, Row, Section, Subject, Table
from wingspan.report.plots import available, bars, drawn


def breakdown(
    subject: Subject, figures: Path | None, attributes: Sequence[str] | None = None, quantiles: int | None = None
) -> Section:
    """F1 by every attribute; with several systems also their differences as heat maps."""
    found = {
        name: buckets(subject.gold, subject.found(name), attributes, training=subject.training, quantiles=quantiles)
        for name in subject.names
    }
    standard = subject.names[0]
    compared = gaps(found, standard)
    if unknown := [gap.attribute for gap in compared if gap.buckets == (NOT_GIVEN,)]:
        raise ValueError(f"{', '.join(unknown)}: nothing in the corpus has this key; check how it is written")
    blocks: list[Block] = []
    if len(found) > 1:
        blocks.append(gaps_table(compared, standard))
    if available():
        for gap in compared:
            series = {name: _f1(tables[gap.attribute], gap.buckets) for name, tables in found.items()}
            name = f"{_anchor(gap.attribute)}-figure"
            blocks.append(drawn(bars(gap.buckets, series, "F1"), name, f"F1 by {_lower(gap.title)}", figures))
    blocks += [bucket_table(gap, found) for gap in compared]
    lead = (
        "Precision counts predictions by their own attribute, recall counts gold entities by theirs. Intervals are "
        f"{'those of the papers' if quantiles is None else f'{quantiles} quantiles of the gold entities'}."
    )
    return Section("buckets", "Buckets", blocks, " ".join([lead, subject.first_runs_only]).strip())


def _f1(table: BucketTable, names: Sequence[str]) -> list[float | None]:
    by_name = {row.name: row.f1 for row in table.rows}
    return [by_name.get(name) for name in names]


def gaps_table(found: Sequence[Gap], standard: str) -> Table:
    """The heat map of differences: each system minus the standard, in every bucket (002, Table 6)."""
    others = [name for name in found[0].values if name != standard]
    rows: list[Row] = []
    for gap in found:
        for number, bucket in enumerate(gap.buckets):
            values = [gap.values[name][number] for name in others]
            if any(value is not None for value in values):
                rows.append((gap.title, bucket, *values))
    columns = (Column("attribute", "text"), Column("bucket", "text"), *(Column(name, "change") for name in others))
    return Table("bucket-gaps", f"Differences in F1, minus {standard}", columns, rows)


def _anchor(attribute: str) -> str:
    """The name of an attribute's table, for links and files; keys of a corpus may hold anything."""
    return f"buckets-{re.sub(r'[^A-Za-z0-9_]+', '-', attribute)}"


def _lower(title: str) -> str:
    """A title in the middle of a sentence."""
    return title[:1].lower() + title[1:]


def bucket_table(gap: Gap, found: Mapping[str, Mapping[str, BucketTable]]) -> Table:
    """All figures of one attribute."""
    several = len(found) > 1
    columns = (
        Column("bucket", "text"),
        *((Column("system", "text"),) if several else ()),
        *(Column(name) for name in ("precision", "recall", "F1", "gold", "found")),
    )
    rows: list[Row] = []
    for bucket in gap.buckets:
        for name, tables in found.items():
            for row in tables[gap.attribute].rows:
                if row.name == bucket:
                    own: Row = (bucket, name) if several else (bucket,)
                    rows.append((*own, row.precision, row.recall, row.f1, row.gold, row.found))
    return Table(_anchor(gap.attribute), f"Scores by {_lower(gap.title)}", columns, rows)
