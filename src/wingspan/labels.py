"""Class ids of one or several corpora. Class 0 of each corpus' block is "nothing": no entity.

One corpus is the special case of several: the blocks of all corpora stand one after the other. Where corpora share
their labels there is one block for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from wingspan.text import Document

Table = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True)
class LabelSet:
    """The entity types of each corpus, in a fixed order: the labels that are answered with in texts like its own."""

    types: Mapping[str, tuple[str, ...]]
    annotates: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The types that a corpus' training documents mark wherever they occur, where these are not all of its types."""
    shared: bool = False
    """Whether equal labels of all corpora are one class; else each corpus has a block of classes of its own."""
    main: str = ""
    """The target: the corpus in whose labels texts of unknown corpora are answered; the first one by default."""
    counterparts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """What labels of other corpora are in the target's labels, where a label map says so; the others have none."""

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
    def target(self) -> str:
        """The corpus that answers for unknown ones."""
        return self.main or self.datasets[0]

    @property
    def num_classes(self) -> int:
        """All types of all corpora, and one "nothing" for each block."""
        return len(self._classes)

    def known(self, dataset: str) -> str:
        """The corpus in whose labels texts of a corpus are answered."""
        return dataset if dataset in self.types else self.target

    def asked_for(self, dataset: str | None) -> tuple[str, ...]:
        """The labels of a corpus that someone names; those of the target where nobody does."""
        if dataset is not None and dataset not in self.types:
            raise ValueError(f"dataset {dataset!r} is unknown; the model has {', '.join(self.datasets)}")
        return self.types[dataset or self.target]

    def dataset_id(self, dataset: str) -> int:
        """The number of a corpus; one that the model does not know answers in the target's labels."""
        return self.datasets.index(self.known(dataset))

    def nothing(self, dataset: str) -> int:
        """The class of spans that are no entity."""
        return self._classes[self._block(dataset), None]

    def id(self, dataset: str, label: str) -> int | None:
        """The class of a label, or None where the corpus does not have it."""
        if label not in self.types[self.known(dataset)]:
            return None
        return self._classes[self._block(dataset), label]

    def meanings(self) -> tuple[tuple[str, str | None], ...]:
        """What each class stands for: a corpus ("" where all share their labels), and a label or None for "nothing"."""
        if self.shared:
            together = dict.fromkeys(label for labels in self.types.values() for label in labels)
            return tuple(("", label) for label in (None, *together))
        return tuple((corpus, label) for corpus, labels in self.types.items() for label in (None, *labels))

    def names(self) -> tuple[str | None, ...]:
        """The label of each class; None for "nothing"."""
        return tuple(label for _, label in self.meanings())

    @cached_property
    def answers(self) -> list[tuple[str | None, ...]]:
        """What each class is called in texts of each corpus; one of another corpus carries its name, `other:Gene`."""
        rows = []
        for corpus, allowed in zip(self.types, self.allowed(), strict=True):
            pairs = zip(self.meanings(), allowed.tolist(), strict=True)
            rows.append(tuple(label if own else f"{block}:{label or 'nothing'}" for (block, label), own in pairs))
            assert rows[-1][self.nothing(corpus)] is None
        return rows

    def allowed(self) -> Table:
        """Which classes each corpus may predict.  (datasets, classes)"""
        return self._table(lambda corpus, label: label is None or label in self.types[corpus])

    def silent(self) -> Table:
        """About which classes of its block a corpus' training documents say nothing.  (datasets, classes)"""
        return self._table(
            lambda corpus, label: label is not None and label not in self.annotates.get(corpus, self.types[corpus])
        )

    def target_classes(self) -> tuple[int | None, ...]:
        """What each class means in the target's labels, as a place among them: "nothing" is 0, None is none of them."""
        own = self.types[self.target]
        places = {label: at for at, label in enumerate(own, 1)}
        means = {
            **self.counterparts,
            "": dict(zip(own, own, strict=True)),
            self.target: dict(zip(own, own, strict=True)),
        }
        return tuple(
            0 if label is None else places.get(means.get(corpus, {}).get(label, ""))
            for corpus, label in self.meanings()
        )

    @cached_property
    def _classes(self) -> dict[tuple[str, str | None], int]:
        return {meaning: at for at, meaning in enumerate(self.meanings())}

    def _block(self, dataset: str) -> str:
        return "" if self.shared else self.known(dataset)

    def _table(self, holds: Any) -> Table:
        """What holds for a corpus and each class of its block; no other class."""
        rows = [
            [block == self._block(corpus) and holds(corpus, label) for block, label in self.meanings()]
            for corpus in self.types
        ]
        return np.array(rows, dtype=bool)

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for `labels.json`: lists of labels by corpus, and whatever else is not as usual."""
        types = {name: list(labels) for name, labels in self.types.items()}
        if not (self.annotates or self.shared or self.main or self.counterparts):
            return types
        annotates = {name: list(labels) for name, labels in self.annotates.items()}
        means = {name: dict(labels) for name, labels in self.counterparts.items()}
        rest = {"shared": self.shared, "target": self.target, "counterparts": means}
        return {"corpora": types, "annotates": annotates, **rest}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> LabelSet:
        """From plain data; what is none of ours is a ValueError."""
        whole = isinstance(found.get("corpora"), dict)
        types = _lists(found["corpora"] if whole else found)
        if not types:
            raise ValueError("no lists of labels")
        if not whole:
            return cls(types)
        means = found.get("counterparts", {})
        if not isinstance(means, dict) or not all(isinstance(names, dict) for names in means.values()):
            raise ValueError("no names of counterparts")
        target = str(found.get("target"))
        labels = cls(types, _lists(found.get("annotates")), found.get("shared") is True, target, means)
        if labels.main not in types or not set(labels.annotates) <= set(types):
            raise ValueError("a corpus without labels")
        return labels


def _lists(found: Any) -> dict[str, tuple[str, ...]]:
    """Names with lists of names."""
    if not isinstance(found, Mapping) or not all(
        isinstance(names, list) and all(isinstance(name, str) for name in names) for names in found.values()
    ):
        raise ValueError("no lists of labels")
    return {name: tuple(names) for name, names in found.items()}
