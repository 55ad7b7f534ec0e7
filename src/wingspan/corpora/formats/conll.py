"""Columns: one word on each line, a blank line after each sentence, and one or several columns of tags.

Several tag columns are layers of nested entities, as in GermEval 2014. Each sentence is one document. A file is read
first for its layout, then for its sentences, so that a file of any size needs the memory of one sentence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from wingspan.corpora.formats import Format, Holds
from wingspan.corpora.formats.conversion_loss import changed
from wingspan.corpora.formats.records import SHAPE, WORDS, shorten
from wingspan.corpora.words import in_words
from wingspan.files import BYTE_ORDER_MARK, CorpusError, Problems, atomic_write, numbered, read_lines, stem
from wingspan.text import Document, Entity, Span

_HOLDS = Holds(
    discontinuous=False,
    exact_text=False,
    documents_without_words=False,
    words=True,
    groups=True,
    ids=False,
    document_keys=frozenset({"comments", "columns"}),
)
_UNKNOWN = "_"


def read(path: Path, problems: Problems) -> Iterator[Document]:
    """The sentences of a file whose columns and tagging scheme are found out and reported as a note."""
    return read_conll(path, problems)


def read_conll(
    path: Path,
    problems: Problems,
    *,
    token_column: int | None = None,
    tag_columns: Sequence[int] | None = None,
    scheme: str | None = None,
) -> Iterator[Document]:
    """The sentences of a file. Columns count from 0, or from the end if negative; what is not given is found out."""
    if scheme is not None and scheme not in SCHEMES:
        raise CorpusError(f"{path}: unknown tagging scheme {scheme!r}; use one of {', '.join(SCHEMES)}")
    layout = find_layout(path, token_column, tag_columns, scheme)
    if layout is None:
        return
    problems.note(path, layout.in_words())
    repairs = 0
    for block in blocks(path, layout, problems):
        document, broken = _document(block, layout, numbered(path, block.number))
        repairs += broken
        yield document
    if repairs:
        problems.note(path, f"{repairs} tags break the scheme {layout.scheme}; they are read as conlleval reads them")


def _document(block: Block, layout: Layout, name: str) -> tuple[Document, int]:
    words = tuple(row[layout.token] for row in block.rows)
    entities: dict[TaggedSpan, Entity] = {}  # two layers may say the same
    broken = 0
    for column in layout.tags:
        spans, wrong = spans_of([row[column] for row in block.rows], layout.scheme)
        broken += wrong
        entities |= {found: Entity(found[0], (Span(*found[1:]),)) for found in spans}
    meta: dict[str, object] = {SHAPE: WORDS}
    if block.comments:
        meta["comments"] = block.comments
    if layout.others:
        meta["columns"] = [[row[column] for row in block.rows] for column in layout.others]
    return Document.from_words(name, words, tuple(entities.values()), group=block.group, meta=meta), broken


def write(documents: Iterable[Document], path: Path) -> None:
    """Writes IOB2 with as many tag columns as the most deeply nested sentence needs, divided by tabs.

    Groups become `-DOCSTART- (name)` lines. Comments and other columns that were read are written back; a sentence that
    has fewer of them than others has _ in the rest.
    """
    kept = list(documents)  # the number of columns is the same in the whole file, and the last sentence may set it
    tagged = [_tagged(document) for document in kept]
    layers = max((len(tags) for _, tags in tagged), default=1)
    others = [_other_columns(document) for document in kept]
    width = max(map(len, others), default=0)
    group = None
    with atomic_write(path) as out:
        for number, (document, (words, tags), extra) in enumerate(zip(kept, tagged, others, strict=True)):
            head = [f"{DOCUMENT_MARK} ({document.group or ''})", ""] if document.group != group else []
            group = document.group
            columns = [words, *extra, *([[_UNKNOWN] * len(words)] * (width - len(extra))), *tags]
            columns += [["O"] * len(words)] * (layers - len(tags))
            rows = ["\t".join(row) for row in zip(*columns, strict=True)]
            _check(document, words, columns, layers)
            lines = [*head, *_comments(document), *(rows or [EMPTY])]
            if number == 0 and lines[:1] and lines[0].startswith(BYTE_ORDER_MARK):
                out.write(BYTE_ORDER_MARK)  # readers drop one, and the word has one of its own
            out.write("\n".join([*lines, "", ""]))


def _tagged(document: Document) -> tuple[list[str], list[list[str]]]:
    words, placed = in_words(document)
    spans = []
    for entity, fragments in placed:
        if len(fragments) > 1:
            raise CorpusError(
                f"document {document.id}: {entity.label!r} at {entity.start} has {len(fragments)} fragments, which "
                "columns cannot hold; convert with --lossy, or write jsonl, brat or bioc"
            )
        spans.append((entity.label, *fragments[0]))
    return words, tags_of(len(words), spans)


def _other_columns(document: Document) -> list[list[str]]:
    columns = document.meta.get("columns", [])
    size = len(document.words or ())
    fit = isinstance(columns, list) and all(isinstance(column, list) and len(column) == size for column in columns)
    return [[str(value) for value in column] for column in columns] if fit else []


def _comments(document: Document) -> list[str]:
    comments = document.meta.get("comments", [])
    lines = [str(comment) for comment in comments] if isinstance(comments, list) else []
    return [line for line in lines if line.startswith("#") and "\n" not in line]


def _changes(document: Document) -> Counter[str]:
    """Comments and columns of another shape than ours, and comments whose last column could be a tag."""
    comments = [
        line for line in _comments(document) if "\t" not in line or not is_tag(line.rstrip("\t").split("\t")[-1])
    ]
    back = {"comments": [line for line in comments if line != EMPTY], "columns": _other_columns(document)}
    return changed(document, [replace(document, meta=back)], _HOLDS)


def _check(document: Document, words: list[str], columns: list[list[str]], layers: int) -> None:
    """What would be read back as something else is refused."""
    for column in columns:
        for value in column:
            if "\t" in value or "\n" in value or not value:
                raise CorpusError(
                    f"document {document.id}: {value!r} is empty or holds a tab or line end, which columns cannot "
                    "hold; write jsonl instead"
                )
    if any(word.startswith(DOCUMENT_MARK) for word in words):
        raise CorpusError(f"document {document.id}: the word {DOCUMENT_MARK} marks a new document in columns")
    for comment in _comments(document):
        parts = comment.split("\t")
        if len(parts) == len(columns) and all(map(is_tag, parts[-layers:])):
            raise CorpusError(f"document {document.id}: the comment {comment!r} would be read as a word; shorten it")
    if "\n" in (document.group or ""):
        raise CorpusError(f"document {document.id}: the group {document.group!r} holds a line end; rename it")


FORMAT = Format(
    name="conll",
    read=read,
    write=write,
    suffixes=(".conll", ".iob", ".iob2", ".bio", ".bioes", ".tsv", ".annotated"),
    holds=_HOLDS,
    unit="words",
    description="one word on each line with tags (CoNLL, GermEval): read in IOB1, IOB2, BIOES, BILOU or BMES, written "
    "in IOB2, nested entities in further tag columns",
    changes=_changes,
)


# --- The layout of a file in columns: where the words are, where the tags, in which scheme; and its sentences.


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


# --- Tags to spans and back: IOB1, IOB2, BIOES, BILOU, BMES (also BMEWO) and IO (labels without prefixes).


TaggedSpan = tuple[str, int, int]
"""A label and a half-open range of words."""

UNTYPED = "ENTITY"
"""The label of tags that are a bare prefix, as in corpora with one class (`B`, `I`, `O`)."""

_PREFIXED = re.compile(r"([BIMELSUW])[-_](.+)", re.DOTALL)
_BARE = re.compile(r"[BIMELSUW]")
_OUTSIDE = frozenset({"O", "", "-", "_"})
# every scheme says the same four things with other letters
_ROLES = {
    "B": "begin",
    "I": "inside",
    "M": "inside",
    "E": "end",
    "L": "end",
    "S": "single",
    "U": "single",
    "W": "single",
}
_CLOSES_EXPLICITLY = frozenset({"BIOES", "BILOU", "BMES"})
SCHEMES = ("IOB1", "IOB2", "BIOES", "BILOU", "BMES", "IO")


def detect_scheme(tag_sequences: Iterable[Sequence[str]]) -> str:
    """The scheme that the tags follow, or break least: a corpus without entities counts as IOB2."""
    letters: set[str] = set()
    starts_inside = False  # some entity starts with I-, which IOB2 forbids
    begins_apart = False  # some B- does not follow an entity of its own label, which IOB1 forbids
    unprefixed = False
    for tags in tag_sequences:
        before: str | None = None
        for tag in tags:
            letter, label = parse(tag)
            if letter:
                letters.add(letter)
                starts_inside |= letter == "I" and before != label
                begins_apart |= letter == "B" and before != label
            elif label is not None:
                unprefixed = True
            before = label
    if letters & {"M", "W"}:
        return "BMES"
    if letters & {"L", "U"}:
        return "BILOU"
    if letters & {"E", "S"}:
        return "BIOES"
    if not letters and unprefixed:
        return "IO"
    return "IOB1" if starts_inside and not begins_apart else "IOB2"


@lru_cache(maxsize=65536)  # a corpus has few tags and asks for each of them at every word
def parse(tag: str) -> tuple[str, str | None]:
    """A tag's prefix letter ("" if it has none) and its label (None outside of entities)."""
    if tag in _OUTSIDE:
        return "", None
    if found := _PREFIXED.fullmatch(tag):
        return found[1], found[2]
    if _BARE.fullmatch(tag):
        return tag, UNTYPED
    return "", tag


def spans_of(tags: Sequence[str], scheme: str) -> tuple[list[TaggedSpan], int]:
    """The spans of one sentence, and how many tags broke the scheme.

    A broken tag never loses a word: an entity without a beginning begins where it is met, and one without an end goes
    on to its last word, as conlleval reads them.
    """
    if scheme not in SCHEMES:
        raise ValueError(f"unknown tagging scheme {scheme!r}; use one of {', '.join(SCHEMES)}")
    spans: list[TaggedSpan] = []
    repairs = 0
    start, label = 0, None  # the entity that is open

    def close(end: int) -> None:
        if label is not None:
            spans.append((label, start, end))

    for at, tag in enumerate(tags):
        letter, new = _untyped_as_label(tag) if scheme == "IO" else parse(tag)
        role = _ROLES.get(letter, "inside")
        goes_on = new is not None and new == label and role in ("inside", "end")
        if not goes_on:
            repairs += label is not None and scheme in _CLOSES_EXPLICITLY
            close(at)
            start, label = at, new
            repairs += new is not None and role in ("inside", "end") and scheme not in ("IOB1", "IO")
        if new is not None and role in ("end", "single"):
            close(at + 1)
            label = None
    repairs += label is not None and scheme in _CLOSES_EXPLICITLY
    close(len(tags))
    return spans, repairs


def _untyped_as_label(tag: str) -> tuple[str, str | None]:
    return "", None if tag in _OUTSIDE else tag


def tags_of(n_words: int, entities: Iterable[TaggedSpan]) -> list[list[str]]:
    """IOB2 tags in as many layers as nesting asks for, at least one; the outermost entities are in the first."""
    layers = [["O"] * n_words]
    for label, start, end in sorted(entities, key=lambda entity: (entity[1], -entity[2], entity[0])):
        if not 0 <= start < end <= n_words:
            raise ValueError(
                f"entity {label!r} at words {start}-{end} does not fit {n_words} words; ends are half-open"
            )
        for tags in layers:
            if all(tag == "O" for tag in tags[start:end]):
                break
        else:
            tags = ["O"] * n_words
            layers.append(tags)
        tags[start:end] = [f"B-{label}"] + [f"I-{label}"] * (end - start - 1)
    return layers
