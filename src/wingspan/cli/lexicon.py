"""`wingspan lexicon`: builds, merges and inspects lists of synonyms, and reports how much of a corpus they cover."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Annotated

from rich.console import Console
from typer import Argument, Option

from wingspan.cli import app
from wingspan.cli.leaks import documents
from wingspan.cli.options import Json, pairs
from wingspan.corpora import lexicon as lexicons
from wingspan.corpora.formats import read
from wingspan.corpora.lexicon import Ambiguous, Lexicon, LexiconCoverage
from wingspan.corpora.lexicon.concepts import Concept, read_concepts
from wingspan.corpora.lexicon.synonyms import found_synonyms
from wingspan.files import CorpusError, OnError, Problems
from wingspan.views.console import counted, say, write_json
from wingspan.views.tables import Sheet

SHOWN = 20  # malformed lines that are printed; `--json` has all
Paths = list[Path] | None
Texts = list[str] | None
FoldName = StrEnum("FoldName", ["hyphen", "spacing", "plural"])  # the keys of `FOLDS`


@app.command(epilog="Example: wingspan lexicon mesh.tsv doid.obo --output diseases.sqlite --coverage train.jsonl")
def lexicon(
    sources: Annotated[
        Paths,
        Argument(metavar="SOURCE...", help="Concepts: .tsv, .obo, MRCONSO.RRF, or saved lexicons (.sqlite)."),
    ] = None,
    from_corpus: Annotated[Paths, Option(help="Also take the synonyms that this training corpus shows.")] = None,
    output: Annotated[Path | None, Option(help="Save the lexicon here, as .sqlite.")] = None,
    coverage: Annotated[Paths, Option(help="Count the entities of this corpus with synonyms; may be repeated.")] = None,
    term: Annotated[Texts, Option(help="Show concepts and synonyms of this term.")] = None,
    type: Annotated[Texts, Option(help="Keep only concepts of this type; may be repeated.")] = None,
    only_in: Annotated[Paths, Option(help="Keep only concepts that this corpus mentions; may be repeated.")] = None,
    fold: Annotated[list[FoldName] | None, Option(help="A difference to ignore besides case; may be repeated.")] = None,
    ambiguous: Annotated[
        Ambiguous, Option(help="Of a term's concepts take all, the first, or those of the entity's type.")
    ] = "all",
    label_types: Annotated[Texts, Option(help="LABEL=TYPE,TYPE: the types that an entity's label stands for.")] = None,
    language: Annotated[str, Option(help="Language of the names taken from MRCONSO.RRF.")] = "ENG",
    format: Annotated[str | None, Option(help="Format of the corpora; otherwise found.")] = None,
    on_error: Annotated[OnError, Option(help="At a malformed line: stop, or leave it out and count it.")] = "raise",
    json: Json = None,
) -> None:
    """Builds, merges and inspects a list of synonyms, and says how much of a corpus it covers."""
    sources = sources or []
    if not sources and not from_corpus:
        raise ValueError("there is nothing to make a lexicon of; name a SOURCE, or a corpus with --from-corpus")
    saved = {path: lexicons.load(path) for path in sources if path.suffix in (lexicons.SUFFIX, ".npz")}
    folds = lexicons.in_order(fold or chain(*(lexicon.folds for lexicon in saved.values())))
    problems = Problems(on_error)
    counts: dict[str, Counter[str]] = {}  # concepts and names of each source
    types = {name.lower() for name in type or ()}

    def concepts() -> Iterator[Concept]:
        listed = (
            (str(path), saved[path].concepts() if path in saved else read_concepts(path, problems, language))
            for path in sources
        )
        shown = (
            (f"{path}, {way}", synonyms)
            for path in from_corpus or ()
            for way, synonyms in found_synonyms(list(read(path, format, problems=problems))).items()
        )
        for source, own in chain[tuple[str, Iterable[Concept]]](listed, shown):
            count = counts[source] = Counter(concepts=0, names=0)
            for concept in own:
                count["concepts"] += 1
                count["names"] += len(concept.names)
                if not types or types & {name.lower() for name in concept.types}:
                    yield concept

    if saved and not (sources[1:] or from_corpus or type) and saved[sources[0]].folds == folds:
        built = saved[sources[0]]  # only looked at
        counts[str(sources[0])] = Counter(concepts=len(built), names=built.num_names)
    else:
        built = Lexicon.of(concepts(), folds)
    if not len(built):
        total = sum(count["concepts"] for count in counts.values())
        of_types = f" of type {', '.join(type)}" if type else ""
        raise CorpusError(f"none of {total:,} concepts{of_types} is left, so there is no lexicon; check the sources")
    named_types = pairs(label_types, "--label-types", "Disease=illness")
    policy = {label: names.split(",") for label, names in named_types.items()}
    built = replace(built, ambiguous=ambiguous, label_types=policy)
    if only_in:
        corpus = chain(*(documents(path, format) for path in only_in))
        terms = {(document.text_of(entity), entity.label) for document in corpus for entity in document.entities}
        kept = {concept.id for pair in terms for concept in built.lookup(*pair)}
        if not kept:
            raise CorpusError(
                f"none of {len(terms):,} different entities of {', '.join(map(str, only_in))} is among the "
                f"{built.num_names:,} names, so there is no lexicon; check that both are about the same things"
            )
        mentioned = Lexicon.of((concept for concept in built.concepts() if concept.id in kept), built.folds)
        built = replace(mentioned, ambiguous=ambiguous, label_types=policy)
    covered = {str(path): lexicons.coverage(built, documents(path, format)) for path in coverage or ()}
    if output is not None:
        built.save(output)
    if json is not None:
        figures = {
            "concepts": len(built),
            "names": built.num_names,
            "types": list(built.types),
            "folds": list(built.folds),
            "sources": [{"source": source, **count} for source, count in counts.items()],
            "problems": problems.messages,
            "notes": problems.notes,
            "coverage": [{"corpus": name, **result.to_dict()} for name, result in covered.items()],
        }
        write_json(figures, json)
    if json != Path("-"):
        console = Console()
        show(built, counts, problems, console)
        if covered:
            show_coverage(covered, console)
        for each in term or []:
            matches = built.lookup(each)
            synonyms = counted(len(built.synonyms(each)), "synonym")
            say(console, f"{each}: {counted(len(matches), 'concept')}, {synonyms}")
            for concept in matches:
                of_types = f" ({', '.join(concept.types)})" if concept.types else ""
                say(console, f"  {concept.id}{of_types}: {'; '.join(concept.names)}")
        if output is not None:
            say(console, f"{output}: {output.stat().st_size / 2**20:.2f} MiB")
    for name, result in covered.items():
        lexicons.require_overlap(result, built, name)


def show(lexicon: Lexicon, counts: Mapping[str, Counter[str]], problems: Problems, console: Console) -> None:
    """Prints the size of each source and of the lexicon, and the lines that were left out."""
    rows = [(source, f"{count['concepts']:,}", f"{count['names']:,}") for source, count in counts.items()]
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
    """Documents, entities, and the share of entities with synonyms, as in table 1 of Nguyen et al. 2023."""
    rows = []
    for corpus, covered in corpora.items():
        labels = sorted(covered.labels.items()) if len(covered.labels) > 1 else []
        for label, counts in (("", covered.overall), *labels):
            numbers = (f"{number:,}" for number in vars(counts).values())
            name, documents = (f"  {label}", "") if label else (corpus, f"{covered.documents:,}")
            rows.append((name, documents, *numbers, f"{counts.percent:.2f}%"))
    columns = ("corpus", "documents", "entities", "in lexicon", "ambiguous", "with synonyms", "Syn_cov")
    Sheet("Coverage", columns, rows).show(console)
