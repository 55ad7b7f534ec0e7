"""What a format cannot hold of a document: counted, and the document made to fit."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from wingspan.corpora.formats import Format, Holds
from wingspan.corpora.formats.records import SHAPE
from wingspan.corpora.overlaps import flatten, joined
from wingspan.corpora.words import WordRanges, word_spans
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

OF_ENTITIES = frozenset({FRAGMENTS, WIDENED, WORDLESS, MERGED, OVERLAPS, LABELS})
"""Losses after which the entities are no longer the same."""


def fit(document: Document, target: Format, made_id: str | None = None) -> tuple[Document, Counter[str]]:
    """The document as the format can hold it, and what was lost on the way: description -> how many.

    `made_id` is the id that the target's reader will make for this place, where the format stores none.
    """
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
    lost[IDS] += not holds.ids and document.id != made_id
    if target.changes is not None:
        lost.update(target.changes(document))
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
        spans = joined([ranges.characters(span) for span in touched if span.width])
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
    lost[DATASETS] += not holds.datasets and document.dataset != "main"
    if not holds.scores:
        lost[SCORES] += sum(entity.score != 1.0 for entity in document.entities)
    if not holds.meta:
        lost.update(of_document(key) for key in document.meta if key not in (SHAPE, *holds.document_keys))
    if not (holds.meta if holds.entity_meta is None else holds.entity_meta):
        keys = [key for entity in document.entities for key in entity.meta]
        lost.update(of_entity(key) for key in keys if key not in holds.entity_keys)


# --- Keys of `meta` that a format keeps, compared before and after: what does not come back as it was is counted.


_NOTHING: Mapping[str, Any] = {}


def of_document(key: str) -> str:
    """The description of a lost value of documents."""
    return f"values of {key!r} of documents (not written)"


def of_entity(key: str) -> str:
    """The description of a lost value of entities."""
    return f"values of {key!r} of entities (not written)"


def changed(document: Document, after: Iterable[Document], holds: Holds) -> Counter[str]:
    """Which values of the keys that a format names as kept are otherwise, or gone, once a document is read again."""
    back = next(iter(after), None)
    lost = Counter(map(of_document, _differing(document.meta, back.meta if back else _NOTHING, holds.document_keys)))
    places: defaultdict[tuple[str, tuple[Span, ...]], list[Entity]] = defaultdict(list)
    for entity in back.entities if back else ():
        places[entity.label, entity.spans].append(entity)
    for entity in document.entities:
        same_place = places[entity.label, entity.spans]
        meta = same_place.pop(0).meta if same_place else _NOTHING
        lost.update(map(of_entity, _differing(entity.meta, meta, holds.entity_keys)))
    return lost


def _differing(before: Mapping[str, Any], after: Mapping[str, Any], keys: frozenset[str]) -> list[str]:
    return [key for key, value in before.items() if key in keys and (key not in after or after[key] != value)]
