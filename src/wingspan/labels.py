"""Class ids of one or several corpora. Class 0 of each corpus' block is "nothing": no entity.

One corpus is the special case of several: the blocks of all corpora stand one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wingspan.text import Document


@dataclass(frozen=True)
class LabelSet:
    """The entity types of each corpus, in a fixed order."""

    types: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, documents: Iterable[Document]) -> LabelSet:
        """The labels that occur in the documents, sorted, corpus by corpus."""
        found: dict[str, set[str]] = {}
        for document in documents:
            found.setdefault(document.dataset, set()).update(entity.label for entity in document.entities)
        return cls({name: tuple(sorted(labels)) for name, labels in found.items()} or {"main": ()})

    @property
    def datasets(self) -> tuple[str, ...]:
        """The corpora in the order of their blocks."""
        return tuple(self.types)

    @property
    def num_classes(self) -> int:
        """All types of all corpora, and one "nothing" for each corpus."""
        return sum(len(labels) + 1 for labels in self.types.values())

    def dataset_id(self, dataset: str) -> int:
        """Which block a corpus has; a corpus the model does not know answers in the first one's labels."""
        return self.datasets.index(dataset) if dataset in self.types else 0

    def nothing(self, dataset: str) -> int:
        """The class of spans that are no entity."""
        at = 0
        for name, labels in self.types.items():
            if name == dataset or dataset not in self.types:
                return at
            at += len(labels) + 1
        raise AssertionError("unreachable: the first block answers for unknown corpora")

    def id(self, dataset: str, label: str) -> int | None:
        """The class of a label, or None where the corpus does not have it."""
        name = dataset if dataset in self.types else self.datasets[0]
        labels = self.types[name]
        return self.nothing(name) + 1 + labels.index(label) if label in labels else None

    def names(self) -> tuple[str | None, ...]:
        """The label of each class; None for "nothing"."""
        return tuple(name for labels in self.types.values() for name in (None, *labels))

    def allowed(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which classes each corpus may predict.  (datasets, classes)"""
        table = np.zeros((len(self.types), self.num_classes), dtype=bool)
        at = 0
        for row, labels in enumerate(self.types.values()):
            table[row, at : at + len(labels) + 1] = True
            at += len(labels) + 1
        return table

    def to_dict(self) -> dict[str, list[str]]:
        """As plain data, for `labels.json`."""
        return {name: list(labels) for name, labels in self.types.items()}

    @classmethod
    def from_dict(cls, types: Mapping[str, Iterable[str]]) -> LabelSet:
        """From plain data."""
        return cls({name: tuple(labels) for name, labels in types.items()})
