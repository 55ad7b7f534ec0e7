"""The coverage of documents in one call."""

from collections.abc import Iterable
from typing import Any

from wingspan.corpora.coverage import Census, Coverage
from wingspan.corpora.segment import Measure, Segmenting
from wingspan.text import Document


def measure_coverage(
    documents: Iterable[Document],
    segmenting: Segmenting,
    *,
    measure: Measure | None = None,
    gold: bool = False,
    **limits: Any,
) -> Coverage:
    """The gold entities that a model with these limits can find, by default in the sentences of prediction."""
    census = Census(segmenting, measure, gold)
    return census.coverage(census.sentences(documents), **limits)
