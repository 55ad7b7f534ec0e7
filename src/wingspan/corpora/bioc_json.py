"""BioC JSON: a collection, a list of documents, one document, or an answer of the PubTator service."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from wingspan.corpora.bioc import HOLDS, Record, bioc_record, collection_of, document_of
from wingspan.corpora.checks import Misfit
from wingspan.corpora.files import atomic_write, read_json, stem
from wingspan.corpora.formats import CorpusError, Format, Problems
from wingspan.corpora.records import dumps
from wingspan.text import Document


def read(path: Path, problems: Problems) -> Iterator[Document]:
    """The documents of a file."""
    for number, (record, collection) in enumerate(_documents(read_json(path), path), 1):
        try:
            yield document_of(record, collection, f"{stem(path)}-{number}", path, problems)
        except Misfit as misfit:
            problems.add(path, None, f"document {number}: {misfit}; mend it, or leave it out with --on-error skip")


def _documents(value: Any, path: Path) -> Iterator[tuple[Record, Record]]:
    if isinstance(value, list):
        for item in value:
            yield from _documents(item, path)
    elif isinstance(value, dict) and isinstance(documents := value.get("documents", value.get("PubTator3")), list):
        collection = {key: kept for key, kept in value.items() if key not in ("documents", "PubTator3") and kept}
        for document in documents:
            yield (document if isinstance(document, dict) else {"passages": document}), collection
    elif isinstance(value, dict) and "passages" in value:
        yield value, {}
    else:
        raise CorpusError(f"{path}: no BioC: a collection has the key 'documents', a document the key 'passages'")


def write(documents: Iterable[Document], path: Path) -> None:
    """Writes one collection, with the source, date and key of the first document's."""
    rest = iter(documents)
    first = next(rest, None)
    head = dumps(collection_of(first))
    with atomic_write(path) as out:
        out.write(head[:-1] + ', "documents": [')
        for number, document in enumerate(chain([first], rest) if first is not None else ()):
            out.write((",\n" if number else "\n") + dumps(bioc_record(document)))
        out.write("\n]}\n")


FORMAT = Format(
    name="bioc-json",
    read=read,
    write=write,
    suffixes=(".bioc.json",),
    holds=HOLDS,
    description="passages with annotations of one or several locations (BioC JSON)",
)
