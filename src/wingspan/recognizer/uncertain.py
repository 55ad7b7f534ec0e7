"""Which documents to annotate next: those whose entities a model is least sure of."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from itertools import count, tee
from statistics import fmean
from typing import TYPE_CHECKING, Any

from wingspan.text import Document

if TYPE_CHECKING:
    from wingspan.recognizer import Recognizer

DOUBTFUL = 0.1
"""The least score of spans that count: a span that is just not an entity is as uncertain as one that just is."""


def most_uncertain(
    recognizer: Recognizer, documents: Iterable[Document], number: int, **options: Any
) -> list[Document]:
    """The so many documents with the smallest mean margin, the most uncertain first, as they were given.

    In memory are these documents and those that the model works on.
    """
    given, again = tee(documents)
    found: Iterator[Document] = recognizer.predict_stream(given, threshold=DOUBTFUL, overlap="any", **options)
    places = count()
    ranked = ((margin(predicted), next(places), original) for original, predicted in zip(again, found, strict=True))
    return [document for _, _, document in heapq.nsmallest(number, ranked)]


def margin(document: Document) -> float:
    """The mean distance of scores from a coin's toss: 0 is none at all, 1 is sure. 1 where nothing was found."""
    return fmean(abs(2 * entity.score - 1) for entity in document.entities) if document.entities else 1.0
