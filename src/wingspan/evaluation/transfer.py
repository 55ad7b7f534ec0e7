"""Transfer between corpora: models trained on one and scored on another, in labels that both can mean."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from wingspan.corpora.label_map import LabelMap
from wingspan.evaluation.scores import Scores, recognition
from wingspan.text import Document

CorpusModel = Callable[[Sequence[Document]], Sequence[Document]]
"""A model of one corpus: it returns documents with the entities it finds, in the labels of that corpus."""


@dataclass(frozen=True)
class Transfer:
    """A model of one corpus on the documents of another."""

    trained: str
    tested: str
    labels: tuple[str, ...]
    """The target's labels that labels of both corpora mean; only these are scored."""
    scores: Scores | None
    """None if there is no such label."""


def transfer_matrix(
    models: Mapping[str, CorpusModel],
    gold: Mapping[str, Sequence[Document]],
    labels: Mapping[str, Collection[str]],
    label_map: LabelMap,
) -> list[Transfer]:
    """Every model on every corpus's documents. All maps are by corpus; `labels` are the labels each corpus has."""
    found = []
    for trained, predict in models.items():
        for tested, documents in gold.items():
            shared = meanings(trained, labels, label_map) & meanings(tested, labels, label_map)
            scores = None
            if shared:
                expected = [in_target(document, tested, shared, label_map) for document in documents]
                answers = [only(document, labels[trained]) for document in predict(documents)]
                guessed = [in_target(document, trained, shared, label_map) for document in answers]
                scores = recognition(expected, guessed)
            found.append(Transfer(trained, tested, tuple(sorted(shared)), scores))
    return found


def meanings(corpus: str, labels: Mapping[str, Collection[str]], label_map: LabelMap) -> frozenset[str]:
    """The target's labels that a corpus's labels can mean."""
    targets = (label_map.target(corpus, label) for label in labels[corpus])
    return frozenset(target for target in targets if target is not None)


def in_target(document: Document, corpus: str, kept: Collection[str], label_map: LabelMap) -> Document:
    """A document of a corpus in the target's labels, with the kept ones only."""
    return replace(only(label_map.mapped(replace(document, dataset=corpus)), kept), dataset="target")


def only(document: Document, labels: Collection[str]) -> Document:
    """The document with the entities of these labels only; its corpus is silent about others."""
    return replace(document, entities=tuple(entity for entity in document.entities if entity.label in labels))


@dataclass(frozen=True)
class TypeEffect:
    """The change of a type's F1, in points, when something is added to the training; means over runs."""

    label: str
    before: float
    changes: Mapping[str, float]


def type_effects(before: Sequence[Scores], added: Mapping[str, Sequence[Scores]]) -> list[TypeEffect]:
    """The change by each addition, for every type and "micro". A type that a run lacks counts 0."""
    everything = [*before, *(scores for runs in added.values() for scores in runs)]
    labels = sorted({label for scores in everything for label in scores.labels})
    found = []
    for label in (*labels, "micro"):
        start = mean_f1(before, label)
        changes = {name: mean_f1(runs, label) - start for name, runs in added.items()}
        found.append(TypeEffect(label, start, changes))
    return found


def mean_f1(runs: Sequence[Scores], label: str) -> float:
    """The mean F1 of a type, or of "micro"."""
    rows = [scores.micro if label == "micro" else scores.labels.get(label) for scores in runs]
    return fmean(row.f1 if row is not None else 0.0 for row in rows)
