"""The chapter on differences: is one system better than another, where, and which errors moved."""

from __future__ import annotations

from wingspan.evaluation.comparison import Comparison, PairFigures
from wingspan.evaluation.errors import MOVES, Error, Move
from wingspan.report.blocks import Block, Column, Example, Examples, Row, Section, Subject, Table, anchored
from wingspan.report.mistakes import cropped, windows

MOST = 60
"""How many examples of each way an error can move are on the page."""


def differences(comparison: Comparison, subject: Subject) -> Section:
    """Every pair of systems: differences with intervals and p-values, McNemar's test, the errors that moved."""
    blocks: list[Block] = [pairs_table(comparison)]
    for number, pair in enumerate(comparison.pairs):
        blocks.append(labels_table(pair, anchored("difference", number)))
        blocks.append(moved_table(pair, anchored("moved", number)))
        blocks.append(moved_examples(pair, anchored("moved-examples", number), subject))
    lead = (
        f"Second system minus first, in points of F1. Intervals and shares of wins come from {comparison.samples:,} "
        f"bootstrap samples of {comparison.units:,} documents, p-values from "
        f"{comparison.test(comparison.pairs[0])}; they are corrected after Holm for the number of labels or of pairs."
    )
    return Section("significance", "Significance", blocks, lead)


CHANGE = (
    Column("difference", "change"),
    Column("low", about="interval, lower end"),
    Column("high", about="interval, upper end"),
    Column("wins, %", digits=1, about="Share of bootstrap samples in which the second is ahead"),
    Column("p", digits=4),
    Column("p, Holm", digits=4),
)


def pairs_table(comparison: Comparison) -> Table:
    """Micro F1 of every pair of systems, and McNemar's test on mentions."""
    rows: list[Row] = []
    for pair in comparison.pairs:
        gap = pair.rows.micro
        figures = (gap.value, gap.low, gap.high, 100 * gap.wins, gap.p, gap.p_holm)
        rows.append((f"{pair.second} − {pair.first}", *figures, pair.errors.p))
    columns = (Column("pair", "text"), *CHANGE, Column("p, McNemar", digits=4))
    return Table("pairs", "Differences in micro F1", columns, rows)


def labels_table(pair: PairFigures, name: str) -> Table:
    """One pair by label."""
    rows: list[Row] = [
        (row, gap.value, gap.low, gap.high, 100 * gap.wins, gap.p, gap.p_holm) for row, gap in pair.rows.items()
    ]
    columns = (Column("label", "label"), *CHANGE)
    return Table(name, f"Difference by label: {pair.second} − {pair.first}", columns, rows[:-2], totals=rows[-2:])


def moved_table(pair: PairFigures, name: str) -> Table:
    """How many errors only one of the two makes."""
    labels = sorted({error.entity.label for shares in pair.errors.shares.values() for error in shares})
    rows: list[Row] = [(label, *(pair.errors.count(move, label) for move in MOVES)) for label in labels]
    totals: list[Row] = [("all", *(pair.errors.count(move) for move in MOVES))]
    columns = (
        Column("label", "label"),
        Column("fixed", digits=1, about=f"errors of {pair.first} that {pair.second} does not make"),
        Column("broken", digits=1, about=f"errors of {pair.second} that {pair.first} does not make"),
        Column("both", digits=1),
    )
    return Table(name, f"Errors that moved from {pair.first} to {pair.second}", columns, rows, totals=totals)


def moved_examples(pair: PairFigures, name: str, subject: Subject) -> Examples:
    """Texts in which the two systems differ, both beside the gold."""
    kept, left = [], 0
    moves: tuple[Move, ...] = ("fixed", "broken")
    for move in moves:
        errors = pair.errors.listed(move)
        chosen = spread_out(errors, MOST)
        kept += [example(error, move, pair, subject) for error in chosen]
        left += len(errors) - len(chosen)
    caption = f"What {pair.second} fixes and breaks of {pair.first}"
    return Examples(name, caption, kept, left, "✓ right, + spurious, ✗ missed")


def spread_out(errors: list[Error], most: int) -> list[Error]:
    """So many of them, from all over the corpus."""
    step = max(1, -(-len(errors) // most))
    return errors[::step]


def example(error: Error, move: str, pair: PairFigures, subject: Subject) -> Example:
    """One error that moved, in its surroundings."""
    gold = subject.gold[error.document]
    (window,) = windows(gold.text, [error.entity.hull])
    versions = [(name, cropped(subject.found(name)[error.document], window)) for name in (pair.first, pair.second)]
    title = f"{gold.id} · {move}: {error.entity.label} “{gold.text_of(error.entity)}”, {error.kind}"
    return Example(versions, cropped(gold, window), title, (move, error.kind), (error.entity.label,))
