"""W2NER: a JSON list of sentences whose entities are lists of word indices, so that gaps say discontinuous.

The same family of tools also writes one sentence on each line, with `entity_mentions` that have half-open ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from wingspan.corpora.checks import (
    SHAPE,
    WORDS,
    Misfit,
    common_fields,
    gather,
    identity,
    label_of,
    list_of,
    other_keys,
    record_of,
    same_surface,
    score_of,
    span_of,
    whole,
    with_common_fields,
    with_meta,
    words_of,
)
from wingspan.corpora.formats import Format, Holds, Problems
from wingspan.corpora.records import Place, read_documents, write_list
from wingspan.corpora.word_level import in_words
from wingspan.text import Document, Entity, Span

_OWN = frozenset({"sentence", "ner", "id"})
_OWN_OF_ENTITY = frozenset({"index", "type", "score", "fragments"})
_OWN_OF_LINES = frozenset({"tokens", "entity_mentions", "sent_id"})
_OWN_OF_MENTION = frozenset({"start", "end", "entity_type", "text"})


def read(path: Path, problems: Problems) -> Iterator[Document]:
    """The sentences, each as one document; those of one article share its `doc_id` as group."""
    return read_documents(path, problems, _document)


def _document(record: dict[str, Any], place: Place) -> Iterator[Document]:
    if "sentence" in record:
        words = words_of(record["sentence"], "sentence")
        rows, build, own, id_key = record.get("ner"), partial(_from_indices, len(words)), _OWN, "id"
    elif "tokens" in record:
        words = words_of(record["tokens"], "tokens")
        rows, build, own, id_key = record.get("entity_mentions"), partial(_from_ends, words), _OWN_OF_LINES, "sent_id"
    else:
        raise Misfit("there is neither a key 'sentence' (with 'ner') nor 'tokens' (with 'entity_mentions')")
    entities = gather(list_of(rows, "the entities"), build, place.complain)
    yield Document.from_words(
        identity(record, id_key, place.name),
        words,
        tuple(entities),
        **common_fields(record, own, **{SHAPE: WORDS}),
    )


def _from_indices(size: int, value: Any) -> Entity:
    raw = record_of(value, "an entity")
    if fragments := list_of(raw.get("fragments"), "fragments"):
        pairs = [list_of(pair, "a fragment") for pair in fragments]
        if any(len(pair) != 2 for pair in pairs):
            raise Misfit("a fragment is [start, end]")
        spans = tuple(span_of(start, end, size, "words") for start, end in pairs)
    else:
        indices = sorted({whole(at, "a word index") for at in list_of(raw.get("index"), "index")})
        if not indices:
            raise Misfit("index is empty; name the words of the entity")
        spans = tuple(span_of(*span, size, "words") for span in runs(indices))
    return Entity(label_of(raw.get("type")), spans, score_of(raw.get("score")), other_keys(raw, _OWN_OF_ENTITY))


def runs(indices: list[int]) -> list[Span]:
    """Sorted indices as half-open ranges without gaps."""
    found: list[Span] = []
    for at in indices:
        if found and found[-1].end == at:
            found[-1] = Span(found[-1].start, at + 1)
        else:
            found.append(Span(at, at + 1))
    return found


def _from_ends(words: tuple[str, ...], value: Any) -> Entity:
    raw = record_of(value, "an entity")
    span = span_of(raw.get("start"), raw.get("end"), len(words), "words")
    same_surface(" ".join(words[span.start : span.end]), raw.get("text"), span)
    return Entity(label_of(raw.get("entity_type")), (span,), meta=other_keys(raw, _OWN_OF_MENTION))


def write(documents: Iterable[Document], path: Path) -> None:
    """Writes the JSON list."""
    write_list((_record(document) for document in documents), path)


def _record(document: Document) -> dict[str, Any]:
    words, entities = in_words(document)
    record = {
        "sentence": words,
        "ner": [_row(entity, fragments) for entity, fragments in entities],
        "id": document.id,
    }
    return with_common_fields(record, document, _OWN)


def _row(entity: Entity, fragments: tuple[Span, ...]) -> dict[str, Any]:
    indices = sorted({at for span in fragments for at in range(span.start, span.end)})
    row: dict[str, Any] = {"index": indices, "type": entity.label}
    if tuple(runs(indices)) != fragments:  # fragments that touch: the indices alone would join them
        row["fragments"] = [list(span) for span in fragments]
    if entity.score != 1.0:
        row["score"] = entity.score
    return with_meta(row, entity.meta, _OWN_OF_ENTITY)


FORMAT = Format(
    name="w2ner",
    read=read,
    write=write,
    suffixes=(".w2ner.json",),
    holds=Holds(
        exact_text=False, documents_without_words=False, words=True, groups=True, meta=True, scores=True, datasets=True
    ),
    unit="words",
    description="JSON list of sentences with word indices (W2NER), or one sentence with entity_mentions on each line",
)
