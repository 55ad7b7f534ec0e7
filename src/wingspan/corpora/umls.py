"""UMLS: the names of concepts in MRCONSO.RRF, their semantic types in MRSTY.RRF where it lies beside.

Columns as in the reference manual, https://www.ncbi.nlm.nih.gov/books/NBK9685/ (tables of MRCONSO.RRF and MRSTY.RRF).
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict, namedtuple
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from wingspan.corpora.concepts import Concept
from wingspan.corpora.files import read_lines
from wingspan.corpora.formats import CorpusError, Problems

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
