"""`wingspan score`: a file of predictions against a file of gold. Imports no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer
from rich.console import Console

from wingspan.cli import app
from wingspan.corpora.formats import read
from wingspan.evaluation.matching import Mode, realign
from wingspan.evaluation.scores import (
    MODES,
    Protocol,
    Scores,
    TypingScores,
    by_continuity,
    discontinuous_documents,
    discontinuous_entities,
    discontinuous_sentences,
    recognition,
    typing,
)
from wingspan.files import Problems
from wingspan.text import Document
from wingspan.views.tables import print_modes, print_scores

Subset = Literal["all", "discontinuous-documents", "discontinuous-sentences", "discontinuous-entities"]


@app.command(epilog="Example: wingspan score test.jsonl predicted.jsonl --mode all --json figures.json")
def score(
    gold: Annotated[Path, typer.Argument(help="The corpus with the right entities, in any format.")],
    predicted: Annotated[Path, typer.Argument(help="The same documents with the entities a system found.")],
    format: Annotated[
        str | None, typer.Option(help="Format of both files; otherwise found by name or content.")
    ] = None,
    predicted_format: Annotated[
        str | None, typer.Option(help="Format of PREDICTED, if it differs from --format.")
    ] = None,
    mode: Annotated[Literal[Mode, "all"], typer.Option(help="What counts as a match; see docs/scoring.md.")] = "strict",
    protocol: Annotated[
        Protocol, typer.Option(help="recognition: entities had to be found. typing: labels of given spans.")
    ] = "recognition",
    subset: Annotated[
        Subset, typer.Option(help="Score only discontinuous entities, or the texts that have some.")
    ] = "all",
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Gold documents without prediction count as predicted empty.")
    ] = False,
    json: Annotated[Path | None, typer.Option(help="Write the figures to this file; - prints them instead.")] = None,
) -> None:
    """Scores predictions against gold: precision, recall and F1, per label and overall, with counts."""
    from wingspan.views.console import write_json

    result = score_files(
        gold,
        predicted,
        format=format,
        predicted_format=predicted_format,
        protocol=protocol,
        mode=mode,
        subset=subset,
        allow_missing=allow_missing,
    )
    if json is not None:
        write_json(figures(result), json)
    if json != Path("-"):
        show(result, Console())


def score_files(
    gold: str | Path,
    predicted: str | Path,
    *,
    format: str | None = None,
    predicted_format: str | None = None,
    protocol: Protocol = "recognition",
    mode: Literal[Mode, "all"] = "strict",
    subset: Subset = "all",
    allow_missing: bool = False,
) -> list[Scores] | TypingScores:
    """Reads both files and compares them. Recognition gives one result per mode, the strict one first.

    Predictions on other words or documents are realigned with the gold texts first, and the notes say so.
    """
    right = documents(gold, format)
    realigned = realign(right, documents(predicted, predicted_format or format))
    sides = select(right, realigned.documents, subset, allow_missing)
    if protocol == "typing":
        guessed = typing(*sides, allow_missing=allow_missing)
        return replace(guessed, notes=(*realigned.notes, *guessed.notes))
    if protocol != "recognition":
        raise ValueError(f"unknown protocol {protocol!r}; use recognition or typing")
    found = [recognition(*sides, each, allow_missing=allow_missing) for each in (MODES if mode == "all" else (mode,))]
    parts = by_continuity(*sides, allow_missing=allow_missing) if subset == "all" else {}
    return [replace(scores, notes=(*realigned.notes, *scores.notes), continuity=parts) for scores in found]


def documents(path: str | Path, format: str | None) -> list[Document]:
    """All documents of a file or folder; notes of the reader go to standard error."""
    problems = Problems()
    documents = list(read(path, format, problems=problems))
    for note in problems.notes:
        Console(stderr=True).print(note, style="dim", markup=False, highlight=False, soft_wrap=True)
    return documents


def select(
    gold: Sequence[Document], found: Sequence[Document], subset: Subset, allow_missing: bool
) -> tuple[Sequence[Document], Sequence[Document]]:
    """The part of both sides that is to be scored."""
    if subset == "discontinuous-documents":
        return discontinuous_documents(gold, found, allow_missing)
    if subset == "discontinuous-sentences":
        return discontinuous_sentences(gold, found, allow_missing)
    if subset == "discontinuous-entities":
        return discontinuous_entities(gold), discontinuous_entities(found)
    if subset != "all":
        raise ValueError(f"unknown subset {subset!r}; use {', '.join(get_args(Subset))}")
    return gold, found


def show(result: list[Scores] | TypingScores, console: Console) -> None:
    """The result as a table."""
    if isinstance(result, list) and len(result) > 1:
        print_modes(result, console)
    else:
        print_scores(result[0] if isinstance(result, list) else result, console)


def figures(result: list[Scores] | TypingScores) -> dict[str, Any]:
    """The result as plain data. With several modes the first one's figures are on top, the others under `modes`."""
    if isinstance(result, TypingScores):
        return result.to_dict()
    first, *others = (scores.to_dict() for scores in result)
    return {**first, "modes": {scores["mode"]: scores for scores in others}} if others else first
