"""What a knowledge base says: concepts with their names. Tables of them are read here, and other files found a reader.

Two shapes of table, both divided by tabs: with a first line that names the columns `concept_id`, `name` and optionally
`type` and `synonyms` (several of them divided by `|`); or, without such a line, a term and its synonyms in each line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from wingspan.corpora.files import read_lines
from wingspan.corpora.formats import CorpusError, Problems

_BETWEEN = "|"
_NAMED = ("concept_id", "name")


class Concept(NamedTuple):
    """One meaning: its id, its names with the preferred one first, and its semantic types where they are known."""

    id: str
    names: tuple[str, ...]
    types: tuple[str, ...] = ()


def read_concepts(path: str | Path, problems: Problems, language: str = "ENG") -> Iterator[Concept]:
    """The concepts of a table, an OBO ontology or UMLS's MRCONSO.RRF, told by its suffix; plain or gzipped."""
    from wingspan.corpora.obo import read_obo
    from wingspan.corpora.umls import read_umls

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
