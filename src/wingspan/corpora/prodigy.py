"""Prodigy: one task on each line, with spans in characters and tokens that carry their own offsets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from wingspan.corpora.checks import (
    Misfit,
    common_fields,
    gather,
    identity,
    label_of,
    list_of,
    other_keys,
    record_of,
    refuse_fragments,
    same_surface,
    score_of,
    span_of,
    text_of,
    with_common_fields,
    with_meta,
)
from wingspan.corpora.formats import Format, Holds, Problems
from wingspan.corpora.records import Place, read_documents, write_lines
from wingspan.corpora.word_level import WordRanges
from wingspan.text import Document, Entity, Span

_OWN = frozenset({"id", "text", "tokens", "spans", "answer"})
# where the span lies in tokens (with an inclusive end) follows from its characters and is written anew
_OWN_OF_SPAN = frozenset({"start", "end", "label", "token_start", "token_end", "score", "text"})


def read(path: Path, problems: Problems) -> Iterator[Document]:
    """The accepted tasks. Rejected and ignored ones are no gold data: they are left out, and a note says how many."""
    left_out = 0

    def build(record: dict[str, Any], place: Place) -> Iterator[Document]:
        nonlocal left_out
        if record.get("answer", "accept") == "accept":
            yield _document(record, place)
        else:
            left_out += 1

    yield from read_documents(path, problems, build)
    if left_out:
        problems.note(path, f"{left_out} tasks whose answer is not 'accept' are left out")


def _document(record: dict[str, Any], place: Place) -> Document:
    text = text_of(record.get("text"), "text")
    tokens = record.get("tokens")
    words = None if tokens is None else _words(list_of(tokens, "tokens"), text)
    spans = list_of(record.get("spans"), "spans")
    entities = gather(spans, lambda value: _entity(value, text), place.complain)
    return Document(
        identity(record, "id", place.name), text, tuple(entities), words=words, **common_fields(record, _OWN)
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


def _entity(value: Any, text: str) -> Entity:
    raw = record_of(value, "a span")
    span = span_of(raw.get("start"), raw.get("end"), len(text))
    same_surface(text[span.start : span.end], raw.get("text"), span)
    return Entity(label_of(raw.get("label")), (span,), score_of(raw.get("score")), other_keys(raw, _OWN_OF_SPAN))


def write(documents: Iterable[Document], path: Path) -> None:
    """Writes accepted tasks, with tokens where the document gives words."""
    write_lines((_record(document) for document in documents), path)


def _record(document: Document) -> dict[str, Any]:
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
    return with_common_fields(record, document, _OWN)


def _span(entity: Entity, ranges: WordRanges) -> dict[str, Any]:
    row: dict[str, Any] = {"start": entity.start, "end": entity.end, "label": entity.label}
    if found := ranges.exact(entity.hull):
        row |= {"token_start": found.start, "token_end": found.end - 1}
    if entity.score != 1.0:
        row["score"] = entity.score
    return with_meta(row, entity.meta, _OWN_OF_SPAN)


FORMAT = Format(
    name="prodigy",
    read=read,
    write=write,
    suffixes=(".prodigy.jsonl",),
    holds=Holds(discontinuous=False, words=True, groups=True, meta=True, scores=True, datasets=True),
    description="one task on each line with spans and tokens (Prodigy)",
)
