"""The command that works on knowledge: `lexicon`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from wingspan.cli import app
from wingspan.cli.data import OnErrorName
from wingspan.cli.models import Json, pairs


class FoldName(StrEnum):
    """What may differ between equal terms besides case."""

    hyphen = "hyphen"
    spacing = "spacing"
    plural = "plural"


class AmbiguousName(StrEnum):
    """Which concepts of an ambiguous term count."""

    all = "all"
    first = "first"
    type = "type"


@app.command(epilog="Example: wingspan lexicon mesh.tsv doid.obo --output diseases.npz --coverage train.jsonl")
def lexicon(
    sources: Annotated[
        list[Path] | None,
        typer.Argument(metavar="SOURCE...", help="Concepts: .tsv, .obo, MRCONSO.RRF, or compact lexicons (.npz)."),
    ] = None,
    from_corpus: Annotated[
        list[Path] | None, typer.Option(help="Also take the synonyms that this training corpus itself shows.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Write the compact lexicon here, as .npz.")] = None,
    coverage: Annotated[
        list[Path] | None, typer.Option(help="How many entities of this corpus have synonyms; may be repeated.")
    ] = None,
    term: Annotated[list[str] | None, typer.Option(help="Show concepts and synonyms of this term.")] = None,
    type: Annotated[list[str] | None, typer.Option(help="Keep concepts of this type only; may be repeated.")] = None,
    only_in: Annotated[
        list[Path] | None, typer.Option(help="Keep concepts only that this corpus mentions; may be repeated.")
    ] = None,
    fold: Annotated[list[FoldName] | None, typer.Option(help="What may differ besides case; may be repeated.")] = None,
    ambiguous: Annotated[
        AmbiguousName, typer.Option(help="Of a term's concepts take all, the first, or those of the entity's type.")
    ] = AmbiguousName.all,
    label_types: Annotated[
        list[str] | None, typer.Option(help="LABEL=TYPE,TYPE: which types an entity's label stands for.")
    ] = None,
    language: Annotated[str, typer.Option(help="Language of the names taken from MRCONSO.RRF.")] = "ENG",
    format: Annotated[str | None, typer.Option(help="Format of the corpora; otherwise found.")] = None,
    on_error: Annotated[
        OnErrorName, typer.Option(help="At a line that does not fit: stop, or leave it out and count it.")
    ] = OnErrorName.raise_,
    json: Json = None,
) -> None:
    """Builds, merges and inspects a list of synonyms, and says how much of a corpus it covers."""
    from rich.console import Console

    from wingspan.corpora.lexicon_coverage import require_overlap
    from wingspan.runs import lexicon as run
    from wingspan.runs.figures import write_figures

    stands_for = pairs(label_types, "--label-types", "Disease=illness")
    plan = run.Plan(
        sources or [],
        from_corpus or [],
        type or [],
        only_in or [],
        [name.value for name in fold] if fold else None,
        ambiguous.value,
        {label: types.split(",") for label, types in stands_for.items()},
        language,
        format,
        on_error.value,
    )
    made = run.make(plan)
    covered = run.cover(made.lexicon, coverage or [], format)
    if output is not None:
        made.lexicon.save(output)
    if json is not None:
        corpora = [{"corpus": corpus, **found.to_dict()} for corpus, found in covered.items()]
        write_figures({**made.to_dict(), "coverage": corpora}, json)
    if json != Path("-"):
        console = Console()
        run.show(made, console)
        if covered:
            run.show_coverage(covered, console)
        for one in term or []:
            run.show_term(made.lexicon, one, console)
        if output is not None:
            run.say([f"{output}: {output.stat().st_size / 2**20:.2f} MiB"], console)
    for corpus, found in covered.items():
        require_overlap(found, made.lexicon, corpus)
