"""Several corpora for one model: what each of them has, marks and counts. `corpora_file` reads such a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from wingspan.corpora.label_map import read_label_map
from wingspan.labels import LabelSet
from wingspan.text import Document

Role = Literal["target", "auxiliary"]
Heads = Literal["own", "shared"]


@dataclass(frozen=True)
class OneOfSeveral:
    """One corpus of a training on several; its documents carry its name as their dataset."""

    name: str
    labels: tuple[str, ...]
    annotates: tuple[str, ...]
    """The labels that its training documents mark wherever they occur; silence about the others says nothing."""
    train: tuple[Document, ...] = ()
    dev: tuple[Document, ...] = ()
    test: tuple[Document, ...] = ()
    role: Role = "auxiliary"
    weight: float = 1.0
    """How much more often than others its sentences are drawn."""
    dev_into_training: bool = False

    @property
    def training(self) -> tuple[Document, ...]:
        """The documents that are trained on."""
        return (*self.train, *self.dev) if self.dev_into_training else self.train


@dataclass(frozen=True)
class CorporaPlan:
    """The corpora of a training, in the order of their classes; exactly one is the target."""

    corpora: tuple[OneOfSeveral, ...]
    heads: Heads = "own"
    """Classes of its own for each corpus, or equal labels as one class."""
    label_map: Path | None = None
    """Which label of each corpus means which label of the target's."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """How sentences are drawn from the corpora, as `--set` takes it; what is not here is left to the recipe."""

    @property
    def target(self) -> OneOfSeveral:
        """The corpus that the model is for: it decides which epoch is best, and unknown texts get its labels."""
        return next(corpus for corpus in self.corpora if corpus.role == "target")

    @property
    def labels(self) -> LabelSet:
        """All classes, block by block in the order of the corpora."""
        partly = {c.name: c.annotates for c in self.corpora if set(c.annotates) != set(c.labels)}
        first = self.corpora[0].role == "target"
        return LabelSet(
            {corpus.name: corpus.labels for corpus in self.corpora},
            annotates=partly,
            shared=self.heads == "shared",
            main="" if first else self.target.name,
            counterparts=self.counterparts,
        )

    @property
    def counterparts(self) -> dict[str, dict[str, str]]:
        """What labels of other corpora are in the target's, by the label map; nothing without one."""
        if self.label_map is None:
            return {}
        known = read_label_map(self.label_map).about([corpus.name for corpus in self.corpora])
        known.check({corpus.name: corpus.labels for corpus in self.corpora}, self.target.name)
        found: dict[str, dict[str, str]] = {}
        for corpus, label, target in known:
            if target is not None:
                found.setdefault(corpus, {})[label] = target
        return found

    @property
    def training(self) -> list[Document]:
        """All documents that are trained on, corpus by corpus."""
        return [document for corpus in self.corpora for document in corpus.training]

    def named(self, name: str) -> OneOfSeveral:
        """The corpus of that name."""
        found = [corpus for corpus in self.corpora if corpus.name == name]
        if not found:
            raise ValueError(f"no corpus {name!r} here; there are {', '.join(c.name for c in self.corpora)}")
        return found[0]


def undeclared(documents: Sequence[Document], labels: Sequence[str]) -> list[str]:
    """Labels of entities that are none of these, with how often they occur: `'Gene' (12)`."""
    counts = Counter(entity.label for document in documents for entity in document.entities)
    return [f"{label!r} ({count:,})" for label, count in sorted(counts.items()) if label not in labels]
