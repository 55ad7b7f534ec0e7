"""Files to documents and back. `read` and `write` find the format by name, by suffix, or by looking at the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path

from wingspan.corpora.formats import CorpusError, Format, OnError, Problems
from wingspan.text import Document

# format name -> the module that has it as FORMAT; imported when used, so that extras stay optional
FORMATS: dict[str, str] = {
    "jsonl": "jsonl",
    "conll": "conll",
    "brat": "brat",
    "pubtator": "pubtator",
    "bioc-xml": "bioc_xml",
    "bioc-json": "bioc_json",
    "spert": "spert",
    "pure": "pure",
    "w2ner": "w2ner",
    "doccano": "doccano",
    "prodigy": "prodigy",
    "label-studio": "label_studio",
    "docbin": "docbin",
    "hub": "hub",
}


def format_named(name: str) -> Format:
    """The format of that name."""
    if name not in FORMATS:
        raise CorpusError(f"unknown format {name!r}; use one of {', '.join(FORMATS)}")
    found: Format = import_module(f"wingspan.corpora.{FORMATS[name]}").FORMAT
    return found


def read(
    path: str | Path, format: str | None = None, on_error: OnError = "raise", problems: Problems | None = None
) -> Iterator[Document]:
    """The documents of a file or folder, one after the other. What does not fit raises, or is counted in `problems`."""
    from wingspan.corpora.detect import detect

    problems = problems if problems is not None else Problems(on_error)
    path = Path(path)
    return format_named(format or detect(path)).read(path, problems)


def write(documents: Iterable[Document], path: str | Path, format: str | None = None) -> None:
    """Writes documents under a temporary name, then renames: a failure leaves no half file behind."""
    from wingspan.corpora.detect import TARGET, by_suffix

    path = Path(path)
    chosen = format_named(format or by_suffix(path))
    if chosen.write is None:
        raise CorpusError(f"{path}: format {chosen.name!r} can be read, not written; choose another {TARGET}")
    chosen.write(documents, path)
