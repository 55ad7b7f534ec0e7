"""Class ids of one or several corpora. Class 0 of each corpus' block is "nothing": no entity.

One corpus is the special case of several: the blocks of all corpora follow each other. If corpora share their labels,
there is one block for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from wingspan.text import Document

Thresholds = float | Mapping[str, float] | None
"""The least score of entities: of all labels, or by label; None leaves it to the model."""


def threshold_of(label: str | None, thresholds: Thresholds) -> float | None:
    """The threshold of a label, or None."""
    if thresholds is None or isinstance(thresholds, float | int):
        return thresholds
    return thresholds.get(label or "")


def thresholds_of(labels: Sequence[str | None], thresholds: Thresholds, usual: float) -> list[float]:
    """The threshold of each label, or the usual one."""
    return [usual if low is None else low for low in (threshold_of(label, thresholds) for label in labels)]


ClassTable = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True)
class LabelSet:
    """The entity types of each corpus, in a fixed order: the labels that may be predicted in its texts."""

    types: Mapping[str, tuple[str, ...]]
    annotates: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The types that a corpus' training documents mark wherever they occur, if these are not all of its types."""
    shared: bool = False
    """Whether equal labels of all corpora are one class; otherwise each corpus has its own block of classes."""
    main: str = ""  # the target, whose labels are predicted in texts of unknown corpora; by default the first corpus
    counterparts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Labels of other corpora in terms of the target's labels, from a label map; the others have none."""

    @classmethod
    def of(cls, documents: Iterable[Document]) -> LabelSet:
        """The labels that occur in the documents, sorted, corpus by corpus."""
        types: dict[str, set[str]] = {}
        for document in documents:
            types.setdefault(document.dataset, set()).update(entity.label for entity in document.entities)
        return cls({name: tuple(sorted(labels)) for name, labels in types.items()} or {"main": ()})

    @property
    def datasets(self) -> tuple[str, ...]:
        """The corpora in the order of their blocks."""
        return tuple(self.types)

    @property
    def target(self) -> str:
        """The corpus whose labels are predicted for unknown corpora."""
        return self.main or self.datasets[0]

    @property
    def num_classes(self) -> int:
        """All types of all corpora, and one "nothing" for each block."""
        return len(self._classes)

    def known(self, dataset: str) -> str:
        """The corpus itself if the model knows it, otherwise the target."""
        return dataset if dataset in self.types else self.target

    def asked_for(self, dataset: str | None) -> tuple[str, ...]:
        """The labels of a named corpus; without a name, of the target."""
        if dataset is not None and dataset not in self.types:
            raise ValueError(f"dataset {dataset!r} is unknown; the model has {', '.join(self.datasets)}")
        return self.types[dataset or self.target]

    def dataset_id(self, dataset: str) -> int:
        """The index of a corpus; an unknown one has the target's."""
        return self.datasets.index(self.known(dataset))

    def nothing(self, dataset: str) -> int:
        """The class of spans that are no entities."""
        return self._classes[self._block(dataset), None]

    def id(self, dataset: str, label: str) -> int | None:
        """The class of a label, or None if the corpus does not have it."""
        return self._ids[self.known(dataset)].get(label)

    def block(self, dataset: str) -> dict[str, int]:
        """The class of each label of the corpus' block; where labels are shared, of those of all corpora."""
        own = self._block(dataset)
        return {label: at for (block, label), at in self._classes.items() if block == own and label is not None}

    def meanings(self) -> tuple[tuple[str, str | None], ...]:
        """The corpus ("" if all share their labels) and the label of each class; None for "nothing"."""
        if self.shared:
            together = dict.fromkeys(label for labels in self.types.values() for label in labels)
            return tuple(("", label) for label in (None, *together))
        return tuple((corpus, label) for corpus, labels in self.types.items() for label in (None, *labels))

    def names(self) -> tuple[str | None, ...]:
        """The label of each class; None for "nothing"."""
        return tuple(label for _, label in self.meanings())

    @cached_property
    def answers(self) -> list[tuple[str | None, ...]]:
        """The name of each class in texts of each corpus; a class of another corpus has its name, `other:Gene`."""
        rows = []
        for corpus, allowed in zip(self.types, self.allowed(), strict=True):
            pairs = zip(self.meanings(), allowed.tolist(), strict=True)
            rows.append(tuple(label if own else f"{block}:{label or 'nothing'}" for (block, label), own in pairs))
            assert rows[-1][self.nothing(corpus)] is None
        return rows

    @cached_property
    def ranks(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The place of each class's name among all names, sorted, in texts of each corpus.  (datasets, classes)"""
        places = {name: at for at, name in enumerate(sorted({str(name) for row in self.answers for name in row}))}
        return np.array([[places[str(name)] for name in row] for row in self.answers], dtype=np.int64)

    def allowed(self) -> ClassTable:
        """Which classes each corpus may predict.  (datasets, classes)"""
        return self._table(lambda corpus, label: label is None or label in self.types[corpus])

    def silent(self) -> ClassTable:
        """Which classes of its block a corpus' training documents leave unmarked.  (datasets, classes)"""
        return self._table(
            lambda corpus, label: label is not None and label not in self.annotates.get(corpus, self.types[corpus])
        )

    def target_classes(self) -> tuple[int | None, ...]:
        """The meaning of each class as an index into the target's labels: 0 for "nothing", None for no counterpart."""
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

    @cached_property
    def _ids(self) -> dict[str, dict[str, int]]:
        return {
            corpus: {label: self._classes[self._block(corpus), label] for label in labels}
            for corpus, labels in self.types.items()
        }

    def _block(self, dataset: str) -> str:
        return "" if self.shared else self.known(dataset)

    def _table(self, holds: Any) -> ClassTable:
        """Where `holds` is true of a corpus and a class of its block."""
        rows = [
            [block == self._block(corpus) and holds(corpus, label) for block, label in self.meanings()]
            for corpus in self.types
        ]
        return np.array(rows, dtype=bool)

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for `labels.json`: lists of labels by corpus, and everything that is not the default."""
        types = {name: list(labels) for name, labels in self.types.items()}
        if not (self.annotates or self.shared or self.main or self.counterparts):
            return types
        annotates = {name: list(labels) for name, labels in self.annotates.items()}
        means = {name: dict(labels) for name, labels in self.counterparts.items()}
        about = {"shared": self.shared, "target": self.target, "counterparts": means}
        return {"corpora": types, "annotates": annotates, **about}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> LabelSet:
        """From plain data; raises ValueError for anything else."""
        whole = isinstance(record.get("corpora"), dict)
        types = _lists(record["corpora"] if whole else record)
        if not types:
            raise ValueError("no lists of labels")
        if not whole:
            return cls(types)
        means = record.get("counterparts", {})
        if not isinstance(means, dict) or not all(isinstance(names, dict) for names in means.values()):
            raise ValueError("no names of counterparts")
        target = str(record.get("target"))
        labels = cls(types, _lists(record.get("annotates")), record.get("shared") is True, target, means)
        if labels.main not in types or not set(labels.annotates) <= set(types):
            raise ValueError("a corpus without labels")
        return labels


def _lists(record: Any) -> dict[str, tuple[str, ...]]:
    """Names with lists of names."""
    if not isinstance(record, Mapping) or not all(
        isinstance(names, list) and all(isinstance(name, str) for name in names) for names in record.values()
    ):
        raise ValueError("no lists of labels")
    return {name: tuple(names) for name, names in record.items()}
