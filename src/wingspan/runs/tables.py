"""Figures as tables: framed on a terminal, plain columns in a pipe. Used by every verb that prints scores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from wingspan.evaluation import Counts, Scores, TypingScores, average_rows, label_rows

AVERAGES = {"micro": "micro", "macro": "macro (mean over labels)", "document_macro": "macro (mean over documents)"}
"""How the rows below the labels are called; the second macro is the one of the n2c2 script."""


def print_scores(scores: Scores | TypingScores, console: Console) -> None:
    """One row for each label, the averages below, then what a reader should know."""
    if isinstance(scores, TypingScores):
        table = _table("Typing (gold spans given)", ("label", "accuracy", "correct", "total"), console)
        for label, share in scores.labels.items():
            _add(table, label, (f"{share.accuracy:.2f}", str(share.correct), str(share.total)))
        table.add_section()
        overall = scores.overall
        _add(table, "all", (f"{overall.accuracy:.2f}", str(overall.correct), str(overall.total)))
    else:
        columns = ("label", "precision", "recall", "F1", "tp", "fp", "fn", "support")
        table = _table(f"Recognition, {scores.mode}", columns, console)
        for label, counts in scores.labels.items():
            _add(table, label, (*_figures(counts), *_counted(counts)))
        table.add_section()
        _add(table, AVERAGES["micro"], (*_figures(scores.micro), *_counted(scores.micro)))
        _add(table, AVERAGES["macro"], _figures(scores.macro))
        _add(table, AVERAGES["document_macro"], _figures(scores.document_macro))
    _show(table, console)
    _print_notes(scores.notes, console)


def print_modes(scores: Sequence[Scores], console: Console) -> None:
    """The micro figures of several modes of one comparison, one below the other."""
    columns = ("mode", "precision", "recall", "F1", "correct", "incorrect", "partial", "missed", "spurious")
    table = _table("Recognition, micro", columns, console)
    for one in scores:
        m = one.micro
        counts = (m.correct, m.incorrect, m.partial, m.missed, m.spurious)
        _add(table, one.mode, (*_figures(m), *map(str, counts)))
    _show(table, console)
    _print_notes(dict.fromkeys(note for one in scores for note in one.notes), console)


def print_seeds(runs: Sequence[Scores], console: Console) -> None:
    """Mean and standard deviation over several runs."""
    averages, labels = average_rows(runs), label_rows(runs)
    title = f"Recognition, {runs[0].mode}, mean ± sd over {len(runs)} runs"
    table = _table(title, ("label", "precision", "recall", "F1"), console)
    for row in labels:
        _add(table, row.name, (str(row.precision), str(row.recall), str(row.f1)))
    table.add_section()
    for row in averages:
        _add(table, AVERAGES[row.name], (str(row.precision), str(row.recall), str(row.f1)))
    _show(table, console)


def _figures(part: object) -> tuple[str, str, str]:
    """Precision, recall and F1 with two digits."""
    precision, recall, f1 = (getattr(part, name) for name in ("precision", "recall", "f1"))
    return f"{precision:.2f}", f"{recall:.2f}", f"{f1:.2f}"


def _counted(counts: Counts) -> tuple[str, ...]:
    """True and false positives, false negatives, support; halves only where partial matches make them."""
    return (*(f"{n:.1f}".removesuffix(".0") for n in (counts.tp, counts.fp, counts.fn)), str(counts.gold))


def _table(title: str, columns: Sequence[str], console: Console) -> Table:
    """An empty table with the name on the left and numbers on the right."""
    framed = console.is_terminal
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD if framed else None, pad_edge=framed)
    table.add_column(columns[0], overflow="fold")
    for column in columns[1:]:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _add(table: Table, name: str, cells: Iterable[str]) -> None:
    """One row. Names are shown as they are: a label such as [PER] is no markup."""
    table.add_row(Text(name), *cells)


def _show(table: Table, console: Console) -> None:
    """Prints the table; in a pipe as wide as it needs to be, since nobody there can widen the window."""
    if console.is_terminal:
        console.print(table)
    else:
        needed = console.measure(table, options=console.options.update(width=100_000)).maximum
        console.print(table, width=needed, crop=False, soft_wrap=False)


def _print_notes(notes: Iterable[str], console: Console) -> None:
    for note in notes:
        console.print(Text(f"Note: {note}."), soft_wrap=True)
