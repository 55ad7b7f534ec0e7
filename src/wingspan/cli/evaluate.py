"""`wingspan evaluate`: a model against a gold corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from wingspan.cli import app
from wingspan.cli.options import BatchSize, Dataset, Device, Json, Parts, Threads, trusted, use_threads
from wingspan.corpora.formats import read
from wingspan.corpora.label_map import read_label_map
from wingspan.evaluation.matching import Mode
from wingspan.evaluation.scores import Scores, TypingScores, by_continuity, recognition, typing
from wingspan.evaluation.transfer import only
from wingspan.text import Document
from wingspan.views.console import say


@app.command(epilog="Example: wingspan evaluate runs/mine test.jsonl --json figures.json")
def evaluate(
    model: Annotated[str, typer.Argument(help="A model folder or hub id.")],
    corpus: Annotated[Path, typer.Argument(help="The gold corpus, in any format.")],
    format: Annotated[
        str | None, typer.Option(help="Format of the corpus; otherwise found by name or content.")
    ] = None,
    dataset: Dataset = None,
    label_map: Annotated[
        Path | None, typer.Option(help="Score in the target's labels; this table maps the labels of --dataset.")
    ] = None,
    json: Json = None,
    batch_size: BatchSize = 32,
    parts: Parts = None,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Scores a model on a corpus: strict precision, recall, F1 and coverage; or typing accuracy."""
    from wingspan.views.console import write_json
    from wingspan.views.tables import print_scores

    use_threads(threads)
    console = Console(stderr=json is not None and str(json) == "-")
    scores = evaluate_model(
        model,
        corpus,
        format=format,
        dataset=dataset,
        label_map=label_map,
        batch_size=batch_size,
        parts=trusted(parts),
        device=device,
        console=console,
    )
    print_scores(scores, console)
    if json is not None:
        write_json(scores.to_dict(), json)


def evaluate_model(
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
    """Predicts the corpus and scores it. Gold is complete: entities that cannot be found count as missed.

    A model that types given spans gets the gold spans, and is scored by accuracy. A model of several corpora uses the
    labels of `dataset`, or of its target. With a `label_map` the corpus is scored in the target's labels, and `dataset`
    is its name in the map.
    """
    from wingspan.recognizer import Recognizer
    from wingspan.training.finish import mapped_gold, proposal_recall, proposals_line, proposes
    from wingspan.training.fit import coverage_of

    recognizer = Recognizer.from_pretrained(model, device=device, parts=parts)
    gold = list(read(corpus, format))
    if not gold:
        raise ValueError(f"{corpus}: no document to evaluate on")
    scored_labels = None
    if label_map is not None:
        gold, scored_labels = mapped_gold(gold, dataset, read_label_map(label_map))
        dataset = None
    answers = recognizer.labels.asked_for(dataset)
    coverage = coverage_of(recognizer.recipe, recognizer.learner.model.encoder, gold)
    figures = {"proposals": proposal_recall(recognizer, gold)} if proposes(recognizer) else {}
    verdict = "wrong" if recognizer.recipe.protocol == "typing" else "missed"
    if console is not None:
        proposals = map(proposals_line, figures.values())
        for line in (*coverage.lines(), *proposals, *unknown_labels(answers, gold, verdict)):
            say(console, line)
    predicted = recognizer.predict(gold, batch_size=batch_size, dataset=dataset)
    if scored_labels is not None:
        predicted = [only(document, scored_labels) for document in predicted]
    if recognizer.recipe.protocol == "typing":
        accuracy = typing(gold, predicted)
        return replace(accuracy, coverage={**accuracy.coverage, **coverage.to_dict()})
    scores = recognition(gold, predicted, mode)
    return replace(scores, coverage={**coverage.to_dict(), **figures}, continuity=by_continuity(gold, predicted))


def unknown_labels(known: Collection[str], gold: Iterable[Document], verdict: str = "missed") -> list[str]:
    """One line for each gold label that the model does not have."""
    counts = Counter(entity.label for document in gold for entity in document.entities if entity.label not in known)
    return [f"The model has no label {label!r}: all {counts[label]:,} count as {verdict}" for label in sorted(counts)]
