"""Text as a terminal shows it: what a reader sees as one character, how many cells it takes, and where lines wrap.

Nothing that a terminal would obey, reorder or swallow gets through: control and format characters, stray marks and half
surrogates are shown as escapes, so every glyph takes at least one cell and what stands below it stays below it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

import regex
from rich.cells import cell_len

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
