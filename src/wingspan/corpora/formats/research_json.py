"""JSON of research code, all in words: SpERT, DyGIE and PURE, GLiNER, W2NER.

SpERT has a JSON list of sentences with half-open entities and relations between them. DyGIE and PURE have one document
per line, with entities in words of the whole document and inclusive ends; GLiNER has such entities in single sentences.
W2NER has a JSON list of sentences with entities as lists of word indices, so that a gap makes an entity discontinuous;
the same family of tools also writes one sentence per line, with `entity_mentions` that have half-open ends.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

from wingspan.corpora.formats import ALL, Holds, records
from wingspan.corpora.formats.records import Json, Misfit, RecordRef
from wingspan.corpora.words import in_words, word_spans
from wingspan.text import Document, Entity, Span

_KEPT = Holds(words=True, groups=True, scores=True, document_keys=ALL, entity_keys=ALL)
_HOLDS = replace(_KEPT, exact_text=False, documents_without_words=False)


def _document(
    record: Json, ref: RecordRef, id_key: str, own: frozenset[str], words: tuple[str, ...], entities: Iterable[Entity]
) -> Document:
    fields = records.common_fields(record, own, **{records.SHAPE: records.WORDS})
    return Document.from_words(records.identity(record, id_key, ref.name), words, tuple(entities), **fields)


# SpERT. Relations name entities by their place in the list, which sorting and leaving out change: entities keep it.

_SPERT_OWN = frozenset({"tokens", "entities", "relations", "orig_id"})
_SPERT_ENTITY = records.EntityKeys("type")
_INDEX = "spert_index"
CUT_RELATIONS = "relations whose entity is no longer there (left out)"


def _from_spert(record: Json, ref: RecordRef) -> Iterator[Document]:
    words = records.words_of(record.get("tokens"), "tokens")
    relations = records.list_of(record.get("relations"), "relations")
    for number, item in enumerate(relations, 1):
        if not _is_relation(item):
            raise Misfit(f"relation {number} has no numbers of entities as its head and tail")

    def build(item: tuple[int, Any]) -> Entity:
        entity = _SPERT_ENTITY.read(item[1], words)
        return replace(entity, meta={**entity.meta, _INDEX: item[0]}) if relations else entity

    entities = records.gather(enumerate(records.list_of(record.get("entities"), "entities")), build, ref)
    document = _document(record, ref, "orig_id", _SPERT_OWN, words, entities)
    yield replace(document, meta={**document.meta, "relations": relations}) if relations else document


def _to_spert(document: Document) -> Json:
    records.refuse_fragments(document, "SpERT")
    words, entities = in_words(document)
    rows = []
    for entity, (span,) in entities:
        meta = {key: value for key, value in entity.meta.items() if key != _INDEX}
        rows.append(_SPERT_ENTITY.write(replace(entity, meta=meta), span))
    relations = _relations(document)
    record = {"tokens": words, "entities": rows, "relations": relations or [], "orig_id": document.id}
    if relations is not None:
        document = replace(document, meta={key: value for key, value in document.meta.items() if key != "relations"})
    return records.with_common_fields(record, document, _SPERT_OWN)


def _relations(document: Document) -> list[Any] | None:
    """The relations between entities that are still there, by their new numbers; None where `meta` has no relations."""
    relations: Any = document.meta.get("relations")
    if not isinstance(relations, list) or not all(map(_is_relation, relations)):
        return None
    new = {entity.meta[_INDEX]: at for at, entity in enumerate(document.entities) if _INDEX in entity.meta}
    return [
        {**item, "head": new[item["head"]], "tail": new[item["tail"]]}
        for item in relations
        if item["head"] in new and item["tail"] in new
    ]


def _is_relation(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(item.get("head"), int) and isinstance(item.get("tail"), int)


def _spert_changes(document: Document) -> Counter[str]:
    kept = _relations(document)
    return Counter({CUT_RELATIONS: 0 if kept is None else len(document.meta["relations"]) - len(kept)})


SPERT = records.json_format(
    "spert", _from_spert, _to_spert, replace(_HOLDS, discontinuous=False), as_list=True, changes=_spert_changes
)


# DyGIE and PURE. A document without given sentences is written as one sentence, and `_WHOLE` says so.

_WHOLE = "_sentences_unknown"
_PURE_OWN = frozenset({"doc_key", "sentences", "ner", _WHOLE})


def _from_pure(record: Json, ref: RecordRef) -> Iterator[Document]:
    if "sentences" not in record:
        raise Misfit("there is no key 'sentences'")
    rows = records.list_of(record["sentences"], "sentences")
    sentences = [records.words_of(words, f"sentence {at}") for at, words in enumerate(rows)]
    ner = records.list_of(record.get("ner"), "ner")
    if ner and len(ner) != len(sentences):
        raise Misfit(f"ner has {len(ner)} lists for {len(sentences)} sentences; give one list for each sentence")
    words = tuple(word for sentence in sentences for word in sentence)
    values = [value for at, values in enumerate(ner) for value in records.list_of(values, f"ner of sentence {at}")]
    document = _document(
        record, ref, "doc_key", _PURE_OWN, words, records.gather(values, partial(_pure_entity, words), ref)
    )
    if record.get(_WHOLE) is not True:
        spans = document.words or ()
        edges = pairwise(accumulate(map(len, sentences), initial=0))
        ranges = (Span(spans[first].start, spans[last - 1].end) for first, last in edges if first < last)
        document = replace(document, sentences=tuple(ranges))
    yield document


def _pure_entity(words: tuple[str, ...], value: Any) -> Entity:
    row = records.list_of(value, "an entity")
    if len(row) < 3:
        raise Misfit(f"{row} is no [start, end, label]")
    span = records.span_of(
        row[0], records.whole(row[1], "end") + 1, len(words), "words"
    )  # ends are inclusive in the file
    return Entity(records.label_of(row[2]), (span,))


def _to_pure(document: Document) -> Json:
    """Entities are listed with the sentence in which they start."""
    records.refuse_fragments(document, "PURE")
    words, entities = in_words(document)
    # the first words of the sentences; words between two sentences belong to the one before them
    word_starts = [word.start for word in word_spans(document)]
    firsts = {bisect_left(word_starts, sentence.start) for sentence in document.sentences or ()}
    starts = sorted(({0} | firsts) - {len(words)})
    ner: list[list[list[Any]]] = [[] for _ in starts]
    for entity, (span,) in entities:
        ner[bisect_right(starts, span.start) - 1].append([span.start, span.end - 1, entity.label])
    sentences = [words[first:last] for first, last in pairwise([*starts, len(words)])]
    record: Json = {"doc_key": document.id, "sentences": sentences, "ner": ner}
    if document.sentences is None:
        record[_WHOLE] = True
    return records.with_common_fields(record, document, _PURE_OWN)


PURE = records.json_format(
    "pure",
    _from_pure,
    _to_pure,
    replace(_HOLDS, discontinuous=False, sentences=True, scores=False, entity_keys=frozenset()),
)


# GLiNER: one sentence with entities as in PURE

_GLINER_OWN = frozenset({"tokenized_text", "ner", "id"})


def _from_gliner(record: Json, ref: RecordRef) -> Iterator[Document]:
    words = records.words_of(record.get("tokenized_text"), "tokenized_text")
    entities = records.gather(records.list_of(record.get("ner"), "ner"), partial(_pure_entity, words), ref)
    yield _document(record, ref, "id", _GLINER_OWN, words, entities)


def _to_gliner(document: Document) -> Json:
    records.refuse_fragments(document, "GLiNER")
    words, entities = in_words(document)
    ner = [[span.start, span.end - 1, entity.label] for entity, (span,) in entities]
    return records.with_common_fields({"id": document.id, "tokenized_text": words, "ner": ner}, document, _GLINER_OWN)


GLINER = records.json_format(
    "gliner",
    _from_gliner,
    _to_gliner,
    replace(_HOLDS, discontinuous=False, scores=False, entity_keys=frozenset()),
    as_list=True,
)


# W2NER

_W2NER_OWN = frozenset({"sentence", "ner", "id"})
_W2NER_ENTITY_OWN = frozenset({"index", "type", "score", "fragments"})
_LINE_OWN = frozenset({"tokens", "entity_mentions", "sent_id"})
_LINE_ENTITY = records.EntityKeys("entity_type", score=False, surface="text")


def _from_w2ner(record: Json, ref: RecordRef) -> Iterator[Document]:
    if "sentence" in record:
        words = records.words_of(record["sentence"], "sentence")
        entities = records.gather(
            records.list_of(record.get("ner"), "the entities"), partial(_w2ner_entity, len(words)), ref
        )
        yield _document(record, ref, "id", _W2NER_OWN, words, entities)
    elif "tokens" in record:
        words = records.words_of(record["tokens"], "tokens")
        rows = records.list_of(record.get("entity_mentions"), "the entities")
        entities = records.gather(rows, lambda row: _LINE_ENTITY.read(row, words), ref)
        yield _document(record, ref, "sent_id", _LINE_OWN, words, entities)
    else:
        raise Misfit("there is neither a key 'sentence' (with 'ner') nor 'tokens' (with 'entity_mentions')")


def _w2ner_entity(size: int, value: Any) -> Entity:
    raw = records.record_of(value, "an entity")
    if fragments := records.list_of(raw.get("fragments"), "fragments"):
        spans = tuple(records.span_of(*records.pair_of(pair, "a fragment"), size, "words") for pair in fragments)
    else:
        indices = sorted(records.whole(at, "a word index") for at in records.list_of(raw.get("index"), "index"))
        if not indices or len(set(indices)) < len(indices):
            raise Misfit("index is empty or has a word twice; name the words of the entity")
        spans = tuple(records.span_of(*span, size, "words") for span in runs(indices))
    return Entity(
        records.label_of(raw.get("type")),
        spans,
        records.score_of(raw.get("score")),
        records.other_keys(raw, _W2NER_ENTITY_OWN),
    )


def runs(indices: list[int]) -> list[Span]:
    """Sorted indices as half-open ranges without gaps."""
    spans: list[Span] = []
    for at in indices:
        if spans and spans[-1].end == at:
            spans[-1] = Span(spans[-1].start, at + 1)
        else:
            spans.append(Span(at, at + 1))
    return spans


def _to_w2ner(document: Document) -> Json:
    words, entities = in_words(document)
    rows = []
    for entity, fragments in entities:
        indices = sorted({at for span in fragments for at in range(span.start, span.end)})
        row: Json = {"index": indices, "type": entity.label}
        if tuple(runs(indices)) != fragments:  # fragments that touch: the indices alone would join them
            row["fragments"] = [list(span) for span in fragments]
        if entity.score != 1.0:
            row["score"] = entity.score
        rows.append(records.with_meta(row, entity.meta, _W2NER_ENTITY_OWN))
    return records.with_common_fields({"sentence": words, "ner": rows, "id": document.id}, document, _W2NER_OWN)


W2NER = records.json_format("w2ner", _from_w2ner, _to_w2ner, _HOLDS, as_list=True)
