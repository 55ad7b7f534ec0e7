"""What a training corpus has shown: its words, and the labels each surface had."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from wingspan.corpora.words import word_strings
from wingspan.text import Document, Entity


@dataclass(frozen=True)
class Seen:
    """The words of a corpus, and how often each surface of an entity had which label."""

    words: frozenset[str] = frozenset()
    labels: dict[str, Counter[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, documents: Iterable[Document]) -> Seen:
        """What the documents show."""
        kept = list(documents)
        words: set[str] = set()
        for document in kept:
            if document.words is None:
                words.update(word_strings(document.text))
            else:
                words.update(document.text[start:end] for start, end in document.words)
        return cls(frozenset(words), labels_of_surfaces(kept))

    def frequency(self, name: str) -> int:
        """How often a surface was an entity, with whatever label."""
        found = self.labels.get(name)
        return found.total() if found else 0

    def consistency(self, name: str, label: str) -> float:
        """The share of a surface's entities that had this label; 0 if it was never seen (Fu et al. 2020, eCon)."""
        found = self.labels.get(name)
        return found[label] / found.total() if found else 0.0


def labels_of_surfaces(documents: Iterable[Document]) -> dict[str, Counter[str]]:
    """How often each surface of an entity had which label."""
    labels: dict[str, Counter[str]] = {}
    for document in documents:
        for entity in document.entities:
            labels.setdefault(surface(document, entity), Counter())[entity.label] += 1
    return labels


def surface(document: Document, entity: Entity) -> str:
    """The entity's text as surfaces are compared: in lower case, with single spaces."""
    return " ".join(document.text_of(entity).lower().split())
