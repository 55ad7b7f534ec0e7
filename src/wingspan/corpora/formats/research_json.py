"""SpERT: a JSON list of sentences with words, entities (half-open, in words) and relations between entities."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from wingspan.corpora.formats import Format, Holds
from wingspan.corpora.formats.records import (
    SHAPE,
    WORDS,
    Misfit,
    Place,
    common_fields,
    gather,
    identity,
    label_of,
    list_of,
    other_keys,
    read_documents,
    record_of,
    refuse_fragments,
    same_surface,
    score_of,
    span_of,
    whole,
    with_common_fields,
    with_meta,
    words_of,
    write_lines,
    write_list,
)
from wingspan.corpora.words import in_words, word_spans
from wingspan.files import Problems
from wingspan.text import Document, Entity, Span

_OWN_OF_SPERT = frozenset({"tokens", "entities", "relations", "orig_id"})
_OWN_OF_SPERT_ENTITY = frozenset({"type", "start", "end", "score"})
# relations name entities by their place in the list, which sorting and leaving out would change
_INDEX = "spert_index"
CUT_RELATIONS = "relations whose entity is no longer there (left out)"


def read_spert(path: Path, problems: Problems) -> Iterator[Document]:
    """The sentences, each as one document. Relations go to `meta`; entities remember the number they are named by."""
    return read_documents(path, problems, _spert_document)


def _spert_document(record: dict[str, Any], place: Place) -> Iterator[Document]:
    words = words_of(record.get("tokens"), "tokens")
    relations = list_of(record.get("relations"), "relations")
    numbered = enumerate(list_of(record.get("entities"), "entities"))
    entities = gather(
        numbered,
        lambda item: _spert_entity(item[1], len(words), {_INDEX: item[0]} if relations else {}),
        place.complain,
    )
    fields = common_fields(record, _OWN_OF_SPERT, **{SHAPE: WORDS}, **({"relations": relations} if relations else {}))
    yield Document.from_words(identity(record, "orig_id", place.name), words, tuple(entities), **fields)


def _spert_entity(value: Any, size: int, meta: dict[str, Any]) -> Entity:
    raw = record_of(value, "an entity")
    span = span_of(raw.get("start"), raw.get("end"), size, "words")
    others = other_keys(raw, _OWN_OF_SPERT_ENTITY)
    return Entity(label_of(raw.get("type")), (span,), score_of(raw.get("score")), {**others, **meta})


def write_spert(documents: Iterable[Document], path: Path) -> None:
    """Writes a JSON list; a relation whose entity is no longer there cannot be written and is left out."""
    write_list((_spert_record(document) for document in documents), path)


def _spert_record(document: Document) -> dict[str, Any]:
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
        rows.append(with_meta(row, kept, _OWN_OF_SPERT_ENTITY))
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
    return with_common_fields(record, document, _OWN_OF_SPERT)


def _is_relations(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, dict) and isinstance(item.get("head"), int) and isinstance(item.get("tail"), int)
        for item in value
    )


def _spert_changes(document: Document) -> Counter[str]:
    """Relations name entities that may have been removed."""
    given: Any = document.meta.get("relations")
    there = {entity.meta.get(_INDEX) for entity in document.entities}
    cut = (
        [relation for relation in given if not {relation["head"], relation["tail"]} <= there]
        if _is_relations(given)
        else []
    )
    return Counter({CUT_RELATIONS: len(cut)})


SPERT = Format(
    name="spert",
    read=read_spert,
    write=write_spert,
    suffixes=(".spert.json",),
    changes=_spert_changes,
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


# --- DyGIE and PURE: one document on each line, entities in words of the whole document with inclusive ends.


# a document without given sentences is written as one; this key says so, and reading gives it back as it was
_WHOLE = "_sentences_unknown"
_OWN_OF_PURE = frozenset({"doc_key", "sentences", "ner", _WHOLE})


def read_pure(path: Path, problems: Problems) -> Iterator[Document]:
    """The documents, with words and sentences. Relations, clusters and predictions are kept in `meta`."""
    return read_documents(path, problems, _pure_document)


def _pure_document(record: dict[str, Any], place: Place) -> Iterator[Document]:
    sentences = [
        words_of(words, f"sentence {at}") for at, words in enumerate(list_of(record.get("sentences"), "sentences"))
    ]
    if "sentences" not in record:
        raise Misfit("there is no key 'sentences'")
    ner = list_of(record.get("ner"), "ner")
    if ner and len(ner) != len(sentences):
        raise Misfit(f"ner has {len(ner)} lists for {len(sentences)} sentences; give one list for each sentence")
    words = tuple(word for sentence in sentences for word in sentence)
    values = [value for at, values in enumerate(ner) for value in list_of(values, f"ner of sentence {at}")]
    entities = gather(values, lambda value: _pure_entity(value, len(words)), place.complain)
    document = Document.from_words(
        identity(record, "doc_key", place.name),
        words,
        tuple(entities),
        **common_fields(record, _OWN_OF_PURE, **{SHAPE: WORDS}),
    )
    if record.get(_WHOLE) is not True:
        edges = [0, *accumulate(len(sentence) for sentence in sentences)]
        document = replace(document, sentences=_pure_ranges(document.words or (), edges))
    yield document


def _pure_ranges(words: tuple[Span, ...], edges: list[int]) -> tuple[Span, ...]:
    return tuple(Span(words[first].start, words[last - 1].end) for first, last in pairwise(edges) if first < last)


def _pure_entity(value: Any, size: int) -> Entity:
    row = list_of(value, "an entity")
    if len(row) < 3:
        raise Misfit(f"{row} is no [start, end, label]")
    span = span_of(row[0], whole(row[1], "end") + 1, size, "words")  # ends are inclusive in the file
    return Entity(label_of(row[2]), (span,))


def write_pure(documents: Iterable[Document], path: Path) -> None:
    """Writes one document on each line; entities stand with the sentence in which they start."""
    write_lines((_pure_record(document) for document in documents), path)


def _pure_record(document: Document) -> dict[str, Any]:
    refuse_fragments(document, "PURE")
    words, entities = in_words(document)
    starts = _sentence_starts(document)
    ner: list[list[list[Any]]] = [[] for _ in starts]
    for entity, (span,) in entities:
        ner[bisect_right(starts, span.start) - 1].append([span.start, span.end - 1, entity.label])
    record: dict[str, Any] = {
        "doc_key": document.id,
        "sentences": [words[first:last] for first, last in pairwise([*starts, len(words)])],
        "ner": ner,
    }
    if document.sentences is None:
        record[_WHOLE] = True
    return with_common_fields(record, document, _OWN_OF_PURE)


def _sentence_starts(document: Document) -> list[int]:
    """The first words of the sentences; words between two sentences belong to the one before them."""
    words = [word.start for word in word_spans(document)]
    starts = {bisect_left(words, sentence.start) for sentence in document.sentences or ()}
    return sorted(({0} | starts) - {len(words)})


PURE = Format(
    name="pure",
    read=read_pure,
    write=write_pure,
    suffixes=(".pure.jsonl", ".dygie.jsonl"),
    holds=Holds(
        discontinuous=False,
        exact_text=False,
        documents_without_words=False,
        words=True,
        sentences=True,
        groups=True,
        meta=True,
        entity_meta=False,
        datasets=True,
    ),
    unit="words",
    inclusive_ends=True,
    description="one document on each line: sentences of words, inclusive ends (DyGIE, PURE, PL-Marker)",
)


# --- W2NER: a JSON list of sentences whose entities are lists of word indices, so that gaps say discontinuous.
#
# The same family of tools also writes one sentence on each line, with `entity_mentions` that have half-open ends.


_OWN_OF_W2NER = frozenset({"sentence", "ner", "id"})
_OWN_OF_W2NER_ENTITY = frozenset({"index", "type", "score", "fragments"})
_OWN_OF_LINES = frozenset({"tokens", "entity_mentions", "sent_id"})
_OWN_OF_MENTION = frozenset({"start", "end", "entity_type", "text"})


def read_w2ner(path: Path, problems: Problems) -> Iterator[Document]:
    """The sentences, each as one document; those of one article share its `doc_id` as group."""
    return read_documents(path, problems, _w2ner_document)


def _w2ner_document(record: dict[str, Any], place: Place) -> Iterator[Document]:
    if "sentence" in record:
        words = words_of(record["sentence"], "sentence")
        rows, build, own, id_key = record.get("ner"), partial(_from_indices, len(words)), _OWN_OF_W2NER, "id"
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
    return Entity(label_of(raw.get("type")), spans, score_of(raw.get("score")), other_keys(raw, _OWN_OF_W2NER_ENTITY))


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


def write_w2ner(documents: Iterable[Document], path: Path) -> None:
    """Writes the JSON list."""
    write_list((_w2ner_record(document) for document in documents), path)


def _w2ner_record(document: Document) -> dict[str, Any]:
    words, entities = in_words(document)
    record = {
        "sentence": words,
        "ner": [_row(entity, fragments) for entity, fragments in entities],
        "id": document.id,
    }
    return with_common_fields(record, document, _OWN_OF_W2NER)


def _row(entity: Entity, fragments: tuple[Span, ...]) -> dict[str, Any]:
    indices = sorted({at for span in fragments for at in range(span.start, span.end)})
    row: dict[str, Any] = {"index": indices, "type": entity.label}
    if tuple(runs(indices)) != fragments:  # fragments that touch: the indices alone would join them
        row["fragments"] = [list(span) for span in fragments]
    if entity.score != 1.0:
        row["score"] = entity.score
    return with_meta(row, entity.meta, _OWN_OF_W2NER_ENTITY)


W2NER = Format(
    name="w2ner",
    read=read_w2ner,
    write=write_w2ner,
    suffixes=(".w2ner.json",),
    holds=Holds(
        exact_text=False, documents_without_words=False, words=True, groups=True, meta=True, scores=True, datasets=True
    ),
    unit="words",
    description="JSON list of sentences with word indices (W2NER), or one sentence with entity_mentions on each line",
)
