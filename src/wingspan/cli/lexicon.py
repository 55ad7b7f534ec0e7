"""`wingspan lexicon`: builds, merges and inspects lists of synonyms, and reports how much of a corpus they cover."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from wingspan.cli import app
from wingspan.cli.options import Json, pairs
from wingspan.corpora.formats import read
from wingspan.corpora.lexicon import (
    SUFFIX,
    Ambiguous,
    Lexicon,
    LexiconCoverage,
    in_order,
    load,
    require_overlap,
)
from wingspan.corpora.lexicon import coverage as coverage_of
from wingspan.corpora.lexicon.concepts import Concept, read_concepts
from wingspan.corpora.lexicon.synonyms import found_synonyms
from wingspan.files import CorpusError, OnError, Problems
from wingspan.text import Document
from wingspan.views.console import counted, say, write_json
from wingspan.views.tables import Sheet

SHOWN = 20
"""Malformed lines that are printed; `--json` has all."""

SourceCounts = dict[str, tuple[int, int]]
"""Concepts and names of each source."""


class FoldName(StrEnum):
    """A difference between terms that can be ignored; the keys of `FOLDS`."""

    hyphen = "hyphen"
    spacing = "spacing"
    plural = "plural"


@app.command(epilog="Example: wingspan lexicon mesh.tsv doid.obo --output diseases.sqlite --coverage train.jsonl")
def lexicon(
    sources: Annotated[
        list[Path] | None,
        typer.Argument(metavar="SOURCE...", help="Concepts: .tsv, .obo, MRCONSO.RRF, or saved lexicons (.sqlite)."),
    ] = None,
    from_corpus: Annotated[
        list[Path] | None, typer.Option(help="Also take the synonyms that this training corpus shows.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Save the lexicon here, as .sqlite.")] = None,
    coverage: Annotated[
        list[Path] | None, typer.Option(help="Count the entities of this corpus with synonyms; may be repeated.")
    ] = None,
    term: Annotated[list[str] | None, typer.Option(help="Show concepts and synonyms of this term.")] = None,
    type: Annotated[list[str] | None, typer.Option(help="Keep only concepts of this type; may be repeated.")] = None,
    only_in: Annotated[
        list[Path] | None, typer.Option(help="Keep only concepts that this corpus mentions; may be repeated.")
    ] = None,
    fold: Annotated[
        list[FoldName] | None,
        typer.Option(help="A difference to ignore besides case; may be repeated."),
    ] = None,
    ambiguous: Annotated[
        Ambiguous, typer.Option(help="Of a term's concepts take all, the first, or those of the entity's type.")
    ] = "all",
    label_types: Annotated[
        list[str] | None, typer.Option(help="LABEL=TYPE,TYPE: the types that an entity's label stands for.")
    ] = None,
    language: Annotated[str, typer.Option(help="Language of the names taken from MRCONSO.RRF.")] = "ENG",
    format: Annotated[str | None, typer.Option(help="Format of the corpora; otherwise found.")] = None,
    on_error: Annotated[
        OnError, typer.Option(help="At a malformed line: stop, or leave it out and count it.")
    ] = "raise",
    json: Json = None,
) -> None:
    """Builds, merges and inspects a list of synonyms, and says how much of a corpus it covers."""
    sources = sources or []
    if not sources and not from_corpus:
        raise ValueError("there is nothing to make a lexicon of; name a SOURCE, or a corpus with --from-corpus")
    saved = {path: load(path) for path in sources if path.suffix in (SUFFIX, ".npz")}
    folds = in_order(fold or chain(*(lexicon.folds for lexicon in saved.values())))
    problems = Problems(on_error)
    counts: SourceCounts = {}
    if saved and not (sources[1:] or from_corpus or type) and saved[sources[0]].folds == folds:
        built = saved[sources[0]]  # only looked at
        counts[str(sources[0])] = len(built), built.num_names
    else:
        concepts = _concepts(sources, saved, from_corpus or (), language, format, problems, counts)
        built = Lexicon.of(_of_types(concepts, type or ()), folds)
    if not len(built):
        total = sum(count for count, _ in counts.values())
        of_types = f" of type {', '.join(type)}" if type else ""
        raise CorpusError(f"none of {total:,} concepts{of_types} is left, so there is no lexicon; check the sources")
    types_of_label = pairs(label_types, "--label-types", "Disease=illness")
    policy = {label: types.split(",") for label, types in types_of_label.items()}
    built = replace(built, ambiguous=ambiguous, label_types=policy)
    if only_in:
        built = _mentioned(built, only_in, format)
    covered = {str(path): coverage_of(built, _documents(path, format)) for path in coverage or ()}
    if output is not None:
        built.save(output)
    if json is not None:
        figures = {
            "concepts": len(built),
            "names": built.num_names,
            "types": list(built.types),
            "folds": list(built.folds),
            "sources": [{"source": name, "concepts": c, "names": n} for name, (c, n) in counts.items()],
            "problems": problems.messages,
            "notes": problems.notes,
            "coverage": [{"corpus": corpus, **result.to_dict()} for corpus, result in covered.items()],
        }
        write_json(figures, json)
    if json != Path("-"):
        console = Console()
        show(built, counts, problems, console)
        if covered:
            show_coverage(covered, console)
        for each in term or []:
            show_term(built, each, console)
        if output is not None:
            say(console, f"{output}: {output.stat().st_size / 2**20:.2f} MiB")
    for corpus, result in covered.items():
        require_overlap(result, built, corpus)


def _concepts(
    sources: Sequence[Path],
    saved: Mapping[Path, Lexicon],
    corpora: Sequence[Path],
    language: str,
    format: str | None,
    problems: Problems,
    counts: SourceCounts,
) -> Iterator[Concept]:
    """The concepts of all sources, in order; `counts` is filled on the way."""
    for path in sources:
        concepts = saved[path].concepts() if path in saved else read_concepts(path, problems, language)
        yield from _counted(str(path), concepts, counts)
    for path in corpora:
        for way, synonyms in found_synonyms(list(read(path, format, problems=problems))).items():
            yield from _counted(f"{path}, {way}", synonyms, counts)


def _counted(source: str, concepts: Iterable[Concept], counts: SourceCounts) -> Iterator[Concept]:
    counts[source] = 0, 0
    for concept in concepts:
        number, names = counts[source]
        counts[source] = number + 1, names + len(concept.names)
        yield concept


def _of_types(concepts: Iterable[Concept], types: Collection[str]) -> Iterator[Concept]:
    """Concepts with one of these types; all if none is given."""
    wanted = {type.lower() for type in types}
    return (concept for concept in concepts if not types or any(type.lower() in wanted for type in concept.types))


def _mentioned(lexicon: Lexicon, corpora: Sequence[Path], format: str | None) -> Lexicon:
    """The concepts that these corpora mention."""
    terms = {
        (document.text_of(entity), entity.label)
        for path in corpora
        for document in _documents(path, format)
        for entity in document.entities
    }
    kept = {concept.id for term in terms for concept in lexicon.lookup(*term)}
    if not kept:
        raise CorpusError(
            f"none of {len(terms):,} different entities of {', '.join(map(str, corpora))} is among the "
            f"{lexicon.num_names:,} names, so there is no lexicon; check that both are about the same things"
        )
    small = Lexicon.of((concept for concept in lexicon.concepts() if concept.id in kept), lexicon.folds)
    return replace(small, ambiguous=lexicon.ambiguous, label_types=lexicon.label_types)


def _documents(path: Path, format: str | None) -> list[Document]:
    from wingspan.training.corpora import documents_of  # imports torch

    return documents_of(path, format)


def show(lexicon: Lexicon, counts: SourceCounts, problems: Problems, console: Console) -> None:
    """Prints the size of each source and of the lexicon, and the lines that were left out."""
    rows = [(name, f"{concepts:,}", f"{names:,}") for name, (concepts, names) in counts.items()]
    total = ("lexicon", f"{len(lexicon):,}", f"{lexicon.num_names:,}")
    Sheet("Lexicon", ("source", "concepts", "names"), rows, [total]).show(console)
    say(console, f"types: {', '.join(lexicon.types) or 'none'}")
    say(console, f"folded: {', '.join(lexicon.folds) or 'case'}")
    for note in dict.fromkeys(problems.notes):
        say(console, f"note: {note}")
    if messages := problems.messages:
        say(console, f"left out: {len(messages):,} malformed lines or records")
        for message in messages[:SHOWN]:
            say(console, f"  {message}")
        if len(messages) > SHOWN:
            say(console, f"  ... and {len(messages) - SHOWN:,} more; --json FILE has all of them")


def show_coverage(corpora: Mapping[str, LexiconCoverage], console: Console) -> None:
    """Documents, entities, and the share of entities with synonyms, as in table 1 of paper 000."""
    rows = []
    for corpus, covered in corpora.items():
        labels = sorted(covered.labels.items()) if len(covered.labels) > 1 else []
        for label, counts in (("", covered.overall), *labels):
            numbers = (f"{n:,}" for n in (counts.entities, counts.known, counts.ambiguous, counts.covered))
            name, documents = (f"  {label}", "") if label else (corpus, f"{covered.documents:,}")
            rows.append((name, documents, *numbers, f"{counts.percent:.2f}%"))
    columns = ("corpus", "documents", "entities", "in lexicon", "ambiguous", "with synonyms", "Syn_cov")
    Sheet("Coverage", columns, rows).show(console)


def show_term(lexicon: Lexicon, term: str, console: Console) -> None:
    """The concepts of a term, and its synonyms."""
    concepts = lexicon.lookup(term)
    synonyms = counted(len(lexicon.synonyms(term)), "synonym")
    say(console, f"{term}: {counted(len(concepts), 'concept')}, {synonyms}")
    for concept in concepts:
        types = f" ({', '.join(concept.types)})" if concept.types else ""
        say(console, f"  {concept.id}{types}: {'; '.join(concept.names)}")
