"""doccano: one text on each line, with `label` as [start, end, label] rows, or `entities` and `relations` with ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from wingspan.corpora.formats import Format, Holds
from wingspan.corpora.formats.records import (
    UNITS,
    Misfit,
    Place,
    common_fields,
    gather,
    identity,
    label_of,
    list_of,
    numeric,
    other_keys,
    positions,
    read_documents,
    record_of,
    refuse_fragments,
    same_surface,
    score_of,
    span_of,
    text_of,
    whole,
    with_common_fields,
    with_meta,
    write_lines,
    write_list,
)
from wingspan.corpora.words import WordRanges
from wingspan.files import Problems
from wingspan.text import Document, Entity, Span

_OWN_OF_DOCCANO = frozenset({"id", "text", "label", "labels", "entities"})
_OWN_OF_DOCCANO_ENTITY = frozenset({"label", "start_offset", "end_offset"})


def read_doccano(path: Path, problems: Problems) -> Iterator[Document]:
    """The texts of either export. Relations, comments and other columns are kept in `meta`."""
    return read_documents(path, problems, _doccano_document)


def _doccano_document(record: dict[str, Any], place: Place) -> Iterator[Document]:
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
        **common_fields(record, _OWN_OF_DOCCANO),
    )


def _from_row(size: int, value: Any) -> Entity:
    row = list_of(value, "an entity")
    if len(row) != 3:
        raise Misfit(f"{len(row)} values where [start, end, label] has three")
    return Entity(label_of(row[2]), (span_of(row[0], row[1], size),))


def _from_object(size: int, value: Any) -> Entity:
    raw = record_of(value, "an entity")
    span = span_of(raw.get("start_offset"), raw.get("end_offset"), size)
    return Entity(label_of(raw.get("label")), (span,), meta=other_keys(raw, _OWN_OF_DOCCANO_ENTITY))


def write_doccano(documents: Iterable[Document], path: Path) -> None:
    """Writes `label` rows, or `entities` for a document that has relations or ids to keep."""
    write_lines((_doccano_record(document) for document in documents), path)


def _doccano_record(document: Document) -> dict[str, Any]:
    record: dict[str, Any] = {"id": numeric(document.id), "text": document.text}
    refuse_fragments(document, "doccano")
    if "relations" in document.meta or any(entity.meta for entity in document.entities):
        record["entities"] = [
            with_meta(
                {"label": entity.label, "start_offset": entity.start, "end_offset": entity.end},
                entity.meta,
                _OWN_OF_DOCCANO_ENTITY,
            )
            for entity in document.entities
        ]
    else:
        record["label"] = [[entity.start, entity.end, entity.label] for entity in document.entities]
    return with_common_fields(record, document, _OWN_OF_DOCCANO)


DOCCANO = Format(
    name="doccano",
    read=read_doccano,
    write=write_doccano,
    suffixes=(".doccano.jsonl",),
    holds=Holds(discontinuous=False, groups=True, meta=True, datasets=True),
    description="one text on each line with label rows, or entities and relations (doccano)",
)


# --- Prodigy: one task on each line, with spans in characters and tokens that carry their own offsets.


_OWN_OF_PRODIGY = frozenset({"id", "text", "tokens", "spans", "answer"})
# where the span lies in tokens (with an inclusive end) follows from its characters and is written anew
_OWN_OF_SPAN = frozenset({"start", "end", "label", "token_start", "token_end", "score", "text"})


def read_prodigy(path: Path, problems: Problems) -> Iterator[Document]:
    """The accepted tasks. Rejected and ignored ones are no gold data: they are left out, and a note says how many."""
    left_out = 0

    def build(record: dict[str, Any], place: Place) -> Iterator[Document]:
        nonlocal left_out
        if record.get("answer", "accept") == "accept":
            yield _prodigy_document(record, place)
        else:
            left_out += 1

    yield from read_documents(path, problems, build)
    if left_out:
        problems.note(path, f"{left_out} tasks whose answer is not 'accept' are left out")


def _prodigy_document(record: dict[str, Any], place: Place) -> Document:
    text = text_of(record.get("text"), "text")
    tokens = record.get("tokens")
    words = None if tokens is None else _words(list_of(tokens, "tokens"), text)
    spans = list_of(record.get("spans"), "spans")
    entities = gather(spans, lambda value: _prodigy_entity(value, text), place.complain)
    return Document(
        identity(record, "id", place.name), text, tuple(entities), words=words, **common_fields(record, _OWN_OF_PRODIGY)
    )


def _words(tokens: list[Any], text: str) -> tuple[Span, ...]:
    words: list[Span] = []
    for at, value in enumerate(tokens):
        token = record_of(value, f"token {at}")
        try:
            span = span_of(token.get("start"), token.get("end"), len(text))
            same_surface(text[span.start : span.end], token.get("text"), span)
        except Misfit as misfit:
            raise Misfit(f"token {at}: {misfit}") from None
        if words and span.start < words[-1].end:
            raise Misfit(f"token {at} overlaps the one before it; tokens have to stand in the order of the text")
        words.append(span)
    return tuple(words)


def _prodigy_entity(value: Any, text: str) -> Entity:
    raw = record_of(value, "a span")
    span = span_of(raw.get("start"), raw.get("end"), len(text))
    same_surface(text[span.start : span.end], raw.get("text"), span)
    return Entity(label_of(raw.get("label")), (span,), score_of(raw.get("score")), other_keys(raw, _OWN_OF_SPAN))


def write_prodigy(documents: Iterable[Document], path: Path) -> None:
    """Writes accepted tasks, with tokens where the document gives words."""
    write_lines((_prodigy_record(document) for document in documents), path)


def _prodigy_record(document: Document) -> dict[str, Any]:
    refuse_fragments(document, "Prodigy")
    text, words = document.text, document.words
    record: dict[str, Any] = {"id": document.id, "text": text}
    if words is not None:
        record["tokens"] = [
            {
                "text": text[word.start : word.end],
                "start": word.start,
                "end": word.end,
                "id": at,
                "ws": text[word.end : word.end + 1] == " ",
            }
            for at, word in enumerate(words)
        ]
    ranges = WordRanges(words or ())
    record["spans"] = [_span(entity, ranges) for entity in document.entities]
    record["answer"] = "accept"
    return with_common_fields(record, document, _OWN_OF_PRODIGY)


def _span(entity: Entity, ranges: WordRanges) -> dict[str, Any]:
    row: dict[str, Any] = {"start": entity.start, "end": entity.end, "label": entity.label}
    if found := ranges.exact(entity.hull):
        row |= {"token_start": found.start, "token_end": found.end - 1}
    if entity.score != 1.0:
        row["score"] = entity.score
    return with_meta(row, entity.meta, _OWN_OF_SPAN)


PRODIGY = Format(
    name="prodigy",
    read=read_prodigy,
    write=write_prodigy,
    suffixes=(".prodigy.jsonl",),
    holds=Holds(discontinuous=False, words=True, groups=True, meta=True, scores=True, datasets=True),
    description="one task on each line with spans and tokens (Prodigy)",
)


# --- Label Studio: a JSON list of tasks, in the full export and in JSON-MIN.
#
# Older versions counted in UTF-16 units, and browsers count CR LF as one character; the surface text that stands
# beside each region tells which unit a task uses.


_OWN_OF_LABEL_STUDIO = frozenset({"id", "data", "annotations"})
_OWN_OF_REGION = frozenset({"value", "type", "score"})
_OTHER_RESULTS = "label_studio_results"
"""The key in `meta` for results that are no spans: relations, choices, free text."""


def read_label_studio(path: Path, problems: Problems) -> Iterator[Document]:
    """The tasks, one document for each annotation that was not cancelled; those of one task share a group."""
    return read_documents(path, problems, _documents)


def _documents(record: dict[str, Any], place: Place) -> Iterator[Document]:
    name = identity(record, "id", place.name)
    if "data" not in record:  # JSON-MIN: the data's keys stand in the task, and values without regions in one list
        text = text_of(record.get("text"), "text")
        rows = [{"type": "labels", "value": row} for row in list_of(record.get("label"), "label")]
        fields = common_fields(record, _OWN_OF_LABEL_STUDIO | {"text", "label"})
        yield Document(name, text, _entities(rows, text, place), **fields)
        return
    data = record_of(record["data"], "data")
    key = _text_key(data)
    text = text_of(data[key], key)
    fields = common_fields(record, _OWN_OF_LABEL_STUDIO)
    fields["meta"]["data"] = {other: value for other, value in data.items() if other != key}
    if not fields["meta"]["data"]:
        del fields["meta"]["data"]
    annotations = [record_of(item, "an annotation") for item in list_of(record.get("annotations"), "annotations")]
    done = [item for item in annotations if item.get("was_cancelled") is not True]
    chosen = [item for item in done if item.get("ground_truth") is True] or done
    if len(annotations) > 1:
        place.problems.note(place.path, f"task {name}: {len(chosen)} of {len(annotations)} annotations are used")
    if not chosen:
        yield Document(name, text, **fields)
    for number, annotation in enumerate(chosen):
        results = [record_of(item, "a result") for item in list_of(annotation.get("result"), "result")]
        regions = [item for item in results if _is_region(item)]
        others = [item for item in results if not _is_region(item)]
        meta = {**fields["meta"], **({_OTHER_RESULTS: others} if others else {})}
        several = {"meta": meta, "group": fields["group"] or name} if len(chosen) > 1 else {"meta": meta}
        yield Document(
            f"{name}-{number + 1}" if number else name,
            text,
            _entities(regions, text, place),
            **{**fields, **several},
        )


def _text_key(data: dict[str, Any]) -> str:
    strings = [key for key, value in data.items() if isinstance(value, str)]
    if "text" in strings:
        return "text"
    if len(strings) != 1:
        raise Misfit(f"data has {len(strings)} strings and none is named 'text'; rename the one that was annotated")
    return strings[0]


def _is_region(result: dict[str, Any]) -> bool:
    return isinstance(result.get("value"), dict) and "labels" in result["value"]


def _entities(rows: list[dict[str, Any]], text: str, place: Place) -> tuple[Entity, ...]:
    """The regions in the unit under which most of the surface texts are found; a region with two labels is two."""
    found = [row["value"] for row in rows if isinstance(row["value"], dict)]
    values = [value for value in found if isinstance(value.get("text"), str)]
    unit = UNITS[0]
    if _hits(values, text, positions(text, unit)) < len(values):
        unit = max(UNITS, key=lambda name: _hits(values, text, positions(text, name)))  # the first of equals
    if unit != UNITS[0]:
        place.problems.note(place.path, f"record {place.number}: offsets count {unit}, as the surface texts show")
    table = positions(text, unit)
    pairs = [(row, label) for row in rows for label in _labels(row["value"])]
    return tuple(gather(pairs, lambda pair: _label_studio_entity(pair[0], pair[1], text, table), place.complain))


def _labels(value: Any) -> list[Any]:
    labels = value.get("labels") if isinstance(value, dict) else None
    return labels if isinstance(labels, list) and labels else [None]


def _hits(values: list[dict[str, Any]], text: str, table: Sequence[int]) -> int:
    return sum(_matches(value, text, table) for value in values)


def _matches(value: dict[str, Any], text: str, table: Sequence[int]) -> bool:
    start, end = value.get("start"), value.get("end")
    if not (isinstance(start, int) and isinstance(end, int) and 0 <= start < end < len(table)):
        return False
    return text[table[start] : table[end]].split() == _plain(value["text"]).split()


def _plain(surface: str) -> str:
    return surface.replace("\\n", "\n")  # line ends in surface texts are written as a backslash and an n


def _label_studio_entity(row: dict[str, Any], label: Any, text: str, table: Sequence[int]) -> Entity:
    value = record_of(row["value"], "value")
    if not {"start", "end"} <= set(value) or isinstance(value["start"], str):
        raise Misfit("a region without offsets into the text, as HTML has them; export the plain text instead")
    raw = span_of(whole(value["start"], "start"), whole(value["end"], "end"), len(table) - 1)
    span = span_of(table[raw.start], table[raw.end], len(text))
    surface = value.get("text")
    same_surface(text[span.start : span.end], _plain(surface) if isinstance(surface, str) else None, span)
    return Entity(label_of(label), (Span(*span),), score_of(row.get("score")), other_keys(row, _OWN_OF_REGION))


def write_label_studio(documents: Iterable[Document], path: Path) -> None:
    """Writes tasks with one annotation each, in code points, as Label Studio counts since 2021."""
    write_list((_label_studio_record(document) for document in documents), path)


def _label_studio_record(document: Document) -> dict[str, Any]:
    refuse_fragments(document, "Label Studio")
    results = [_result(document, entity, number) for number, entity in enumerate(document.entities)]
    meta = dict(document.meta)
    results += meta.pop(_OTHER_RESULTS, [])
    others = meta.pop("data", {})
    record = {
        "id": numeric(document.id),
        "data": {**(others if isinstance(others, dict) else {}), "text": document.text},
        "annotations": [{"result": results}],
    }
    return with_common_fields(record, replace(document, meta=meta), _OWN_OF_LABEL_STUDIO)


def _result(document: Document, entity: Entity, number: int) -> dict[str, Any]:
    value = {
        "start": entity.start,
        "end": entity.end,
        "text": document.text_of(entity),
        "labels": [entity.label],
    }
    row: dict[str, Any] = {"id": f"entity-{number}", "from_name": "label", "to_name": "text"}
    row |= {"type": "labels", "value": value}
    if entity.score != 1.0:
        row["score"] = entity.score
    return {**row, **with_meta({}, entity.meta, _OWN_OF_REGION)}


LABEL_STUDIO = Format(
    name="label-studio",
    read=read_label_studio,
    write=write_label_studio,
    suffixes=(".label-studio.json",),
    holds=Holds(discontinuous=False, groups=True, meta=True, scores=True, datasets=True),
    description="JSON list of tasks with annotations, or JSON-MIN (Label Studio)",
)
