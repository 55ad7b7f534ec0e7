"""After the last epoch: joining and calibration chosen on dev, proposals, and the scores of each corpus.

The best epoch's model goes through dev once for both: the bar of links or the gap of the rule that joins fragments,
where the recipe leaves it open, and the temperature that makes scores mean what they say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from rich.console import Console

from wingspan import recognizer
from wingspan.batch import batches, narrowed
from wingspan.candidates.proposed import Proposed
from wingspan.corpora.label_map import LabelMap
from wingspan.decoding import Joining, resolve
from wingspan.evaluation.calibration import Calibration, fit_temperature, log_loss
from wingspan.evaluation.scores import Counts, Scores, recognition, spread
from wingspan.evaluation.transfer import only
from wingspan.model import States, tensors
from wingspan.recognizer import Recognizer
from wingspan.recognizer.torch_engine import TorchEngine
from wingspan.text import Document, Entity, Sentence, corpus_fingerprint
from wingspan.training.multi_corpus import CorporaPlan
from wingspan.views.console import say
from wingspan.views.tables import Sheet

BARS = (0.5, 0.45, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1, 0.55, 0.6, 0.65, 0.7)
"""The values of `joining.bar` that are tried, best guess first."""
GAPS = tuple(range(11))
"""The values of `joining.gap` that are tried."""
FEWEST = 30
"""A temperature is fitted to no fewer decisions."""


def settle_on_dev(model: Recognizer, dev: Sequence[Document], console: Console, *, batch_size: int = 64) -> None:
    """Chooses how fragments are joined, where that is `auto`, and fits the temperature, in one pass through dev.

    The bar or gap with the best strict F1 of all entities is chosen, the first of equals. A model that cannot be
    calibrated stays as it is, and the console says why.
    """
    joining, decided = model.recipe.joining, list[tuple[Any, Any]]()
    links = model.recipe.read_with == "links" and joining.bar == "auto"
    if (links or joining.gap == "auto") and not dev:
        default = "Fragments are joined at a bar of 0.5" if links else "Nothing is joined"
        fix = "joining.bar=X" if links else "joining.gap=N"
        say(console, f"{default}: there are no dev documents to choose on; give --dev, or --set {fix}.")
    elif links or joining.gap == "auto":
        best = max(try_joinings(model, dev, decided, batch_size=batch_size), key=lambda trial: trial.every.f1)
        model.recipe = replace(model.recipe, joining=best.joining)
        value = f"bar {best.joining.bar:g}" if links else f"gap {best.joining.gap} words"
        discontinuous = f"{best.discontinuous.f1:.2f} of {best.discontinuous.gold:,} discontinuous ones"
        say(console, f"Joining, chosen on dev: {value} (F1 {best.every.f1:.2f} of all entities, {discontinuous}).")
    if dev:
        try:
            model.calibration = fit_calibration(model, dev, decided, batch_size=batch_size)
            say(console, f"Scores are calibrated on dev: {model.calibration}.")
        except ValueError as error:
            say(console, f"Scores are not calibrated: {error}")


def sentence_batches(model: Recognizer, documents: Iterable[Document], batch_size: int) -> Iterator[list[Sentence]]:
    """The sentences of prediction, in batches of similar length."""
    sentences = list(model.segment(documents))
    lengths = [len(sentence.words) for sentence in sentences]
    for batch in batches(lengths, batch_size, budget=model.recipe.train.budget):
        yield [sentences[at] for at in batch]


class JoiningTrial(NamedTuple):
    """One way of joining, and the strict counts of dev with it: of all entities, and of discontinuous ones."""

    joining: Joining
    every: Counts
    discontinuous: Counts


def try_joinings(
    model: Recognizer,
    documents: Sequence[Document],
    decided: list[tuple[Any, Any]] | None = None,
    *,
    batch_size: int = 64,
) -> list[JoiningTrial]:
    """Tries every bar of links, or every gap of the rule, on the same decoded batches.

    `decided` gets the decisions for `fit_calibration`.
    """
    joining, overlap = model.recipe.joining, model.recipe.overlap
    assert overlap != "auto", "a trained model's overlap is resolved"
    if model.recipe.read_with == "links":
        choices = [replace(joining, bar=bar) for bar in BARS]
    else:
        choices = [replace(joining, gap=gap) for gap in GAPS]
    reader: Any = model.learner.objectives[model.recipe.reader]
    counts = [(Counter[str](), Counter[str]()) for _ in choices]
    for rows in sentence_batches(model, documents, batch_size):
        decoded = model.decode(rows, least_chance=min(BARS))
        if decided is not None and reader.calibrates:
            decided.append(decisions(model, rows, decoded.states))
        for choice, (every, broken) in zip(choices, counts, strict=True):
            recipe = replace(model.recipe, joining=choice)
            for sentence, entities in zip(rows, recognizer.join_fragments(decoded, recipe, model.labels), strict=True):
                gold, predicted = set(sentence.entities), set(resolve(entities, overlap))
                every.update(verdicts(gold, predicted))
                broken.update(verdicts(*({e for e in side if e.discontinuous} for side in (gold, predicted))))
    return [
        JoiningTrial(choice, Counts(**every), Counts(**broken))
        for choice, (every, broken) in zip(choices, counts, strict=True)
    ]


def verdicts(gold: set[Entity], predicted: set[Entity]) -> dict[str, int]:
    """Strict verdicts on the entities of one sentence."""
    return {"correct": len(gold & predicted), "missed": len(gold - predicted), "spurious": len(predicted - gold)}


@torch.inference_mode()
def decisions(model: Recognizer, rows: Sequence[Sentence], states: States | None = None) -> tuple[Any, Any]:
    """The class scores (N, C) and right classes (N,) of a batch; the model may have made its `states` already."""
    reader: Any = model.learner.objectives[model.recipe.reader]
    arrays = model.collate(rows)
    inputs, gold = (tensors(part, model.device) for part in (arrays.inputs, arrays.gold))
    if states is None:
        given = gold if model.recipe.protocol == "typing" else None
        states = model.learner.model(inputs, given, spans=reader.reads_spans)
    contested = reader.decisions(states, gold)
    return contested.logits.double().cpu().numpy(), contested.target.cpu().numpy()


def fit_calibration(
    model: Recognizer,
    documents: Sequence[Document],
    decided: Sequence[tuple[Any, Any]] = (),
    *,
    batch_size: int = 32,
) -> Calibration:
    """The temperature that makes the right decisions on these documents likeliest. It changes none of them.

    `decided` has the `decisions` of all batches if they were collected before.
    """
    reader: Any = model.learner.objectives[model.recipe.reader]
    if not reader.calibrates:
        raise ValueError(f"{type(reader).__name__} has no class scores to calibrate; read with spans or tags")
    decided = decided or [decisions(model, rows) for rows in sentence_batches(model, documents, batch_size)]
    number = sum(len(target) for _, target in decided)
    if number < FEWEST:
        raise ValueError(
            f"these documents have only {number} decisions to learn from, {FEWEST} are needed; use more of them"
        )
    logits, target = (np.concatenate(part) for part in zip(*decided, strict=True))
    temperature = fit_temperature(logits, target)
    facts = {
        "documents": corpus_fingerprint(documents),
        "decisions": number,
        "log_loss_before": log_loss(logits, target),
        "log_loss": log_loss(logits, target, temperature),
    }
    return Calibration(temperature, facts=facts)


# Proposals: how many gold entities are among the candidates of a model; no recognizer can find more.

WIDTHS: tuple[tuple[str, int], ...] = (("1", 1), ("2", 2), ("3-5", 5), ("6-10", 10), ("11-20", 20), ("over 20", 10**9))
"""Names of buckets of widths in words, each with the widest that belongs to it."""


def proposes(model: Recognizer) -> bool:
    """Whether the model reads entities off proposals; what an exported one proposes nobody sees."""
    if model.recipe.read_with == "tags" or not isinstance(model.engine, TorchEngine):
        return False
    return isinstance(candidate_policy(model), Proposed)


@torch.inference_mode()
def proposal_recall(
    model: Recognizer, documents: Sequence[Document], budget: float | None = None, *, batch_size: int = 32
) -> dict[str, Any]:
    """The share of gold entities in one piece that are candidates, overall and by width; `budget` tries another one.

    Gold is complete: an entity that a window cuts off is missed here too. A grid can be measured as well, to compare.
    """
    policy = candidate_policy(model)
    if budget is not None and not isinstance(policy, Proposed):
        raise ValueError(f"{type(policy).__name__} has no budget; measure a model with proposals, or give none")
    total = sum(not entity.discontinuous for document in documents for entity in document.entities)
    gold: Counter[str] = Counter()
    proposed: Counter[str] = Counter()
    cells = words = 0
    for rows in sentence_batches(model, documents, batch_size):
        arrays = model.collate.inputs(rows)
        inputs, encoded = model.learner.model.encode(tensors(arrays, model.device))
        chosen = policy(inputs, encoded) if budget is None else policy.best(inputs, encoded, budget)
        start, end, mask = (part.cpu().numpy() for part in chosen[:3])
        for row, (sentence, units) in enumerate(zip(rows, narrowed(arrays).words, strict=True)):
            first, last = units[start[row][mask[row]]], units[end[row][mask[row]] - 1] + 1  # in words
            spans = set(zip(first.tolist(), last.tolist(), strict=True))
            cells, words = cells + len(spans), words + sentence.core.width
            for entity in sentence.entities:
                if not entity.discontinuous:
                    name = next(name for name, widest in WIDTHS if entity.spans[0].width <= widest)
                    gold[name] += 1
                    proposed[name] += entity.spans[0] in spans
    return {
        "recall": 100.0 * proposed.total() / total if total else 100.0,
        "entities": total,
        "proposed": proposed.total(),
        "widths": {
            name: {"recall": 100.0 * proposed[name] / gold[name], "entities": gold[name], "proposed": proposed[name]}
            for name, _ in WIDTHS
            if gold[name]
        },
        "budget": budget if budget is not None else getattr(policy, "budget", None),
        "cells_per_word": cells / max(words, 1),
    }


def proposals_line(figures: Mapping[str, Any]) -> str:
    """The figures of `proposal_recall` as a sentence."""
    return (
        f"Proposals: {figures['recall']:.1f}% of {figures['entities']:,} entities are among the candidates, "
        f"{figures['cells_per_word']:.2f} per word (budget {figures['budget']:g})"
    )


def candidate_policy(model: Recognizer) -> Any:
    """The part that chooses the model's candidates."""
    scorer = model.learner.model.scorer
    if scorer is None:
        raise ValueError(f"a {model.recipe.name} model has no spans, so it has no candidates to measure")
    return scorer.candidates


# Scores of each corpus: in its own labels, and in the target's where a map says how.

FIGURES = ("precision", "recall", "f1")


def scores_by_corpus(
    model: Recognizer,
    plan: CorporaPlan,
    training: Sequence[Document],
    console: Console,
    predicted: Mapping[str, Sequence[Document]] | None = None,
) -> dict[str, dict[str, Any]]:
    """Facts about each corpus, with scores of its dev and test documents that were not trained on.

    `training` are the documents that the model has learned from, which may be fewer than the plan's; `predicted` has
    parts of the target that are predicted already.
    """
    learned = Counter(document.dataset for document in training)
    figures: dict[str, dict[str, Any]] = {}
    rows: list[tuple[str, ...]] = []
    for corpus in plan.corpora:
        facts: dict[str, Any] = {"role": corpus.role, "training_documents": learned[corpus.name]}
        for part, gold in corpus.held_out.items():
            if not gold:
                continue
            documents = (predicted or {}).get(part) if corpus.role == "target" else None
            if documents is None:
                documents = model.predict(gold, batch_size=64, dataset=corpus.name)
            scores = {part: recognition(gold, documents)}
            facts[part] = scores[part].to_dict()
            mapped = mapped_scores(model, gold, corpus.name, plan)
            if mapped is not None:
                scores[f"{part}, in the target's labels"] = mapped
                facts[f"{part}_mapped"] = mapped.to_dict()
            for name, found in scores.items():
                rows.append((corpus.name, name, *(f"{getattr(found.micro, figure):.2f}" for figure in FIGURES)))
        figures[corpus.name] = facts
    Sheet("Corpora, strict", ("corpus", "part", "precision", "recall", "F1"), rows).show(console)
    return figures


def mapped_scores(model: Recognizer, gold: Sequence[Document], corpus: str, plan: CorporaPlan) -> Scores | None:
    """Scores in the target's labels, of those that the corpus' labels can mean; None where there are none."""
    if corpus not in plan.counterparts or corpus == plan.target.name:
        return None
    assert plan.label_map is not None
    mapped, labels = mapped_gold(gold, corpus, plan.label_map)
    return recognition(mapped, [only(document, labels) for document in model.predict(mapped, batch_size=64)])


def mapped_gold(
    gold: Sequence[Document], corpus: str | None, label_map: LabelMap
) -> tuple[list[Document], frozenset[str]]:
    """Documents of a corpus in the target's labels, and which of these the corpus' labels can mean."""
    if corpus is None:
        raise ValueError("--label-map needs --dataset: the name that the map has for this corpus")
    labels = frozenset(target for name, _, target in label_map if name == corpus and target is not None)
    if not labels:
        about = ", ".join(dict.fromkeys(name for name, _, target in label_map if target is not None))
        raise ValueError(
            f"{label_map.path or 'label map'}: no label of {corpus!r} has a counterpart; it is about {about}"
        )
    return [label_map.mapped(replace(document, dataset=corpus)) for document in gold], labels


def over_runs(runs: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Mean and deviation over seeds of precision, recall and F1 of each corpus and part."""
    return {
        corpus: {
            part: {name: spread(run[corpus][part]["micro"][name] for run in runs).to_dict() for name in FIGURES}
            for part, value in facts.items()
            if isinstance(value, Mapping)
        }
        for corpus, facts in runs[0].items()
    }
