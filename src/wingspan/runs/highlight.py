"""A document for a person in a terminal: its text, and its entities as labeled bars below their words.

Colors say the label, or, beside gold, the verdict; names, marks and strokes say it too. Without a terminal, under
NO_COLOR, or where the terminal knows no Unicode, everything that is drawn is plain ASCII and has no color.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.text import Text

from wingspan.runs.bars import Bar, Cell, Columns, Mark, Strokes, bar_on, stacked
from wingspan.runs.glyphs import one_line, wrapped
from wingspan.text import Document, Entity
from wingspan.views.colors import label_colors
from wingspan.views.verdicts import COLORS, Verdict, fits, judged

LEFT_TO_RIGHT_MARK = "\u200e"


class Sign(NamedTuple):
    """How a verdict looks: before the label, as a color (none: the label's own), as strokes."""

    mark: str
    color: str | None
    strokes: Strokes


SIGNS: dict[Verdict, Sign] = {
    "found": Sign("", None, Strokes("╰", "─", "╯", "╵", "┈", "…")),
    "right": Sign("✓", COLORS["right"], Strokes("╰", "─", "╯", "╵", "┈", "…")),
    "spurious": Sign("+", COLORS["spurious"], Strokes("╚", "═", "╝", "╵", "┈", "…")),
    "missed": Sign("✗", COLORS["missed"], Strokes("╰", "╌", "╯", "╵", "┈", "…")),
}
ASCII_SIGNS: dict[Verdict, Sign] = {
    "found": Sign("", None, Strokes("\\", "-", "/", "^", ".", ">")),
    "right": Sign("ok", None, Strokes("\\", "-", "/", "^", ".", ">")),
    "spurious": Sign("+", None, Strokes("\\", "=", "/", "^", ".", ">")),
    "missed": Sign("x", None, Strokes("\\", "~", "/", "^", ".", ">")),
}


def show(
    document: Document,
    console: Console,
    gold: Document | None = None,
    limit: int | None = None,
    labels: Iterable[str] = (),
) -> None:
    """Prints the text in at most `limit` lines with the entities below their words.

    With `gold`, each entity is marked as right, spurious or missed. `labels` are all labels of the corpus or model:
    given them, a label has one color in every document, the one that `legend` shows for the same labels.
    """
    screen = Screen.of(console)
    verdicts = judged(document, gold)
    colors = label_colors([*labels, *(entity.label for entity, _ in verdicts)])
    if not document.text:
        screen.note("(empty text)")
    marks = [screen.mark(entity, verdict, colors) for entity, verdict in verdicts if fits(entity, document)]
    show_text(document.text, marks, screen, limit)
    if not verdicts and document.text:
        screen.note("(no entities)")
    for entity, _ in verdicts:
        if not fits(entity, document):
            place = ", ".join(f"{start}-{end}" for start, end in entity.spans)
            screen.note(f"not drawn: {screen.name(entity.label)} at {place}; the text ends at {len(document.text)}")
    if gold is not None:
        screen.tally(Counter(verdict for _, verdict in verdicts))


def legend(labels: Iterable[str], console: Console) -> None:
    """Prints the labels in their colors, as many on a line as fit."""
    screen = Screen.of(console)
    line = Text()
    for label, color in label_colors(labels).items():
        name = screen.name(label)
        entry = Text(name) if screen.plain else Text(f"━━ {name}", Style(color=color, bold=True))
        if line and cell_len(line.plain) + 3 + cell_len(entry.plain) > console.width:
            screen.print(line)
            line = Text()
        line = Text("   ").join([line, entry]) if line else entry
    if line:
        screen.print(line)


def show_text(text: str, marks: Sequence[Mark], screen: Screen, limit: int | None) -> None:
    """The lines of the text, each with the bars of the entities that lie on it."""
    waiting = sorted(marks, key=lambda mark: mark.entity.start, reverse=True)
    active: list[Mark] = []
    rows: list[list[Cell]] = []
    for number, line in enumerate(wrapped(text, screen.width, screen.encoding)):
        first, last = line[0].start, line[-1].end
        if number == limit:
            screen.note(f"... {len(text) - first} more characters; entities there: {len(waiting)}")
            return
        while waiting and waiting[-1].entity.start < last:
            active.append(waiting.pop())
        active = [mark for mark in active if mark.entity.end > first]
        if rows:  # a blank between bars and the words of the next line
            screen.print(Text())
        columns = Columns(line)
        bars = [bar for mark in active if (bar := bar_on(mark, columns)) is not None]
        screen.print(screen.words(columns, active, bars))
        rows = stacked(bars, screen.width)
        for row in rows:
            screen.print(styled(row))


def styled(cells: Iterable[Cell]) -> Text:
    """Cells as rich text without the blanks at the end."""
    text = Text()
    for style, same in groupby(cells, key=lambda cell: cell.style):
        text.append("".join(cell.shown for cell in same), style)
    text.rstrip()
    return text


@dataclass(frozen=True)
class Screen:
    """What the console can show, and the ways to show it."""

    console: Console
    plain: bool
    width: int
    encoding: str

    @classmethod
    def of(cls, console: Console) -> Screen:
        """Colors and Unicode strokes only on a terminal that has both."""
        rich = console.is_terminal and not console.no_color and console.color_system is not None
        return cls(console, not rich or console.options.ascii_only, max(1, console.width), console.encoding)

    @property
    def signs(self) -> dict[Verdict, Sign]:
        """The signs that the console can show."""
        return ASCII_SIGNS if self.plain else SIGNS

    def name(self, label: str) -> str:
        """A label that is safe to print."""
        return "".join(glyph.shown for glyph in one_line(label, self.encoding))

    def mark(self, entity: Entity, verdict: Verdict, colors: dict[str, str]) -> Mark:
        """How the entity looks: in its label's color, or in its verdict's."""
        sign = self.signs[verdict]
        name = one_line(f"{sign.mark} {entity.label}".lstrip(), self.encoding)
        style = Style.null() if self.plain else Style(color=sign.color or colors[entity.label])
        return Mark(entity, name, style, sign.strokes)

    def words(self, columns: Columns, marks: Iterable[Mark], bars: Iterable[Bar]) -> Text:
        """A line of text; each character has the color of the shortest entity around it."""
        styles = [Style(dim=True) if glyph.escaped and not self.plain else Style.null() for glyph in columns.line]
        for mark in sorted(marks, key=lambda mark: -mark.entity.hull.width):
            for span in mark.entity.spans:
                for index in columns.glyphs(span):
                    styles[index] += mark.bold
        borders = {border for bar in bars for piece in bar.fragments for border in piece}
        isolated = not self.plain and any(glyph.right_to_left for glyph in columns.line)
        cells = []
        for glyph, column, style in zip(columns.line, columns.left, styles, strict=False):
            if isolated and (column == 0 or column in borders):
                # keeps Hebrew and Arabic inside their own columns where the terminal would turn whole lines round
                cells.append(Cell(LEFT_TO_RIGHT_MARK, Style.null()))
            cells.append(Cell(glyph.shown, style))
        return styled(cells)

    def tally(self, counts: Counter[Verdict]) -> None:
        """How often each verdict was given, with its sign."""
        verdicts: tuple[Verdict, ...] = ("right", "spurious", "missed")
        entries = []
        for verdict in verdicts:
            sign = self.signs[verdict]
            entries.append(Text(f"{sign.mark} {counts[verdict]} {verdict}", Style(color=sign.color)))
        self.print(Text("   ").join(entries))

    def note(self, text: str) -> None:
        """A remark of ours, set off from the document's own words."""
        self.print(Text(text, "" if self.plain else "dim"))

    def print(self, text: Text) -> None:
        """One row as it is: no markup, no emoji codes, no wrapping, no cropping."""
        self.console.print(text, soft_wrap=True, highlight=False)
