"""How many gold entities are among the candidates that a model looks at: no recognizer can find more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch

from wingspan.batch import narrowed
from wingspan.candidates import Proposed
from wingspan.model import tensors
from wingspan.recognizer import Recognizer
from wingspan.sampling import batches
from wingspan.text import Document, Sentence

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
