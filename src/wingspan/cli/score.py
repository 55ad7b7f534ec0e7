"""`wingspan score`: a file of predictions against a file of gold. Imports no torch."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, get_args

import typer
from rich.console import Console

from wingspan.cli import app
from wingspan.cli.options import AllowMissing, GoldCorpus, Json
from wingspan.corpora.formats import read
from wingspan.evaluation import scores as scoring
from wingspan.evaluation.matching import Mode, realign
from wingspan.evaluation.scores import MODES, Protocol, Scores, TypingScores
from wingspan.files import Problems
from wingspan.text import Document
from wingspan.views.console import write_json
from wingspan.views.tables import print_modes, print_scores

Subset = Literal["all", "discontinuous-documents", "discontinuous-sentences", "discontinuous-entities"]


@app.command(epilog="Example: wingspan score test.jsonl predicted.jsonl --mode all --json figures.json")
def score(
    gold: GoldCorpus,
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
    allow_missing: AllowMissing = False,
    json: Json = None,
) -> list[Scores] | TypingScores:
    """Scores predictions against gold: precision, recall and F1, per label and overall, with counts."""
    right = documents(gold, format)
    # predictions on other words or documents are put onto the gold texts first, and the notes say so
    realigned = realign(right, documents(predicted, predicted_format or format))
    found = realigned.documents
    if subset == "discontinuous-documents":
        right, found = scoring.discontinuous_documents(right, found, allow_missing)
    elif subset == "discontinuous-sentences":
        right, found = scoring.discontinuous_sentences(right, found, allow_missing)
    elif subset == "discontinuous-entities":
        right, found = scoring.discontinuous_entities(right), scoring.discontinuous_entities(found)
    elif subset != "all":
        raise ValueError(f"unknown subset {subset!r}; use {', '.join(get_args(Subset))}")
    if protocol == "typing":
        guessed = scoring.typing(right, found, allow_missing=allow_missing)
        guessed = replace(guessed, notes=(*realigned.notes, *guessed.notes))
        if json is not None:
            write_json(guessed.to_dict(), json)
        if json != Path("-"):
            print_scores(guessed, Console())
        return guessed
    if protocol != "recognition":
        raise ValueError(f"unknown protocol {protocol!r}; use recognition or typing")
    parts = scoring.by_continuity(right, found, allow_missing=allow_missing) if subset == "all" else {}
    modes = MODES if mode == "all" else (mode,)
    results = [scoring.recognition(right, found, each, allow_missing=allow_missing) for each in modes]
    results = [replace(scores, notes=(*realigned.notes, *scores.notes), continuity=parts) for scores in results]
    if json is not None:  # with several modes the first one's figures are on top, the others under `modes`
        first, *others = (scores.to_dict() for scores in results)
        write_json({**first, "modes": {scores["mode"]: scores for scores in others}} if others else first, json)
    if json != Path("-"):
        print_modes(results, Console()) if len(results) > 1 else print_scores(results[0], Console())
    return results


def documents(path: str | Path, format: str | None) -> list[Document]:
    """All documents of a file or folder; notes of the reader go to standard error."""
    problems = Problems()
    documents = list(read(path, format, problems=problems))
    for note in problems.notes:
        Console(stderr=True).print(note, style="dim", markup=False, highlight=False, soft_wrap=True)
    return documents
