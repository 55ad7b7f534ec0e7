"""`wingspan evaluate`: a model against a gold corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from wingspan.corpora import read
from wingspan.corpora.label_map import read_label_map
from wingspan.evaluation.continuity import by_continuity
from wingspan.evaluation.given_spans import TypingScores, typing
from wingspan.evaluation.matching import Mode
from wingspan.evaluation.scores import Scores, recognition
from wingspan.evaluation.transfer import only
from wingspan.recognizer import Recognizer
from wingspan.runs.by_corpus import mapped_gold
from wingspan.runs.proposals import proposal_recall, proposes, said
from wingspan.text import Document
from wingspan.training.fitting import coverage_of


def evaluate(
    model: str | Path,
    corpus: str | Path,
    *,
    format: str | None = None,
    mode: Mode = "strict",
    dataset: str | None = None,
    label_map: str | Path | None = None,
    batch_size: int = 32,
    parts: Sequence[str] = (),
    device: str | None = None,
    console: Console | None = None,
) -> Scores | TypingScores:
    """Predicts the corpus and scores it. Gold is complete: what can never be found counts as missed, and is said.

    A model that types given spans gets those of the gold, and is scored by accuracy.

    A model of several corpora answers in the labels of `dataset`, or of its target. With a `label_map` the corpus is
    scored in the target's labels, and `dataset` names it in the map.
    """
    recognizer = Recognizer.from_pretrained(model, device=device, parts=parts)
    gold = list(read(corpus, format))
    if not gold:
        raise ValueError(f"{corpus}: no document to evaluate on")
    asked = None
    if label_map is not None:
        gold, asked = mapped_gold(gold, dataset, read_label_map(label_map))
        dataset = None
    answers = recognizer.labels.asked_for(dataset)
    coverage = coverage_of(recognizer.recipe, recognizer.learner.model.encoder, gold)
    figures = {"proposals": proposal_recall(recognizer, gold)} if proposes(recognizer) else {}
    verdict = "wrong" if recognizer.recipe.protocol == "typing" else "missed"
    if console is not None:
        for line in [*coverage.lines(), *map(said, figures.values()), *unknown_labels(answers, gold, verdict)]:
            console.print(line, highlight=False, markup=False, soft_wrap=True)
    found = recognizer.predict(gold, batch_size=batch_size, dataset=dataset)
    if asked is not None:
        found = [only(document, asked) for document in found]
    if recognizer.recipe.protocol == "typing":
        guessed = typing(gold, found)
        return replace(guessed, coverage={**guessed.coverage, **coverage.to_dict()})
    scores = recognition(gold, found, mode)
    return replace(scores, coverage={**coverage.to_dict(), **figures}, continuity=by_continuity(gold, found))


def unknown_labels(known: Collection[str], gold: Iterable[Document], verdict: str = "missed") -> list[str]:
    """One line for each label of the gold that the model cannot answer with."""
    counts = Counter(entity.label for document in gold for entity in document.entities if entity.label not in known)
    return [f"The model has no label {label!r}: all {counts[label]:,} count as {verdict}" for label in sorted(counts)]
