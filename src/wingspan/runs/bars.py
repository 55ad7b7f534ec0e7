"""Bars under a line of text, one for each entity: stacked where they overlap, with the label inside or beside them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import NamedTuple

from rich.style import Style

from wingspan.runs.glyphs import Glyph
from wingspan.text import Entity, Span


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
