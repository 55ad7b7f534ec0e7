"""`wingspan lexicon`: builds, merges and inspects lists of synonyms, and says how much of a corpus they cover."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from wingspan.cli import app
from wingspan.cli.options import Json, pairs
from wingspan.corpora.formats import read
from wingspan.corpora.lexicon import SUFFIX, Ambiguous, Lexicon, LexiconCoverage, coverage, in_order, load
from wingspan.corpora.lexicon.concepts import Concept, read_concepts
from wingspan.corpora.lexicon.synonyms import found_synonyms
from wingspan.files import CorpusError, OnError, Problems
from wingspan.views.tables import Sheet


class Fold(StrEnum):
    """What may differ between equal terms besides case; an enum, as typer takes no list of literals."""

    hyphen = "hyphen"
    spacing = "spacing"
    plural = "plural"


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
    fold: Annotated[list[Fold] | None, typer.Option(help="What may differ besides case; may be repeated.")] = None,
    ambiguous: Annotated[
        Ambiguous, typer.Option(help="Of a term's concepts take all, the first, or those of the entity's type.")
    ] = "all",
    label_types: Annotated[
        list[str] | None, typer.Option(help="LABEL=TYPE,TYPE: which types an entity's label stands for.")
    ] = None,
    language: Annotated[str, typer.Option(help="Language of the names taken from MRCONSO.RRF.")] = "ENG",
    format: Annotated[str | None, typer.Option(help="Format of the corpora; otherwise found.")] = None,
    on_error: Annotated[
        OnError, typer.Option(help="At a line that does not fit: stop, or leave it out and count it.")
    ] = "raise",
    json: Json = None,
) -> None:
    """Builds, merges and inspects a list of synonyms, and says how much of a corpus it covers."""
    from rich.console import Console

    from wingspan.corpora.lexicon import require_overlap
    from wingspan.views.console import write_json

    stands_for = pairs(label_types, "--label-types", "Disease=illness")
    plan = Plan(
        sources or [],
        from_corpus or [],
        type or [],
        only_in or [],
        [name.value for name in fold] if fold else None,
        ambiguous,
        {label: types.split(",") for label, types in stands_for.items()},
        language,
        format,
        on_error,
    )
    made = make(plan)
    covered = cover(made.lexicon, coverage or [], format)
    if output is not None:
        made.lexicon.save(output)
    if json is not None:
        corpora = [{"corpus": corpus, **found.to_dict()} for corpus, found in covered.items()]
        write_json({**made.to_dict(), "coverage": corpora}, json)
    if json != Path("-"):
        console = Console()
        show(made, console)
        if covered:
            show_coverage(covered, console)
        for one in term or []:
            show_term(made.lexicon, one, console)
        if output is not None:
            say([f"{output}: {output.stat().st_size / 2**20:.2f} MiB"], console)
    for corpus, found in covered.items():
        require_overlap(found, made.lexicon, corpus)


SHOWN = 20


@dataclass
class Plan:
    """What a lexicon is made of: files of concepts, compact lexicons, corpora; and what of it is kept."""

    sources: Sequence[Path] = ()
    corpora: Sequence[Path] = ()
    types: Collection[str] = ()
    """Keep concepts of these types only."""
    only_in: Sequence[Path] = ()
    """Keep concepts only that these corpora mention."""
    folds: Sequence[str] | None = None
    """None: as the compact lexicons among the sources have it."""
    ambiguous: Ambiguous = "all"
    label_types: Mapping[str, Collection[str]] = field(default_factory=dict)
    language: str = "ENG"
    format: str | None = None
    on_error: OnError = "raise"


@dataclass
class Made:
    """A lexicon, how many concepts and names each source gave, and what did not fit."""

    lexicon: Lexicon
    given: dict[str, tuple[int, int]]
    problems: Problems

    def to_dict(self) -> dict[str, Any]:
        """The counts as plain data."""
        sources = [{"source": name, "concepts": c, "names": n} for name, (c, n) in self.given.items()]
        lexicon = self.lexicon
        return {
            "concepts": len(lexicon),
            "names": lexicon.num_names,
            "types": list(lexicon.types),
            "folds": list(lexicon.folds),
            "sources": sources,
            "problems": self.problems.messages,
            "notes": self.problems.notes,
        }


def make(plan: Plan) -> Made:
    """Reads all sources in their order and joins them."""
    if not plan.sources and not plan.corpora:
        raise ValueError("there is nothing to make a lexicon of; name a SOURCE, or a corpus with --from-corpus")
    problems = Problems(plan.on_error)
    given: dict[str, tuple[int, int]] = {}
    compact = {path: load(path) for path in plan.sources if path.suffix == SUFFIX}
    folds = in_order(plan.folds if plan.folds is not None else chain(*(one.folds for one in compact.values())))
    whole = next(iter(compact.values()), None)
    if whole is not None and len(plan.sources) == 1 and not plan.corpora and not plan.types and whole.folds == folds:
        lexicon = whole  # nothing to make: it is only looked at, which takes no time
        given[str(plan.sources[0])] = len(whole), whole.num_names
    else:
        lexicon = Lexicon.of(_concepts(plan, compact, given, problems), folds)
    if not len(lexicon):
        found = sum(count for count, _ in given.values())
        of_types = f" of type {', '.join(plan.types)}" if plan.types else ""
        raise CorpusError(f"none of {found:,} concepts{of_types} is left, so there is no lexicon; check the sources")
    lexicon = replace(lexicon, ambiguous=plan.ambiguous, label_types=plan.label_types)
    return Made(_restricted(lexicon, plan) if plan.only_in else lexicon, given, problems)


def _concepts(
    plan: Plan, compact: Mapping[Path, Lexicon], given: dict[str, tuple[int, int]], problems: Problems
) -> Iterator[Concept]:
    """The concepts of all sources that have a wanted type; `given` counts them before."""
    wanted = {one.lower() for one in plan.types}

    def sources() -> Iterator[Concept]:
        for path in plan.sources:
            found = compact[path].concepts() if path in compact else read_concepts(path, problems, plan.language)
            yield from _counted(str(path), found, given)
        for path in plan.corpora:
            documents = list(read(path, plan.format, problems=problems))
            for way, some in found_synonyms(documents).items():
                yield from _counted(f"{path}, {way}", iter(some), given)

    return (one for one in sources() if not wanted or any(kind.lower() in wanted for kind in one.types))


def _counted(name: str, concepts: Iterator[Concept], given: dict[str, tuple[int, int]]) -> Iterator[Concept]:
    number = names = 0
    for concept in concepts:
        number += 1
        names += len(concept.names)
        yield concept
    given[name] = number, names


def _restricted(lexicon: Lexicon, plan: Plan) -> Lexicon:
    """The concepts that the corpora mention."""
    from wingspan.training.corpora import documents_of

    terms = {
        (document.text_of(entity), entity.label)
        for path in plan.only_in
        for document in documents_of(path, plan.format)
        for entity in document.entities
    }
    kept = {concept.id for term in terms for concept in lexicon.lookup(*term)}
    if not kept:
        raise CorpusError(
            f"none of {len(terms):,} different entities of {', '.join(map(str, plan.only_in))} is among the "
            f"{lexicon.num_names:,} names, so there is no lexicon; check that both are about the same things"
        )
    small = Lexicon.of((concept for concept in lexicon.concepts() if concept.id in kept), lexicon.folds)
    return replace(small, ambiguous=lexicon.ambiguous, label_types=lexicon.label_types)


def cover(lexicon: Lexicon, corpora: Sequence[Path], format: str | None) -> dict[str, LexiconCoverage]:
    """How much of each corpus the lexicon knows."""
    from wingspan.training.corpora import documents_of

    return {str(path): coverage(lexicon, documents_of(path, format)) for path in corpora}


def show(made: Made, console: Console) -> None:
    """What the lexicon was made of, and what did not fit."""
    rows = [(name, f"{concepts:,}", f"{names:,}") for name, (concepts, names) in made.given.items()]
    total = ("lexicon", f"{len(made.lexicon):,}", f"{made.lexicon.num_names:,}")
    Sheet("Lexicon", ("source", "concepts", "names"), rows, [total]).show(console)
    lines = [f"types: {', '.join(made.lexicon.types) or 'none'}", f"folded: {', '.join(made.lexicon.folds) or 'case'}"]
    lines += [f"note: {note}" for note in dict.fromkeys(made.problems.notes)]
    if messages := made.problems.messages:
        lines.append(f"left out: {len(messages):,} lines or records that do not fit")
        lines += [f"  {message}" for message in messages[:SHOWN]]
        if len(messages) > SHOWN:
            lines.append(f"  ... and {len(messages) - SHOWN:,} more; --json FILE has all of them")
    say(lines, console)


def show_coverage(found: Mapping[str, LexiconCoverage], console: Console) -> None:
    """Documents, entities, and the share of entities with synonyms, as in table 1 of paper 000."""
    rows = []
    for corpus, one in found.items():
        parts = [("", one.overall)] if len(one.labels) < 2 else [("", one.overall), *sorted(one.labels.items())]
        for label, share in parts:
            counts = (f"{n:,}" for n in (share.entities, share.known, share.ambiguous, share.covered))
            name, documents = (f"  {label}", "") if label else (corpus, f"{one.documents:,}")
            rows.append((name, documents, *counts, f"{share.percent:.2f}%"))
    columns = ("corpus", "documents", "entities", "in lexicon", "ambiguous", "with synonyms", "Syn_cov")
    Sheet("Coverage", columns, rows).show(console)


def show_term(lexicon: Lexicon, term: str, console: Console) -> None:
    """The concepts of a term, and its synonyms."""
    concepts = lexicon.lookup(term)
    counts = ((len(concepts), "concept"), (len(lexicon.synonyms(term)), "synonym"))
    lines = [f"{term}: " + ", ".join(f"{n} {what}{'' if n == 1 else 's'}" for n, what in counts)]
    for concept in concepts:
        types = f" ({', '.join(concept.types)})" if concept.types else ""
        lines.append(f"  {concept.id}{types}: {'; '.join(concept.names)}")
    say(lines, console)


def say(lines: Sequence[str], console: Console) -> None:
    """Lines as they are, however long."""
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
