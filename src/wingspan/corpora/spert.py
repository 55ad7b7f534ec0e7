"""SpERT: a JSON list of sentences with words, entities (half-open, in words) and relations between entities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from wingspan.corpora.checks import (
    SHAPE,
    WORDS,
    common_fields,
    gather,
    identity,
    label_of,
    list_of,
    other_keys,
    record_of,
    refuse_fragments,
    score_of,
    span_of,
    with_common_fields,
    with_meta,
    words_of,
)
from wingspan.corpora.formats import Format, Holds, Problems
from wingspan.corpora.records import Place, read_documents, write_list
from wingspan.corpora.word_level import in_words
from wingspan.text import Document, Entity

_OWN = frozenset({"tokens", "entities", "relations", "orig_id"})
_OWN_OF_ENTITY = frozenset({"type", "start", "end", "score"})
# relations name entities by their place in the list, which sorting and leaving out would change
_INDEX = "spert_index"
CUT_RELATIONS = "relations whose entity is no longer there (left out)"


def read(path: Path, problems: Problems) -> Iterator[Document]:
    """The sentences, each as one document. Relations go to `meta`; entities remember the number they are named by."""
    return read_documents(path, problems, _document)


def _document(record: dict[str, Any], place: Place) -> Iterator[Document]:
    words = words_of(record.get("tokens"), "tokens")
    relations = list_of(record.get("relations"), "relations")
    numbered = enumerate(list_of(record.get("entities"), "entities"))
    entities = gather(
        numbered, lambda item: _entity(item[1], len(words), {_INDEX: item[0]} if relations else {}), place.complain
    )
    fields = common_fields(record, _OWN, **{SHAPE: WORDS}, **({"relations": relations} if relations else {}))
    yield Document.from_words(identity(record, "orig_id", place.name), words, tuple(entities), **fields)


def _entity(value: Any, size: int, meta: dict[str, Any]) -> Entity:
    raw = record_of(value, "an entity")
    span = span_of(raw.get("start"), raw.get("end"), size, "words")
    others = other_keys(raw, _OWN_OF_ENTITY)
    return Entity(label_of(raw.get("type")), (span,), score_of(raw.get("score")), {**others, **meta})


def write(documents: Iterable[Document], path: Path) -> None:
    """Writes a JSON list; a relation whose entity is no longer there cannot be written and is left out."""
    write_list((_record(document) for document in documents), path)


def _record(document: Document) -> dict[str, Any]:
    refuse_fragments(document, "SpERT")
    words, entities = in_words(document)
    rows: list[dict[str, Any]] = []
    place_of: dict[Any, int] = {}
    for entity, fragments in entities:
        (span,) = fragments
        row = {"type": entity.label, "start": span.start, "end": span.end}
        if entity.score != 1.0:
            row["score"] = entity.score
        kept = dict(entity.meta)
        if _INDEX in kept:
            place_of[kept.pop(_INDEX)] = len(rows)
        rows.append(with_meta(row, kept, _OWN_OF_ENTITY))
    given: Any = document.meta.get("relations")
    relations = []
    if _is_relations(given):
        document = replace(document, meta={key: value for key, value in document.meta.items() if key != "relations"})
        relations = [
            {**relation, "head": place_of[relation["head"]], "tail": place_of[relation["tail"]]}
            for relation in given
            if relation["head"] in place_of and relation["tail"] in place_of
        ]
    record = {
        "tokens": words,
        "entities": rows,
        "relations": relations,
        "orig_id": document.id,
    }
    return with_common_fields(record, document, _OWN)


def _is_relations(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, dict) and isinstance(item.get("head"), int) and isinstance(item.get("tail"), int)
        for item in value
    )


def _changes(document: Document) -> Counter[str]:
    """Relations name entities that may have been removed."""
    given: Any = document.meta.get("relations")
    there = {entity.meta.get(_INDEX) for entity in document.entities}
    cut = (
        [relation for relation in given if not {relation["head"], relation["tail"]} <= there]
        if _is_relations(given)
        else []
    )
    return Counter({CUT_RELATIONS: len(cut)})


FORMAT = Format(
    name="spert",
    read=read,
    write=write,
    suffixes=(".spert.json",),
    changes=_changes,
    holds=Holds(
        discontinuous=False,
        exact_text=False,
        documents_without_words=False,
        words=True,
        groups=True,
        meta=True,
        scores=True,
        datasets=True,
    ),
    unit="words",
    description="JSON list of sentences with tokens, entities and relations (SpERT)",
)
