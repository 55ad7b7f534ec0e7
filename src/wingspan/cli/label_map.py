"""`wingspan label-map`: which label of each corpus means which of the target's, suggested and compared."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from wingspan.cli import app
from wingspan.cli.options import BatchSize, Device, Json
from wingspan.cli.score import documents
from wingspan.corpora.label_map import NONE, LabelMap, read_label_map
from wingspan.corpora.label_map.suggest import CONFIDENT, Predict, Suggestion, in_words, suggest
from wingspan.text import Document
from wingspan.views.console import say
from wingspan.views.tables import Sheet


@app.command(
    "label-map",
    epilog="Example: wingspan label-map bc5cdr=bc5cdr/train.jsonl --target biored=biored/train.jsonl --output map.tsv",
)
def label_map(
    corpora: Annotated[
        list[str], typer.Argument(metavar="NAME=FILE...", help="The other corpora; several files: NAME=FILE,FILE.")
    ],
    target: Annotated[str, typer.Option(help="NAME=FILE: the corpus in whose labels the others are said.")],
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
    from rich.console import Console

    from wingspan.corpora.label_map.suggest import write_suggestions
    from wingspan.views.console import write_json

    ((name, aim),) = corpora_of([target], format).items()
    others = corpora_of(corpora, format, taken=[name])
    found = suggestions(aim, others, model, batch_size=batch_size, device=device)
    comparison = compared(found, reference) if reference is not None else None
    if output is not None:
        write_suggestions(found, output)
    if json is not None:
        figures = {"suggestions": [one.to_dict() for one in found]}
        write_json({**figures, **({"reference": comparison.to_dict()} if comparison else {})}, json)
    if json != Path("-"):
        console = Console()
        show(found, console)
        if comparison is not None:
            show_comparison(comparison, console)


@dataclass(frozen=True)
class Comparison:
    """Suggestions against a map that is known."""

    suggestions: Sequence[Suggestion]
    reference: LabelMap

    @property
    def known(self) -> list[Suggestion]:
        """Those that the reference has a line about."""
        return [one for one in self.suggestions if (one.corpus, one.label) in self.reference]

    @property
    def disagreements(self) -> list[Suggestion]:
        """Those that the reference says otherwise about."""
        return [one for one in self.known if not self.agrees(one)]

    def agrees(self, one: Suggestion) -> bool:
        """Whether the reference says the same."""
        return self.reference.target(one.corpus, one.label) == one.target

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        sure = [one for one in self.known if one.confident]
        return {
            "labels": len(self.known),
            "right": sum(map(self.agrees, self.known)),
            "confident": len(sure),
            "confident_right": sum(map(self.agrees, sure)),
            "disagreements": [
                {
                    "corpus": one.corpus,
                    "label": one.label,
                    "suggested": one.target,
                    "reference": self.reference.target(one.corpus, one.label),
                    "confidence": one.confidence,
                }
                for one in self.disagreements
            ],
        }


def corpora_of(named: Sequence[str], format: str | None, taken: Collection[str] = ()) -> dict[str, list[Document]]:
    """NAME=FILE, or NAME=FILE,FILE; `taken` are names of other corpora."""
    found: dict[str, list[Document]] = {}
    for item in named:
        name, sign, files = item.partition("=")
        if not sign or not name or not files:
            raise ValueError(f"{item}: give a corpus as NAME=FILE, such as bc5cdr=bc5cdr/train.jsonl")
        if name in found or name in taken:
            raise ValueError(f"{item}: there is a corpus {name!r} already; give each its own name")
        found[name] = [document for path in files.split(",") for document in documents(path, format)]
    return found


def suggestions(
    target: Sequence[Document],
    corpora: Mapping[str, Sequence[Document]],
    model: str | None,
    *,
    batch_size: int = 32,
    device: str | None = None,
) -> list[Suggestion]:
    """Suggestions with a model that was trained on the target, or with a small classifier of names."""
    if not corpora:
        raise ValueError("there is no other corpus; give at least one as NAME=FILE")
    return suggest(target, corpora, predict=predictor(model, batch_size, device) if model else None)


def predictor(model: str, batch_size: int, device: str | None) -> Predict:
    """What a saved model finds; texts of other corpora are answered in its target's labels."""
    from wingspan.recognizer import Recognizer

    recognizer = Recognizer.from_pretrained(model, device=device)
    target = recognizer.labels.target
    return lambda given: recognizer.predict(given, batch_size=batch_size, dataset=target)


def compared(found: Sequence[Suggestion], reference: Path) -> Comparison:
    """Against a map in a file."""
    return Comparison(found, read_label_map(reference))


def show(found: Sequence[Suggestion], console: Console) -> None:
    """One line for each label, with its evidence; those to look at are marked."""
    kinds = list(dict.fromkeys(kind for one in found for kind in one.witnesses))
    titles = {"names": "shared names", "model": "what a model calls them", "label": "label's name"}
    rows = [
        (
            one.corpus,
            one.label,
            one.target or NONE,
            f"{one.confidence:.2f}" + ("" if one.confident else " ?"),
            *(in_words(one.witnesses[kind]) for kind in kinds),
        )
        for one in found
    ]
    columns = ("corpus", "label", "target", "confidence", *(titles[kind] for kind in kinds))
    Sheet("Suggested label map", columns, rows).show(console)
    sure = sum(one.confident for one in found)
    say(
        console,
        f"{sure} of {len(found)} labels are confident ({CONFIDENT:g} or more); look at those with a question mark.",
    )


def show_comparison(comparison: Comparison, console: Console) -> None:
    """How far the reference agrees, and where it does not."""
    figures = comparison.to_dict()
    say(
        console,
        f"Of {figures['labels']} labels of the reference {figures['right']} are the same; "
        f"of {figures['confident']} confident ones {figures['confident_right']}.",
    )
    for one in figures["disagreements"]:
        suggested, wanted = one["suggested"] or NONE, one["reference"] or NONE
        say(
            console,
            f"{one['corpus']} {one['label']}: {suggested} ({one['confidence']:.2f}), the reference has {wanted}",
        )
