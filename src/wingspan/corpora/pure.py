"""DyGIE and PURE: one document on each line, entities in words of the whole document with inclusive ends."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import accumulate, pairwise
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
    refuse_fragments,
    span_of,
    whole,
    with_common_fields,
    words_of,
)
from wingspan.corpora.formats import Format, Holds, Problems
from wingspan.corpora.records import Place, read_documents, write_lines
from wingspan.corpora.word_level import in_words, word_spans
from wingspan.text import Document, Entity, Span

# a document without given sentences is written as one; this key says so, and reading gives it back as it was
_WHOLE = "_sentences_unknown"
_OWN = frozenset({"doc_key", "sentences", "ner", _WHOLE})


def read(path: Path, problems: Problems) -> Iterator[Document]:
    """The documents, with words and sentences. Relations, clusters and predictions are kept in `meta`."""
    return read_documents(path, problems, _document)


def _document(record: dict[str, Any], place: Place) -> Iterator[Document]:
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
    entities = gather(values, lambda value: _entity(value, len(words)), place.complain)
    document = Document.from_words(
        identity(record, "doc_key", place.name),
        words,
        tuple(entities),
        **common_fields(record, _OWN, **{SHAPE: WORDS}),
    )
    if record.get(_WHOLE) is not True:
        edges = [0, *accumulate(len(sentence) for sentence in sentences)]
        document = replace(document, sentences=_ranges(document.words or (), edges))
    yield document


def _ranges(words: tuple[Span, ...], edges: list[int]) -> tuple[Span, ...]:
    return tuple(Span(words[first].start, words[last - 1].end) for first, last in pairwise(edges) if first < last)


def _entity(value: Any, size: int) -> Entity:
    row = list_of(value, "an entity")
    if len(row) < 3:
        raise Misfit(f"{row} is no [start, end, label]")
    span = span_of(row[0], whole(row[1], "end") + 1, size, "words")  # ends are inclusive in the file
    return Entity(label_of(row[2]), (span,))


def write(documents: Iterable[Document], path: Path) -> None:
    """Writes one document on each line; entities stand with the sentence in which they start."""
    write_lines((_record(document) for document in documents), path)


def _record(document: Document) -> dict[str, Any]:
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
    return with_common_fields(record, document, _OWN)


def _sentence_starts(document: Document) -> list[int]:
    """The first words of the sentences; words between two sentences belong to the one before them."""
    words = [word.start for word in word_spans(document)]
    starts = {bisect_left(words, sentence.start) for sentence in document.sentences or ()}
    return sorted(({0} | starts) - {len(words)})


FORMAT = Format(
    name="pure",
    read=read,
    write=write,
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
