"""PubTator: `id|t|title` and `id|a|abstract`, then one mention per line, with columns divided by tabs.

Offsets count over the title, one separator and the abstract, in code points. A blank line ends a document.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from wingspan.corpora.formats import PUBTATOR_LINE, Format, Holds
from wingspan.corpora.formats.conversion_loss import changed
from wingspan.corpora.formats.records import Json, refuse_fragments, shorten
from wingspan.corpora.formats.standoff import UNITS, Mention, best_unit, entities_of
from wingspan.files import BYTE_ORDER_MARK, CorpusError, Problems, atomic_write, read_lines
from wingspan.text import Document

_NUMBER = re.compile(r" *-?[0-9]{1,18} *")
_BREAK = re.compile(r"[\t\r\n]")
_META, _MORE = "pubtator", "pubtator_columns"
_KEYS = frozenset({"concept_id", _MORE})
_HOLDS = Holds(discontinuous=False, exact_text=False, document_keys=frozenset({_META}), entity_keys=_KEYS)


@dataclass
class _Article:
    """The lines of one document."""

    id: str
    passages: list[tuple[str, str]] = field(default_factory=list)
    mentions: list[Mention] = field(default_factory=list)
    relations: list[list[str]] = field(default_factory=list)


def read(path: Path, problems: Problems) -> Iterator[Document]:
    """The documents of a file. Texts that share an id, such as the passages of one article, share a group."""
    return _parsed(partial(read_lines, path), path, problems)


def _parsed(lines: Callable[[], Iterable[tuple[int, str]]], path: Path, problems: Problems) -> Iterator[Document]:
    times = Counter(article.id for article in _articles(lines(), path, Problems("skip")))
    seen: Counter[str] = Counter()
    units: Counter[str] = Counter()
    inexact = 0
    for article in _articles(lines(), path, problems):
        text = _text(article.passages)
        unit = best_unit(text, article.mentions)
        units[unit] += 1
        entities, alike = entities_of(text, article.mentions, unit, lambda line, why: problems.add(path, line, why))
        inexact += alike
        name, group = article.id, None
        if times[article.id] > 1:
            name, group = f"{article.id}-p{seen[article.id]}", article.id
            seen[article.id] += 1
        kept: Json = {"passages": [[letter, len(passage)] for letter, passage in article.passages]}
        if article.relations:
            kept["relations"] = article.relations
        yield Document(name, text, tuple(entities), group=group, meta={_META: kept})
    if not units:
        problems.note(path, "no document in it; a document starts with a line such as 123|t|Title")
    for unit in UNITS[1:]:
        if units[unit]:
            problems.note(
                path, f"the surfaces of {units[unit]} documents fit if offsets count {unit}; they are read so"
            )
    if inexact:
        problems.note(path, f"{inexact} surfaces are written otherwise than the text at their offsets, which is kept")


def _text(passages: list[tuple[str, str]]) -> str:
    """The passages with one blank between them; an empty one at the end adds none."""
    text = " ".join(passage for _, passage in passages)
    return text[:-1] if len(passages) > 1 and not passages[-1][1] else text


def _articles(lines: Iterable[tuple[int, str]], path: Path, problems: Problems) -> Iterator[_Article]:
    article: _Article | None = None
    fresh = True
    for number, line in lines:
        if not line.strip():
            fresh = True
            continue
        if passage := PUBTATOR_LINE.match(line):
            name = passage[1].replace(BYTE_ORDER_MARK, "").strip()  # files were put together, each with its mark
            if article is None or fresh or passage[2] == "t" or name != article.id:
                if article:
                    yield article
                article = _Article(name)
            article.passages.append((passage[2], passage[3]))
            fresh = False
        elif article is None or line.split("\t")[0].strip() != article.id:
            problems.add(path, number, f"{shorten(line)} belongs to no document; write its id|t|title line before it")
        else:
            _add_row(article, line.split("\t")[1:], number, path, problems)
    if article:
        yield article


def _add_row(article: _Article, columns: list[str], line: int, path: Path, problems: Problems) -> None:
    """A mention (start, end, surface, label and, if known, concept id), or a relation."""
    if len(columns) >= 2 and _NUMBER.fullmatch(columns[0]) and _NUMBER.fullmatch(columns[1]):
        if len(columns) < 4 or not columns[3].strip():
            problems.add(
                path, line, "a mention without a label; give id, start, end, surface and label, divided by tabs"
            )
            return
        meta: Json = {"concept_id": columns[4]} if len(columns) > 4 and columns[4] else {}
        if len(columns) > 5:
            meta[_MORE] = columns[5:]
        pieces = ((int(columns[0]), int(columns[1])),)
        article.mentions.append(Mention(columns[3], pieces, columns[2], line, meta))
    elif len(columns) >= 2:
        article.relations.append(columns)
    else:
        problems.add(path, line, "neither text, nor mention, nor relation; divide columns by tabs")


def write(documents: Iterable[Document], path: Path) -> None:
    """Writes the text as title and abstract, with a blank in place of each line end, and one mention per line."""
    seen: set[str] = set()
    with atomic_write(path) as out:
        for document in documents:
            refuse_fragments(document, "PubTator")
            name = document.id
            if not name or name != name.strip() or re.search(r"[|\t\r\n]", name):
                raise CorpusError(
                    f"document {name!r}: PubTator needs ids without |, tabs, line ends and blanks around; rename it"
                )
            if name in seen:
                raise CorpusError(
                    f"document {name}: two documents have this id, which PubTator would mix up; rename one"
                )
            seen.add(name)
            out.write("".join(f"{line}\n" for line in [*lines_of(document), ""]))


def lines_of(document: Document) -> Iterator[str]:
    """The lines of a document: its passages, mentions and relations."""
    kept = document.meta.get(_META)
    kept = kept if isinstance(kept, dict) else {}
    for letter, passage in _passages(document.text, kept.get("passages")):
        one_line = re.sub(r"[\r\n]", " ", passage)
        yield f"{document.id}|{letter}|{one_line}"
    for entity in document.entities:
        more, concept = entity.meta.get(_MORE), str(entity.meta.get("concept_id") or "")
        others = [concept, *map(str, more)] if isinstance(more, list) else [concept] if concept else []
        if _BREAK.search(entity.label):
            raise CorpusError(f"document {document.id}: the label {entity.label!r} holds a tab or line end; rename it")
        columns = [_BREAK.sub(" ", column) for column in (document.text_of(entity), entity.label, *others)]
        yield "\t".join([document.id, str(entity.start), str(entity.end), *columns])
    relations = kept.get("relations")
    if isinstance(relations, list) and all(isinstance(row, list) and len(row) > 1 for row in relations):
        for relation in relations:
            yield "\t".join([document.id, *(_BREAK.sub(" ", str(value)) for value in relation)])


def _passages(text: str, sizes: Any) -> list[tuple[str, str]]:
    """The passages that were read, as far as they make up the text; else the first line as title, and the rest."""
    passages, at = [], 0
    for row in sizes if isinstance(sizes, list) else ():
        if not (isinstance(row, list) and len(row) == 2 and isinstance(row[0], str) and isinstance(row[1], int)):
            break
        passages.append((row[0], text[at : at + row[1]]))
        at += row[1] + 1
    if passages and _text(passages) == text:
        return passages
    title, _, abstract = text.partition("\n")
    return [("t", title if abstract else text), ("a", abstract)]


def _changes(document: Document) -> Counter[str]:
    """Relations and columns that would not come back: the lines to be written show it."""
    lines = list(enumerate(lines_of(replace(document, id="1")), 1))  # the writer reports problems with ids
    return changed(document, _parsed(lambda: lines, Path("document"), Problems("skip")), _HOLDS)


FORMAT = Format("pubtator", read, write, _HOLDS, _changes)
