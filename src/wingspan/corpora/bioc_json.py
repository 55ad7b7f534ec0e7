"""BioC JSON: a collection, a list of documents, one document, or an answer of the PubTator service."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from wingspan.corpora.bioc import HOLDS, Record, document_of
from wingspan.corpora.bioc_writing import bioc_record, collection_of
from wingspan.corpora.checks import Misfit
from wingspan.corpora.files import atomic_write, numbered, read_json
from wingspan.corpora.formats import CorpusError, Format, Problems
from wingspan.corpora.kept_keys import changed
from wingspan.corpora.records import dumps
from wingspan.text import Document


def read(path: Path, problems: Problems) -> Iterator[Document]:
    """The documents of a file."""
    return _parsed(read_json(path), path, problems)


def _parsed(value: Any, path: Path, problems: Problems) -> Iterator[Document]:
    for number, (record, collection) in enumerate(_documents(value, path), 1):
        try:
            yield document_of(record, collection, numbered(path, number), path, problems)
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
    with atomic_write(path) as out:
        for part in _parts(documents):
            out.write(part)


def _parts(documents: Iterable[Document]) -> Iterator[str]:
    rest = iter(documents)
    first = next(rest, None)
    yield dumps(collection_of(first))[:-1] + ', "documents": ['
    for number, document in enumerate(chain([first], rest) if first is not None else ()):
        yield (",\n" if number else "\n") + dumps(bioc_record(document))
    yield "\n]}\n"


def _changes(document: Document) -> Counter[str]:
    value = json.loads("".join(_parts([document])))
    return changed(document, _parsed(value, Path("document"), Problems("skip")), HOLDS)


FORMAT = Format(
    name="bioc-json",
    read=read,
    write=write,
    suffixes=(".bioc.json",),
    holds=HOLDS,
    description="passages with annotations of one or several locations (BioC JSON)",
    changes=_changes,
)
