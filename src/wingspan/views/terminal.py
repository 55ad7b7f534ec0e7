"""A document in a terminal: its text, and its entities as labeled bars below their words.

Colors show the label or, beside gold, the verdict; names, signs and strokes show it too. Without a terminal, under
NO_COLOR, or where the terminal knows no Unicode, everything that is drawn is plain ASCII and has no color.
"""

import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, groupby, pairwise
from typing import NamedTuple

import regex
from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.text import Text

from wingspan.text import Document, Entity, Span
from wingspan.views.entities import VERDICT_COLORS, VERDICTS, EntityVerdict, judged, label_colors, misfit

TAB = " " * 4
LINE_BREAKS = frozenset(("\n", "\r", "\r\n", "\v", "\f", "\x85", "\u2028", "\u2029"))
NO_BREAK_SPACES = frozenset("\u00a0\u2007\u202f")
HIDDEN = frozenset(("Cc", "Cf", "Cs"))  # controls, format characters (bidi overrides, zero-width space), half pairs
JOINER = "\u200d"
LEFT_TO_RIGHT_MARK = "\u200e"
CLUSTERS = regex.compile(r"\X")
PICTURE = regex.compile(r"\p{Extended_Pictographic}")
RIGHT_TO_LEFT = frozenset(("R", "AL", "AN"))

ScreenCell = tuple[str, Style]
"""The character of one cell, which is empty in the second cell of a wide one, and its style."""
BLANK: ScreenCell = (" ", Style.null())


class Strokes(NamedTuple):
    """The look of a verdict: a sign before the label, then the strokes of a bar."""

    sign: str
    left: str
    line: str
    right: str
    single: str  # a bar of one cell
    gap: str  # between fragments
    more: str  # the last cell of a label for which there is no room


STROKES: dict[EntityVerdict, Strokes] = {
    "found": Strokes("", *"╰─╯╵┈…"),
    "right": Strokes("✓", *"╰─╯╵┈…"),
    "spurious": Strokes("+", *"╚═╝╵┈…"),
    "missed": Strokes("✗", *"╰╌╯╵┈…"),
}
ASCII_STROKES: dict[EntityVerdict, Strokes] = {
    "found": Strokes("", *"\\-/^.>"),
    "right": Strokes("ok", *"\\-/^.>"),
    "spurious": Strokes("+", *"\\=/^.>"),
    "missed": Strokes("x", *"\\~/^.>"),
}


# Text as glyphs, in lines that fit the screen.


class Glyph(NamedTuple):
    """One user-perceived character: its place in the text, its printed form, and how many cells that takes."""

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


def glyphs(text: str, encoding: str = "utf-8") -> Iterator[Glyph]:
    """The text from left to right; controls, and characters that the encoding does not have, are escaped."""
    for match in CLUSTERS.finditer(text):
        start, end = match.span()
        cluster = match.group()
        # a joiner merges pictures into one; between letters it changes nothing
        cells = cell_len(cluster if PICTURE.search(cluster) else cluster.replace(JOINER, ""))
        hidden = cells == 0 or all(unicodedata.category(character) in HIDDEN for character in cluster)
        if cluster in LINE_BREAKS:
            yield Glyph(start, end, "", 0, space=True, ends_line=True)
        elif cluster == "\t":
            yield Glyph(start, end, TAB, len(TAB), space=True)
        elif hidden or cluster.encode(encoding, "ignore").decode(encoding) != cluster:
            for at, character in enumerate(cluster, start):
                shown = ascii(character)[1:-1]
                yield Glyph(at, at + 1, shown, len(shown), escaped=True)
        else:
            yield Glyph(start, end, cluster, cells, cluster.isspace() and cluster not in NO_BREAK_SPACES)


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
    cut = 0  # how many glyphs of the line can end it
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


class Line:
    """One line of text on the screen."""

    def __init__(self, line: Sequence[Glyph]) -> None:
        self.glyphs = line
        self.left = list(accumulate((glyph.cells for glyph in line), initial=0))
        self.start, self.end = line[0].start, line[-1].end

    def places(self, span: Span) -> range:
        """The glyphs of the line that hold some of the span."""
        first = bisect_right(self.glyphs, span.start, key=lambda glyph: glyph.end)
        return range(first, max(first, bisect_left(self.glyphs, span.end, key=lambda glyph: glyph.start)))

    def columns(self, span: Span) -> Span:
        """The columns of the span; one, if it lies in a line break or in a space at the line's end."""
        places = self.places(span)
        if not places:
            return Span(0, 0)
        columns = Span(self.left[places.start], self.left[places.stop])
        if columns.width or span.start < self.start or span.end > self.end:
            return columns
        start = max(0, columns.start - 1)
        return Span(start, start + 1)


# Bars under a line of text: stacked where they overlap, with the label inside or beside them.


class Mark(NamedTuple):
    """An entity as it is drawn."""

    entity: Entity
    name: Sequence[Glyph]
    style: Style
    strokes: Strokes

    @property
    def bold(self) -> Style:
        """The style of words and names; none where nothing is styled."""
        return self.style + Style(bold=True) if self.style else self.style


class LineBar:
    """The part of an entity that lies on one line, in columns; open where it goes on in another line."""

    def __init__(self, mark: Mark, line: Line) -> None:
        self.mark = mark
        self.strokes: dict[int, str] = {}  # by column
        spans, look = mark.entity.spans, mark.strokes
        between = (Span(one.end, two.start) for one, two in pairwise(spans) if one.end < two.start)
        self.gaps = [columns for span in between if (columns := line.columns(span)).width]
        drawn = [(span, columns) for span in spans if (columns := line.columns(span)).width]
        self.fragments = [columns for _, columns in drawn]
        for columns in self.gaps:
            self.strokes |= dict.fromkeys(range(*columns), look.gap)
        for columns in self.fragments:
            self.strokes |= dict.fromkeys(range(*columns), look.line)
        starts = {columns.start for span, columns in drawn if span.start >= line.start}
        ends = {columns.end - 1 for span, columns in drawn if span.end <= line.end}
        self.ends = starts | ends
        for column in self.ends:
            self.strokes[column] = (
                look.left if column not in ends else look.right if column not in starts else look.single
            )
        self.hull = Span(min(self.strokes), max(self.strokes) + 1) if self.strokes else Span(0, 0)

    def label_places(self, width: int) -> list[Span]:
        """Places for the label, best first: in the widest fragment, in a gap, behind the bar, before it."""
        size = sum(glyph.cells for glyph in self.mark.name)
        inner = sorted(self.fragments, key=lambda piece: -piece.width)
        rooms = [Span(piece.start + 1, piece.end - 1) for piece in inner] + self.gaps
        behind, before = Span(self.hull.end + 1, width), Span(0, self.hull.start - 2)
        starts = [room.start + (room.width - size) // 2 for room in rooms if room.width >= size]
        starts += [behind.start] if behind.width >= size else []
        starts += [before.end - size] if before.width >= size else []
        if starts:
            return [Span(start, start + size) for start in starts]
        # no room at all: it is shortened
        largest = max(*rooms, behind, before, key=lambda room: room.width)
        return [Span(largest.start, largest.start + max(1, largest.width))]

    def taken(self, label: Span) -> range:
        """The columns of bar and label; a label beside a bar keeps one column away from others."""
        if label.start >= self.hull.end:
            return range(self.hull.start, label.end + 1)
        return range(min(self.hull.start, max(0, label.start - 1)), self.hull.end)

    def draw(self, row: list[ScreenCell | None], label: Span) -> None:
        """Puts the bar into the row, then the label over it or beside it."""
        beside = {label.start - 1, label.end} - self.ends
        for column in self.taken(label):
            if column < len(row):
                stroke = None if column in beside else self.strokes.get(column)
                row[column] = (stroke, self.mark.style) if stroke else BLANK
        name: list[str] = []  # one string for each cell
        full = sum(glyph.cells for glyph in self.mark.name)
        for glyph in self.mark.name:
            if full > label.width and len(name) + glyph.cells > label.width - 1:
                name.append(self.mark.strokes.more)
                break
            name += [glyph.shown, *[""] * (glyph.cells - 1)]
        for column, shown in enumerate(name, start=label.start):
            row[column] = (shown, self.mark.bold)
        if label.end < self.hull.start:  # else it could be taken for the label of a bar to its left
            row[label.end] = (":", self.mark.bold)


def stacked(bars: Iterable[LineBar], width: int) -> list[list[ScreenCell]]:
    """The bars in as few rows as keep them and their labels apart; inner entities lie above outer ones.

    Narrow bars come first; where the line shows equally much of two entities, the shorter one.
    """
    rows: list[list[ScreenCell | None]] = []
    placed: list[tuple[int, Span]] = []
    ordered = sorted(bars, key=lambda b: (b.hull.width, b.mark.entity.hull.width, b.hull, b.mark.entity.label))
    for bar in ordered:
        below = max((number for number, hull in placed if hull.overlaps(bar.hull)), default=-1) + 1
        places = bar.label_places(width)
        free = (
            (number, place)
            for number in range(below, len(rows))
            for place in places
            if not any(rows[number][slice(bar.taken(place).start, bar.taken(place).stop)])
        )
        number, place = next(free, (len(rows), places[0]))
        if number == len(rows):
            rows.append([None] * max(width, bar.hull.end, *(place.end for place in places)))
        bar.draw(rows[number], place)
        placed.append((number, bar.hull))
    return [[cell or BLANK for cell in row] for row in rows]


# The screen.


class Screen:
    """A console: colors and Unicode strokes only on a terminal that has both."""

    def __init__(self, console: Console) -> None:
        self.console = console
        colored = console.is_terminal and not console.no_color and console.color_system is not None
        self.plain = not colored or console.options.ascii_only
        self.width, self.encoding = max(1, console.width), console.encoding
        self.strokes = ASCII_STROKES if self.plain else STROKES

    def name(self, text: str) -> str:
        """A text that is safe to print on one line."""
        return "".join(glyph.shown for glyph in one_line(text, self.encoding))

    def words(self, line: Line, marks: Iterable[Mark], bars: Iterable[LineBar]) -> Text:
        """A line of text; each character has the color of the shortest entity around it."""
        styles = [Style(dim=True) if glyph.escaped and not self.plain else Style.null() for glyph in line.glyphs]
        for mark in sorted(marks, key=lambda mark: -mark.entity.hull.width):
            for span in mark.entity.spans:
                for place in line.places(span):
                    styles[place] += mark.bold
        borders = {0, *(border for bar in bars for piece in bar.fragments for border in piece)}
        shown = (character for glyph in line.glyphs if not glyph.escaped for character in glyph.shown)
        isolated = not self.plain and any(unicodedata.bidirectional(each) in RIGHT_TO_LEFT for each in shown)
        cells = []
        for glyph, column, style in zip(line.glyphs, line.left, styles, strict=False):
            if isolated and column in borders:
                # keeps Hebrew and Arabic inside their own columns where the terminal would turn whole lines round
                cells.append((LEFT_TO_RIGHT_MARK, Style.null()))
            cells.append((glyph.shown, style))
        return as_text(cells)

    def note(self, text: str) -> None:
        """A remark, set off from the document's own words."""
        self.print(Text(text, "" if self.plain else "dim"))

    def print(self, text: Text) -> None:
        """One row as it is: no markup, no emoji codes, no wrapping, no cropping."""
        self.console.print(text, soft_wrap=True, highlight=False)


def as_text(cells: Iterable[ScreenCell]) -> Text:
    """Cells as rich text without the blanks at the end."""
    text = Text()
    for style, same in groupby(cells, key=lambda cell: cell[1]):
        text.append("".join(shown for shown, _ in same), style)
    text.rstrip()
    return text


def show(
    document: Document,
    console: Console,
    gold: Document | None = None,
    limit: int | None = None,
    labels: Iterable[str] = (),
) -> None:
    """Prints the text in at most `limit` lines with the entities below their words.

    With `gold`, each entity is marked as right, spurious or missed. `labels` are all labels of the corpus or model:
    with them, a label has one color in every document, the one that `legend` shows for the same labels.
    """
    screen = Screen(console)
    verdicts = judged(document, gold)
    colors = label_colors([*labels, *(entity.label for entity, _ in verdicts)])
    if not document.text:
        screen.note("(empty text)")
    marks, notes = [], []
    for entity, verdict in verdicts:
        if note := misfit(entity, document):
            notes.append(screen.name(note))
            continue
        strokes = screen.strokes[verdict]
        name = one_line(f"{strokes.sign} {entity.label}".lstrip(), screen.encoding)
        style = Style.null() if screen.plain else Style(color=VERDICT_COLORS[verdict] or colors[entity.label])
        marks.append(Mark(entity, name, style, strokes))
    show_text(document.text, marks, screen, limit)
    if not verdicts and document.text:
        screen.note("(no entities)")
    for note in notes:
        screen.note(note)
    if gold is not None:
        counts = Counter(verdict for _, verdict in verdicts)
        signs = [
            Text(
                f"{screen.strokes[verdict].sign} {counts[verdict]} {verdict}",
                Style.null() if screen.plain else Style(color=VERDICT_COLORS[verdict]),
            )
            for verdict in VERDICTS
        ]
        screen.print(Text("   ").join(signs))


def show_text(text: str, marks: Sequence[Mark], screen: Screen, limit: int | None) -> None:
    """The lines of the text, each with the bars of the entities that lie on it."""
    waiting = sorted(marks, key=lambda mark: mark.entity.start, reverse=True)
    active: list[Mark] = []
    rows: list[list[ScreenCell]] = []
    for number, line in enumerate(map(Line, wrapped(text, screen.width, screen.encoding))):
        if number == limit:
            screen.note(f"... {len(text) - line.start} more characters; entities there: {len(waiting)}")
            return
        while waiting and waiting[-1].entity.start < line.end:
            active.append(waiting.pop())
        active = [mark for mark in active if mark.entity.end > line.start]
        if rows:  # a blank between bars and the words of the next line
            screen.print(Text())
        bars = [bar for mark in active if (bar := LineBar(mark, line)).strokes]
        screen.print(screen.words(line, active, bars))
        rows = stacked(bars, screen.width)
        for row in rows:
            screen.print(as_text(row))


def legend(labels: Iterable[str], console: Console) -> None:
    """Prints the labels in their colors, as many on a line as fit."""
    screen = Screen(console)
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
