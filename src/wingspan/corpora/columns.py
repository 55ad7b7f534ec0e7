"""The layout of a file in columns: where the words are, where the tags, in which scheme; and its sentences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wingspan.corpora.checks import shorten
from wingspan.corpora.files import read_lines, stem
from wingspan.corpora.formats import CorpusError, Problems
from wingspan.corpora.tags import detect_scheme, parse

DOCUMENT_MARK = "-DOCSTART-"
EMPTY = "# sentence without words"
"""Stands for a document without words, which would leave no trace otherwise."""
_GROUP = re.compile(rf"{DOCUMENT_MARK}\s*\((.*)\)\s*", re.DOTALL)
_SPACES = re.compile(r"[ \t]+")
# phrases, not entities: the third column of CoNLL-2003
_CHUNKS = frozenset(
    ["NP", "VP", "PP", "ADJP", "ADVP", "SBAR", "PRT", "CONJP", "INTJ", "LST", "UCP", "NC", "VC", "PC", "AC"]
)


@dataclass(frozen=True)
class Layout:
    """What the columns of a file are."""

    tabs: bool
    width: int
    token: int
    tags: tuple[int, ...]
    others: tuple[int, ...]
    indexed: bool
    scheme: str

    def in_words(self) -> str:
        """The layout as a note for the user; columns count from 1 there."""
        columns = ", ".join(str(column + 1) for column in self.tags)
        where = f"columns {columns}, one layer each" if len(self.tags) > 1 else f"column {columns}"
        return f"tags in scheme {self.scheme} in {where}; words in column {self.token + 1}"

    def split(self, line: str) -> list[str]:
        """The columns of a line; empty ones at its end, from tabs too many, are left out."""
        columns = _split(line, self.tabs)
        while len(columns) > self.width and not columns[-1]:
            columns.pop()
        return columns

    def is_comment(self, columns: Sequence[str]) -> bool:
        """Whether a line that starts with # is no word: it has other columns, or no tags where tags belong."""
        if len(columns) != self.width:
            return True
        return self.scheme != "IO" and not all(is_tag(columns[column]) for column in self.tags)


@dataclass
class Block:
    """The lines of one sentence."""

    number: int
    group: str | None
    rows: list[list[str]] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    damaged: bool = False


@dataclass
class _Column:
    """What the values of one column have in common."""

    empty: bool = True
    index: bool = True
    tags: int = 0
    outside: int = 0
    others: int = 0
    bare: bool = False
    labels: set[str] = field(default_factory=set)

    def add(self, value: str, place: int) -> None:
        self.empty &= not value
        self.index &= value == str(place)
        letter, label = parse(value)
        if label is None:
            self.outside += 1
        elif letter:
            self.tags += 1
            self.bare |= len(value) == 1
            self.labels.add(label)
        else:
            self.others += 1


def find_layout(
    path: Path, token: int | None = None, tags: Sequence[int] | None = None, scheme: str | None = None
) -> Layout | None:
    """The layout of a file, or None if it has no words. What is given is taken, the rest is found out."""
    tabs, columns = _survey(path)
    if not columns:
        return None
    width = len(columns)
    while width > 1 and columns[width - 1].empty:
        width -= 1
    columns = columns[:width]
    if width < 2:
        raise CorpusError(f"{path}: one column only; give words and tags, divided by tabs or spaces")
    chosen = _layers(path, columns) if tags is None else tuple(_column(path, tag, width) for tag in tags)
    free = [column for column in range(width) if column not in chosen]
    indexed = token is None and columns[0].index and free[:1] == [0] and len(free) > 1
    place = (free[1] if indexed else free[0] if free else 0) if token is None else _column(path, token, width)
    others = tuple(column for column in free if column != place and not (indexed and column == 0))
    layout = Layout(tabs, width, place, chosen, others, indexed, scheme or "IOB2")
    if scheme is not None:
        return layout
    unread = Problems("skip")  # what is damaged is reported when the sentences are read
    found = detect_scheme(
        [row[column] for row in block.rows] for block in blocks(path, layout, unread, check=False) for column in chosen
    )
    return Layout(tabs, width, place, chosen, others, indexed, found)


def blocks(path: Path, layout: Layout, problems: Problems, check: bool = True) -> Iterator[Block]:
    """The sentences of a file. One with a line that does not fit is reported and left out."""
    marks, group = 0, None
    number = 1
    block = Block(number, group)
    for at, line in read_lines(path):
        mark = line.startswith(DOCUMENT_MARK)
        if (mark or not line.strip(" \t")) and (block.rows or EMPTY in block.comments or block.damaged):
            yield from _finished(block)
            number += 1
            block = Block(number, group)
        if not line.strip(" \t"):
            continue
        if mark:
            marks += 1
            named = _GROUP.fullmatch(line)
            block.group = group = (named[1] or None) if named else f"{stem(path)}-doc{marks}"
        else:
            columns = layout.split(line)
            if line.startswith("#") and layout.is_comment(columns):
                block.comments.append(line)
                continue
            if reason := _misfit(columns, layout, check):
                problems.add(path, at, reason)
                block.damaged = True
                continue
            block.rows.append(columns)
    if block.rows or EMPTY in block.comments:
        yield from _finished(block)


def _finished(block: Block) -> Iterator[Block]:
    if EMPTY in block.comments:
        block.comments.remove(EMPTY)
    if not block.damaged:
        yield block


def _misfit(columns: list[str], layout: Layout, check: bool) -> str | None:
    if len(columns) != layout.width:
        return f"{len(columns)} columns where the file has {layout.width}; divide every line alike"
    if not columns[layout.token]:
        return "the word is empty; remove the line"
    for column in layout.tags if check and layout.scheme != "IO" else ():
        if not is_tag(columns[column]):
            value = shorten(columns[column])
            return f"{value} in column {column + 1} is no tag of scheme {layout.scheme}; write O, or B- and a label"
    return None


def is_tag(value: str) -> bool:
    """Whether a value has the form of a tag: O, or a letter such as B and a label."""
    letter, label = parse(value)
    return label is None or bool(letter)


def _split(line: str, tabs: bool) -> list[str]:
    return line.split("\t") if tabs else _SPACES.split(line.strip(" \t"))


def _survey(path: Path) -> tuple[bool, list[_Column]]:
    """Whether tabs divide the columns, and what the columns of most lines hold."""
    tabs: bool | None = None
    by_width: dict[int, list[_Column]] = {}
    lines: Counter[int] = Counter()
    place = 0
    for _, line in read_lines(path):
        if not line.strip(" \t"):
            place = 0
            continue
        if line.startswith((DOCUMENT_MARK, "#")):  # a word may start with #, but never all words do
            continue
        if tabs is None:
            tabs = "\t" in line
        place += 1
        values = _split(line, tabs)
        lines[len(values)] += 1
        columns = by_width.setdefault(len(values), [_Column() for _ in values])
        for column, value in zip(columns, values, strict=True):
            column.add(value, place)
    if not lines:
        return False, []
    return bool(tabs), by_width[lines.most_common(1)[0][0]]


def _layers(path: Path, columns: list[_Column]) -> tuple[int, ...]:
    """The tag columns: the last one, and those before it that hold nothing but tags of entities."""
    last = columns[-1]
    if last.others > last.tags + last.outside or (last.others and not last.outside):
        raise CorpusError(
            f"{path}: the last column holds no tags such as O, B-PER, I-PER; the file is in another format, "
            "or its tags are in another column"
        )
    found = [len(columns) - 1]
    for at in range(len(columns) - 2, 0, -1):
        column = columns[at]
        if column.others or column.bare or column.empty:
            break
        if column.labels and column.labels <= _CHUNKS and not last.labels <= _CHUNKS:
            break
        found.append(at)
    return tuple(reversed(found))


def _column(path: Path, column: int, width: int) -> int:
    if not -width <= column < width:
        raise CorpusError(f"{path}: there is no column {column}; the file has {width} columns, counted from 0")
    return column % width
