"""brat standoff: a folder of .txt files, each with its .ann file of annotations. https://brat.nlplab.org/standoff.html

Text-bound lines (`T1<tab>Label 0 5;9 12<tab>surface`) are entities. All other lines (relations, events, attributes,
normalizations, notes) are kept as they are and written back. brat cuts an entity at line ends; such fragments are
joined.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from wingspan.corpora.brat_writing import APART, LINES, NO_DATABASE, lines_of, write
from wingspan.corpora.checks import shorten
from wingspan.corpora.files import BYTE_ORDER_MARK, read_lines, read_text
from wingspan.corpora.formats import CorpusError, Format, Holds, Problems
from wingspan.corpora.kept_keys import changed
from wingspan.corpora.mentions import UNITS, Mention, best_unit, entities_of, fitting
from wingspan.text import Document, Span

_BOUND = re.compile(
    r"(T\S*)\t([^\t]*[^\t\s]) +(-?\d{1,18} -?\d{1,18}(?:;-?\d{1,18} -?\d{1,18})*)(?:\t(.*))?", re.DOTALL
)
_HOLDS = Holds(document_keys=frozenset({LINES}), entity_keys=frozenset({"id", "concept_id", "attributes", "notes"}))
_OTHER = re.compile(r"(?:[REAMN#]\S*|\*)\t.*", re.DOTALL)


def read(path: Path, problems: Problems) -> Iterator[Document]:
    """The documents of a folder and its sub-folders, whose names start the ids; or of one .txt or .ann file."""
    if not path.is_dir():
        yield _document(path.with_suffix(".txt"), path.stem, problems)
        return
    files = sorted(file for file in path.rglob("*") if file.suffix in (".txt", ".ann") and not _hidden(file, path))
    texts = {file.with_suffix("") for file in files if file.suffix == ".txt"}
    for file in files:
        if file.suffix == ".txt":
            yield _document(file, unquote(file.relative_to(path).with_suffix("").as_posix()), problems)
        elif file.with_suffix("") not in texts:
            problems.add(file, None, f"there is no {file.stem}.txt beside it; put the text there, brat needs both")
    if not files:
        raise CorpusError(f"{path}: no .txt and .ann files in this folder; name another one, or its format")


def _hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in file.relative_to(folder).parts)


def _document(file: Path, name: str, problems: Problems) -> Document:
    annotations = file.with_suffix(".ann")
    if not file.exists() and annotations.exists():
        raise CorpusError(f"{annotations}: there is no {file.name} beside it; put the text there, brat needs both")
    raw = read_text(file, keep_mark=True)
    return _parsed(raw, read_lines(annotations) if annotations.exists() else (), file, name, problems)


def _parsed(raw: str, lines: Iterable[tuple[int, str]], file: Path, name: str, problems: Problems) -> Document:
    annotations = file.with_suffix(".ann")
    mentions, others = _parse(lines, annotations, problems)
    text = _text_that_fits(raw, mentions)
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

    entities, otherwise = entities_of(text, mentions, unit, lambda n, why: problems.add(annotations, n, why), merge)
    if joined:
        problems.note(annotations, f"{joined} entities were cut at line ends only; their fragments are joined")
    if otherwise:
        problems.note(annotations, f"{otherwise} surfaces differ a little from the text, which is kept")
    kept = [line for line in others if not _is_apart(line)]
    return Document(name, text, tuple(entities), meta={LINES: kept} if kept else {})


def _parse(lines: Iterable[tuple[int, str]], path: Path, problems: Problems) -> tuple[list[Mention], list[str]]:
    """The text-bound annotations, and all other lines as they are."""
    bound: list[tuple[int, re.Match[str]]] = []
    others: list[str] = []
    for number, line in lines:
        if not line.strip():
            continue
        if found := _BOUND.fullmatch(line):
            bound.append((number, found))
        elif _OTHER.fullmatch(line):
            others.append(line)
        else:
            problems.add(path, number, f"{shorten(line)} is no line of brat; write T1<tab>Label start end<tab>surface")
    extra = _about(others)
    mentions = []
    for number, found in bound:
        pieces = tuple((int(start), int(end)) for start, end in (piece.split(" ") for piece in found[3].split(";")))
        mentions.append(Mention(found[2], pieces, found[4], number, {"id": found[1], **extra.get(found[1], {})}))
    return mentions, others


def _about(lines: list[str]) -> dict[str, dict[str, Any]]:
    """What attributes, normalizations and notes say about entities, by the entity's id."""
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


def _text_that_fits(raw: str, mentions: list[Mention]) -> str:
    """The text as it is; or without its mark, or with line ends of one character, where more surfaces fit that way."""
    texts = [raw]
    if raw.startswith(BYTE_ORDER_MARK):
        texts.append(raw.removeprefix(BYTE_ORDER_MARK))
    texts += [text.replace("\r\n", "\n") for text in texts if "\r\n" in text]
    if len(texts) == 1 or not mentions:
        return raw
    return max(texts, key=lambda text: max(fitting(text, mentions, unit) for unit in UNITS))


def _joined(spans: tuple[Span, ...], text: str) -> tuple[Span, ...]:
    """Fragments with nothing but white space and a line end between them are one."""
    first, *others = sorted(spans)
    kept = [first]
    for span in others:
        gap = text[kept[-1].end : span.start]
        if gap.isspace() and re.search(r"[\r\n]", gap):
            kept[-1] = Span(kept[-1].start, span.end)
        else:
            kept.append(span)
    return tuple(kept)


def _changes(document: Document) -> Counter[str]:
    """An id that brat does not take, a line about an entity that is gone: the lines to be written show it."""
    lines = enumerate(lines_of(document), 1)
    back = _parsed(document.text, lines, Path("document.txt"), document.id, Problems("skip"))
    return changed(document, [back], _HOLDS)


FORMAT = Format(
    name="brat",
    read=read,
    write=write,
    suffixes=(".ann",),
    holds=_HOLDS,
    description="a folder of .txt and .ann files, also discontinuous (brat standoff)",
    changes=_changes,
)
