"""BioC XML, read document by document. http://bioc.sourceforge.net"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from gzip import BadGzipFile
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import IO, Any
from xml.etree.ElementTree import Element, ParseError, iterparse
from xml.sax.saxutils import escape, quoteattr

from wingspan.corpora.bioc import HOLDS, Record, document_of
from wingspan.corpora.bioc_writing import bioc_record, collection_of
from wingspan.corpora.checks import Misfit
from wingspan.corpora.files import atomic_write, numbered, open_bytes
from wingspan.corpora.formats import CorpusError, Format, Problems
from wingspan.corpora.kept_keys import changed
from wingspan.text import Document

# what XML 1.0 has no way to write
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE collection SYSTEM "BioC.dtd">\n'


def read(path: Path, problems: Problems) -> Iterator[Document]:
    """The documents of a collection."""
    with open_bytes(path) as raw:
        yield from _parsed(raw, path, problems)


def _parsed(raw: IO[bytes], path: Path, problems: Problems) -> Iterator[Document]:
    collection: Record = {}
    number = 0
    for element in _children(raw, path):
        if element.tag == "document":
            number += 1
            try:
                yield document_of(_record(element), collection, numbered(path, number), path, problems)
            except Misfit as misfit:
                problems.add(path, None, f"document {number}: {misfit}; mend it, or leave it out with --on-error skip")
            element.clear()
        elif number == 0 and element.text:
            if element.tag in ("source", "date", "key"):
                collection = {**collection, element.tag: element.text}
            elif element.tag == "infon":
                infons = {**collection.get("infons", {}), element.get("key", ""): element.text}
                collection = {**collection, "infons": infons}


def _children(raw: IO[bytes], path: Path) -> Iterator[Element]:
    """The parts of the collection, one after the other."""
    depth = 0
    try:
        for event, element in iterparse(raw, ("start", "end")):
            depth += 1 if event == "start" else -1
            if event == "start" and depth == 1 and element.tag != "collection":
                raise CorpusError(f"{path}: no BioC: the root is <{element.tag}>, not <collection>")
            if event == "end" and depth == 1:
                yield element
    except ParseError as error:
        line = error.position[0]
        raise CorpusError(f"{path}:{line}: no valid XML ({error}); mend the file or fetch it again") from error
    except (BadGzipFile, EOFError, zlib.error) as error:
        raise CorpusError(f"{path}: no whole gzip file ({error}); fetch it again") from error
    except CorpusError:
        raise
    except (LookupError, ValueError) as error:  # an encoding that does not exist, or that the parser does not know
        raise CorpusError(f"{path}: no readable XML ({error}); save the file as UTF-8") from error


def _record(element: Element) -> Record:
    """An element of BioC XML as the object that BioC JSON has for it."""
    record: Record = {"infons": {child.get("key", ""): child.text or "" for child in element.findall("infon")}}
    if element.tag == "document":
        record["id"] = (element.findtext("id") or "").strip()
    elif element.get("id") is not None:
        record["id"] = element.get("id")
    if element.find("offset") is not None:
        record["offset"] = _number(element.findtext("offset"))
    if element.find("text") is not None:
        record["text"] = element.findtext("text") or ""
    for key, tag in (("passages", "passage"), ("sentences", "sentence"), ("annotations", "annotation")):
        if found := [_record(child) for child in element.findall(tag)]:
            record[key] = found
    if relations := [_record(child) for child in element.findall("relation")]:
        record["relations"] = relations
    if element.tag == "annotation":
        record["locations"] = [
            {"offset": _number(child.get("offset")), "length": _number(child.get("length"))}
            for child in element.findall("location")
        ]
    if element.tag == "relation":
        record["nodes"] = [dict(child.attrib) for child in element.findall("node")]
    return record


def _number(text: str | None) -> int | str | None:
    """A whole number; what is none is told by the check that follows."""
    return int(text) if text is not None and re.fullmatch(r"[ \t\r\n]*-?[0-9]{1,18}[ \t\r\n]*", text) else text


def write(documents: Iterable[Document], path: Path) -> None:
    """Writes one collection, with the source, date and key of the first document's."""
    with atomic_write(path) as out:
        for part in _parts(documents, path):
            out.write(part)


def _parts(documents: Iterable[Document], path: Path) -> Iterator[str]:
    rest = iter(documents)
    first = next(rest, None)
    head = collection_of(first)
    yield _HEAD + "<collection>"
    for tag in ("source", "date", "key"):
        yield f"<{tag}>{_text(head[tag], path)}</{tag}>"
    yield _infons(head, path) + "\n"
    for document in chain([first], rest) if first is not None else ():
        yield _document(bioc_record(document), path) + "\n"
    yield "</collection>\n"


def _changes(document: Document) -> Counter[str]:
    """Values of JSON that are no strings, and keys that XML has no element for."""
    path = Path("document")
    raw = BytesIO("".join(_parts([document], path)).encode("utf-8"))
    return changed(document, _parsed(raw, path, Problems("skip")), HOLDS)


def _document(record: Record, path: Path) -> str:
    parts = [f"<document><id>{_text(record['id'], path)}</id>", _infons(record, path)]
    for passage in record["passages"]:
        parts += ["<passage>", _infons(passage, path), f"<offset>{passage['offset']}</offset>"]
        parts += [f"<text>{_text(passage['text'], path)}</text>"]
        parts += [_annotation(annotation, path) for annotation in passage["annotations"]]
        parts += [_relations(passage, path), "</passage>"]
    return "".join([*parts, _relations(record, path), "</document>"])


def _annotation(record: Record, path: Path) -> str:
    locations = "".join(
        f'<location offset="{location["offset"]}" length="{location["length"]}"/>' for location in record["locations"]
    )
    start = f"<annotation id={_attribute(record['id'], path)}>"
    return f"{start}{_infons(record, path)}{locations}<text>{_text(record['text'], path)}</text></annotation>"


def _relations(record: Record, path: Path) -> str:
    relations = record.get("relations")
    if not isinstance(relations, list):
        return ""
    told = ""
    for relation in relations:
        if not isinstance(relation, dict):
            continue
        nodes = "".join(
            f"<node refid={_attribute(node.get('refid'), path)} role={_attribute(node.get('role'), path)}/>"
            for node in relation.get("nodes") or []
            if isinstance(node, dict)
        )
        told += f"<relation id={_attribute(relation.get('id'), path)}>{_infons(relation, path)}{nodes}</relation>"
    return told


def _infons(record: Record, path: Path) -> str:
    infons = record.get("infons")
    return "".join(
        f"<infon key={_attribute(key, path)}>{_text(value, path)}</infon>"
        for key, value in (infons.items() if isinstance(infons, dict) else ())
    )


def _text(value: Any, path: Path) -> str:
    return escape(_allowed(value, path), {"\r": "&#13;"})  # a bare CR would be read back as LF


def _attribute(value: Any, path: Path) -> str:
    return quoteattr(_allowed(value, path))


def _allowed(value: Any, path: Path) -> str:
    text = "" if value is None else str(value)
    if found := _FORBIDDEN.search(text):
        raise CorpusError(
            f"{path}: the text holds U+{ord(found[0]):04X}, which XML cannot hold; write BioC JSON instead"
        )
    return text


FORMAT = Format(
    name="bioc-xml",
    read=read,
    write=write,
    suffixes=(".bioc.xml", ".xml"),
    holds=HOLDS,
    description="passages with annotations of one or several locations (BioC XML)",
    changes=_changes,
)
