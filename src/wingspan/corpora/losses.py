"""What a format cannot hold of a document: counted, and the document made to fit."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from wingspan.corpora.checks import SHAPE
from wingspan.corpora.formats import Format, Holds
from wingspan.corpora.overlaps import flatten
from wingspan.corpora.word_level import WordRanges, word_spans
from wingspan.text import Document, Entity, Span

SPACE = re.compile(r"\s")
FRAGMENTS = "discontinuous entities (an entity is made of each fragment)"
WIDENED = "entities with an edge inside of a word (widened to whole words)"
WORDLESS = "entities without any word (left out)"
MERGED = "entities that came to equal another one (one of them stays)"
OVERLAPS = "overlapping entities (the widest stay)"
LABELS = "second labels of one span (the first in the alphabet stays)"
SPACES = "texts with line ends or other white space that is not kept"
WORD_EDGES = "documents with given words (word boundaries are not written)"
SENTENCES = "documents with given sentences (sentence boundaries are not written)"
GROUPS = "documents with a group (not written)"
IDS = "document ids (new ones are made when the file is read)"
DATASETS = "names of datasets (not written)"
SCORES = "scores (not written)"


def fit(document: Document, target: Format) -> tuple[Document, Counter[str]]:
    """The document as the format can hold it, and what was lost on the way: description -> how many."""
    holds = target.holds
    lost: Counter[str] = Counter()
    if not holds.discontinuous:
        document = _contiguous(document, lost)
    if not holds.documents_without_words:
        document = _on_words(document, lost)
    if not holds.nested:
        document, lost[OVERLAPS] = flatten(document, "outer")
    elif not holds.same_span_labels:
        document = _one_label(document, lost)
    if not holds.exact_text:
        lost[SPACES] += not _keeps_spaces(document, holds)
    _count_fields(document, holds, lost)
    return document, +lost


def _keeps_spaces(document: Document, holds: Holds) -> bool:
    """Formats of words put one space between them; formats of characters put one for each line end or tab."""
    if holds.documents_without_words:
        return document.text == SPACE.sub(" ", document.text)
    return document.text == " ".join(document.text[word.start : word.end] for word in word_spans(document))


def _contiguous(document: Document, lost: Counter[str]) -> Document:
    split: list[Entity] = []
    for entity in document.entities:
        lost[FRAGMENTS] += entity.discontinuous
        split += [Entity(entity.label, (span,), entity.score, entity.meta) for span in entity.spans]
    return _distinct(document, split, lost) if lost[FRAGMENTS] else document


def _on_words(document: Document, lost: Counter[str]) -> Document:
    """Entities widened to words; the words themselves are left for the writer to make where there are none."""
    ranges = WordRanges(word_spans(document))
    moved: list[Entity] = []
    for entity in document.entities:
        touched = [ranges.touched(span) for span in entity.spans]
        spans = _joined([ranges.characters(span) for span in touched if span.width])
        if not spans:
            lost[WORDLESS] += 1
            continue
        lost[WIDENED] += spans != entity.spans
        moved.append(replace(entity, spans=spans))
    return _distinct(document, moved, lost) if lost[WIDENED] or lost[WORDLESS] else document


def _distinct(document: Document, entities: Sequence[Entity], lost: Counter[str]) -> Document:
    kept = tuple(dict.fromkeys(entities))
    lost[MERGED] += len(entities) - len(kept)
    return replace(document, entities=kept)


def _joined(spans: Sequence[Span]) -> tuple[Span, ...]:
    """Fragments in order; those that came to overlap by widening are one."""
    joined: list[Span] = []
    for span in sorted(spans):
        if joined and span.start < joined[-1].end:
            joined[-1] = Span(joined[-1].start, max(joined[-1].end, span.end))
        else:
            joined.append(span)
    return tuple(joined)


def _one_label(document: Document, lost: Counter[str]) -> Document:
    first: dict[tuple[Span, ...], Entity] = {}
    for entity in document.entities:
        first.setdefault(entity.spans, entity)
    lost[LABELS] += len(document.entities) - len(first)
    return replace(document, entities=tuple(first.values()))


def _count_fields(document: Document, holds: Holds, lost: Counter[str]) -> None:
    lost[WORD_EDGES] += not holds.words and document.words is not None
    lost[SENTENCES] += not holds.sentences and document.sentences is not None
    lost[GROUPS] += not holds.groups and document.group is not None
    lost[IDS] += not holds.ids
    lost[DATASETS] += not holds.datasets and document.dataset != "main"
    if not holds.scores:
        lost[SCORES] += sum(entity.score != 1.0 for entity in document.entities)
    if not holds.meta:
        lost.update(f"values of {key!r} of documents (not written)" for key in document.meta if key != SHAPE)
    if not (holds.meta if holds.entity_meta is None else holds.entity_meta):
        keys = [key for entity in document.entities for key in entity.meta]
        lost.update(f"values of {key!r} of entities (not written)" for key in keys)
