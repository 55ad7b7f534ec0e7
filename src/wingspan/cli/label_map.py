"""`wingspan label-map`: suggests the target label of every label, and compares the suggestions with a reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from typer import Argument, Option

from wingspan.cli import app
from wingspan.cli.options import BatchSize, Device, Json
from wingspan.cli.score import documents
from wingspan.corpora.label_map import NONE, LabelMap, read_label_map
from wingspan.corpora.label_map.suggest import CONFIDENT, Predict, Suggestion, suggest, write_suggestions
from wingspan.text import Document
from wingspan.views.console import say, write_json
from wingspan.views.tables import Sheet


@app.command(
    "label-map",
    epilog="Example: wingspan label-map bc5cdr=bc5cdr/train.jsonl --target biored=biored/train.jsonl --output map.tsv",
)
def label_map(
    corpora: Annotated[
        list[str], Argument(metavar="NAME=FILE...", help="The other corpora; several files: NAME=FILE,FILE.")
    ],
    target: Annotated[str, Option(help="NAME=FILE: the corpus whose labels the others are mapped to.")],
    output: Annotated[Path | None, Option(help="Write the map with its evidence here, as .tsv.")] = None,
    model: Annotated[
        str | None, Option(help="A model trained on the target; otherwise names are classified by spelling.")
    ] = None,
    reference: Annotated[Path | None, Option(help="A label map to compare with; differences are listed.")] = None,
    format: Annotated[str | None, Option(help="Format of the corpora; otherwise found.")] = None,
    batch_size: BatchSize = 32,
    device: Device = None,
    json: Json = None,
) -> None:
    """Suggests which label of each corpus means which of the target's, or none, with evidence for each."""
    (_, target_documents), *others = corpora_of([target, *corpora], format).items()
    predict: Predict | None = None
    if model:
        from wingspan.recognizer import Recognizer

        recognizer = Recognizer.from_pretrained(model, device=device)
        predict = partial(recognizer.predict, batch_size=batch_size, dataset=recognizer.labels.target)
    suggestions = suggest(target_documents, dict(others), predict=predict)
    comparison = compare_with(read_label_map(reference), suggestions) if reference is not None else None
    if output is not None:
        write_suggestions(suggestions, output)
    if json is not None:
        figures: dict[str, Any] = {"suggestions": [suggestion.to_dict() for suggestion in suggestions]}
        write_json({**figures, **({"reference": comparison} if comparison else {})}, json)
    if json != Path("-"):
        show(suggestions, comparison, Console())


def compare_with(reference: LabelMap, suggestions: Sequence[Suggestion]) -> dict[str, Any]:
    """Counts the suggestions that agree with a reference map, and lists those that differ, as plain data."""
    known = [each for each in suggestions if (each.corpus, each.label) in reference.targets]
    right = [each for each in known if each.target == reference.target(each.corpus, each.label)]
    return {
        "labels": len(known),
        "right": len(right),
        "confident": sum(each.confident for each in known),
        "confident_right": sum(each.confident for each in right),
        "disagreements": [
            {
                "corpus": each.corpus,
                "label": each.label,
                "suggested": each.target,
                "reference": reference.target(each.corpus, each.label),
                "confidence": each.confidence,
            }
            for each in known
            if each not in right
        ],
    }


def corpora_of(named: Sequence[str], format: str | None) -> dict[str, list[Document]]:
    """The documents of NAME=FILE, or NAME=FILE,FILE."""
    corpora: dict[str, list[Document]] = {}
    for item in named:
        name, _, files = item.partition("=")
        if not name or not files:
            raise ValueError(f"{item}: give a corpus as NAME=FILE, such as bc5cdr=bc5cdr/train.jsonl")
        if name in corpora:
            raise ValueError(f"{item}: there is a corpus {name!r} already; give each its own name")
        corpora[name] = [document for path in files.split(",") for document in documents(path, format)]
    return corpora


def show(suggestions: Sequence[Suggestion], comparison: Mapping[str, Any] | None, console: Console) -> None:
    """Prints one line for each label with its evidence, uncertain ones marked, and where the reference differs."""
    titles = {"names": "shared names", "model": "what a model calls them", "label": "label's name"}
    kinds = list(suggestions[0].evidence)
    rows = []
    for each in suggestions:
        confidence = f"{each.confidence:.2f}" + ("" if each.confident else " ?")
        rows.append((each.corpus, each.label, each.target or NONE, confidence, *map(str, each.evidence.values())))
    columns = ("corpus", "label", "target", "confidence", *(titles[kind] for kind in kinds))
    Sheet("Suggested label map", columns, rows).show(console)
    count = f"{sum(suggestion.confident for suggestion in suggestions)} of {len(suggestions)} labels"
    say(console, f"{count} are confident ({CONFIDENT:g} or more); look at those with a question mark.")
    if comparison is None:
        return
    same = f"Of {comparison['labels']} labels of the reference {comparison['right']} are the same"
    say(console, f"{same}; of {comparison['confident']} confident ones {comparison['confident_right']}.")
    for row in comparison["disagreements"]:
        suggestion = f"{row['corpus']} {row['label']}: {row['suggested'] or NONE} ({row['confidence']:.2f})"
        say(console, f"{suggestion}, the reference has {row['reference'] or NONE}")
