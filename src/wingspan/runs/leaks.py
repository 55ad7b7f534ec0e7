"""`wingspan leaks`: what of the documents that are to be scored stands in training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console

from wingspan.corpora import read
from wingspan.corpora.formats import CorpusError
from wingspan.corpora.leak_report import KINDS, Leaks, Pair
from wingspan.corpora.leaks import find_leaks
from wingspan.runs.speaking import counted, say
from wingspan.runs.tables import Sheet
from wingspan.text import Document

SHOWN = 5
"""How many pairs of a list are printed; `--json` has all."""


def leaks(train: Sequence[str | Path], against: Sequence[str | Path], format: str | None = None) -> Leaks:
    """Compares training files, read as a stream, with files that are to be scored; each may have its own format."""
    sides = [{str(path): documents(path, format) for path in side} for side in (train, against)]
    return find_leaks(*sides)


def documents(path: str | Path, format: str | None) -> Iterator[Document]:
    """The documents of a file one by one; a file without any is a mistake."""
    empty = True
    for document in read(path, format):
        empty = False
        yield document
    if empty:
        raise CorpusError(f"{path}: there are no documents in it; check the file, and its format with --format")


def show(found: Leaks, console: Console) -> None:
    """Documents by training file and kind, then what they have in common besides."""
    rows = [(file, *(f"{kinds[kind]:,}" for kind in KINDS)) for file, kinds in found.files.items()]
    overall = ("all files", *(f"{found.kinds[kind]:,}" for kind in KINDS))
    title = (
        f"{counted(found.against_documents, 'document')} against {counted(found.train_documents, 'training document')}"
    )
    Sheet(title, ("in training file", *KINDS), rows, [overall]).show(console)
    for line in lines(found):
        say(console, line)


def lines(found: Leaks) -> Iterator[str]:
    """The report in sentences, with the first examples of each list."""
    mentions, sentences = found.mentions, found.sentences
    yield f"{counted(found.documents, 'document')} of {found.against_documents:,}: the text is in training."
    if found.near:
        yield f"{counted(found.kinds['near'], 'document')} more: something nearly equal is in training."
        yield from examples(found.near)
    if found.kinds["near"] or found.documents:
        yield (
            f"They hold {mentions.in_documents:,} of {counted(mentions.total, 'mention')}; "
            f"{mentions.annotated:,} are annotated in training too, at the same place."
        )
    if sentences.equal:
        where = counted(sentences.documents, "document")
        yield f"{counted(sentences.equal, 'sentence')} of {sentences.total:,}, in {where}: in other training documents."
    if sentences.covered:
        first = ", ".join(place.id for place in sentences.covered[:SHOWN])
        yield f"{counted(len(sentences.covered), 'document')} in training sentence by sentence: {first}"
    if found.shared_ids:
        yield f"{counted(found.shared_ids, 'id')} on both sides with another text:"
        yield from examples(found.ids)
    if found.short:
        yield f"{counted(found.short, 'training document')} too short to count: the other side has the same few words."


def examples(pairs: Sequence[Pair]) -> Iterator[str]:
    """The first pairs of a list, those that are most alike first."""
    for pair in sorted(pairs, key=lambda pair: -pair.similarity)[:SHOWN]:
        yield f"  {pair.train.file} {pair.train.id} and {pair.against.file} {pair.against.id}: {pair.similarity:.2f}"
