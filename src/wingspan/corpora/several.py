"""Several corpora for one model: what each of them has, marks and counts. `corpora_file` reads such a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from wingspan.corpora.label_map import LabelMap
from wingspan.labels import LabelSet
from wingspan.text import Document

Role = Literal["target", "auxiliary"]
Heads = Literal["own", "shared"]
Silence = Literal["unknown", "negative"]


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
    label_map: LabelMap | None = None
    """Which label of each corpus means which label of the target's."""
    silence: Silence = "unknown"
    """What an unmarked span may be where its corpus leaves a type unmarked: of that type too, or surely nothing."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """How sentences are drawn from the corpora, as `--set` takes it; what is not here is left to the recipe."""

    @property
    def target(self) -> OneOfSeveral:
        """The corpus that the model is for: it decides which epoch is best, and unknown texts get its labels."""
        return next(corpus for corpus in self.corpora if corpus.role == "target")

    @property
    def labels(self) -> LabelSet:
        """All classes, block by block in the order of the corpora."""
        shared = self.heads == "shared"
        types = {corpus.name: corpus.labels for corpus in self.corpora}
        partly = {c.name: c.annotates for c in self.corpora if set(c.annotates) != set(c.labels)}
        if self.silence == "negative":  # every corpus claims to mark all classes of its block
            everything = tuple(dict.fromkeys(label for labels in types.values() for label in labels))
            partly = dict.fromkeys(types, everything) if shared else {}
        first = self.corpora[0].role == "target"
        main = "" if first else self.target.name
        return LabelSet(types, annotates=partly, shared=shared, main=main, counterparts=self.counterparts)

    @property
    def counterparts(self) -> dict[str, dict[str, str]]:
        """What labels of other corpora are in the target's, by the label map; nothing without one."""
        found: dict[str, dict[str, str]] = {}
        for corpus, label, target in self.label_map or ():
            if target is not None and self.heads == "own":  # documents of shared labels are in the target's already
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


def in_target_labels(corpus: OneOfSeveral, label_map: LabelMap, order: Sequence[str]) -> OneOfSeveral:
    """A corpus as if it had been marked in the target's labels; `order` is that of the target's."""
    meanings = {label: label_map.target(corpus.name, label) for label in corpus.labels}
    # a target label is marked throughout where all labels that mean it are
    partly = {meanings[label] for label in corpus.labels if label not in corpus.annotates}
    labels = tuple(label for label in order if label in meanings.values())
    train, dev, test = (tuple(map(label_map.mapped, part)) for part in (corpus.train, corpus.dev, corpus.test))
    marked = tuple(label for label in labels if label not in partly)
    return replace(corpus, labels=labels, annotates=marked, train=train, dev=dev, test=test)


def undeclared(documents: Sequence[Document], labels: Sequence[str]) -> list[str]:
    """Labels of entities that are none of these, with how often they occur: `'Gene' (12)`."""
    counts = Counter(entity.label for document in documents for entity in document.entities)
    return [f"{label!r} ({count:,})" for label, count in sorted(counts.items()) if label not in labels]
