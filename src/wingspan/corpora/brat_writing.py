"""Writes brat standoff: each document as a .txt and an .ann file in a folder that appears as a whole or not at all."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from wingspan.corpora.files import atomic_write
from wingspan.corpora.formats import CorpusError
from wingspan.text import Document, Entity, Span

LINES = "brat"
"""The key in a document's `meta` for the lines that are no entities."""
APART = "Fragments"
"""The type of a note of ours: fragments that only a line end divides, and that are not to be joined."""
NO_DATABASE = "ID:"
"""brat wants a concept id as database:id; this stands for a database that is not known."""

_LINE_END = re.compile(r"[\r\n]+")
# what some file system does not take, and % where it would be read as an escape
_UNSAFE = re.compile(r'[\x00-\x1f\x7f<>:"\\|?*]|%(?=[0-9A-Fa-f]{2})|^\.|[. ]$')


def write(documents: Iterable[Document], path: Path) -> None:
    """Writes a folder, or one pair of files if the path ends in .ann; ids with slashes go to sub-folders."""
    if path.suffix == ".ann":
        _write_one(list(documents), path)
        return
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.mkdir(parents=True, exist_ok=True)
        names: set[Path] = set()
        for document in documents:
            name = Path(file_name(document.id) + ".txt")
            if name in names:
                raise CorpusError(f"document {document.id}: two documents have this id, and brat has one file for each")
            names |= {name, name.with_suffix(".ann")}
            _write_pair(document, part / name)
        _refuse_strangers(path, names)
        if path.exists():
            for name in sorted(names):
                (path / name).parent.mkdir(parents=True, exist_ok=True)
                (part / name).replace(path / name)
        else:
            part.replace(path)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _write_one(documents: list[Document], path: Path) -> None:
    if len(documents) != 1:
        raise CorpusError(f"{path}: {len(documents)} documents for one .ann file; name a folder instead")
    _write_pair(documents[0], path.with_suffix(".txt"))


def _refuse_strangers(path: Path, names: set[Path]) -> None:
    """Files of another corpus in the folder would be read back as part of this one."""
    if path.exists() and not path.is_dir():
        raise CorpusError(f"{path}: a file of this name exists, and brat needs a folder; name another one")
    for file in sorted(path.rglob("*")):
        if file.suffix in (".txt", ".ann") and file.relative_to(path) not in names:
            raise CorpusError(
                f"{path}: the folder already holds {file.name}, which is not of this corpus; name a new one"
            )


def file_name(identifier: str) -> str:
    """An id as a path below a folder: what a file name cannot hold is written as %XX, as in web addresses."""
    if not identifier:
        raise CorpusError("a document without an id cannot be written as a brat file; give it one")
    parts = identifier.split("/")
    slash = "/" if all(parts) else "%2F"  # no folder has an empty name
    return slash.join(_UNSAFE.sub(lambda found: f"%{ord(found[0]):02X}", part) for part in parts)


def _write_pair(document: Document, file: Path) -> None:
    lines = [*lines_of(document)]
    with atomic_write(file) as out:
        out.write(document.text)
    with atomic_write(file.with_suffix(".ann")) as out:
        out.write("".join(f"{line}\n" for line in lines))


def lines_of(document: Document) -> Iterator[str]:
    """The lines of the .ann file."""
    kept = document.meta.get(LINES)
    others = [str(line) for line in kept if "\n" not in str(line)] if isinstance(kept, list) else []
    names = _names(document.entities)
    for name, entity in zip(names, document.entities, strict=True):
        pieces = [(span.start, span.end) for span in entity.spans]
        if not _looks_cut(entity.spans, document.text):
            pieces = [piece for span in entity.spans for piece in _between_line_ends(span, document.text)]
        place = ";".join(f"{start} {end}" for start, end in pieces)
        surface = " ".join(_LINE_END.sub(" ", document.text[start:end]) for start, end in pieces)
        if re.search(r"[\t\r\n]", entity.label):
            raise CorpusError(f"document {document.id}: the label {entity.label!r} holds a tab or line end; rename it")
        yield f"{name}\t{entity.label} {place}\t{surface}"
    missing = {name for line in others for name in re.findall(r"\bT\d+\b", line.partition("\t")[2].split("\t")[0])}
    missing -= set(names)
    taken = {line.partition("\t")[0] for line in others}
    for line in others:  # what was said about an entity that is gone, goes with it
        if not missing & set(re.findall(r"\bT\d+\b", line.partition("\t")[2].split("\t")[0])):
            yield line
    for name, entity in zip(names, document.entities, strict=True):
        concept = entity.meta.get("concept_id")
        told = any(line.startswith("N") and re.search(rf"\t\S+ {re.escape(name)} ", line) for line in others)
        if concept and not told:
            written = str(concept) if ":" in str(concept) else f"{NO_DATABASE}{concept}"
            yield f"{_fresh('N', taken)}\tReference {name} {_LINE_END.sub(' ', written)}"
        if _looks_cut(entity.spans, document.text):
            yield f"{_fresh('#', taken)}\t{APART} {name}\tnot one entity cut at a line end"


def _names(entities: Iterable[Entity]) -> list[str]:
    """The ids that entities came with, as far as they are brat's and unique; new ones for the others."""
    names: list[str] = []
    given = [entity.meta.get("id") for entity in entities]
    taken = {name for name in given if isinstance(name, str)}
    for name in given:
        usable = isinstance(name, str) and re.fullmatch(r"T\d+", name) and name not in names
        names.append(str(name) if usable else _fresh("T", taken))
    return names


def _fresh(letter: str, taken: set[str]) -> str:
    number = 1 + sum(name.startswith(letter) for name in taken)
    while f"{letter}{number}" in taken:
        number += 1
    taken.add(f"{letter}{number}")
    return f"{letter}{number}"


def _between_line_ends(span: Span, text: str) -> list[tuple[int, int]]:
    """brat has no entity across a line end: it is cut there, and joined again by whoever reads it."""
    surface = text[span.start : span.end]
    if surface.strip("\r\n") != surface:
        return [(span.start, span.end)]
    edges = [0, *(edge for found in _LINE_END.finditer(surface) for edge in found.span()), len(surface)]
    return [(span.start + left, span.start + right) for left, right in zip(edges[::2], edges[1::2], strict=True)]


def _looks_cut(spans: tuple[Span, ...], text: str) -> bool:
    gaps = [text[left.end : right.start] for left, right in zip(spans, spans[1:], strict=False)]
    return any(gap.isspace() and _LINE_END.search(gap) for gap in gaps)
