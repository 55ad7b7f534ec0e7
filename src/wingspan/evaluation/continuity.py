"""Discontinuous entities by themselves, and the sentences that have them: what the literature reports beside all.

See: Dai et al. 2020, An Effective Transition-based Model for Discontinuous NER (ACL), section 4.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace

from wingspan.corpora.segment import Segmenting, marked_words
from wingspan.evaluation.pairing import discontinuous_entities, pair
from wingspan.evaluation.scores import Counts, recognition
from wingspan.text import Document, Entity

PARTS = {
    "discontinuous": "discontinuous entities, whole",
    "continuous": "continuous entities",
    "sentences": "sentences with a discontinuous entity",
    "fragments": "fragments, each by itself",
}
"""What is counted, and how a table says it."""


def by_continuity(
    gold: Sequence[Document], found: Sequence[Document], *, allow_missing: bool = False
) -> dict[str, Counts]:
    """Strict counts by the names of `PARTS`; empty where neither side has a discontinuous entity.

    discontinuous and continuous: only such entities on both sides. sentences: all entities of the sentences whose gold
    has a discontinuous one. fragments: all entities, every fragment as one of its own.
    """
    if not any(entity.discontinuous for side in (gold, found) for document in side for entity in document.entities):
        return {}
    sides = {
        "discontinuous": (discontinuous_entities(gold), discontinuous_entities(found)),
        "continuous": (continuous_entities(gold), continuous_entities(found)),
        "sentences": discontinuous_sentences(gold, found, allow_missing),
        "fragments": (gold, found),
    }
    return {
        name: recognition(
            *sides[name], "fragments" if name == "fragments" else "strict", allow_missing=allow_missing
        ).micro
        for name in PARTS
    }


def continuous_entities(documents: Iterable[Document]) -> list[Document]:
    """All the documents, without their discontinuous entities; use it on both sides."""
    return [replace(d, entities=tuple(e for e in d.entities if not e.discontinuous)) for d in documents]


def discontinuous_sentences(
    gold: Sequence[Document], found: Sequence[Document], allow_missing: bool = False
) -> tuple[list[Document], list[Document]]:
    """The documents whose gold has a discontinuous entity, with the entities of those of their sentences that have one.

    Sentences are those of the gold document, or found by rules; an entity belongs to the sentence in which it starts.
    """
    wanted: list[Document] = []
    given: list[Document] = []
    for right, guess in pair(gold, found, allow_missing):
        if not any(entity.discontinuous for entity in right.entities):
            continue
        starts = sentence_starts(right)
        chosen = {place(entity, starts) for entity in right.entities if entity.discontinuous}
        for document, side in ((right, wanted), (guess, given)):
            kept = tuple(entity for entity in document.entities if place(entity, starts) in chosen)
            side.append(replace(document, entities=kept))
    return wanted, given


def sentence_starts(document: Document) -> list[int]:
    """The character at which each sentence begins; a row of words without sentences is one."""
    keep = tuple(entity.hull for entity in document.entities)
    starts: list[int] = []
    ended = True
    for word, ends in marked_words(document, Segmenting(), keep):
        if ended:
            starts.append(word.start)
        ended = ends
    return starts


def place(entity: Entity, starts: Sequence[int]) -> int:
    """The number of the sentence in which an entity starts."""
    return bisect_right(starts, entity.start)
