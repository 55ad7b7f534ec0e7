"""What a recipe leaves open about joining fragments, chosen on dev documents: the bar of links, the gap of the rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from rich.console import Console

from wingspan import recognizer
from wingspan.batch import batches, narrowed
from wingspan.candidates.proposed import Proposed
from wingspan.corpora.label_map import LabelMap
from wingspan.corpora.statistics import describe
from wingspan.decoding import Joining, resolve
from wingspan.evaluation.calibration import ByLabel, Calibration, Choice, Reliability, fit_temperature, log_loss
from wingspan.evaluation.scores import Counts, Scores, recognition, spread
from wingspan.evaluation.transfer import only
from wingspan.model import tensors
from wingspan.recognizer import Recognizer
from wingspan.text import Document, Entity, Sentence
from wingspan.training.multi_corpus import CorporaPlan, OneOfSeveral
from wingspan.views.tables import Sheet

BARS = (0.5, 0.45, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1, 0.55, 0.6, 0.65, 0.7)
GAPS = tuple(range(11))


class Tried(NamedTuple):
    """One way of joining, and the strict counts of dev with it: of all entities, and of discontinuous ones."""

    joining: Joining
    every: Counts
    discontinuous: Counts


def fit_joining(model: Recognizer, documents: Sequence[Document], console: Console, *, batch_size: int = 64) -> None:
    """Fixes what is `auto` to what gives the best strict F1 of all entities; of equals, the first that is tried."""
    joining = model.recipe.joining
    links = model.recipe.read_with == "links" and joining.bar == "auto"
    if not links and joining.gap != "auto":
        return
    if not documents:
        said = "Fragments are joined at a bar of 0.5" if links else "Nothing is joined"
        fix = "joining.bar=X" if links else "joining.gap=N"
        line = f"{said}: there are no dev documents to choose on; give --dev, or --set {fix}."
    else:
        tried = attempts(model, documents, batch_size=batch_size)
        best = max(tried, key=lambda one: one.every.f1)
        model.recipe = replace(model.recipe, joining=best.joining)
        value = f"bar {best.joining.bar:g}" if links else f"gap {best.joining.gap} words"
        line = (
            f"Joining, chosen on dev: {value} (F1 {best.every.f1:.2f} of all entities, "
            f"{best.discontinuous.f1:.2f} of {best.discontinuous.gold:,} discontinuous ones)."
        )
    console.print(line, highlight=False, markup=False, soft_wrap=True)


def attempts(model: Recognizer, documents: Sequence[Document], *, batch_size: int = 64) -> list[Tried]:
    """Every bar of links, or every gap of the rule, on the same reading of the documents."""
    joining = model.recipe.joining
    if model.recipe.read_with == "links":
        choices = [replace(joining, bar=bar) for bar in BARS]
    else:
        choices = [replace(joining, gap=gap) for gap in GAPS]
    sentences = list(model.segment(documents))
    lengths = [len(sentence.words) for sentence in sentences]
    counts = [(Counter[str](), Counter[str]()) for _ in choices]
    for batch in batches(lengths, batch_size, budget=model.recipe.train.budget):
        rows = [sentences[at] for at in batch]
        decoded = model.decode(rows, least_chance=min(BARS))
        for choice, (every, broken) in zip(choices, counts, strict=True):
            recipe = replace(model.recipe, joining=choice)
            for sentence, entities in zip(rows, recognizer.join_fragments(decoded, recipe, model.labels), strict=True):
                assert recipe.overlap != "auto", "a trained model's overlap is resolved"
                found, gold = resolve(entities, recipe.overlap), sentence.entities
                every.update(verdicts(gold, found))
                broken.update(verdicts(*(filter(discontinuous, side) for side in (gold, found))))
    return [
        Tried(choice, Counts(**every), Counts(**broken))
        for choice, (every, broken) in zip(choices, counts, strict=True)
    ]


def verdicts(gold: Iterable[Entity], found: Iterable[Entity]) -> dict[str, int]:
    """Strict verdicts on the entities of one sentence."""
    wanted, given = set(gold), set(found)
    return {"correct": len(wanted & given), "missed": len(wanted - given), "spurious": len(given - wanted)}


def discontinuous(entity: Entity) -> bool:
    """Whether an entity has several fragments."""
    return entity.discontinuous


# --- How many gold entities are among the candidates that a model looks at: no recognizer can find more.


WIDTHS: tuple[tuple[str, int], ...] = (("1", 1), ("2", 2), ("3-5", 5), ("6-10", 10), ("11-20", 20), ("over 20", 10**9))
"""Names of buckets of widths in words, each with the widest that belongs to it."""


def proposes(recognizer: Recognizer) -> bool:
    """Whether the model reads entities off proposals."""
    return recognizer.recipe.read_with != "tags" and isinstance(policy_of(recognizer), Proposed)


def proposal_recall(
    recognizer: Recognizer, documents: Iterable[Document], budget: float | None = None, *, batch_size: int = 32
) -> dict[str, Any]:
    """The share of gold entities in one piece that are candidates, overall and by width; `budget` tries another one.

    Gold is complete: what a window cuts off is missed here too. A grid can be measured as well, to compare.
    """
    policy = policy_of(recognizer)
    if budget is not None and not isinstance(policy, Proposed):
        raise ValueError(f"{type(policy).__name__} has no budget; measure a model with proposals, or give none")
    given = list(documents)
    total = sum(not entity.discontinuous for document in given for entity in document.entities)
    sentences = list(recognizer.segment(given))
    gold: Counter[str] = Counter()
    found: Counter[str] = Counter()
    cells = words = 0
    lengths = [len(sentence.words) for sentence in sentences]
    for batch in batches(lengths, batch_size, budget=recognizer.recipe.train.budget):
        rows = [sentences[at] for at in batch]
        for sentence, spans in zip(rows, candidates_in_words(recognizer, rows, budget), strict=True):
            cells, words = cells + len(spans), words + sentence.core.width
            for entity in sentence.entities:
                if not entity.discontinuous:
                    name = next(name for name, widest in WIDTHS if entity.spans[0].width <= widest)
                    gold[name] += 1
                    found[name] += entity.spans[0] in spans
    return {
        "recall": 100.0 * found.total() / total if total else 100.0,
        "entities": total,
        "proposed": found.total(),
        "widths": {
            name: {"recall": 100.0 * found[name] / gold[name], "entities": gold[name], "proposed": found[name]}
            for name, _ in WIDTHS
            if gold[name]
        },
        "budget": budget if budget is not None else getattr(policy, "budget", None),
        "cells_per_word": cells / max(words, 1),
    }


def said(figures: dict[str, Any]) -> str:
    """The figures as a sentence."""
    return (
        f"Proposals: {figures['recall']:.1f}% of {figures['entities']:,} entities are among the candidates, "
        f"{figures['cells_per_word']:.2f} per word (budget {figures['budget']:g})"
    )


def policy_of(recognizer: Recognizer) -> Any:
    """What chooses the model's candidates."""
    scorer = recognizer.learner.model.scorer
    if scorer is None:
        raise ValueError(f"a {recognizer.recipe.name} model has no spans, so it has no candidates to measure")
    return scorer.candidates


@torch.inference_mode()
def candidates_in_words(
    recognizer: Recognizer, sentences: Sequence[Sentence], budget: float | None
) -> Iterator[set[tuple[int, int]]]:
    """The candidates of each sentence of a batch as (start, end) in words."""
    arrays = recognizer.collate.inputs(sentences)
    policy = policy_of(recognizer)
    inputs, words = recognizer.learner.model.encode(tensors(arrays, recognizer.device))
    chosen = policy(inputs, words) if budget is None else policy.best(inputs, words, budget)
    start, end, mask = (part.cpu().numpy() for part in chosen[:3])
    for row, units in enumerate(narrowed(arrays).words):
        first, last = units[start[row][mask[row]]], units[end[row][mask[row]] - 1] + 1
        yield set(zip(first.tolist(), last.tolist(), strict=True))


# --- A model of several corpora on each of them: in the corpus' own labels, and in the target's where a map says
# how.


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


# --- `wingspan calibrate`: scores that mean what they say, and thresholds that suit a purpose, fitted on dev
# documents.


FEWEST = 30
"""Decisions; of fewer no temperature is believed."""
LOWEST = 0.05
"""The least score of the entities among which thresholds are chosen."""


@dataclass(frozen=True)
class Calibrated:
    """What came of it, measured on the documents it was fitted on: before, and with the calibrated model."""

    calibration: Calibration
    before: ByLabel[Reliability]
    after: ByLabel[Reliability]
    choices: Mapping[str, Choice]
    f1_before: Counts
    f1_after: Counts

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            **self.calibration.to_dict(),
            "before": figures(self.before, self.f1_before),
            "after": figures(self.after, self.f1_after),
            "choices": {label: choice._asdict() for label, choice in self.choices.items()},
        }


def calibrate_on(model: Recognizer, dev: Sequence[Document], console: Console, *, batch_size: int = 32) -> None:
    """Calibrates a model that was just trained; where that cannot be done it stays as it is, and that is said."""
    try:
        model.calibration = fit(model, dev, batch_size=batch_size)
        said = f"Scores are calibrated on dev: {model.calibration}."
    except ValueError as error:
        said = f"Scores are not calibrated: {error}"
    console.print(said, highlight=False, markup=False, soft_wrap=True)


def fit(recognizer: Recognizer, documents: Sequence[Document], *, batch_size: int = 32) -> Calibration:
    """The temperature that makes the right decisions on these documents likeliest. It changes none of them."""
    logits, target = decisions(recognizer, documents, batch_size)
    if len(target) < FEWEST:
        raise ValueError(
            f"these documents have only {len(target)} decisions to learn from, {FEWEST} are needed; use more of them"
        )
    temperature = fit_temperature(logits, target)
    return Calibration(
        temperature,
        facts={
            "documents": describe(documents).fingerprint,
            "decisions": len(target),
            "log_loss_before": log_loss(logits, target),
            "log_loss": log_loss(logits, target, temperature),
        },
    )


@torch.inference_mode()
def decisions(recognizer: Recognizer, documents: Sequence[Document], batch_size: int) -> tuple[Any, Any]:
    """The contested decisions of all documents, read as prediction reads them.  (N, C), (N,)"""
    reader: Any = recognizer.learner.objectives[recognizer.recipe.reader]
    if not reader.calibrates:
        raise ValueError(f"{type(reader).__name__} has no class scores to calibrate; read with spans or tags")
    sentences = list(recognizer.segment(documents))
    lengths = [len(sentence.words) for sentence in sentences]
    logits, targets = [], []
    for batch in batches(lengths, batch_size, budget=recognizer.recipe.train.budget):
        arrays = recognizer.collate([sentences[at] for at in batch])
        inputs, gold = (tensors(part, recognizer.device) for part in (arrays.inputs, arrays.gold))
        given = gold if recognizer.recipe.protocol == "typing" else None
        found = reader.decisions(recognizer.learner.model(inputs, given, spans=reader.reads_spans), gold)
        logits.append(found.logits.double().cpu().numpy())
        targets.append(found.target.cpu().numpy())
    if not logits:
        return np.zeros((0, 2)), np.zeros(0, dtype=np.int64)
    return np.concatenate(logits), np.concatenate(targets)


def figures(rows: ByLabel[Reliability], micro: Counts) -> dict[str, Any]:
    """Calibration errors and strict figures as plain data."""
    return {
        "micro": micro.to_dict(),
        "calibration": rows.overall.to_dict(),
        "labels": {label: row.to_dict() for label, row in rows.labels.items()},
    }
