"""Transfer between corpora: models trained on one and scored on another, in labels that both can mean."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

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

    def in_target(document: Document, corpus: str, kept: Collection[str]) -> Document:
        mapped = label_map.mapped(replace(document, dataset=corpus))
        return replace(only(mapped, kept), dataset="target")

    meanings = {corpus: {label_map.target(corpus, label) for label in own} - {None} for corpus, own in labels.items()}
    result = []
    for trained, predict in models.items():
        for tested, documents in gold.items():
            shared = sorted(filter(None, meanings[trained] & meanings[tested]))
            scores = None
            if shared:
                expected = [in_target(document, tested, shared) for document in documents]
                answers = [only(document, labels[trained]) for document in predict(documents)]
                scores = recognition(expected, [in_target(document, trained, shared) for document in answers])
            result.append(Transfer(trained, tested, tuple(shared), scores))
    return result


def only(document: Document, labels: Collection[str]) -> Document:
    """The document with the entities of these labels only; its corpus is silent about others."""
    return replace(document, entities=tuple(entity for entity in document.entities if entity.label in labels))
