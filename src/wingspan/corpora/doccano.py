"""doccano: one text on each line, with `label` as [start, end, label] rows, or `entities` and `relations` with ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from wingspan.corpora.checks import (
    Misfit,
    common_fields,
    gather,
    identity,
    label_of,
    list_of,
    numeric,
    other_keys,
    record_of,
    refuse_fragments,
    span_of,
    text_of,
    with_common_fields,
    with_meta,
)
from wingspan.corpora.formats import Format, Holds, Problems
from wingspan.corpora.records import Place, read_documents, write_lines
from wingspan.text import Document, Entity

_OWN = frozenset({"id", "text", "label", "labels", "entities"})
_OWN_OF_ENTITY = frozenset({"label", "start_offset", "end_offset"})


def read(path: Path, problems: Problems) -> Iterator[Document]:
    """The texts of either export. Relations, comments and other columns are kept in `meta`."""
    return read_documents(path, problems, _document)


def _document(record: dict[str, Any], place: Place) -> Iterator[Document]:
    text = text_of(record.get("text"), "text")
    if "annotations" in record and not {"label", "labels", "entities"} & set(record):
        raise Misfit("'annotations' names labels by number only; export from doccano as JSONL with label names")
    rows = list_of(record.get("label", record.get("labels")), "label")
    entities = gather(rows, partial(_from_row, len(text)), place.complain)
    objects = list_of(record.get("entities"), "entities")
    entities += gather(objects, partial(_from_object, len(text)), place.complain)
    yield Document(
        identity(record, "id", place.name),
        text,
        tuple(entities),
        **common_fields(record, _OWN),
    )


def _from_row(size: int, value: Any) -> Entity:
    row = list_of(value, "an entity")
    if len(row) != 3:
        raise Misfit(f"{len(row)} values where [start, end, label] has three")
    return Entity(label_of(row[2]), (span_of(row[0], row[1], size),))


def _from_object(size: int, value: Any) -> Entity:
    raw = record_of(value, "an entity")
    span = span_of(raw.get("start_offset"), raw.get("end_offset"), size)
    return Entity(label_of(raw.get("label")), (span,), meta=other_keys(raw, _OWN_OF_ENTITY))


def write(documents: Iterable[Document], path: Path) -> None:
    """Writes `label` rows, or `entities` for a document that has relations or ids to keep."""
    write_lines((_record(document) for document in documents), path)


def _record(document: Document) -> dict[str, Any]:
    record: dict[str, Any] = {"id": numeric(document.id), "text": document.text}
    refuse_fragments(document, "doccano")
    if "relations" in document.meta or any(entity.meta for entity in document.entities):
        record["entities"] = [
            with_meta(
                {"label": entity.label, "start_offset": entity.start, "end_offset": entity.end},
                entity.meta,
                _OWN_OF_ENTITY,
            )
            for entity in document.entities
        ]
    else:
        record["label"] = [[entity.start, entity.end, entity.label] for entity in document.entities]
    return with_common_fields(record, document, _OWN)


FORMAT = Format(
    name="doccano",
    read=read,
    write=write,
    suffixes=(".doccano.jsonl",),
    holds=Holds(discontinuous=False, groups=True, meta=True, datasets=True),
    description="one text on each line with label rows, or entities and relations (doccano)",
)
