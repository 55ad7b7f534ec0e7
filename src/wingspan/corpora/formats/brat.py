"""brat standoff: a folder of .txt files, each with its .ann file of annotations. https://brat.nlplab.org/standoff.html

Text-bound lines (`T1<tab>Label 0 5;9 12<tab>surface`) are entities. All other lines (relations, events, attributes,
normalizations, notes) are kept as they are and written back. brat cuts an entity at line ends; such fragments are
joined.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import count, pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from wingspan.corpora.formats import Format, Holds
from wingspan.corpora.formats.conversion_loss import changed
from wingspan.corpora.formats.records import shorten
from wingspan.corpora.formats.standoff import UNITS, Mention, best_unit, entities_of, fitting
from wingspan.files import BYTE_ORDER_MARK, CorpusError, Problems, atomic_write, read_lines, read_text, staged_folder
from wingspan.text import Document, Entity, Span

LINES = "brat"  # the key in a document's `meta` for the lines that are not entities
APART = "Fragments"  # the type of our note that fragments which only a line end separates must not be joined
NO_DATABASE = "ID:"  # the prefix for an unknown database: brat wants a concept id as database:id

_LINE_END = re.compile(r"[\r\n]+")
# characters that some file system refuses, and % where it would be read as an escape
_UNSAFE = re.compile(r'[\x00-\x1f\x7f<>:"\\|?*]|%(?=[0-9A-Fa-f]{2})|^\.|[. ]$')
_TEXT_ID = re.compile(r"\bT\d+\b")
_BOUND = re.compile(
    r"(T\S*)\t([^\t]*[^\t\s]) +(-?\d{1,18} -?\d{1,18}(?:;-?\d{1,18} -?\d{1,18})*)(?:\t(.*))?", re.DOTALL
)
_NORMALIZATION = re.compile(r"N[^\t]*\t\S+ (\S+) ")
_OTHER = re.compile(r"(?:[REAMN#]\S*|\*)\t.*", re.DOTALL)
_HOLDS = Holds(document_keys=frozenset({LINES}), entity_keys=frozenset({"id", "concept_id", "attributes", "notes"}))


def write(documents: Iterable[Document], path: Path) -> None:
    """Writes a folder, or one pair of files if the path ends in .ann; ids with slashes go to sub-folders."""
    if path.suffix == ".ann":
        kept = list(documents)
        if len(kept) != 1:
            raise CorpusError(f"{path}: {len(kept)} documents for one .ann file; name a folder instead")
        _write_pair(kept[0], path.with_suffix(".txt"))
        return
    if path.exists() and not path.is_dir():
        raise CorpusError(f"{path}: a file of this name exists, and brat needs a folder; name another one")
    with staged_folder(path) as new:
        names: set[Path] = set()
        for document in documents:
            name = Path(file_name(document.id) + ".txt")
            if name in names:
                raise CorpusError(f"document {document.id}: two documents have this id, and brat has one file for each")
            names |= {name, name.with_suffix(".ann")}
            _write_pair(document, new / name)
        for file in _files(path):  # a file of another corpus would be read back as part of this one
            if file.relative_to(path) not in names:
                raise CorpusError(
                    f"{path}: the folder already holds {file.name}, which is not of this corpus; name a new one"
                )


def _files(folder: Path) -> list[Path]:
    """The .txt and .ann files of a folder and its sub-folders, but hidden ones."""
    files = [file for file in folder.rglob("*") if file.suffix in (".txt", ".ann")]
    return sorted(f for f in files if not any(part.startswith(".") for part in f.relative_to(folder).parts))


def file_name(identifier: str) -> str:
    """An id as a path below a folder: what a file name cannot hold is written as %XX, as in web addresses."""
    if not identifier:
        raise CorpusError("a document without an id cannot be written as a brat file; give it one")
    parts = identifier.split("/")
    slash = "/" if all(parts) else "%2F"  # no folder has an empty name
    return slash.join(_UNSAFE.sub(lambda found: f"%{ord(found[0]):02X}", part) for part in parts)


def _write_pair(document: Document, file: Path) -> None:
    annotations = "".join(f"{line}\n" for line in lines_of(document))
    for name, content in ((file, document.text), (file.with_suffix(".ann"), annotations)):
        with atomic_write(name) as out:
            out.write(content)


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
    missing = set().union(*map(_mentioned, others)) - set(names)
    for line in others:  # a line about an entity that is gone goes with it
        if not missing & _mentioned(line):
            yield line
    taken = {line.partition("\t")[0] for line in others}
    references, notes = _fresh("N", taken), _fresh("#", taken)
    normalized = {found[1] for line in others if (found := _NORMALIZATION.match(line))}
    for name, entity in zip(names, document.entities, strict=True):
        concept = entity.meta.get("concept_id")
        if concept and name not in normalized:
            written = str(concept) if ":" in str(concept) else f"{NO_DATABASE}{concept}"
            yield f"{next(references)}\tReference {name} {_LINE_END.sub(' ', written)}"
        if _looks_cut(entity.spans, document.text):
            yield f"{next(notes)}\t{APART} {name}\tnot one entity cut at a line end"


def _mentioned(line: str) -> set[str]:
    """The ids of entities that a line is about."""
    return set(_TEXT_ID.findall(line.partition("\t")[2].split("\t")[0]))


def _names(entities: Iterable[Entity]) -> list[str]:
    """The ids that entities came with, as far as they are brat's and unique; new ones for the others."""
    ids = [entity.meta.get("id") for entity in entities]
    fresh = _fresh("T", {name for name in ids if isinstance(name, str)})
    names: dict[str, None] = {}
    for name in ids:
        usable = isinstance(name, str) and re.fullmatch(r"T\d+", name) and name not in names
        names[str(name) if usable else next(fresh)] = None
    return list(names)


def _fresh(letter: str, taken: set[str]) -> Iterator[str]:
    """Ids that are not taken, counted on from as many as there are."""
    first = 1 + sum(name.startswith(letter) for name in taken)
    return (name for number in count(first) if (name := f"{letter}{number}") not in taken)


def _between_line_ends(span: Span, text: str) -> list[tuple[int, int]]:
    """The parts of a span on each line: brat has no entity across a line end, and readers join the parts again."""
    surface = text[span.start : span.end]
    if surface.strip("\r\n") != surface:
        return [(span.start, span.end)]
    edges = [0, *(edge for end in _LINE_END.finditer(surface) for edge in end.span()), len(surface)]
    return [(span.start + left, span.start + right) for left, right in zip(edges[::2], edges[1::2], strict=True)]


def _looks_cut(spans: tuple[Span, ...], text: str) -> bool:
    """Whether nothing but white space with a line end separates two of the fragments."""
    gaps = [text[left.end : right.start] for left, right in pairwise(spans)]
    return any(gap.isspace() and _LINE_END.search(gap) for gap in gaps)


def read(path: Path, problems: Problems) -> Iterator[Document]:
    """The documents of a folder and its sub-folders, whose names start the ids; or of one .txt or .ann file."""
    if not path.is_dir():
        yield _document(path.with_suffix(".txt"), path.stem, problems)
        return
    files = _files(path)
    for file in files:
        if file.suffix == ".txt":
            yield _document(file, unquote(file.relative_to(path).with_suffix("").as_posix()), problems)
        elif not file.with_suffix(".txt").exists():
            problems.add(file, None, f"there is no {file.stem}.txt beside it; put the text there, brat needs both")
    if not files:
        raise CorpusError(f"{path}: no .txt and .ann files in this folder; name another one, or its format")


def _document(file: Path, name: str, problems: Problems) -> Document:
    annotations = file.with_suffix(".ann")
    if not file.exists() and annotations.exists():
        raise CorpusError(f"{annotations}: there is no {file.name} beside it; put the text there, brat needs both")
    lines = read_lines(annotations) if annotations.exists() else ()
    return _parsed(read_text(file, keep_mark=True), lines, file, name, problems)


def _parsed(raw: str, lines: Iterable[tuple[int, str]], file: Path, name: str, problems: Problems) -> Document:
    annotations = file.with_suffix(".ann")
    mentions, others = _parse(lines, annotations, problems)
    # the text as it is; or without its mark, or with line ends of one character, where more surfaces fit that way
    texts = [raw, raw.removeprefix(BYTE_ORDER_MARK)] if raw.startswith(BYTE_ORDER_MARK) else [raw]
    texts += [text.replace("\r\n", "\n") for text in texts if "\r\n" in text]
    text = raw
    if len(texts) > 1 and mentions:
        text = max(texts, key=lambda text: max(fitting(text, mentions, unit) for unit in UNITS))
    if text != raw:
        problems.note(file, "the offsets fit if line ends count as one character and the byte order mark as none")
    unit = best_unit(text, mentions)
    if unit != UNITS[0]:
        problems.note(file, f"the surfaces fit if offsets count {unit}; they are read so")
    apart = {line.split("\t")[1].split(" ")[1] for line in others if _is_apart(line)}
    joined = 0

    def merge(spans: tuple[Span, ...], mention: Mention) -> tuple[Span, ...]:
        nonlocal joined
        kept = spans if mention.meta["id"] in apart else _joined(spans, text)
        joined += len(kept) < len(spans)
        return kept

    entities, inexact = entities_of(text, mentions, unit, lambda n, why: problems.add(annotations, n, why), merge)
    if joined:
        problems.note(annotations, f"{joined} entities were cut at line ends only; their fragments are joined")
    if inexact:
        problems.note(annotations, f"{inexact} surfaces differ a little from the text, which is kept")
    kept = [line for line in others if not _is_apart(line)]
    return Document(name, text, tuple(entities), meta={LINES: kept} if kept else {})


def _parse(lines: Iterable[tuple[int, str]], path: Path, problems: Problems) -> tuple[list[Mention], list[str]]:
    """The text-bound annotations, and all other lines as they are."""
    bound: list[tuple[int, re.Match[str]]] = []
    others: list[str] = []
    for number, line in lines:
        if not line.strip():
            continue
        if match := _BOUND.fullmatch(line):
            bound.append((number, match))
        elif _OTHER.fullmatch(line):
            others.append(line)
        else:
            problems.add(path, number, f"{shorten(line)} is no line of brat; write T1<tab>Label start end<tab>surface")
    extra = _about(others)
    mentions = []
    for number, match in bound:
        name, label, offsets, surface = match.groups()
        pieces = tuple((int(start), int(end)) for start, end in (piece.split(" ") for piece in offsets.split(";")))
        mentions.append(Mention(label, pieces, surface, number, {"id": name, **extra.get(name, {})}))
    return mentions, others


def _about(lines: list[str]) -> dict[str, dict[str, Any]]:
    """The concepts, attributes and notes of entities, by the entity's id."""
    about: dict[str, dict[str, Any]] = {}
    for line in lines:
        kind, _, rest = line.partition("\t")
        words = rest.split("\t")[0].split(" ")
        if len(words) < 2 or not words[1].startswith("T"):
            continue
        meta = about.setdefault(words[1], {})
        if kind[0] == "N" and len(words) > 2:
            concept = " ".join(words[2:]).removeprefix(NO_DATABASE)
            meta["concept_id"] = f"{meta['concept_id']},{concept}" if "concept_id" in meta else concept
        elif kind[0] in "AM":
            meta.setdefault("attributes", {})[words[0]] = " ".join(words[2:]) or True
        elif kind[0] == "#" and not _is_apart(line):
            meta.setdefault("notes", []).append(rest.partition("\t")[2])
    return about


def _is_apart(line: str) -> bool:
    columns = line.split("\t")
    return line.startswith("#") and len(columns) > 1 and columns[1].startswith(f"{APART} ")


def _joined(spans: tuple[Span, ...], text: str) -> tuple[Span, ...]:
    """Joins fragments with nothing but white space and a line end between them."""
    kept: list[Span] = []
    for span in sorted(spans):
        if kept and _looks_cut((kept[-1], span), text):
            span = Span(kept.pop().start, span.end)
        kept.append(span)
    return tuple(kept)


def _changes(document: Document) -> Counter[str]:
    """Ids that brat does not take, and lines about an entity that is gone: the lines to be written show it."""
    lines = enumerate(lines_of(document), 1)
    back = _parsed(document.text, lines, Path("document.txt"), document.id, Problems("skip"))
    return changed(document, [back], _HOLDS)


FORMAT = Format("brat", read, write, _HOLDS, _changes)
