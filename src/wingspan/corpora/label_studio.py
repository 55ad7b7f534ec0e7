"""Label Studio: a JSON list of tasks, in the full export and in JSON-MIN.

Older versions counted in UTF-16 units, and browsers count CR LF as one character; the surface text that stands beside
each region tells which unit a task uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
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
    same_surface,
    score_of,
    span_of,
    text_of,
    whole,
    with_common_fields,
    with_meta,
)
from wingspan.corpora.formats import Format, Holds, Problems
from wingspan.corpora.offsets import UNITS, positions
from wingspan.corpora.records import Place, read_documents, write_list
from wingspan.text import Document, Entity, Span

_OWN = frozenset({"id", "data", "annotations"})
_OWN_OF_REGION = frozenset({"value", "type", "score"})
_OTHER_RESULTS = "label_studio_results"
"""The key in `meta` for results that are no spans: relations, choices, free text."""


def read(path: Path, problems: Problems) -> Iterator[Document]:
    """The tasks, one document for each annotation that was not cancelled; those of one task share a group."""
    return read_documents(path, problems, _documents)


def _documents(record: dict[str, Any], place: Place) -> Iterator[Document]:
    name = identity(record, "id", place.name)
    if "data" not in record:  # JSON-MIN: the data's keys stand in the task, and values without regions in one list
        text = text_of(record.get("text"), "text")
        rows = [{"type": "labels", "value": row} for row in list_of(record.get("label"), "label")]
        fields = common_fields(record, _OWN | {"text", "label"})
        yield Document(name, text, _entities(rows, text, place), **fields)
        return
    data = record_of(record["data"], "data")
    key = _text_key(data)
    text = text_of(data[key], key)
    fields = common_fields(record, _OWN)
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
    return tuple(gather(pairs, lambda pair: _entity(pair[0], pair[1], text, table), place.complain))


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


def _entity(row: dict[str, Any], label: Any, text: str, table: Sequence[int]) -> Entity:
    value = record_of(row["value"], "value")
    if not {"start", "end"} <= set(value) or isinstance(value["start"], str):
        raise Misfit("a region without offsets into the text, as HTML has them; export the plain text instead")
    raw = span_of(whole(value["start"], "start"), whole(value["end"], "end"), len(table) - 1)
    span = span_of(table[raw.start], table[raw.end], len(text))
    surface = value.get("text")
    same_surface(text[span.start : span.end], _plain(surface) if isinstance(surface, str) else None, span)
    return Entity(label_of(label), (Span(*span),), score_of(row.get("score")), other_keys(row, _OWN_OF_REGION))


def write(documents: Iterable[Document], path: Path) -> None:
    """Writes tasks with one annotation each, in code points, as Label Studio counts since 2021."""
    write_list((_record(document) for document in documents), path)


def _record(document: Document) -> dict[str, Any]:
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
    return with_common_fields(record, replace(document, meta=meta), _OWN)


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


FORMAT = Format(
    name="label-studio",
    read=read,
    write=write,
    suffixes=(".label-studio.json",),
    holds=Holds(discontinuous=False, groups=True, meta=True, scores=True, datasets=True),
    description="JSON list of tasks with annotations, or JSON-MIN (Label Studio)",
)
