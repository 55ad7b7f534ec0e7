"""BioC: a collection of documents in XML or JSON. http://bioc.sourceforge.net

Both are read into the objects of BioC JSON, and written from them. A document is a row of passages, each with its
offset; an annotation has one or several locations, counted over the document. The specification counts bytes, most
files count code points; the surfaces decide.
"""

import json
import re
import zlib
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from gzip import BadGzipFile
from io import BytesIO
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, NamedTuple
from xml.etree.ElementTree import Element, ParseError, SubElement, iterparse, tostring

from wingspan.corpora.formats import Format, Holds, records
from wingspan.corpora.formats.conversion_loss import changed
from wingspan.corpora.formats.records import Json, Misfit
from wingspan.corpora.formats.standoff import UNITS, Mention, entities_of, fitting
from wingspan.files import CorpusError, Problems, atomic_write, numbered, open_bytes, read_json, read_lines
from wingspan.text import Document, Span

META = "bioc"
_HOLDS = Holds(document_keys=frozenset({META}), entity_keys=frozenset({"id", "concept_id", "infons"}))
_LARGEST_GAP = 1000  # a larger one is not white space between passages, and the offsets mean something else
_OWN_OF_DOCUMENT = frozenset({"id", "passages", "annotations"})
_OWN_OF_PASSAGE = frozenset({"offset", "text", "annotations", "sentences"})
_OWN_OF_ROW = frozenset({"start", "end", "offset"})  # passages as they are kept in `meta`
_OWN_OF_ANNOTATION = frozenset({"id", "infons", "text", "locations"})


# From BioC JSON to documents


def _documents(rows: Iterable[tuple[Json, Json]], path: Path, problems: Problems) -> Iterator[Document]:
    """The documents of records, each with the collection it belongs to."""
    for number, (record, collection) in enumerate(rows, 1):
        try:
            records.record_of(record, "the document")
            yield _document(record, collection, records.identity(record, "id", numbered(path, number)), path, problems)
        except Misfit as misfit:
            problems.add(path, None, f"document {number}: {misfit}; mend it, or leave it out with --on-error skip")


def _document(record: Json, collection: Json, name: str, path: Path, problems: Problems) -> Document:
    """A document; keys and passages that a `Document` has no place for are kept in `meta`."""
    if "passages" not in record:
        raise Misfit("there is no key 'passages'")
    passages = records.records_of(record["passages"], "passages", "a passage")
    pieces = [list(_pieces(passage)) for passage in passages]
    flat = list(chain.from_iterable(pieces))
    loose = records.list_of(record.get("annotations"), "annotations")
    annotations = [*((at, one) for at, piece in enumerate(flat) for one in piece.annotations), *((0, x) for x in loose)]
    reading = _Reading(flat, annotations, UNITS[0])
    if reading.fit < (len(reading.mentions), len(flat) - 1) and not reading.text.isascii():
        others = (_Reading(flat, annotations, unit) for unit in UNITS[1:])
        reading = max(reading, *others, key=lambda one: one.fit)  # the first of equals

    def complain(_: int | None, reason: str) -> None:
        problems.add(path, None, f"document {name}: {reason}")

    for reason in reading.wrong:
        complain(None, reason)
    sentences_of = [sentence for passage in passages for sentence in passage.get("sentences") or ()]
    inner = {key for sentence in sentences_of for key in _kept(sentence, _OWN_OF_PASSAGE)}
    inner |= {key for _, one in annotations if isinstance(one, dict) for key in _kept(one, _OWN_OF_ANNOTATION)}
    if inner:
        keys = ", ".join(records.shorten(key) for key in sorted(inner)[:5])
        problems.note(path, f"document {name}: {keys} of sentences or annotations is not kept")
    if reading.unit != UNITS[0]:
        problems.note(
            path, f"document {name}: the surfaces fit only if offsets count {reading.unit}, so it was read that way"
        )
    entities, inexact = entities_of(reading.text, reading.mentions, UNITS[0], complain)
    if inexact:
        problems.note(path, f"document {name}: {inexact} surfaces differ a little from the text, which is kept")
    spans = [Span(start, start + len(piece.text)) for start, piece in zip(reading.starts, flat, strict=True)]
    rows, rest = [], iter(spans)
    for passage, row in zip(passages, pieces, strict=True):
        own = [next(rest) for _ in row]
        offset = row[0].offset if reading.unit == UNITS[0] else own[0].start  # it is written again in code points
        rows.append({"start": own[0].start, "end": own[-1].end, "offset": offset, **_kept(passage, _OWN_OF_PASSAGE)})
    kept = {**_kept(record, _OWN_OF_DOCUMENT), "passages": rows, **({"collection": collection} if collection else {})}
    in_sentences = any(passage.get("sentences") for passage in passages)
    sentences = tuple(span for span in spans if span.width) if in_sentences else None
    return Document(name, reading.text, tuple(entities), sentences=sentences, meta={META: kept})


class _TextPiece(NamedTuple):
    """A passage, or one sentence of a passage that has no text itself."""

    offset: int
    text: str
    annotations: list[Any]


def _pieces(passage: Json) -> Iterator[_TextPiece]:
    rows = records.records_of(passage.get("sentences"), "sentences", "a sentence")
    for number, row in enumerate(rows or [passage]):
        annotations = records.list_of(row.get("annotations"), "annotations")
        if rows and number == 0:
            annotations = [*annotations, *records.list_of(passage.get("annotations"), "annotations")]
        text = row.get("text")
        yield _TextPiece(
            records.whole(row.get("offset"), "offset"),
            "" if text is None else records.text_of(text, "text"),
            annotations,
        )


class _Reading:
    """The text and mentions of a document if offsets count in one unit.

    Blanks fill the gaps between pieces as their offsets ask. `fit` is how many surfaces fit, and how many gaps are one
    blank wide, which tells units apart where no surface does.
    """

    def __init__(self, pieces: Sequence[_TextPiece], annotations: Iterable[tuple[int, Any]], unit: str) -> None:
        self.unit = unit
        self.pieces = pieces
        self.places = [records.positions(piece.text, unit) for piece in pieces]
        self.starts = list[int]()
        parts = list[str]()
        at = end = single_gaps = 0
        for number, (piece, inside) in enumerate(zip(pieces, self.places, strict=True)):
            gap = piece.offset - end if number else 0
            single_gaps += gap == 1
            gap = gap if 0 <= gap <= _LARGEST_GAP else 1
            parts += [" " * gap, piece.text]
            self.starts.append(at + gap)
            at += gap + len(piece.text)
            end = piece.offset + len(inside) - 1
        self.text = "".join(parts)
        self.mentions, self.wrong = list[Mention](), list[str]()
        for number, annotation in annotations:
            try:
                self.mentions.append(self._mention(records.record_of(annotation, "an annotation"), number))
            except Misfit as misfit:
                self.wrong.append(str(misfit))
        self.fit = (fitting(self.text, self.mentions), single_gaps)

    def _mention(self, annotation: Json, at: int) -> Mention:
        infons = dict(records.record_of(annotation.get("infons", {}), "infons"))
        if "type" not in infons:
            raise Misfit(f"annotation {annotation.get('id')!r} has no infon 'type', which is its label")
        label = records.label_of(infons.pop("type"))
        locations = records.records_of(annotation.get("locations"), "locations", "a location")
        if not locations:
            raise Misfit(f"annotation {annotation.get('id')!r} has no location; give offset and length")
        ranges = []
        everywhere = range(len(self.pieces))
        for location in locations:
            start = records.whole(location.get("offset"), f'the offset of entity "{label}"')
            end = start + records.whole(location.get("length"), f'the length of entity "{label}"')
            # a border belongs to the piece that starts there if a mention starts, to the one before if it ends
            first, last = chain([at], reversed(everywhere)), chain([at], everywhere)
            ranges.append((self._place(start, first), self._place(end, last)))
        meta: Json = {"id": annotation["id"]} if annotation.get("id") is not None else {}
        if isinstance(infons.get("identifier"), str):
            meta["concept_id"] = infons.pop("identifier")
        if infons:
            meta["infons"] = infons
        surface = annotation.get("text")
        if surface is not None:
            records.text_of(surface, f'the text of entity "{label}"')
        return Mention(label, tuple(ranges), surface, None, meta)

    def _place(self, offset: int, order: Iterable[int]) -> int:
        """An offset of the file as a place in the text, by the first piece in this order that it lies in."""
        for at in order if self.pieces else ():
            local = offset - self.pieces[at].offset
            if 0 <= local < len(self.places[at]):
                inside = self.places[at][local]
                return self.starts[at] + inside if inside >= 0 else -1
        return offset - (self.pieces[0].offset if self.pieces else 0)


def _kept(record: Json, own: frozenset[str]) -> Json:
    """The other keys of a record; empty values are left out, because XML and JSON differ in which they write."""
    kept = {key: value for key, value in record.items() if key not in own and (value or value == 0)}
    if isinstance(relations := kept.get("relations"), list):
        kept["relations"] = [_kept(item, frozenset()) if isinstance(item, dict) else item for item in relations]
    return kept


# From documents to BioC JSON


def record_of_document(document: Document) -> Json:
    """A document as BioC JSON has it, in the passages that it was read in, or in one."""
    kept = document.meta.get(META)
    kept = kept if isinstance(kept, dict) else {}
    whole_text = [{"start": 0, "end": len(document.text), "offset": 0}]
    rows: list[Json] = kept["passages"] if _tile(kept.get("passages"), document.text) else whole_text
    passages: list[Json] = []
    for row in rows:
        text = document.text[row["start"] : row["end"]]
        others = _written(row, _OWN_OF_ROW)
        passages.append({"offset": row["offset"], "sentences": [], **others, "text": text, "annotations": []})

    starts = [row["start"] for row in rows]

    def offset_of(place: int, is_end: bool) -> int:
        row = rows[max((bisect_left if is_end else bisect_right)(starts, place) - 1, 0)]
        return int(row["offset"] + place - row["start"])

    taken = {str(entity.meta["id"]) for entity in document.entities if "id" in entity.meta}
    fresh = (str(number) for number in range(len(document.entities) + len(taken)) if str(number) not in taken)
    for entity in document.entities:
        at = max(bisect_right(starts, entity.start) - 1, 0)
        locations = []
        for span in entity.spans:
            start = offset_of(span.start, False)
            locations.append({"offset": start, "length": offset_of(span.end, True) - start})
        name = str(entity.meta["id"]) if "id" in entity.meta else next(fresh)
        infons = dict(entity.meta["infons"]) if isinstance(entity.meta.get("infons"), dict) else {}
        if entity.meta.get("concept_id") is not None:
            infons["identifier"] = str(entity.meta["concept_id"])
        infons["type"] = entity.label
        passages[at]["annotations"].append(
            {"id": name, "infons": infons, "text": document.text_of(entity), "locations": locations}
        )
    return {"id": document.id, **_written(kept, frozenset({"passages", "collection", "id"})), "passages": passages}


def _written(kept: Json, own: frozenset[str]) -> Json:
    """The kept keys of a record, with the lists and objects that BioC JSON always has."""
    relations = kept.get("relations")
    rows = relations if isinstance(relations, list) else []
    rows = [{"infons": {}, "nodes": [], **row} if isinstance(row, dict) else row for row in rows]
    return {"infons": {}, **{key: value for key, value in kept.items() if key not in own}, "relations": rows}


def _tile(rows: Any, text: str) -> bool:
    """Whether the passages that were kept still make up this text: in order, with nothing but blanks between."""
    if not isinstance(rows, list) or not rows:
        return False
    at = 0
    for row in rows:
        fit = isinstance(row, dict) and all(isinstance(row.get(key), int) for key in _OWN_OF_ROW)
        if not fit or not at <= row["start"] <= row["end"] <= len(text) or text[at : row["start"]].strip(" "):
            return False
        at = row["end"]
    return at == len(text)


def _collection(documents: Sequence[Document]) -> Json:
    """The source, date, key and infons of the collection that the first document came from."""
    kept = documents[0].meta.get(META) if documents else None
    collection = kept.get("collection") if isinstance(kept, dict) else None
    return {"source": "", "date": "", "key": "", "infons": {}, **(collection if isinstance(collection, dict) else {})}


# JSON: a collection, a list of documents, one document, or an answer of the PubTator service


def _json_records(value: Any, path: Path) -> Iterator[tuple[Json, Json]]:
    if isinstance(value, list):
        for item in value:
            yield from _json_records(item, path)
    elif isinstance(value, dict) and isinstance(documents := value.get("documents", value.get("PubTator3")), list):
        collection = _kept(value, frozenset({"documents", "PubTator3"}))
        for document in documents:
            yield document, collection
    elif isinstance(value, dict) and "passages" in value:
        yield value, {}
    else:
        raise CorpusError(f"{path}: not BioC: a collection has the key 'documents', a document the key 'passages'")


def _json_parts(documents: Iterable[Document]) -> Iterator[str]:
    """One collection, with the source, date and key of the first document's."""
    rest = iter(documents)
    first = list(islice(rest, 1))
    yield records.dumps(_collection(first))[:-1] + ', "documents": ['
    for number, document in enumerate(chain(first, rest)):
        yield (",\n" if number else "\n") + records.dumps(record_of_document(document))
    yield "\n]}\n"


def _json_changes(document: Document) -> Counter[str]:
    rows = _json_records(json.loads("".join(_json_parts([document]))), Path("document"))
    return changed(document, _documents(rows, Path("document"), Problems("skip")), _HOLDS)


def _write_json(documents: Iterable[Document], path: Path) -> None:
    with atomic_write(path) as out:
        out.writelines(_json_parts(documents))


BIOC_JSON = Format(
    "bioc-json",
    lambda path, problems: _documents(_json_records(read_json(path), path), path, problems),
    _write_json,
    _HOLDS,
    _json_changes,
)


# XML, read document by document

_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE collection SYSTEM "BioC.dtd">\n'
# characters that XML 1.0 has no way to write
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_LISTS = {"passages": "passage", "sentences": "sentence", "annotations": "annotation", "relations": "relation"}


def _read_xml(path: Path, problems: Problems) -> Iterator[Document]:
    with open_bytes(path) as raw:
        yield from _documents(_xml_records(raw, path), path, problems)


def _xml_records(raw: IO[bytes], path: Path) -> Iterator[tuple[Json, Json]]:
    collection: Json = {}
    depth, started = 0, False
    try:
        for event, element in iterparse(raw, ("start", "end")):
            depth += 1 if event == "start" else -1
            if event == "start" and depth == 1 and element.tag != "collection":
                raise CorpusError(f"{path}: not BioC: the root is <{element.tag}>, not <collection>")
            if event == "start" or depth != 1:
                continue
            if element.tag == "document":
                started = True
                yield _xml_record(element), collection
                element.clear()
            elif not started and element.text and element.tag in ("source", "date", "key"):
                collection[element.tag] = element.text
            elif not started and element.text and element.tag == "infon":
                collection.setdefault("infons", {})[element.get("key", "")] = element.text
    except ParseError as error:
        line = error.position[0]
        raise CorpusError(f"{path}:{line}: not valid XML ({error}); fix the file or fetch it again") from error
    except (BadGzipFile, EOFError, zlib.error) as error:
        raise CorpusError(f"{path}: incomplete gzip file ({error}); fetch it again") from error
    except CorpusError:
        raise
    except (LookupError, ValueError) as error:  # an encoding that does not exist, or that the parser does not know
        raise CorpusError(f"{path}: unreadable XML ({error}); save the file as UTF-8") from error


def _xml_record(element: Element) -> Json:
    """The BioC JSON object of an XML element."""
    record: Json = {"infons": {child.get("key", ""): child.text or "" for child in element.findall("infon")}}
    if element.tag == "document":
        record["id"] = (element.findtext("id") or "").strip()
    elif element.get("id") is not None:
        record["id"] = element.get("id")
    if element.find("offset") is not None:
        record["offset"] = _number(element.findtext("offset"))
    if element.find("text") is not None:
        record["text"] = element.findtext("text") or ""
    for key, tag in _LISTS.items():
        if children := [_xml_record(child) for child in element.findall(tag)]:
            record[key] = children
    if element.tag == "annotation":
        locations = element.findall("location")
        record["locations"] = [{key: _number(child.get(key)) for key in ("offset", "length")} for child in locations]
    if element.tag == "relation":
        record["nodes"] = [dict(child.attrib) for child in element.findall("node")]
    return record


def _number(text: str | None) -> int | str | None:
    """A whole number; anything else is left for the checks to report."""
    return int(text) if text is not None and re.fullmatch(r"[ \t\r\n]*-?[0-9]{1,18}[ \t\r\n]*", text) else text


def _xml_parts(documents: Iterable[Document], path: Path) -> Iterator[str]:
    """One collection, with the source, date and key of the first document's."""
    rest = iter(documents)
    first = list(islice(rest, 1))
    collection = _collection(first)
    head = Element("collection")
    for tag in ("source", "date", "key"):
        SubElement(head, tag).text = _string(collection[tag])
    _add_infons(head, collection)
    yield _HEAD + _serialized(head, path).removesuffix("</collection>") + "\n"
    for document in chain(first, rest):
        yield _serialized(_element("document", record_of_document(document)), path) + "\n"
    yield "</collection>\n"


def _element(tag: str, record: Json) -> Element:
    """The XML element of a BioC JSON object, its children in the order of the DTD."""
    element = Element(tag)
    if tag == "document":
        SubElement(element, "id").text = record["id"]
    elif tag in ("annotation", "relation"):
        element.set("id", _string(record.get("id")))
    _add_infons(element, record)
    if tag == "passage":
        SubElement(element, "offset").text = str(record["offset"])
    for location in _objects(record.get("locations")) if tag == "annotation" else ():
        SubElement(element, "location", {key: str(value) for key, value in location.items()})
    if tag in ("passage", "annotation"):
        SubElement(element, "text").text = record["text"]
    for key in ("passages", "annotations", "relations"):
        element.extend(_element(_LISTS[key], item) for item in _objects(record.get(key)))
    for node in _objects(record.get("nodes")) if tag == "relation" else ():
        SubElement(element, "node", {key: _string(node.get(key)) for key in ("refid", "role")})
    return element


def _add_infons(element: Element, record: Json) -> None:
    infons = record.get("infons")
    for key, value in infons.items() if isinstance(infons, dict) else ():
        SubElement(element, "infon", key=str(key)).text = _string(value)


def _objects(value: Any) -> list[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _string(value: Any) -> str:
    return "" if value is None else str(value)


def _serialized(element: Element, path: Path) -> str:
    text = tostring(element, "unicode", short_empty_elements=element.tag == "document").replace(" />", "/>")
    text = text.replace("\r", "&#13;")  # a bare CR would be read back as LF
    if forbidden := _FORBIDDEN.search(text):
        raise CorpusError(
            f"{path}: the text holds U+{ord(forbidden[0]):04X}, which XML cannot hold; write BioC JSON instead"
        )
    return text


def _xml_changes(document: Document) -> Counter[str]:
    """Values of JSON that are not strings, and keys that XML has no element for, do not come back."""
    path = Path("document")
    raw = BytesIO("".join(_xml_parts([document], path)).encode("utf-8"))
    return changed(document, _documents(_xml_records(raw, path), path, Problems("skip")), _HOLDS)


def _write_xml(documents: Iterable[Document], path: Path) -> None:
    with atomic_write(path) as out:
        out.writelines(_xml_parts(documents, path))


BIOC_XML = Format("bioc-xml", _read_xml, _write_xml, _HOLDS, _xml_changes)


# Either, by the content of the file that is read and the name of the one that is written


def _read_either(path: Path, problems: Problems) -> Iterator[Document]:
    first = next((line for _, line in read_lines(path) if line.strip()), "")
    return (BIOC_JSON if first.lstrip().startswith(("{", "[")) else BIOC_XML).read(path, problems)


def _write_either(documents: Iterable[Document], path: Path) -> None:
    (_write_json if path.name.removesuffix(".gz").endswith(".json") else _write_xml)(documents, path)


BIOC = Format("bioc", _read_either, _write_either, _HOLDS, _xml_changes)
