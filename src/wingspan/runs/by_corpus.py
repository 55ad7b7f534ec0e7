"""A model of several corpora on each of them: in the corpus' own labels, and in the target's where a map says how."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console

from wingspan.corpora.label_map import LabelMap
from wingspan.corpora.several import CorporaPlan, OneOfSeveral
from wingspan.evaluation.scores import Scores, recognition
from wingspan.evaluation.seeds import spread
from wingspan.evaluation.transfer import only
from wingspan.recognizer import Recognizer
from wingspan.runs.tables import Sheet
from wingspan.text import Document

FIGURES = ("precision", "recall", "f1")
Figures = dict[str, dict[str, Any]]


def scores_by_corpus(model: Recognizer, plan: CorporaPlan, training: Sequence[Document], console: Console) -> Figures:
    """What is known of each corpus, with scores of its dev and test documents that were not trained on.

    `training` is what the model has learned from, which may be less than the plan has.
    """
    learned = Counter(document.dataset for document in training)
    found: Figures = {}
    rows = []
    for corpus in plan.corpora:
        facts: dict[str, Any] = {"role": corpus.role, "training_documents": learned[corpus.name]}
        for name, gold in unseen(corpus).items():
            scores = recognition(gold, model.predict(gold, batch_size=64, dataset=corpus.name))
            facts[name] = scores.to_dict()
            rows.append(row(corpus.name, name, scores))
            mapped = mapped_scores(model, gold, corpus.name, plan)
            if mapped is not None:
                facts[f"{name}_mapped"] = mapped.to_dict()
                rows.append(row(corpus.name, f"{name}, in the target's labels", mapped))
        found[corpus.name] = facts
    Sheet("Corpora, strict", ("corpus", "part", "precision", "recall", "F1"), rows).show(console)
    return found


def unseen(corpus: OneOfSeveral) -> dict[str, Sequence[Document]]:
    """The dev and test documents that were kept out of training."""
    parts = {"dev": () if corpus.dev_into_training else corpus.dev, "test": corpus.test}
    return {name: documents for name, documents in parts.items() if documents}


def row(corpus: str, part: str, scores: Scores) -> tuple[str, ...]:
    """One line of the table."""
    return (corpus, part, *(f"{getattr(scores.micro, name):.2f}" for name in FIGURES))


def mapped_scores(model: Recognizer, gold: Sequence[Document], corpus: str, plan: CorporaPlan) -> Scores | None:
    """A corpus' documents in the target's labels, of those what its own labels can mean; None where it has none."""
    if corpus not in plan.counterparts or corpus == plan.target.name:
        return None
    assert plan.label_map is not None
    wanted, asked = mapped_gold(gold, corpus, plan.label_map)
    return recognition(wanted, [only(document, asked) for document in model.predict(wanted, batch_size=64)])


def mapped_gold(
    gold: Sequence[Document], corpus: str | None, label_map: LabelMap
) -> tuple[list[Document], frozenset[str]]:
    """Documents of a corpus in the target's labels, and which of these its own labels can mean."""
    if corpus is None:
        raise ValueError("--label-map needs --dataset: the name that the map has for this corpus")
    asked = frozenset(target for name, _, target in label_map if name == corpus and target is not None)
    if not asked:
        about = ", ".join(dict.fromkeys(name for name, _, target in label_map if target is not None))
        raise ValueError(
            f"{label_map.path or 'label map'}: no label of {corpus!r} has a counterpart; it is about {about}"
        )
    return [label_map.mapped(replace(document, dataset=corpus)) for document in gold], asked


def over_runs(runs: Sequence[Mapping[str, Any]]) -> Figures:
    """The figures of several seeds: mean and deviation of precision, recall and F1 of each corpus and part."""
    return {
        corpus: {
            part: {name: spread(run[corpus][part]["micro"][name] for run in runs).to_dict() for name in FIGURES}
            for part, value in facts.items()
            if isinstance(value, Mapping)
        }
        for corpus, facts in runs[0].items()
    }
