"""Documents as a file in any format that Wingspan writes, for downloads. Needs no model."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from zipfile import ZIP_DEFLATED, ZipFile

from wingspan.answers import SHAPES
from wingspan.corpora.formats import FORMATS, format_named, write_predictions
from wingspan.corpora.formats.conversion_loss import fit, loss_lines
from wingspan.corpora.formats.jsonl import documents_of_records
from wingspan.corpora.formats.records import dumps
from wingspan.files import numbered
from wingspan.serving import Refusal
from wingspan.text import Document

NOT_OFFERED = ("bioc", "hub", "docbin")  # another name of bioc-xml; formats that need packages the service may not have
DOWNLOADS = tuple(dict.fromkeys([*(name for name in FORMATS if name not in NOT_OFFERED), "hugging-face", "spacy"]))
"""The names of the formats, those of files first, then shapes of answers that no file format has."""


class Download(NamedTuple):
    """A file, and what its format changed or does not keep."""

    name: str
    content: bytes
    notes: list[str]


def download(rows: Sequence[dict[str, Any]], format: str, model: str) -> Download:
    """Records in the schema of predictions as a file."""
    documents = [
        # without the surfaces, which every writer makes again
        replace(document, entities=tuple(replace(entity, meta={}) for entity in document.entities))
        for document in documents_of_records(rows, "documents")
    ]
    if format not in FORMATS:
        answers = [{"id": document.id, **SHAPES[format](document)} for document in documents]
        return Download(f"entities.{format}.json", (dumps({"documents": answers}) + "\n").encode(), [])
    target, lost = format_named(format), Counter[str]()
    name = "entities" if format == "brat" else f"entities{FORMATS[format].suffixes[0]}"
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        fitted: list[Document] = []
        for number, document in enumerate(documents):
            kept, gone = fit(document, target, numbered(path, number + 1))
            fitted.append(kept)
            lost.update(gone)
        write_predictions(fitted, path, target, model)
        if path.is_dir():
            return Download(f"{name}.zip", zipped(path), loss_lines(lost, format))
        return Download(name, path.read_bytes(), loss_lines(lost, format))


def zipped(folder: Path) -> bytes:
    """The files of a folder."""
    memory = BytesIO()
    with ZipFile(memory, "w", ZIP_DEFLATED) as archive:
        for file in sorted(file for file in folder.rglob("*") if file.is_file()):
            archive.write(file, file.relative_to(folder.parent))
    return memory.getvalue()


def known(format: str) -> str:
    """The name of a format that can be downloaded."""
    if format not in DOWNLOADS:
        raise Refusal(422, f"there is no format {format!r} to download; use one of {', '.join(DOWNLOADS)}")
    return format
