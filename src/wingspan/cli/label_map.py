"""`wingspan label-map`: suggests the target label of every label, and compares the suggestions with a reference."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

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
        list[str], typer.Argument(metavar="NAME=FILE...", help="The other corpora; several files: NAME=FILE,FILE.")
    ],
    target: Annotated[str, typer.Option(help="NAME=FILE: the corpus whose labels the others are mapped to.")],
    output: Annotated[Path | None, typer.Option(help="Write the map with its evidence here, as .tsv.")] = None,
    model: Annotated[
        str | None, typer.Option(help="A model trained on the target; otherwise names are classified by spelling.")
    ] = None,
    reference: Annotated[Path | None, typer.Option(help="A label map to compare with; differences are listed.")] = None,
    format: Annotated[str | None, typer.Option(help="Format of the corpora; otherwise found.")] = None,
    batch_size: BatchSize = 32,
    device: Device = None,
    json: Json = None,
) -> None:
    """Suggests which label of each corpus means which of the target's, or none, with evidence for each."""
    ((target_name, target_documents),) = corpora_of([target], format).items()
    others = corpora_of(corpora, format, taken=[target_name])
    predict = predictor(model, batch_size, device) if model else None
    suggestions = suggest(target_documents, others, predict=predict)
    comparison = compare_with(read_label_map(reference), suggestions) if reference is not None else None
    if output is not None:
        write_suggestions(suggestions, output)
    if json is not None:
        figures: dict[str, Any] = {"suggestions": [suggestion.to_dict() for suggestion in suggestions]}
        write_json({**figures, **({"reference": comparison} if comparison else {})}, json)
    if json != Path("-"):
        console = Console()
        show(suggestions, console)
        if comparison is not None:
            show_comparison(comparison, console)


def compare_with(reference: LabelMap, suggestions: Sequence[Suggestion]) -> dict[str, Any]:
    """Counts the suggestions that agree with a reference map, and lists those that differ, as plain data."""
    known = [
        (suggestion, reference.target(suggestion.corpus, suggestion.label))
        for suggestion in suggestions
        if (suggestion.corpus, suggestion.label) in reference
    ]
    right = [suggestion for suggestion, target in known if suggestion.target == target]
    return {
        "labels": len(known),
        "right": len(right),
        "confident": sum(suggestion.confident for suggestion, _ in known),
        "confident_right": sum(suggestion.confident for suggestion in right),
        "disagreements": [
            {
                "corpus": suggestion.corpus,
                "label": suggestion.label,
                "suggested": suggestion.target,
                "reference": target,
                "confidence": suggestion.confidence,
            }
            for suggestion, target in known
            if suggestion.target != target
        ],
    }


def corpora_of(named: Sequence[str], format: str | None, taken: Collection[str] = ()) -> dict[str, list[Document]]:
    """The documents of NAME=FILE, or NAME=FILE,FILE; `taken` are names of other corpora."""
    corpora: dict[str, list[Document]] = {}
    for item in named:
        name, sign, files = item.partition("=")
        if not sign or not name or not files:
            raise ValueError(f"{item}: give a corpus as NAME=FILE, such as bc5cdr=bc5cdr/train.jsonl")
        if name in corpora or name in taken:
            raise ValueError(f"{item}: there is a corpus {name!r} already; give each its own name")
        corpora[name] = [document for path in files.split(",") for document in documents(path, format)]
    return corpora


def predictor(model: str, batch_size: int, device: str | None) -> Predict:
    """Predicts with a saved model; texts of other corpora get its target's labels."""
    from wingspan.recognizer import Recognizer

    recognizer = Recognizer.from_pretrained(model, device=device)
    target = recognizer.labels.target
    return lambda documents: recognizer.predict(documents, batch_size=batch_size, dataset=target)


def show(suggestions: Sequence[Suggestion], console: Console) -> None:
    """Prints one line for each label, with its evidence; those to look at are marked."""
    titles = {"names": "shared names", "model": "what a model calls them", "label": "label's name"}
    kinds = list(suggestions[0].evidence)
    rows = [
        (
            suggestion.corpus,
            suggestion.label,
            suggestion.target or NONE,
            f"{suggestion.confidence:.2f}" + ("" if suggestion.confident else " ?"),
            *(str(suggestion.evidence[kind]) for kind in kinds),
        )
        for suggestion in suggestions
    ]
    columns = ("corpus", "label", "target", "confidence", *(titles[kind] for kind in kinds))
    Sheet("Suggested label map", columns, rows).show(console)
    count = f"{sum(suggestion.confident for suggestion in suggestions)} of {len(suggestions)} labels"
    say(console, f"{count} are confident ({CONFIDENT:g} or more); look at those with a question mark.")


def show_comparison(figures: Mapping[str, Any], console: Console) -> None:
    """Prints how far the reference agrees, and where it differs."""
    same = f"Of {figures['labels']} labels of the reference {figures['right']} are the same"
    say(console, f"{same}; of {figures['confident']} confident ones {figures['confident_right']}.")
    for row in figures["disagreements"]:
        suggested, reference = row["suggested"] or NONE, row["reference"] or NONE
        suggestion = f"{row['corpus']} {row['label']}: {suggested} ({row['confidence']:.2f})"
        say(console, f"{suggestion}, the reference has {reference}")
