"""What a knowledge base says: concepts with their names. Tables of them are read here, and other files found a reader.

Two shapes of table, both divided by tabs: with a first line that names the columns `concept_id`, `name` and optionally
`type` and `synonyms` (several of them divided by `|`); or, without such a line, a term and its synonyms in each line.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict, namedtuple
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from wingspan.corpora.formats.records import shorten
from wingspan.files import CorpusError, Problems, read_lines

_BETWEEN = "|"
_NAMED = ("concept_id", "name")


class Concept(NamedTuple):
    """One meaning: its id, its names with the preferred one first, and its semantic types where they are known."""

    id: str
    names: tuple[str, ...]
    types: tuple[str, ...] = ()


def read_concepts(path: str | Path, problems: Problems, language: str = "ENG") -> Iterator[Concept]:
    """The concepts of a table, an OBO ontology or UMLS's MRCONSO.RRF, told by its suffix; plain or gzipped."""

    path = Path(path)
    readers: dict[str, Callable[[], Iterator[Concept]]] = {
        ".tsv": lambda: read_table(path, problems),
        ".txt": lambda: read_table(path, problems),
        ".obo": lambda: read_obo(path, problems),
        ".rrf": lambda: read_umls(path, problems, language),
    }
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    if not path.exists():
        raise CorpusError(f"{path}: there is no such file; check the path")
    if suffix not in readers:
        raise CorpusError(f"{path}: a source of concepts ends in {', '.join(readers)} (or these with .gz); rename it")
    empty = True
    for concept in readers[suffix]():
        empty = False
        yield concept
    if empty:
        left_out = f" ({len(problems.messages):,} lines were left out)" if problems.messages else ""
        raise CorpusError(f"{path}: there is no concept in it{left_out}; check that it is the right file")


def read_table(path: Path, problems: Problems) -> Iterator[Concept]:
    """The concepts of a table, one in each line; blank lines are skipped."""
    columns: list[str] | None = None
    for number, line in read_lines(path):
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split("\t")]
        if columns is None:
            columns = [cell.lower() for cell in cells]
            if columns[0] != _NAMED[0]:
                columns = []
            elif _NAMED[1] not in columns:
                raise CorpusError(f"{path}:{number}: there is no column {_NAMED[1]!r} among {', '.join(cells)}")
            else:
                continue
        concept = _concept(columns, cells, path, number, problems) if columns else _terms(cells, path, number, problems)
        if concept is not None:
            yield concept


def _concept(columns: list[str], cells: list[str], path: Path, number: int, problems: Problems) -> Concept | None:
    if len(cells) != len(columns):
        problems.add(path, number, f"{len(cells)} columns where the first line names {len(columns)}; divide by tabs")
        return None
    row = dict(zip(columns, cells, strict=True))
    if not row["concept_id"] or not row["name"]:
        problems.add(path, number, "a concept without an id or a name; give both")
        return None
    synonyms = [name.strip() for name in row.get("synonyms", "").split(_BETWEEN)]
    types = [name.strip() for name in row.get("type", "").split(_BETWEEN)]
    return Concept(row["concept_id"], (row["name"], *filter(None, synonyms)), tuple(filter(None, types)))


def _terms(cells: list[str], path: Path, number: int, problems: Problems) -> Concept | None:
    names = tuple(filter(None, cells))
    if len(names) < 2:
        problems.add(path, number, "one column only; give a term and its synonyms, divided by tabs")
        return None
    return Concept(names[0], names)


# --- OBO ontologies: the names of their terms. https://owlcollab.github.io/oboformat/doc/GO.format.obo-1_4.html


SAME_MEANING = ("EXACT", "RELATED")
"""Scopes that are taken as synonyms; a BROAD or NARROW one names another meaning."""

_STANZA = re.compile(r"\[(\w+)\]\s*(?:!.*)?")
_TAG = re.compile(r"([\w-]+):\s*(.*)")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"\s*(?:(EXACT|BROAD|NARROW|RELATED)\b)?(.*)')
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": " ", "t": " ", "W": " "}
_MODIFIERS = re.compile(r"(?:\s+\{[^{}]*\})?(?:\s+!.*)?$")  # {comment="..."} and ! remark behind a value

Values = dict[str, list[str]]


def read_obo(path: Path, problems: Problems) -> Iterator[Concept]:
    """The terms with their names and synonyms; the type is the namespace. Obsolete terms are left out and noted."""
    default: tuple[str, ...] = ()
    obsolete = 0
    for kind, number, values in _stanzas(path, problems):
        if kind == "header":
            default = tuple(values["default-namespace"][-1:])
        elif kind == "Term":
            if values["is_obsolete"] == ["true"]:
                obsolete += 1
            elif not values["id"] or not values["name"]:
                missing = "an id" if not values["id"] else "a name"
                problems.add(path, number, f"a term without {missing}; give id: and name: below [Term]")
            else:
                names = (*values["name"][:1], *values["synonym"])
                yield Concept(values["id"][0], names, tuple(values["namespace"]) or default)
    if obsolete:
        problems.note(path, f"{obsolete:,} obsolete terms are left out")


def _stanzas(path: Path, problems: Problems) -> Iterator[tuple[str, int, Values]]:
    """The parts of a file: what it is, the line where it starts, and the values of each tag."""
    kind, start = "header", 1
    values: Values = defaultdict(list)
    for number, line in read_lines(path):
        line = line.strip()
        if not line or line.startswith("!"):
            continue
        if stanza := _STANZA.fullmatch(line):
            yield kind, start, values
            kind, start, values = stanza[1], number, defaultdict(list)
        elif not (tag := _TAG.fullmatch(line)):
            problems.add(path, number, f"{shorten(line)} is no line of an OBO file; write tag: value")
        elif tag[1] == "synonym":
            _add_synonym(values, tag[2], path, number, problems)
        elif tag[1] in ("id", "name", "namespace", "default-namespace", "is_obsolete"):
            value = _plain(_MODIFIERS.sub("", tag[2]))
            if value:
                values[tag[1]].append(value)
    yield kind, start, values


def _add_synonym(values: Values, value: str, path: Path, number: int, problems: Problems) -> None:
    found = _QUOTED.fullmatch(value)
    if not found or not _plain(found[1]):
        problems.add(path, number, f'{shorten(value)} is no synonym; write synonym: "name" EXACT []')
    elif (found[2] or "RELATED") in SAME_MEANING:
        values["synonym"].append(_plain(found[1]))


def _plain(value: str) -> str:
    """The value without its escapes, on one line."""
    return " ".join(_ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]), value).split())


# --- UMLS: the names of concepts in MRCONSO.RRF, their semantic types in MRSTY.RRF where it lies beside.
#
# Columns as in the reference manual, https://www.ncbi.nlm.nih.gov/books/NBK9685/ (tables of MRCONSO.RRF and
# MRSTY.RRF).


Name = namedtuple("Name", "cui lat ts lui stt sui ispref aui saui scui sdui sab tty code str srl suppress cvf")
"""A row of MRCONSO.RRF."""
SemanticType = namedtuple("SemanticType", "cui tui stn sty atui cvf")
"""A row of MRSTY.RRF."""


def read_umls(path: Path, problems: Problems, language: str = "ENG") -> Iterator[Concept]:
    """The concepts with the names of one language that are not suppressed, the preferred name first."""
    types = _types(path, problems)
    languages: Counter[str] = Counter()
    suppressed = 0

    def kept() -> Iterator[Name]:
        nonlocal suppressed
        for row in map(Name._make, _rows(path, Name._fields, "str", problems)):
            languages[row.lat] += 1
            if row.lat == language and row.suppress != "N":
                suppressed += 1
            elif row.lat == language:
                yield row

    # rows of one concept follow each other in the file; where they do not, whoever collects concepts joins them by id
    for concept, rows in groupby(kept(), key=lambda row: row.cui):
        ranked = sorted(rows, key=lambda row: (row.ts, row.stt, row.ispref) != ("P", "PF", "Y"))
        yield Concept(concept, tuple(row.str for row in ranked), types.get(concept, ()))
    total, spoken = languages.total(), languages[language]
    if total and not spoken:
        raise CorpusError(
            f"{path}: none of its {total:,} names is in language {language!r}; "
            f"choose one of {', '.join(sorted(set(languages) - {language}))} with --language"
        )
    if total > spoken or suppressed:
        others = f"{total - spoken:,} names in other languages than {language}"
        problems.note(path, f"{others} and {suppressed:,} suppressed ones are left out")


def _types(path: Path, problems: Problems) -> dict[str, tuple[str, ...]]:
    """The semantic types of each concept, from the MRSTY.RRF beside; none where there is no such file."""
    names = (path.name.replace("MRCONSO", "MRSTY"), "MRSTY.RRF", "MRSTY.RRF.gz")
    beside = next((path.with_name(name) for name in names if path.with_name(name).exists()), None)
    if beside is None or beside == path:
        problems.note(path, "there is no MRSTY.RRF beside it; concepts have no semantic types")
        return {}
    types: dict[str, list[str]] = defaultdict(list)
    for row in map(SemanticType._make, _rows(beside, SemanticType._fields, "sty", problems)):
        types[row.cui].append(sys.intern(row.sty))
    return {concept: tuple(names) for concept, names in types.items()}


def _rows(path: Path, columns: tuple[str, ...], needed: str, problems: Problems) -> Iterator[list[str]]:
    """The rows of an RRF file: every column ends in |, also the last one; the first and the needed one are filled."""
    place = columns.index(needed)
    for number, line in read_lines(path):
        row = line.split("|")
        if len(row) != len(columns) + 1 or row[-1].strip():
            problems.add(
                path,
                number,
                f"{len(row) - 1} columns that end in | where {len(columns)} are needed; use the file as UMLS has it",
            )
        elif not row[0].strip() or not row[place].strip():
            problems.add(
                path, number, f"a row without {columns[0].upper()} or {needed.upper()}; use the file as UMLS has it"
            )
        else:
            yield row[:-1]
