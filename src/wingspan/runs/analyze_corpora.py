"""The part of `wingspan analyze` that is about several corpora: each of them, and what one is worth for another."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wingspan.analysis.report.blocks import Section
from wingspan.analysis.report.corpora import corpora_chapter
from wingspan.corpora.corpora_file import read_corpora
from wingspan.corpora.several import CorporaPlan
from wingspan.evaluation.scores import Scores, recognition
from wingspan.evaluation.transfer import Predict, Transfer, transfer_matrix
from wingspan.recognizer import Recognizer
from wingspan.runs.by_corpus import mapped_scores
from wingspan.text import Document

MOST_ROWS = 300
"""How many test rows of each corpus are mapped or scored across corpora, as in paper 004's Figure 4."""


@dataclass(frozen=True)
class Several:
    """What is asked about several corpora."""

    corpora: Path
    """A `corpora.toml`."""
    models: Mapping[str, str] = field(default_factory=dict)
    """Models of single corpora, by corpus, for scores across corpora; without them the model's own blocks answer."""
    device: str | None = None

    def plan(self) -> CorporaPlan:
        """The corpora with their documents."""
        return read_corpora(self.corpora)


def sampled(plan: CorporaPlan) -> list[Document]:
    """Test rows of the auxiliary corpora, some of each."""
    return [document for corpus in plan.corpora if corpus.role != "target" for document in corpus.test[:MOST_ROWS]]


def across_corpora(model: Recognizer, plan: CorporaPlan, several: Several, batch_size: int) -> Section:
    """Every corpus in its own labels and in the target's, and every block of classes on every corpus."""
    own: dict[str, Scores] = {}
    mapped: dict[str, Scores] = {}
    for corpus in plan.corpora:
        if not corpus.test:
            continue
        known = corpus.name if corpus.name in model.labels.types else None
        if known is not None:
            own[corpus.name] = recognition(
                corpus.test, model.predict(corpus.test, batch_size=batch_size, dataset=known)
            )
        in_targets = mapped_scores(model, corpus.test, corpus.name, plan)
        if in_targets is not None:
            mapped[corpus.name] = in_targets
    return corpora_chapter(plan.label_map, own, mapped, transfers(model, plan, several, batch_size))


def transfers(model: Recognizer, plan: CorporaPlan, several: Several, batch_size: int) -> list[Transfer]:
    """The matrix, where there is a label map and more than one corpus to be asked."""
    if plan.label_map is None or plan.heads != "own":
        return []
    labels = {corpus.name: corpus.labels for corpus in plan.corpora}
    gold = {corpus.name: corpus.test[:MOST_ROWS] for corpus in plan.corpora if corpus.test}
    models: dict[str, Predict] = {}
    for name in plan.labels.types:
        if several.models and name in several.models:
            single = Recognizer.from_pretrained(several.models[name], device=several.device)
            models[name] = answering(single, block_of(single, name, labels[name]), batch_size)
        elif not several.models and name in model.labels.types:
            models[name] = answering(model, name, batch_size)
    unknown = [name for name in several.models if name not in labels]
    if unknown:
        raise ValueError(f"--transfer {unknown[0]}=...: no such corpus; there are {', '.join(labels)}")
    return transfer_matrix(models, gold, labels, plan.label_map)


def block_of(model: Recognizer, corpus: str, labels: Collection[str]) -> str | None:
    """The block of a model that is of this corpus: the one of its name, or the only one, if it has such labels."""
    block = corpus if corpus in model.labels.types else model.labels.target
    if not set(model.labels.types[block]) & set(labels):
        raise ValueError(
            f"--transfer {corpus}=...: this model knows none of the labels of {corpus!r} ({', '.join(labels)}); "
            f"give one that was trained on it"
        )
    return block if block == corpus else None


def answering(model: Recognizer, dataset: str | None, batch_size: int) -> Predict:
    """A model that answers in the labels of one corpus, or of its target."""

    def predict(documents: Sequence[Document]) -> list[Document]:
        return model.predict(documents, batch_size=batch_size, dataset=dataset)

    return predict
