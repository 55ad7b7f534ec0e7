"""The coverage of a corpus in one call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from wingspan.corpora.coverage import Census, Coverage
from wingspan.corpora.segment import Segmenting, Tables
from wingspan.text import Document


def measure_coverage(
    documents: Iterable[Document],
    segmenting: Segmenting,
    *,
    tables: Tables | None = None,
    gold: bool = False,
    **limits: Any,
) -> Coverage:
    """The share of gold entities that a model with these limits can find, by default in the sentences of prediction."""
    census = Census(segmenting, tables, gold)
    return census.coverage(census.sentences(documents), **limits)
