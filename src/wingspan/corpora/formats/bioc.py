"""BioC: what its XML and its JSON share. Both are read into the objects of BioC JSON; this module knows what they mean.

A document is a row of passages, each with its offset; an annotation has one or several locations, counted over the
document. The specification counts bytes, most files count code points; the surfaces decide.
"""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from gzip import BadGzipFile
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import IO, Any
from xml.etree.ElementTree import Element, ParseError, iterparse
from xml.sax.saxutils import escape, quoteattr

from wingspan.corpora.formats import Format, Holds
from wingspan.corpora.formats.conversion_loss import changed
from wingspan.corpora.formats.records import Misfit, dumps, identity, label_of, list_of, record_of, text_of, whole
from wingspan.corpora.formats.standoff import UNITS, Mention, code_points, entities_of, fitting
from wingspan.files import CorpusError, Problems, atomic_write, numbered, open_bytes, read_json
from wingspan.text import Document, Entity, Span

Record = dict[str, Any]
META = "bioc"
HOLDS = Holds(document_keys=frozenset({META}), entity_keys=frozenset({"id", "concept_id", "infons"}))
_LARGEST_GAP = 1000  # a larger one is no white space between passages, and the offsets mean something else
_OWN_OF_DOCUMENT = frozenset({"id", "passages", "annotations"})
_OWN_OF_PASSAGE = frozenset({"offset", "text", "annotations", "sentences"})


@dataclass(frozen=True)
class _Piece:
    """A passage, or a sentence of one that has no text of its own."""

    offset: int
    text: str
    annotations: list[Any]


def document_of(record: Record, collection: Record, name: str, path: Path, problems: Problems) -> Document:
    """A document of BioC JSON as ours. What has no place in ours is kept in `meta`."""
    identifier = identity(record, "id", name)
    passages = [record_of(value, "a passage") for value in list_of(record.get("passages"), "passages")]
    pieces = [list(_pieces(passage)) for passage in passages]
    flat = [piece for row in pieces for piece in row]
    loose = list_of(record.get("annotations"), "annotations")

    def read_in(unit: str) -> tuple[tuple[int, int], str, list[int], list[Mention], list[str]]:
        places = [code_points(piece.text, unit) for piece in flat]
        text, starts, single_gaps = _joined(flat, places)
        mentions, wrong = [], []
        for at, annotation in [*((i, a) for i, p in enumerate(flat) for a in p.annotations), *((0, a) for a in loose)]:
            try:
                mentions.append(_mention(record_of(annotation, "an annotation"), at, flat, starts, places))
            except Misfit as misfit:
                wrong.append(str(misfit))
        return (fitting(text, mentions), single_gaps), text, starts, mentions, wrong

    unit = UNITS[0]
    best, text, starts, mentions, wrong = read_in(unit)
    if best < (len(mentions), len(flat) - 1) and not text.isascii():
        for other in UNITS[1:]:
            reading = read_in(other)
            if reading[0] > best:
                unit, (best, text, starts, mentions, wrong) = other, reading
    for reason in wrong:
        problems.add(path, None, f"document {identifier}: {reason}")
    if unit != UNITS[0]:
        problems.note(path, f"document {identifier}: the surfaces fit if offsets count {unit}; it is read so")

    def complain(_: int | None, reason: str) -> None:
        problems.add(path, None, f"document {identifier}: {reason}")

    entities, otherwise = entities_of(text, mentions, UNITS[0], complain)
    if otherwise:
        problems.note(path, f"document {identifier}: {otherwise} surfaces differ a little from the text, which is kept")
    spans = [Span(start, start + len(piece.text)) for start, piece in zip(starts, flat, strict=True)]
    in_sentences = any(passage.get("sentences") for passage in passages)
    return Document(
        identifier,
        text,
        tuple(entities),
        sentences=tuple(span for span in spans if span.width) if in_sentences else None,
        meta={META: _layout(record, collection, passages, pieces, spans, unit)},
    )


def _pieces(passage: Record) -> Iterator[_Piece]:
    sentences = list_of(passage.get("sentences"), "sentences")
    rows = [record_of(value, "a sentence") for value in sentences] if sentences else [passage]
    for number, row in enumerate(rows):
        found = list_of(row.get("annotations"), "annotations")
        if sentences and number == 0:
            found = [*found, *list_of(passage.get("annotations"), "annotations")]
        text = row.get("text")
        yield _Piece(whole(row.get("offset"), "offset"), "" if text is None else text_of(text, "text"), found)


def _joined(pieces: Sequence[_Piece], places: Sequence[Sequence[int]]) -> tuple[str, list[int], int]:
    """The text of a document, blanks between its pieces as their offsets ask, and where each piece starts in it.

    Also how many gaps are of one blank, which tells units apart where no surface does.
    """
    parts: list[str] = []
    starts: list[int] = []
    at = end = single = 0
    for number, (piece, inside) in enumerate(zip(pieces, places, strict=True)):
        gap = piece.offset - end
        single += number > 0 and gap == 1
        if number == 0:
            gap = 0
        elif not 0 <= gap <= _LARGEST_GAP:
            gap = 1
        parts.append(" " * gap + piece.text)
        starts.append(at + gap)
        at += gap + len(piece.text)
        end = piece.offset + len(inside) - 1
    return "".join(parts), starts, single


def _mention(
    annotation: Record, at: int, pieces: Sequence[_Piece], starts: Sequence[int], places: Sequence[Sequence[int]]
) -> Mention:
    infons = dict(record_of(annotation.get("infons") or {}, "infons"))
    if "type" not in infons:
        raise Misfit(f"annotation {annotation.get('id')!r} has no infon 'type', which is its label")
    label = label_of(infons.pop("type"))
    locations = [record_of(value, "a location") for value in list_of(annotation.get("locations"), "locations")]
    if not locations:
        raise Misfit(f"annotation {annotation.get('id')!r} has no location; give offset and length")
    ranges = []
    for location in locations:
        start = whole(location.get("offset"), f'the offset of entity "{label}"')
        end = start + whole(location.get("length"), f'the length of entity "{label}"')
        # a border belongs to the piece that starts there if a mention starts, to the one before if it ends
        backward, forward = range(len(pieces) - 1, -1, -1), range(len(pieces))
        first = _place(start, [at, *backward], pieces, starts, places)
        ranges.append((first, _place(end, [at, *forward], pieces, starts, places)))
    meta: Record = {}
    if annotation.get("id") is not None:
        meta["id"] = annotation["id"]
    if isinstance(infons.get("identifier"), str):
        meta["concept_id"] = infons.pop("identifier")
    if infons:
        meta["infons"] = infons
    surface = annotation.get("text")
    return Mention(label, tuple(ranges), surface if isinstance(surface, str) else None, None, meta)


def _place(
    offset: int,
    order: Sequence[int],
    pieces: Sequence[_Piece],
    starts: Sequence[int],
    places: Sequence[Sequence[int]],
) -> int:
    """An offset of the file as a place in our text, by the piece that it lies in, the annotation's own piece first."""
    for at in order if pieces else ():
        local = offset - pieces[at].offset
        if 0 <= local < len(places[at]):
            inside = places[at][local]
            return starts[at] + inside if inside >= 0 else -1
    return offset - (pieces[0].offset if pieces else 0)


def _layout(
    record: Record,
    collection: Record,
    passages: Sequence[Record],
    pieces: Sequence[Sequence[_Piece]],
    spans: Sequence[Span],
    unit: str,
) -> Record:
    """What is kept of passages, infons and relations, so that it can be written back."""
    rows, at = [], 0
    for passage, row in zip(passages, pieces, strict=True):
        span = Span(spans[at].start, spans[at + len(row) - 1].end)
        at += len(row)
        others = _kept(passage, _OWN_OF_PASSAGE)
        offset = row[0].offset if unit == UNITS[0] else span.start  # it is written again in code points
        rows.append({"start": span.start, "end": span.end, "offset": offset, **others})
    layout = _kept(record, _OWN_OF_DOCUMENT)
    return {**layout, "passages": rows, **({"collection": collection} if collection else {})}


def _kept(record: Record, own: frozenset[str]) -> Record:
    """What else a record holds; what is empty is left out, as XML and JSON differ in what they write of it."""
    kept = {key: value for key, value in record.items() if key not in own and value}
    if isinstance(relations := kept.get("relations"), list):
        kept["relations"] = [_kept(item, frozenset()) if isinstance(item, dict) else item for item in relations]
    return kept


# --- BioC XML, read document by document. http://bioc.sourceforge.net


# what XML 1.0 has no way to write
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE collection SYSTEM "BioC.dtd">\n'


def read_bioc_xml(path: Path, problems: Problems) -> Iterator[Document]:
    """The documents of a collection."""
    with open_bytes(path) as raw:
        yield from _bioc_xml_parsed(raw, path, problems)


def _bioc_xml_parsed(raw: IO[bytes], path: Path, problems: Problems) -> Iterator[Document]:
    collection: Record = {}
    number = 0
    for element in _children(raw, path):
        if element.tag == "document":
            number += 1
            try:
                yield document_of(_bioc_xml_record(element), collection, numbered(path, number), path, problems)
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


def _bioc_xml_record(element: Element) -> Record:
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
        if found := [_bioc_xml_record(child) for child in element.findall(tag)]:
            record[key] = found
    if relations := [_bioc_xml_record(child) for child in element.findall("relation")]:
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


def write_bioc_xml(documents: Iterable[Document], path: Path) -> None:
    """Writes one collection, with the source, date and key of the first document's."""
    with atomic_write(path) as out:
        for part in _bioc_xml_parts(documents, path):
            out.write(part)


def _bioc_xml_parts(documents: Iterable[Document], path: Path) -> Iterator[str]:
    rest = iter(documents)
    first = next(rest, None)
    head = collection_of(first)
    yield _HEAD + "<collection>"
    for tag in ("source", "date", "key"):
        yield f"<{tag}>{_text(head[tag], path)}</{tag}>"
    yield _bioc_xml_infons(head, path) + "\n"
    for document in chain([first], rest) if first is not None else ():
        yield _bioc_xml_document(bioc_record(document), path) + "\n"
    yield "</collection>\n"


def _bioc_xml_changes(document: Document) -> Counter[str]:
    """Values of JSON that are no strings, and keys that XML has no element for."""
    path = Path("document")
    raw = BytesIO("".join(_bioc_xml_parts([document], path)).encode("utf-8"))
    return changed(document, _bioc_xml_parsed(raw, path, Problems("skip")), HOLDS)


def _bioc_xml_document(record: Record, path: Path) -> str:
    parts = [f"<document><id>{_text(record['id'], path)}</id>", _bioc_xml_infons(record, path)]
    for passage in record["passages"]:
        parts += ["<passage>", _bioc_xml_infons(passage, path), f"<offset>{passage['offset']}</offset>"]
        parts += [f"<text>{_text(passage['text'], path)}</text>"]
        parts += [_annotation(annotation, path) for annotation in passage["annotations"]]
        parts += [_relations(passage, path), "</passage>"]
    return "".join([*parts, _relations(record, path), "</document>"])


def _annotation(record: Record, path: Path) -> str:
    locations = "".join(
        f'<location offset="{location["offset"]}" length="{location["length"]}"/>' for location in record["locations"]
    )
    start = f"<annotation id={_attribute(record['id'], path)}>"
    return f"{start}{_bioc_xml_infons(record, path)}{locations}<text>{_text(record['text'], path)}</text></annotation>"


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
        told += (
            f"<relation id={_attribute(relation.get('id'), path)}>{_bioc_xml_infons(relation, path)}{nodes}</relation>"
        )
    return told


def _bioc_xml_infons(record: Record, path: Path) -> str:
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


BIOC_XML = Format(
    name="bioc-xml",
    read=read_bioc_xml,
    write=write_bioc_xml,
    suffixes=(".bioc.xml", ".xml"),
    holds=HOLDS,
    description="passages with annotations of one or several locations (BioC XML)",
    changes=_bioc_xml_changes,
)


# --- BioC JSON: a collection, a list of documents, one document, or an answer of the PubTator service.


def read_bioc_json(path: Path, problems: Problems) -> Iterator[Document]:
    """The documents of a file."""
    return _bioc_json_parsed(read_json(path), path, problems)


def _bioc_json_parsed(value: Any, path: Path, problems: Problems) -> Iterator[Document]:
    for number, (record, collection) in enumerate(_documents(value, path), 1):
        try:
            yield document_of(record, collection, numbered(path, number), path, problems)
        except Misfit as misfit:
            problems.add(path, None, f"document {number}: {misfit}; mend it, or leave it out with --on-error skip")


def _documents(value: Any, path: Path) -> Iterator[tuple[Record, Record]]:
    if isinstance(value, list):
        for item in value:
            yield from _documents(item, path)
    elif isinstance(value, dict) and isinstance(documents := value.get("documents", value.get("PubTator3")), list):
        collection = {key: kept for key, kept in value.items() if key not in ("documents", "PubTator3") and kept}
        for document in documents:
            yield (document if isinstance(document, dict) else {"passages": document}), collection
    elif isinstance(value, dict) and "passages" in value:
        yield value, {}
    else:
        raise CorpusError(f"{path}: no BioC: a collection has the key 'documents', a document the key 'passages'")


def write_bioc_json(documents: Iterable[Document], path: Path) -> None:
    """Writes one collection, with the source, date and key of the first document's."""
    with atomic_write(path) as out:
        for part in _bioc_json_parts(documents):
            out.write(part)


def _bioc_json_parts(documents: Iterable[Document]) -> Iterator[str]:
    rest = iter(documents)
    first = next(rest, None)
    yield dumps(collection_of(first))[:-1] + ', "documents": ['
    for number, document in enumerate(chain([first], rest) if first is not None else ()):
        yield (",\n" if number else "\n") + dumps(bioc_record(document))
    yield "\n]}\n"


def _bioc_json_changes(document: Document) -> Counter[str]:
    value = json.loads("".join(_bioc_json_parts([document])))
    return changed(document, _bioc_json_parsed(value, Path("document"), Problems("skip")), HOLDS)


BIOC_JSON = Format(
    name="bioc-json",
    read=read_bioc_json,
    write=write_bioc_json,
    suffixes=(".bioc.json",),
    holds=HOLDS,
    description="passages with annotations of one or several locations (BioC JSON)",
    changes=_bioc_json_changes,
)


# --- Documents as BioC has them: the objects of BioC JSON, which both writers start from.


def _written(record: Record) -> Record:
    """What was kept of a record, with the lists and objects that BioC JSON always has."""
    relations = record.get("relations")
    rows = relations if isinstance(relations, list) else []
    whole_rows = [{"infons": {}, "nodes": [], **row} if isinstance(row, dict) else row for row in rows]
    return {"infons": {}, **record, "relations": whole_rows}


def bioc_record(document: Document) -> Record:
    """A document as BioC JSON has it, in the passages that it was read in, or in one."""
    layout = document.meta.get(META)
    layout = layout if isinstance(layout, dict) else {}
    rows: list[Record] = [{"start": 0, "end": len(document.text), "offset": 0}]
    if _tile(layout.get("passages"), document.text):
        rows = layout["passages"]
    passages: list[Record] = []
    for row in rows:
        others = {key: value for key, value in row.items() if key not in ("start", "end", "offset")}
        text = document.text[row["start"] : row["end"]]
        passages.append({"offset": row["offset"], "sentences": [], **_written(others), "text": text, "annotations": []})

    def offset_of(place: int, is_end: bool) -> int:
        reached = [row for row in rows if row["start"] < place or (row["start"] == place and not is_end)] or rows[:1]
        return int(reached[-1]["offset"] + place - reached[-1]["start"])

    taken = {str(entity.meta["id"]) for entity in document.entities if "id" in entity.meta}
    fresh = (str(number) for number in range(len(document.entities) + len(taken)) if str(number) not in taken)
    for entity in document.entities:
        at = max((i for i, row in enumerate(rows) if row["start"] <= entity.start), default=0)
        locations = []
        for span in entity.spans:
            start = offset_of(span.start, False)
            locations.append({"offset": start, "length": offset_of(span.end, True) - start})
        passages[at]["annotations"].append(
            {
                "id": str(entity.meta["id"]) if "id" in entity.meta else next(fresh),
                "infons": _infons(entity),
                "text": document.text_of(entity),
                "locations": locations,
            }
        )
    others = {key: value for key, value in layout.items() if key not in ("passages", "collection", "id")}
    return {"id": document.id, **_written(others), "passages": passages}


def _infons(entity: Entity) -> Record:
    kept = entity.meta.get("infons")
    infons: Record = dict(kept) if isinstance(kept, dict) else {}
    if entity.meta.get("concept_id") is not None:
        infons["identifier"] = str(entity.meta["concept_id"])
    return {**infons, "type": entity.label}


def _tile(rows: Any, text: str) -> bool:
    """Whether the passages that were kept still make up this text: in order, with nothing but blanks between."""
    if not isinstance(rows, list) or not rows:
        return False
    at = 0
    for row in rows:
        fit = isinstance(row, dict) and all(isinstance(row.get(key), int) for key in ("start", "end", "offset"))
        if not fit or not at <= row["start"] <= row["end"] <= len(text) or text[at : row["start"]].strip(" "):
            return False
        at = row["end"]
    return at == len(text)


def collection_of(document: Document | None) -> Record:
    """What was kept of the collection that a document came from: source, date, key, infons."""
    layout = document.meta.get(META) if document is not None else None
    kept = layout.get("collection") if isinstance(layout, dict) else None
    base: Record = {"source": "", "date": "", "key": "", "infons": {}}
    return {**base, **kept} if isinstance(kept, dict) else base
