"""Concepts with their names, from the files of knowledge bases: tables, OBO ontologies and UMLS.

A table is divided by tabs and has one of two shapes: a first line that names the columns `concept_id`, `name` and
optionally `type` and `synonyms` (several of them divided by `|`); or, without such a line, a term and its synonyms in
each line.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict, namedtuple
from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from wingspan.corpora.formats.records import shorten
from wingspan.files import CorpusError, Problems, read_lines


class Concept(NamedTuple):
    """A concept: its id, its names with the preferred one first, and its semantic types if known."""

    id: str
    names: tuple[str, ...]
    types: tuple[str, ...] = ()


def read_concepts(path: str | Path, problems: Problems, language: str = "ENG") -> Iterator[Concept]:
    """Reads a table, an OBO ontology or UMLS's MRCONSO.RRF, by its suffix; plain or gzipped."""
    path = Path(path)
    readers: dict[str, Callable[[Path, Problems], Iterator[Concept]]]
    readers = {".tsv": _table, ".txt": _table, ".obo": _obo, ".rrf": partial(_umls, language=language)}
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    if not path.exists():
        raise CorpusError(f"{path}: there is no such file; check the path")
    if suffix not in readers:
        raise CorpusError(f"{path}: a source of concepts ends in {', '.join(readers)} (or these with .gz); rename it")
    empty = True
    for concept in readers[suffix](path, problems):
        empty = False
        yield concept
    if empty:
        left_out = f" ({len(problems.messages):,} lines were left out)" if problems.messages else ""
        raise CorpusError(f"{path}: there is no concept in it{left_out}; check that it is the right file")


def _table(path: Path, problems: Problems) -> Iterator[Concept]:
    """The concepts of a table, one in each line; blank lines are skipped."""
    columns: list[str] | None = None
    for number, line in read_lines(path):
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split("\t")]
        if columns is None:
            columns = [cell.lower() for cell in cells]
            if columns[0] != "concept_id":
                columns = []
            elif "name" not in columns:
                raise CorpusError(f"{path}:{number}: there is no column 'name' among {', '.join(cells)}")
            else:
                continue
        row = dict(zip(columns, cells, strict=False))
        names = tuple(filter(None, cells))
        if not columns and len(names) < 2:
            problems.add(path, number, "one column only; give a term and its synonyms, divided by tabs")
        elif not columns:
            yield Concept(names[0], names)
        elif len(cells) != len(columns):
            reason = f"{len(cells)} columns where the first line names {len(columns)}"
            problems.add(path, number, f"{reason}; divide by tabs")
        elif not row["concept_id"] or not row["name"]:
            problems.add(path, number, "a concept without an id or a name; give both")
        else:
            names = (row["name"], *_divided(row.get("synonyms", "")))
            yield Concept(row["concept_id"], names, _divided(row.get("type", "")))


def _divided(cell: str) -> tuple[str, ...]:
    return tuple(value.strip() for value in cell.split("|") if value.strip())


# OBO ontologies: https://owlcollab.github.io/oboformat/doc/GO.format.obo-1_4.html

_STANZA = re.compile(r"\[(\w+)\]\s*(?:!.*)?")
_TAG = re.compile(r"([\w-]+):\s*(.*)")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"\s*(?:(EXACT|BROAD|NARROW|RELATED)\b)?(.*)')
_ESCAPE = re.compile(r"\\(.)")
_MODIFIERS = re.compile(r"(?:\s+\{[^{}]*\})?(?:\s+!.*)?$")  # {comment="..."} and ! remark after a value


def _obo(path: Path, problems: Problems) -> Iterator[Concept]:
    """The terms with their names and synonyms; the namespace is the type. Obsolete terms are left out and noted."""
    default: tuple[str, ...] = ()
    obsolete = 0
    for kind, number, values in _stanzas(path, problems):
        if kind == "header":
            default = tuple(values["default-namespace"][-1:])
        elif kind == "Term" and values["is_obsolete"] == ["true"]:
            obsolete += 1
        elif kind == "Term" and not (values["id"] and values["name"]):
            missing = "an id" if not values["id"] else "a name"
            problems.add(path, number, f"a term without {missing}; give id: and name: below [Term]")
        elif kind == "Term":
            names = (*values["name"][:1], *values["synonym"])
            yield Concept(values["id"][0], names, tuple(values["namespace"]) or default)
    if obsolete:
        problems.note(path, f"{obsolete:,} obsolete terms are left out")


def _stanzas(path: Path, problems: Problems) -> Iterator[tuple[str, int, dict[str, list[str]]]]:
    """The stanzas of a file, its header first: kind, line of the start, values of each tag."""
    kind, start = "header", 1
    values: dict[str, list[str]] = defaultdict(list)
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
            synonym = _QUOTED.fullmatch(tag[2])
            if not synonym or not _plain(synonym[1]):
                problems.add(path, number, f'{shorten(tag[2])} is no synonym; write synonym: "name" EXACT []')
            elif synonym[2] not in ("BROAD", "NARROW"):  # these have another meaning
                values["synonym"].append(_plain(synonym[1]))
        elif tag[1] in ("id", "name", "namespace", "default-namespace", "is_obsolete"):
            value = _plain(_MODIFIERS.sub("", tag[2]))
            if value:
                values[tag[1]].append(value)
    yield kind, start, values


def _plain(value: str) -> str:
    """The value without its escapes, on one line."""
    return " ".join(_ESCAPE.sub(lambda escape: " " if escape[1] in "ntW" else escape[1], value).split())


# UMLS: columns as in the reference manual, https://www.ncbi.nlm.nih.gov/books/NBK9685/

# rows of MRCONSO.RRF and MRSTY.RRF
UmlsName = namedtuple("UmlsName", "cui lat ts lui stt sui ispref aui saui scui sdui sab tty code str srl suppress cvf")
UmlsType = namedtuple("UmlsType", "cui tui stn sty atui cvf")


def _umls(path: Path, problems: Problems, language: str) -> Iterator[Concept]:
    """The concepts with the names of one language that are not suppressed, the preferred one first, and their types."""
    types: dict[str, list[str]] = defaultdict(list)
    names = (path.name.replace("MRCONSO", "MRSTY"), "MRSTY.RRF", "MRSTY.RRF.gz")
    beside = next((path.with_name(name) for name in names if path.with_name(name).exists()), path)
    if beside == path:
        problems.note(path, "there is no MRSTY.RRF beside it; concepts have no semantic types")
    else:
        for row in map(UmlsType._make, _rows(beside, UmlsType._fields, "sty", problems)):
            types[row.cui].append(sys.intern(row.sty))
    languages: Counter[str] = Counter()
    suppressed = 0

    def kept() -> Iterator[UmlsName]:
        nonlocal suppressed
        for row in map(UmlsName._make, _rows(path, UmlsName._fields, "str", problems)):
            languages[row.lat] += 1
            if row.lat == language and row.suppress != "N":
                suppressed += 1
            elif row.lat == language:
                yield row

    # rows of a concept are adjacent; where they are not, the lexicon joins concepts by id
    for concept, rows in groupby(kept(), key=lambda row: row.cui):
        ranked = sorted(rows, key=lambda row: (row.ts, row.stt, row.ispref) != ("P", "PF", "Y"))
        yield Concept(concept, tuple(row.str for row in ranked), tuple(types.get(concept, ())))
    total, own = languages.total(), languages[language]
    if total and not own:
        raise CorpusError(
            f"{path}: none of its {total:,} names is in language {language!r}; "
            f"choose one of {', '.join(sorted(set(languages) - {language}))} with --language"
        )
    if total > own or suppressed:
        others = f"{total - own:,} names in other languages than {language}"
        problems.note(path, f"{others} and {suppressed:,} suppressed ones are left out")


def _rows(path: Path, columns: tuple[str, ...], needed: str, problems: Problems) -> Iterator[list[str]]:
    """The rows of an RRF file, where every column ends in |; the first and the needed column must not be empty."""
    needed_at = columns.index(needed)
    for number, line in read_lines(path):
        row = line.split("|")
        if len(row) != len(columns) + 1 or row[-1].strip():
            reason = f"{len(row) - 1} columns that end in | where {len(columns)} are needed"
        elif not row[0].strip() or not row[needed_at].strip():
            reason = f"a row without {columns[0].upper()} or {needed.upper()}"
        else:
            yield row[:-1]
            continue
        problems.add(path, number, f"{reason}; use the file as UMLS has it")
