"""Documents as BioC has them: the objects of BioC JSON, which both writers start from."""

from __future__ import annotations

from typing import Any

from wingspan.corpora.bioc import META, Record
from wingspan.text import Document, Entity


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
