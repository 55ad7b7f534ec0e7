"""A document for a person in a terminal: its text, and its entities as labeled bars below their words.

Colors say the label, or, beside gold, the verdict; names, marks and strokes say it too. Without a terminal, under
NO_COLOR, or where the terminal knows no Unicode, everything that is drawn is plain ASCII and has no color.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby, pairwise
from typing import NamedTuple

import regex
from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.text import Text

from wingspan.text import Document, Entity, Span
from wingspan.views.entities import VERDICT_COLORS as COLORS
from wingspan.views.entities import Verdict, judged, label_colors, misfit

TAB = " " * 4
LINE_BREAKS = frozenset(("\n", "\r", "\r\n", "\v", "\f", "\x85", "\u2028", "\u2029"))
NO_BREAK_SPACES = frozenset("\u00a0\u2007\u202f")
HIDDEN = frozenset(("Cc", "Cf", "Cs"))  # controls, format characters (bidi overrides, zero-width space), half pairs
JOINER = "\u200d"
CLUSTERS = regex.compile(r"\X")
PICTURE = regex.compile(r"\p{Extended_Pictographic}")
RIGHT_TO_LEFT = frozenset(("R", "AL", "AN"))


class Glyph(NamedTuple):
    """One user-perceived character: where it is in the text, what is printed for it, and how many cells that takes."""

    start: int
    end: int
    shown: str
    cells: int
    space: bool = False
    ends_line: bool = False
    escaped: bool = False

    @property
    def wide(self) -> bool:
        """Whether lines may break beside it, as in Chinese and Japanese."""
        return self.cells == 2 and not (self.space or self.escaped)

    @property
    def right_to_left(self) -> bool:
        """Whether a terminal that knows Hebrew and Arabic would reorder it."""
        return not self.escaped and any(unicodedata.bidirectional(c) in RIGHT_TO_LEFT for c in self.shown)


def glyphs(text: str, encoding: str = "utf-8") -> Iterator[Glyph]:
    """The text from left to right; what the encoding cannot hold is escaped too."""
    for found in CLUSTERS.finditer(text):
        start, end = found.span()
        cluster = found.group()
        if cluster in LINE_BREAKS:
            yield Glyph(start, end, "", 0, space=True, ends_line=True)
        elif cluster == "\t":
            yield Glyph(start, end, TAB, len(TAB), space=True)
        elif cluster.isascii() and cluster.isprintable():
            yield Glyph(start, end, cluster, len(cluster), space=cluster == " ")
        elif _printable(cluster, encoding):
            space = cluster.isspace() and cluster not in NO_BREAK_SPACES
            yield Glyph(start, end, cluster, cells(cluster), space)
        else:
            for at, character in enumerate(cluster, start):
                shown = ascii(character)[1:-1]
                yield Glyph(at, at + 1, shown, len(shown), escaped=True)


def _printable(cluster: str, encoding: str) -> bool:
    """Whether the cluster shows something and does nothing else, in an encoding that has it."""
    if cells(cluster) == 0 or all(unicodedata.category(character) in HIDDEN for character in cluster):
        return False
    return cluster.encode(encoding, "ignore").decode(encoding) == cluster


def cells(cluster: str) -> int:
    """How many cells one cluster takes. A joiner merges pictures into one; between letters it changes nothing."""
    return cell_len(cluster if PICTURE.search(cluster) else cluster.replace(JOINER, ""))


def one_line(text: str, encoding: str = "utf-8") -> list[Glyph]:
    """A name, such as a label, as glyphs on one line: line breaks become spaces."""
    return [glyph._replace(shown=" ", cells=1) if glyph.ends_line else glyph for glyph in glyphs(text, encoding)]


def wrapped(text: str, width: int, encoding: str = "utf-8") -> Iterator[list[Glyph]]:
    """The text in lines of at most `width` cells; all glyphs are kept in order.

    Lines break after spaces, beside wide characters, and inside a word that alone is wider than a line. Spaces that
    would start a line hang at the end of the one before and take no cell.
    """
    line: list[Glyph] = []
    used = 0
    cut = 0  # how many glyphs of the line can stand on it without what follows
    for glyph in glyphs(text, encoding):
        if glyph.ends_line:
            yield [*line, glyph]
            line, used, cut = [], 0, 0
            continue
        if glyph.wide:
            cut = len(line)
        if glyph.space and line and used + glyph.cells > width:
            line.append(glyph._replace(shown="", cells=0))
            used, cut = width, len(line)
            continue
        while line and used + glyph.cells > width:
            cut = cut or len(line)
            yield line[:cut]
            line, cut = line[cut:], 0
            used = sum(kept.cells for kept in line)
        line.append(glyph)
        used += glyph.cells
        if glyph.space or glyph.wide:
            cut = len(line)
    if line:
        yield line


# --- Bars under a line of text, one for each entity: stacked where they overlap, with the label inside or beside
# them.


class Strokes(NamedTuple):
    """What a bar is drawn with: its left end, its line, its right end; one cell alone; between fragments."""

    left: str
    line: str
    right: str
    single: str
    gap: str
    more: str  # the last cell of a label for which there is no room


class Mark(NamedTuple):
    """An entity as it is to be shown: its name in glyphs, its color, its strokes."""

    entity: Entity
    name: Sequence[Glyph]
    style: Style
    strokes: Strokes

    @property
    def bold(self) -> Style:
        """The style of words and names; none where nothing is styled."""
        return self.style + Style(bold=True) if self.style else self.style


class Cell(NamedTuple):
    """What one cell of a row shows; the second cell of a wide character is empty."""

    shown: str
    style: Style


BLANK = Cell(" ", Style.null())

Row = list[Cell | None]


@dataclass(frozen=True)
class Columns:
    """Where the characters of one line of text stand on the screen."""

    line: Sequence[Glyph]
    left: Sequence[int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "left", list(accumulate((glyph.cells for glyph in self.line), initial=0)))

    def glyphs(self, span: Span) -> range:
        """The glyphs of the line that hold some of the span."""
        first = bisect_right(self.line, span.start, key=lambda glyph: glyph.end)
        return range(first, max(first, bisect_left(self.line, span.end, key=lambda glyph: glyph.start)))

    def of(self, span: Span) -> Span:
        """The columns of the span. One that lies in a line break or in a space at the line's end takes one column."""
        found = self.glyphs(span)
        if not found:
            return Span(0, 0)
        columns = Span(self.left[found.start], self.left[found.stop])
        if columns.width or span.start < self.line[0].start or span.end > self.line[-1].end:
            return columns
        start = max(0, columns.start - 1)
        return Span(start, start + 1)


class Bar(NamedTuple):
    """The part of an entity that lies on one line, in columns; open where it goes on in another line."""

    mark: Mark
    fragments: tuple[Span, ...]
    gaps: tuple[Span, ...]
    starts: frozenset[int]  # columns in which a fragment begins
    ends: frozenset[int]  # columns in which a fragment's last cell lies

    @property
    def hull(self) -> Span:
        """All columns of the bar."""
        pieces = (*self.fragments, *self.gaps)
        return Span(min(piece.start for piece in pieces), max(piece.end for piece in pieces))


def bar_on(mark: Mark, columns: Columns) -> Bar | None:
    """The bar of an entity on a line, if it has one there."""
    spans = mark.entity.spans
    first, last = columns.line[0].start, columns.line[-1].end
    drawn = [(span, columns.of(span)) for span in spans]
    drawn = [(span, place) for span, place in drawn if place.width]
    between = (columns.of(Span(one.end, two.start)) for one, two in pairwise(spans) if one.end < two.start)
    gaps = tuple(gap for gap in between if gap.width)
    if not drawn and not gaps:
        return None
    return Bar(
        mark,
        tuple(place for _, place in drawn),
        gaps,
        frozenset(place.start for span, place in drawn if span.start >= first),
        frozenset(place.end - 1 for span, place in drawn if span.end <= last),
    )


def stacked(bars: Iterable[Bar], width: int) -> list[list[Cell]]:
    """The bars in as few rows as keep them and their labels apart; what lies inside stands above what is around it."""
    rows: list[Row] = []
    placed: list[tuple[int, Span]] = []
    for bar in sorted(bars, key=by_width):
        above = [number for number, hull in placed if hull.overlaps(bar.hull)]
        places = label_places(bar, width)
        number, place = next(
            (
                (number, place)
                for number in range(max(above, default=-1) + 1, len(rows))
                for place in places
                if free(rows[number], bar, place)
            ),
            (len(rows), places[0]),
        )
        if number == len(rows):
            rows.append([None] * max(width, bar.hull.end, *(place.end for place in places)))
        draw(rows[number], bar, place)
        placed.append((number, bar.hull))
    return [[cell or BLANK for cell in row] for row in rows]


def by_width(bar: Bar) -> tuple[int, int, Span, str]:
    """Sort key: narrow bars first; where the line shows equally much of two entities, the shorter one first."""
    return bar.hull.width, bar.mark.entity.hull.width, bar.hull, bar.mark.entity.label


def label_places(bar: Bar, width: int) -> list[Span]:
    """Where the label can stand, best first: in the widest fragment, in a gap, behind the bar, before it.

    Where there is no room at all it is shortened to the largest room there is.
    """
    size = sum(glyph.cells for glyph in bar.mark.name)
    inner = sorted(bar.fragments, key=lambda piece: -piece.width)
    rooms = [Span(piece.start + 1, piece.end - 1) for piece in inner] + list(bar.gaps)
    behind, before = Span(bar.hull.end + 1, width), Span(0, bar.hull.start - 2)
    places = [Span(left := room.start + (room.width - size) // 2, left + size) for room in rooms if room.width >= size]
    if behind.width >= size:
        places.append(Span(behind.start, behind.start + size))
    if before.width >= size:
        places.append(Span(before.end - size, before.end))
    if places:
        return places
    largest = max(*rooms, behind, before, key=lambda room: room.width)
    return [Span(largest.start, largest.start + max(1, largest.width))]


def taken(bar: Bar, label: Span) -> Span:
    """The columns that bar and label need; a label beside a bar keeps one column away from others."""
    start, end = bar.hull
    if label.start >= end:
        return Span(start, label.end + 1)
    return Span(min(start, max(0, label.start - 1)), end)


def free(row: Row, bar: Bar, label: Span) -> bool:
    """Whether bar and label can stand in the row."""
    start, end = taken(bar, label)
    return all(cell is None for cell in row[start:end])


def draw(row: Row, bar: Bar, label: Span) -> None:
    """Puts the bar into the row, then the label over it or beside it."""
    strokes, style = bar.mark.strokes, bar.mark.style
    start, end = taken(bar, label)
    for column in range(start, min(end, len(row))):
        row[column] = BLANK
    for gap in bar.gaps:
        for column in range(*gap):
            row[column] = Cell(strokes.gap, style)
    for piece in bar.fragments:
        for column in range(*piece):
            row[column] = Cell(stroke(bar, column), style)
    for column in (label.start - 1, label.end):
        if start <= column < end and column < len(row) and column not in bar.starts | bar.ends:
            row[column] = BLANK
    for column, shown in enumerate(shortened(bar.mark, label.width), start=label.start):
        row[column] = Cell(shown, bar.mark.bold)
    if label.end < bar.hull.start:  # else it could be taken for the label of a bar to its left
        row[label.end] = Cell(":", bar.mark.bold)


def stroke(bar: Bar, column: int) -> str:
    """What a fragment shows in a column: an end, or a part of the line."""
    strokes = bar.mark.strokes
    if column in bar.starts and column in bar.ends:
        return strokes.single
    if column in bar.starts:
        return strokes.left
    return strokes.right if column in bar.ends else strokes.line


def shortened(mark: Mark, size: int) -> list[str]:
    """The name, one string for each cell, cut with a sign where it is wider than `size`."""
    shown: list[str] = []
    full = sum(glyph.cells for glyph in mark.name)
    for glyph in mark.name:
        if full > size and len(shown) + glyph.cells > size - 1:
            return [*shown, mark.strokes.more]
        shown += [glyph.shown, *[""] * (glyph.cells - 1)]
    return shown


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
    marks = [screen.mark(entity, verdict, colors) for entity, verdict in verdicts if not misfit(entity, document)]
    show_text(document.text, marks, screen, limit)
    if not verdicts and document.text:
        screen.note("(no entities)")
    for entity, _ in verdicts:
        if misfit(entity, document):
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
