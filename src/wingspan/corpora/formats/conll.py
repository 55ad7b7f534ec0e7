"""Columns: one word per line, a blank line after each sentence, and one or several columns of tags.

Several tag columns are layers of nested entities, as in GermEval 2014. Each sentence is one document. A file is read
first for its columns, then for its sentences, so that a file of any size needs the memory of one sentence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from pathlib import Path

from wingspan.corpora.formats import Format, Holds
from wingspan.corpora.formats.conversion_loss import changed
from wingspan.corpora.formats.records import SHAPE, WORDS, shorten
from wingspan.corpora.words import in_words
from wingspan.files import BYTE_ORDER_MARK, CorpusError, Problems, atomic_write, numbered, read_lines, stem
from wingspan.text import Document, Entity

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
    """The sentences of a file; a note reports the columns (counted from 1) and the tagging scheme."""
    columns = _find_columns(path)
    if columns is None:
        return
    numbers = ", ".join(str(column + 1) for column in columns.tags)
    where = f"columns {numbers}, one layer each" if len(columns.tags) > 1 else f"column {numbers}"
    problems.note(path, f"tags in scheme {columns.scheme} in {where}; words in column {columns.token + 1}")
    repairs = 0
    for sentence in sentences(path, columns, problems):
        words = tuple(row[columns.token] for row in sentence.rows)
        entities: dict[TaggedSpan, Entity] = {}  # two layers may have the same entity
        for column in columns.tags:
            spans, broken = spans_of([row[column] for row in sentence.rows], columns.scheme)
            repairs += broken
            entities |= {span: Entity.at(*span) for span in spans}
        meta: dict[str, object] = {SHAPE: WORDS}
        if sentence.comments:
            meta["comments"] = sentence.comments
        if columns.others:
            meta["columns"] = [[row[column] for row in sentence.rows] for column in columns.others]
        name = numbered(path, sentence.number)
        yield Document.from_words(name, words, tuple(entities.values()), group=sentence.group, meta=meta)
    if repairs:
        problems.note(path, f"{repairs} tags break the scheme {columns.scheme}; they are read as conlleval reads them")


def write(documents: Iterable[Document], path: Path) -> None:
    """Writes IOB2 with as many tag columns as the most deeply nested sentence needs, divided by tabs.

    Groups become `-DOCSTART- (name)` lines. Comments and other columns that were read are written back; a sentence
    with fewer columns than others gets _ in the rest.
    """
    kept = list(documents)  # all sentences have the same number of columns, and the last one may decide it
    tagged = []
    for document in kept:
        words, placed = in_words(document)
        spans = []
        for entity, fragments in placed:
            if len(fragments) > 1:
                raise CorpusError(
                    f"document {document.id}: {entity.label!r} at {entity.start} has {len(fragments)} fragments, which "
                    "columns cannot hold; convert with --lossy, or write jsonl, brat or bioc"
                )
            spans.append((entity.label, *fragments[0]))
        tagged.append((words, tags_of(len(words), spans)))
    layers = max((len(tags) for _, tags in tagged), default=1)
    others = [_other_columns(document) for document in kept]
    width = max(map(len, others), default=0)
    plain = any(not word.startswith("#") for words, _ in tagged for word in words)
    made = ConllColumns(
        tabs=True,
        width=1 + width + layers,
        token=0,
        tags=tuple(range(1 + width, 1 + width + layers)),
        others=tuple(range(1, 1 + width)),
        scheme="IOB2",
        marked=False,
        # as the reader will know them
        labels=frozenset() if plain or any(document.entities for document in kept) else None,
    )
    wordless = not any(words for words, _ in tagged)
    if width and not wordless and all(word == str(at) for words, _ in tagged for at, word in enumerate(words, 1)):
        raise CorpusError(
            "all words are the numbers of their places, which would be read as such beside other columns; write jsonl"
        )
    group = None
    with atomic_write(path) as out:
        for number, (document, (words, tags), extra) in enumerate(zip(kept, tagged, others, strict=True)):
            head = [f"{DOCUMENT_MARK} ({document.group or ''})", ""] if document.group != group else []
            group = document.group
            columns = [words, *extra, *([[_UNKNOWN] * len(words)] * (width - len(extra))), *tags]
            columns += [["O"] * len(words)] * (layers - len(tags))
            rows = ["\t".join(row) for row in zip(*columns, strict=True)]
            _check(document, words, columns, made, wordless)
            lines = [*head, *_comments(document), *(rows or [EMPTY])]
            if number == 0 and lines[:1] and lines[0].startswith(BYTE_ORDER_MARK):
                out.write(BYTE_ORDER_MARK)  # readers drop the first one, and this word starts with one
            out.write("\n".join([*lines, "", ""]))


def _other_columns(document: Document) -> list[list[str]]:
    """The columns that were kept, unless the last of them would be read as tags of entities."""
    columns, size = document.meta.get("columns", []), len(document.words or ())
    if not isinstance(columns, list) or not all(isinstance(column, list) and len(column) == size for column in columns):
        return []
    beside_tags = _ColumnValues()
    for place, value in enumerate(columns[-1] if columns else (), 1):
        beside_tags.add(str(value), place)
    misread = beside_tags.labels and beside_tags.layer and not beside_tags.chunks
    return [] if misread else [[str(value) for value in column] for column in columns]


def _comments(document: Document) -> list[str]:
    comments = document.meta.get("comments", [])
    lines = [str(comment) for comment in comments] if isinstance(comments, list) else []
    return [line for line in lines if line.startswith("#") and "\n" not in line]


def _changes(document: Document) -> Counter[str]:
    """Comments and columns of another shape than the reader makes, and comments whose last column could be a tag."""
    comments = [
        line for line in _comments(document) if "\t" not in line or not is_tag(line.rstrip("\t").split("\t")[-1])
    ]
    back = {"comments": [line for line in comments if line != EMPTY], "columns": _other_columns(document)}
    return changed(document, [replace(document, meta=back)], _HOLDS)


def _check(document: Document, words: list[str], columns: list[list[str]], made: ConllColumns, wordless: bool) -> None:
    """Refuses values that would be read back as something else."""
    for column in columns:
        for value in column:
            if "\t" in value or "\n" in value or not value:
                raise CorpusError(
                    f"document {document.id}: {value!r} is empty or holds a tab or line end, which columns cannot "
                    "hold; write jsonl instead"
                )
    if any(map(_is_mark, words)):
        raise CorpusError(f"document {document.id}: the word {DOCUMENT_MARK} marks a new document in columns")
    for comment in _comments(document):
        alone = wordless and (_ends_with_tab_and_tag(comment) or _ends_with_tag(comment))
        if alone or not made.is_comment(comment, made.split(comment)):
            raise CorpusError(f"document {document.id}: the comment {comment!r} would be read as a word; shorten it")
    if "\n" in (document.group or ""):
        raise CorpusError(f"document {document.id}: the group {document.group!r} holds a line end; rename it")


# Columns and sentences of a file

DOCUMENT_MARK = "-DOCSTART-"
EMPTY = "# sentence without words"  # the line of a document without words, which would leave no trace otherwise
_GROUP = re.compile(rf"{DOCUMENT_MARK}\s*\((.*)\)\s*", re.DOTALL)
_SPACES = re.compile(r"[ \t]+")
_FREE_TEXT = re.compile(r"#(?:#*[ \t]|[^ \t=]*[ \t]*=)")  # `# made by hand`, `#id = 1`: hardly a word
# phrases, not entities: the third column of CoNLL-2003
_CHUNKS = frozenset(
    ["NP", "VP", "PP", "ADJP", "ADVP", "SBAR", "PRT", "CONJP", "INTJ", "LST", "UCP", "NC", "VC", "PC", "AC"]
)


@dataclass(frozen=True)
class ConllColumns:
    """The columns of a file: where the words are, where the tags, and in which scheme."""

    tabs: bool
    width: int
    token: int
    tags: tuple[int, ...]
    others: tuple[int, ...]
    scheme: str
    marked: bool
    """Whether document marks divide the file; a single one at its top does not."""
    labels: frozenset[str] | None
    """Tags without prefix, which tell words that start with # from comments; None: no tag with a label is known."""

    def split(self, line: str) -> list[str]:
        """The columns of a line; empty ones at its end, from extra tabs, are left out."""
        columns = _split(line, self.tabs)
        while len(columns) > self.width and not columns[-1]:
            columns.pop()
        return columns

    def is_comment(self, line: str, values: Sequence[str]) -> bool:
        """Whether a line that starts with # is no word, by its columns and tags.

        As long as no label is known, anything may be one, but not in free text.
        """
        if len(values) != self.width:
            return True
        tags = [values[column] for column in self.tags]
        if self.labels is None and not _FREE_TEXT.match(line):
            return not all(is_tag(tag, "IO") for tag in tags)
        return not all(is_tag(tag) or tag in (self.labels or ()) for tag in tags)

    def is_doubtful(self, comment: str, values: Sequence[str]) -> bool:
        """Whether a comment may be a word after all: it has as many columns, or a tag with prefix and label."""
        free = _FREE_TEXT.match(comment)
        if free and "=" in comment:
            return False
        # beside prefixed tags, or numbers of words, free text may well have as many columns, as in GermEval
        if len(values) == self.width and not (free and (self.token or self.labels == frozenset())):
            return True
        return any(parse(value)[0] and len(value) > 1 for value in (values[-1:] if free else _split(comment, False)))

    def misfit(self, values: Sequence[str]) -> str | None:
        """The problem with the columns of a line, or None."""
        if len(values) != self.width:
            columns = "1 column" if len(values) == 1 else f"{len(values)} columns"
            return f"{columns} where the file has {self.width}; divide every line alike"
        if not values[self.token]:
            return "the word is empty; remove the line"
        for column in self.tags if self.labels is not None else ():
            if not is_tag(values[column], self.scheme):
                return not_a_tag(values[column], self.scheme, f" in column {column + 1}")
        return None


@dataclass
class SentenceLines:
    """The lines of one sentence."""

    number: int
    group: str | None
    rows: list[list[str]] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    damaged: bool = False


@dataclass
class _ColumnValues:
    """Properties of the values of one column."""

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

    @property
    def layer(self) -> bool:
        """Whether it has tags of entities; a value that is none may be among them, and is reported with its line."""
        return not self.bare and not self.empty and self.others <= self.tags

    @property
    def chunks(self) -> bool:
        """Whether all its tags are those of phrases."""
        return bool(self.labels) and self.labels <= _CHUNKS


def _find_columns(path: Path) -> ConllColumns | None:
    """The columns of a file, or None if it has no words."""
    # a line that starts with # may be a comment; where all do, words are those that end with a tag
    for has_columns in (_is_no_comment, _ends_with_tab_and_tag, _ends_with_tag):
        tabs, values, marked = _survey(path, has_columns)
        if values:
            break
    while len(values) > 1 and values[-1].empty:
        values.pop()
    width = len(values)
    if width == 0:
        return None
    if width < 2:
        raise CorpusError(f"{path}: one column only; give words and tags, divided by tabs or spaces")
    chosen = _layers(path, values)
    free = [column for column in range(width) if column not in chosen]
    if values[0].index and len(free) > 1:
        free = free[1:]  # the first column numbers the words
    # in a file without annotations, a comment of as many columns is no word with a label of its own
    unlabeled = has_columns is _is_no_comment and not any(values[at].tags or values[at].others for at in chosen)
    labels = frozenset("O") if unlabeled else None
    columns = ConllColumns(tabs, width, free[0], chosen, tuple(free[1:]), "IOB2", marked, labels)
    seen: set[str] = set()

    def tag_sequences() -> Iterator[list[str]]:
        # damaged lines are reported when the sentences are read
        for sentence in sentences(path, columns, Problems("skip")):
            for column in chosen:
                tags = [row[column] for row in sentence.rows]
                seen.update(tags)
                yield tags

    scheme = detect_scheme(tag_sequences())
    if any(parse(tag)[1] for tag in seen):
        columns = replace(columns, labels=frozenset(seen if scheme == "IO" else ()))
    return replace(columns, scheme=scheme)


def sentences(path: Path, columns: ConllColumns, problems: Problems) -> Iterator[SentenceLines]:
    """The sentences of a file. A sentence with a line that does not fit is reported and left out."""
    marks, group = 0, None
    doubtful: list[int] = []
    sentence = SentenceLines(1, group)
    for at, line in chain(read_lines(path), [(0, "")]):
        mark = _is_mark(line)
        started = sentence.rows or EMPTY in sentence.comments or sentence.damaged
        if started and (mark or not line.strip(" \t")):
            if EMPTY in sentence.comments:
                sentence.comments.remove(EMPTY)
            if not sentence.damaged:
                yield sentence
            sentence = SentenceLines(sentence.number + 1, group)
        if not line.strip(" \t"):
            continue
        values = columns.split(line)
        if mark:
            marks += 1
            name = _GROUP.fullmatch(line.lstrip(" \t"))
            made = f"{stem(path)}-doc{marks}" if columns.marked else None
            sentence.group = group = (name[1] or None) if name else made
        elif line.startswith("#") and columns.is_comment(line, values):
            sentence.comments.append(line)
            if columns.is_doubtful(line, values):
                doubtful.append(at)
        elif reason := columns.misfit(values):
            problems.add(path, at, reason)
            sentence.damaged = True
        else:
            sentence.rows.append(values)
    if doubtful:
        problems.warn(
            path,
            f"comments that may be words: {len(doubtful):,}, the first in line {doubtful[0]}; a word needs "
            f"{columns.width} columns and a tag of scheme {columns.scheme}",
        )


def _is_mark(line: str) -> bool:
    """Whether a line starts a new document."""
    return line.lstrip(" \t").startswith(DOCUMENT_MARK)


def _split(line: str, tabs: bool) -> list[str]:
    return line.split("\t") if tabs else _SPACES.split(line.strip(" \t"))


def _is_no_comment(line: str) -> bool:
    return not line.startswith("#")


def _ends_with_tab_and_tag(line: str) -> bool:
    return "\t" in line and is_tag(line.rstrip("\t").split("\t")[-1])


def _ends_with_tag(line: str) -> bool:
    return not _FREE_TEXT.match(line) and is_tag(_split(line, tabs=False)[-1])


def _survey(path: Path, has_columns: Callable[[str], bool]) -> tuple[bool, list[_ColumnValues], bool]:
    """Whether tabs divide the columns, the values of the columns of most lines, and whether marks divide the file."""
    tabs: bool | None = None
    marks, marked = 0, False
    by_width: dict[int, list[_ColumnValues]] = {}
    lines: Counter[int] = Counter()
    place = 0
    for _, line in read_lines(path):
        if not line.strip(" \t"):
            place = 0
            continue
        if _is_mark(line):
            marked |= bool(marks or lines)  # something is before it
            marks += 1
            continue
        if not has_columns(line):
            continue
        if tabs is None:
            tabs = "\t" in line
        place += 1
        values = _split(line, tabs)
        lines[len(values)] += 1
        columns = by_width.setdefault(len(values), [_ColumnValues() for _ in values])
        for column, value in zip(columns, values, strict=True):
            column.add(value, place)
    if not lines:
        return False, [], False
    return bool(tabs), by_width[lines.most_common(1)[0][0]], marked


def _layers(path: Path, columns: list[_ColumnValues]) -> tuple[int, ...]:
    """The tag columns: the last one, and those before it that hold tags of entities."""
    last = columns[-1]
    if last.others > last.tags + last.outside or (last.others and not last.outside):
        raise CorpusError(
            f"{path}: the last column holds no tags such as O, B-PER, I-PER; the file is in another format, "
            "or its tags are in another column"
        )
    layers = [len(columns) - 1]
    for at in range(len(columns) - 2, 0, -1):
        column = columns[at]
        if not column.layer or (column.chunks and not last.chunks):
            break
        layers.append(at)
    return tuple(reversed(layers))


# Tags to spans and back: IOB1, IOB2, BIOES, BILOU, BMES (also BMEWO) and IO (labels without prefixes)

TaggedSpan = tuple[str, int, int]  # a label and a half-open range of words
UNTYPED = "ENTITY"  # the label of tags that are a bare prefix, as in corpora with one class (B, I, O)
_PREFIXED = re.compile(r"([BIMELSUW])(?:[-_]([^\t\r\n]*\S[^\t\r\n]*))?")  # a label is a name, and stands on one line
_NO_LABEL = re.compile(r"(?:[BIMELSUW][-_])?\s*|.*[\t\r\n].*", re.DOTALL)
_OUTSIDE = frozenset({"O", "", "-", "_"})
# every scheme has the same four roles under other letters
_ROLES = {"B": "begin", **dict.fromkeys("IM", "inside"), **dict.fromkeys("EL", "end"), **dict.fromkeys("SUW", "single")}
_CLOSES_EXPLICITLY = frozenset({"BIOES", "BILOU", "BMES"})


def detect_scheme(tag_sequences: Iterable[Sequence[str]]) -> str:
    """The scheme that the tags follow, or break least; a corpus without entities counts as IOB2."""
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


@lru_cache(maxsize=65536)  # a corpus has few tags, each at many words
def parse(tag: str) -> tuple[str, str | None]:
    """A tag's prefix letter ("" if it has none) and its label (None outside entities)."""
    if tag in _OUTSIDE:
        return "", None
    match = _PREFIXED.fullmatch(tag)
    return (match[1], match[2] or UNTYPED) if match else ("", tag)


def is_tag(value: str, scheme: str = "IOB2") -> bool:
    """Whether a value has the form of a tag: O, or a letter such as B and a label; in the scheme IO, any label."""
    letter, label = parse(value)
    return label is None or bool(letter) or (scheme == "IO" and not _NO_LABEL.fullmatch(value))


def not_a_tag(value: str, scheme: str, where: str = "") -> str:
    """The problem with a value that is no tag, and what to do."""
    return f"{shorten(value)}{where} is no tag of scheme {scheme}; write O, or B- and a label"


def spans_of(tags: Sequence[str], scheme: str) -> tuple[list[TaggedSpan], int]:
    """The spans of one sentence, and how many tags broke the scheme.

    A broken tag never loses a word: an entity without a beginning begins where it is met, and one without an end goes
    on to its last word, as conlleval reads them.
    """
    spans: list[TaggedSpan] = []
    repairs = 0
    start, label = 0, None  # the entity that is open

    def close(end: int) -> None:
        if label is not None:
            spans.append((label, start, end))

    for at, tag in enumerate(tags):
        letter, new = parse(tag) if scheme != "IO" else ("", None if tag in _OUTSIDE else tag)
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


def tags_of(n_words: int, entities: Iterable[TaggedSpan]) -> list[list[str]]:
    """IOB2 tags in as many layers as nesting needs, at least one; the outermost entities are in the first."""
    layers = [["O"] * n_words]
    for label, start, end in sorted(entities, key=lambda entity: (entity[1], -entity[2], entity[0])):
        if all(set(tags[start:end]) != {"O"} for tags in layers):
            layers.append(["O"] * n_words)
        tags = next(tags for tags in layers if set(tags[start:end]) == {"O"})
        tags[start:end] = [f"B-{label}"] + [f"I-{label}"] * (end - start - 1)
    return layers


FORMAT = Format("conll", read, write, _HOLDS, _changes)
