"""`wingspan evaluate`: a model against a gold corpus."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from wingspan.cli import app, options
from wingspan.corpora.formats import read
from wingspan.corpora.label_map import read_label_map
from wingspan.evaluation.scores import Scores, TypingScores, by_continuity, recognition, typing
from wingspan.evaluation.transfer import only
from wingspan.views.console import say, write_json
from wingspan.views.tables import print_scores


def model_and_corpus(inputs: Sequence[str], model: str | None) -> tuple[str, Path]:
    """The two arguments in either order, or the corpus alone beside `--model`."""
    if len(inputs) != (2 if model is None else 1) or "" in inputs:  # which would be this folder
        raise ValueError("give a model and a corpus: wingspan evaluate MODEL CORPUS, or CORPUS --model MODEL")
    if model is not None:
        return model, Path(inputs[0])
    first, second = inputs if options.is_model(inputs[0]) or not options.is_model(inputs[1]) else reversed(inputs)
    return first, Path(second)


@app.command(epilog="Example: wingspan evaluate runs/mine test.jsonl --json figures.json")
def evaluate(
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="MODEL CORPUS", help="A model and the gold corpus; or the corpus alone, with --model."),
    ],
    model: Annotated[str | None, typer.Option(help="A model folder, a hub id, or wingspan-bio-small.")] = None,
    format: options.OneFormat = None,
    dataset: options.Dataset = None,
    label_map: Annotated[
        Path | None, typer.Option(help="Score in the target's labels; this table maps the labels of --dataset.")
    ] = None,
    json: options.Json = None,
    batch_size: options.MostSentences = None,
    parts: options.Parts = None,
    device: options.Device = None,
    precision: options.ComputeIn = "auto",
    threads: options.Threads = None,
) -> Scores | TypingScores:
    """Scores a model on a corpus: strict precision, recall, F1 and coverage; or typing accuracy."""
    from wingspan.recognizer import Recognizer
    from wingspan.training.finish import mapped_gold, proposal_recall, proposals_line, proposes
    from wingspan.training.fit import coverage_of

    options.use_threads(threads)
    console = Console(stderr=json == Path("-"))
    model, corpus = model_and_corpus(inputs, model)
    gold = list(read(corpus, format))  # before the model, which takes longer to load
    if not gold:
        raise ValueError(f"{corpus}: no document to evaluate on")
    recognizer = Recognizer.from_pretrained(model, device=device, precision=precision, parts=options.trusted(parts))
    typed = recognizer.recipe.protocol == "typing"  # gets the gold spans, and is scored by accuracy
    scored_labels = None
    if label_map is not None:  # --dataset is the corpus's name in the map
        gold, scored_labels = mapped_gold(gold, dataset, read_label_map(label_map))
        dataset = None
    known = recognizer.labels.asked_for(dataset)
    coverage = coverage_of(recognizer.recipe, recognizer.engine.tokenize, gold)
    figures = {"proposals": proposal_recall(recognizer, gold)} if proposes(recognizer) else {}
    for line in (*coverage.lines(), *map(proposals_line, figures.values())):
        say(console, line)
    unknown = Counter(entity.label for document in gold for entity in document.entities if entity.label not in known)
    for label, count in sorted(unknown.items()):
        say(console, f"The model has no label {label!r}: all {count:,} count as {'wrong' if typed else 'missed'}")
    predicted = recognizer.predict(gold, batch_size=batch_size, dataset=dataset)
    if scored_labels is not None:
        predicted = [only(document, scored_labels) for document in predicted]
    scores: Scores | TypingScores
    if typed:
        scores = typing(gold, predicted)
        scores = replace(scores, coverage={**scores.coverage, **coverage.to_dict()})
    else:
        scores = recognition(gold, predicted)
        continuity = by_continuity(gold, predicted)
        scores = replace(scores, coverage={**coverage.to_dict(), **figures}, continuity=continuity)
    print_scores(scores, console)
    if json is not None:
        write_json(scores.to_dict(), json)
    return scores
