"""Figures as tables: framed on a terminal, plain columns in a pipe."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from wingspan.evaluation.scores import PARTS, Average, Counts, Scores, TypingScores, accuracy_rows, score_rows

AVERAGES = {"micro": "micro", "macro": "macro (labels)", "document_macro": "macro (documents)"}
"""The names of the rows below the labels; the second macro is that of the n2c2 script."""

COLUMNS = ("precision", "recall", "F1", "tp", "fp", "fn", "support")

Cells = Sequence[str]


@dataclass(frozen=True)
class Sheet:
    """A table before it is drawn: the first cell of a row is its name, the others are numbers."""

    title: str
    columns: Cells
    rows: Sequence[Cells]
    totals: Sequence[Cells] = ()

    def show(self, console: Console) -> None:
        """Prints frames on a terminal, and unwrapped lines in a pipe."""
        if console.is_terminal:
            console.print(self.framed())
        else:
            console.print(Text("\n".join(self.lines())), soft_wrap=True)

    def framed(self) -> Table:
        """The table as rich draws it. Names are no markup: a label may be called [PER]."""
        table = Table(title=self.title, title_justify="left", box=box.SIMPLE_HEAD)
        table.add_column(self.columns[0], overflow="fold")
        for column in self.columns[1:]:
            table.add_column(column, justify="right", no_wrap=True)
        for part in (self.rows, self.totals):
            for name, *numbers in part:
                table.add_row(Text(name), *numbers)
            table.add_section()
        return table

    def lines(self) -> list[str]:
        """The table as aligned text, two spaces or more between columns."""
        rows = [self.columns, *self.rows, *self.totals]
        columns = list(zip_longest(*rows, fillvalue=""))
        widths = [max(map(cell_len, column)) for column in columns]
        lines = [self.title]
        for name, *numbers in zip(*columns, strict=True):
            padded = [" " * (width - cell_len(cell)) + cell for cell, width in zip(numbers, widths[1:], strict=True)]
            lines.append("  ".join([name + " " * (widths[0] - cell_len(name)), *padded]).rstrip())
        return lines


def print_scores(scores: Scores | TypingScores, console: Console) -> None:
    """Prints one row for each label, the averages below, then notes."""
    if isinstance(scores, TypingScores):
        shares = [*scores.labels.items(), ("all", scores.overall)]
        rows: list[Cells] = [
            (name, f"{share.accuracy:.2f}", str(share.correct), str(share.total)) for name, share in shares
        ]
        columns = ("label", "accuracy", "correct", "total")
        Sheet("Typing (gold spans given)", columns, rows[:-1], rows[-1:]).show(console)
    else:
        labels = [(label, *_figures(counts), *_counted(counts)) for label, counts in scores.labels.items()]
        averages = [
            (AVERAGES["micro"], *_figures(scores.micro), *_counted(scores.micro)),
            (AVERAGES["macro"], *_figures(scores.macro)),
            (AVERAGES["document_macro"], *_figures(scores.document_macro)),
        ]
        Sheet(f"Recognition, {scores.mode}", ("label", *COLUMNS), labels, averages).show(console)
        if scores.continuity:
            parts = ((PARTS[name], counts) for name, counts in scores.continuity.items())
            rows = [(name, *_figures(counts), *_counted(counts)) for name, counts in parts]
            Sheet("Discontinuous entities, strict", ("of", *COLUMNS), rows).show(console)
    _print_notes(scores.notes, console)


def print_modes(scores: Sequence[Scores], console: Console) -> None:
    """Prints the micro figures of several modes of one comparison, one below the other."""
    verdicts = ("correct", "incorrect", "partial", "missed", "spurious")
    rows = [(s.mode, *_figures(s.micro), *(str(getattr(s.micro, verdict)) for verdict in verdicts)) for s in scores]
    Sheet("Recognition, micro", ("mode", "precision", "recall", "F1", *verdicts), rows).show(console)
    _print_notes(dict.fromkeys(note for each in scores for note in each.notes), console)


def print_seeds(runs: Sequence[Scores | TypingScores], console: Console) -> None:
    """Prints mean and standard deviation over several runs."""
    typed = [run for run in runs if isinstance(run, TypingScores)]
    if typed:
        rows = [(name, str(accuracy)) for name, accuracy in accuracy_rows(typed)]
        title = f"Typing (gold spans given), mean ± sd over {len(typed)} runs"
        Sheet(title, ("label", "accuracy"), rows[:-1], rows[-1:]).show(console)
        return
    recognized = [run for run in runs if isinstance(run, Scores)]
    labels, averages = score_rows(recognized)
    Sheet(
        f"Recognition, {recognized[0].mode}, mean ± sd over {len(runs)} runs",
        ("label", "precision", "recall", "F1"),
        [(row.name, str(row.precision), str(row.recall), str(row.f1)) for row in labels],
        [(AVERAGES[row.name], str(row.precision), str(row.recall), str(row.f1)) for row in averages],
    ).show(console)


def _figures(part: Counts | Average) -> tuple[str, str, str]:
    """Precision, recall and F1 with two digits."""
    return f"{part.precision:.2f}", f"{part.recall:.2f}", f"{part.f1:.2f}"


def _counted(counts: Counts) -> tuple[str, ...]:
    """True and false positives, false negatives, support; halves only where partial matches make them."""
    return (*(f"{n:.1f}".removesuffix(".0") for n in (counts.tp, counts.fp, counts.fn)), str(counts.gold))


def _print_notes(notes: Iterable[str], console: Console) -> None:
    for note in notes:
        console.print(Text(f"Note: {note}."), soft_wrap=True)
