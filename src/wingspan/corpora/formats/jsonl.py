"""Wingspan's own format: one JSON record per line, with a text and characters, or with words and ranges of words."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from wingspan.corpora.formats import ALL, Format, Holds, records
from wingspan.corpora.formats.records import Json, Misfit, RecordRef
from wingspan.corpora.words import WordRanges
from wingspan.files import CorpusError, Problems, json_of_line, read_json_lines
from wingspan.text import Document, Entity, Span, join_words

_OWN = frozenset({"id", "doc_id", "dataset", "text", "tokens", "entities", "sentences", records.SHAPE})
_OWN_OF_ENTITY = frozenset({"label", "start", "end", "fragments", "score"})


def read(path: Path, problems: Problems) -> Iterator[Document]:
    """The documents of a file, one per line; a file may have records of both shapes."""
    return records.noting_unused(_documents(path, problems), path, problems)


def _documents(path: Path, problems: Problems) -> Iterator[Document]:
    for number, (line, record) in enumerate(read_json_lines(path, problems), 1):
        try:
            yield _document(record, RecordRef(path, line, number, problems))
        except Misfit as misfit:
            problems.add(path, line, f"{misfit}; mend the record, or leave it out with --on-error skip")


def documents_of_records(given: Iterable[Mapping[str, Any]], name: str) -> Iterator[Document]:
    """The documents of records that are in memory; `name` is where a complaint places them."""
    problems = Problems()
    for number, record in enumerate(given, 1):
        try:
            yield _document(dict(record), RecordRef(Path(name), number, number, problems))
        except Misfit as misfit:
            problems.add(name, number, f"{misfit}; mend the record")


def document_of_line(line: bytes, path: Path, number: int, record: int, text: str = "text") -> Document:
    """The document on one line of a file, its so-manieth record; the text may have another key."""
    content = json_of_line(line, path, number)
    if text != "text":
        if text not in content:
            raise CorpusError(f"{path}:{number}: no key {text!r}; name the one with the text (--text)")
        content["text"] = content.pop(text)
    try:
        return _document(content, RecordRef(path, number, record, Problems()))
    except Misfit as misfit:
        raise CorpusError(f"{path}:{number}: {misfit}; mend the record") from misfit


def _document(record: Json, ref: RecordRef) -> Document:
    others: Json = {
        "dataset": records.text_of(record.get("dataset", "main"), "dataset"),
        "group": records.identity(record, "doc_id", "") or None,
        "meta": records.other_keys(record, _OWN),
    }
    name = records.identity(record, "id", ref.name)
    if "text" in record:
        text = records.text_of(record["text"], "text")
        tokens, sentences = record.get("tokens"), record.get("sentences")
        if isinstance(tokens, list) and tokens and isinstance(tokens[0], str):
            spans: tuple[Span, ...] | None = _locate(records.words_of(tokens, "tokens"), text)
        else:
            spans = None if tokens is None else records.ranges_of(tokens, "tokens", len(text), "character")
        given = None if sentences is None else records.ranges_of(sentences, "sentences", len(text), "character")
        entities = _entities(record, ref, len(text), "character", lambda span: text[span.start : span.end])
        return Document(name, text, entities, words=spans, sentences=given, **others)
    if "tokens" not in record:
        raise Misfit("a record needs the key 'text' or the key 'tokens'")
    others["meta"][records.SHAPE] = records.WORDS
    words = records.words_of(record["tokens"], "tokens")
    entities = _entities(record, ref, len(words), "word", lambda span: join_words(words[span.start : span.end]))
    document = Document.from_words(name, words, entities, **others)
    if record.get("sentences") is None:
        return document
    ranges = WordRanges(document.words or ())
    rows = records.ranges_of(record["sentences"], "sentences", len(words), "word")
    return replace(document, sentences=tuple(map(ranges.characters, rows)))


def _entities(record: Json, ref: RecordRef, size: int, unit: str, surface: Callable[[Span], str]) -> tuple[Entity, ...]:
    entities = []
    for value in records.list_of(record.get("entities"), "entities"):
        try:
            entities.append(_entity(records.record_of(value, "an entity"), size, unit, surface))
        except Misfit as misfit:
            ref.problems.add(ref.path, ref.line, str(misfit))
    return tuple(entities)


def _entity(raw: Json, size: int, unit: str, surface: Callable[[Span], str]) -> Entity:
    label = records.label_of(raw.get("label"))
    fragments = records.list_of(raw.get("fragments"), f'the fragments of entity "{label}"')
    pairs = fragments or [[raw.get("start"), raw.get("end")]]
    spans = tuple(sorted(records.range_of(pair, f'entity "{label}"', size, unit) for pair in pairs))
    hull = (spans[0].start, max(span.end for span in spans))
    if fragments and "start" in raw and (raw["start"], raw.get("end")) != hull:
        raise Misfit(
            f'entity "{label}" has fragments from {hull[0]} to {hull[1]} but start {raw["start"]} and end '
            f"{raw.get('end')}; leave one of the two out"
        )
    try:
        records.same_surface(" ".join(surface(span) for span in spans), raw.get("text"), Span(*hull))
    except Misfit as misfit:
        raise Misfit(f'entity "{label}": {misfit}; correct the offsets, which count {unit}s from 0') from None
    score = raw.get("score")
    if score is not None and (isinstance(score, bool) or not isinstance(score, int | float)):
        raise Misfit(f'the score of entity "{label}" is {records.kind_of(score)}, not a number')
    return Entity(label, spans, records.score_of(score), records.other_keys(raw, _OWN_OF_ENTITY))


def _locate(words: tuple[str, ...], text: str) -> tuple[Span, ...]:
    """The ranges of words given as strings, one after the other in the text."""
    spans, at = [], 0
    for number, word in enumerate(words):
        start = text.find(word, at)
        if start < 0 or text[at:start].strip():
            raise Misfit(
                f"tokens {number} is {records.shorten(word)}, which the text does not have next, at character {at}"
            )
        at = start + len(word)
        spans.append(Span(start, at))
    return tuple(spans)


def write(documents: Iterable[Document], path: Path) -> None:
    """Writes one record per line; in words where the source was and its text is these words joined."""
    records.write_lines(map(record_of_document, documents), path)


def record_of_document(document: Document) -> Json:
    """The record of one document as plain data, with everything that was kept in `meta`."""
    record: Json = {"id": document.id, **records.group_and_dataset(document)}
    meta = {key: value for key, value in document.meta.items() if key != records.SHAPE}
    if document.meta.get(records.SHAPE) == records.WORDS and (in_words := _word_record(document)):
        return records.with_meta({**record, **in_words}, meta, _OWN)
    record["text"] = document.text
    record["entities"] = [_entity_record(document, entity, entity.spans) for entity in document.entities]
    if document.words is not None:
        record["tokens"] = [list(span) for span in document.words]
    if document.sentences is not None:
        record["sentences"] = [list(span) for span in document.sentences]
    return records.with_meta(record, meta, _OWN)


def write_predictions(documents: Iterable[Document], path: Path, model: str) -> None:
    """Writes one record per line, all in the schema of predictions, which has no place for the model."""
    records.write_lines(map(record_of_prediction, documents), path)


def record_of_prediction(document: Document) -> Json:
    """The record of a document with predicted entities: its text, characters, and everything about each entity."""
    meta = {key: value for key, value in document.meta.items() if key != records.SHAPE}
    own = _OWN_OF_ENTITY | {"text"}
    entities = [
        {**row, **{key: value for key, value in entity.meta.items() if key not in own}}
        for row, entity in zip(document.to_dict()["entities"], document.entities, strict=True)
    ]
    return record_of_document(replace(document, meta=meta)) | {"entities": entities}


def _word_record(document: Document) -> Json | None:
    """The words and ranges of words, or None where they could not give the document back."""
    words = [document.text[word.start : word.end] for word in document.words or ()]
    if document.words is None or "" in words:
        return None
    rebuilt = Document.from_words("", tuple(words))
    if rebuilt.text != document.text or rebuilt.words != document.words:
        return None
    ranges = WordRanges(document.words)
    spans = [[ranges.exact(span) for span in entity.spans] for entity in document.entities]
    sentences = [ranges.exact(span) for span in document.sentences or ()]
    if any(None in row for row in (*spans, sentences)):
        return None
    rows = zip(document.entities, spans, strict=True)
    record: Json = {"tokens": words, "entities": [_entity_record(document, *row) for row in rows]}
    if document.sentences is not None:
        record["sentences"] = [list(span) for span in sentences if span]
    return record


def _entity_record(document: Document, entity: Entity, spans: Iterable[Span | None]) -> Json:
    pairs = [list(span) for span in spans if span]
    record: Json = {"label": entity.label}
    record |= {"start": pairs[0][0], "end": pairs[0][1]} if len(pairs) == 1 else {"fragments": pairs}
    if entity.score != 1.0:
        record["score"] = entity.score
    meta: Mapping[str, Any] = entity.meta
    if isinstance(meta.get("text"), str):  # a surface that was read and checked: the entity may have moved since
        meta = {**meta, "text": document.text_of(entity)}
    return records.with_meta(record, meta, _OWN_OF_ENTITY)


_HOLDS = Holds(words=True, sentences=True, groups=True, scores=True, document_keys=ALL, entity_keys=ALL)
FORMAT = Format("jsonl", read, write, _HOLDS, write_predictions=write_predictions)
