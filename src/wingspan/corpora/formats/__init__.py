"""What a corpus format is, and what happens to a record that does not fit.

A format module has one constant, `FORMAT`. Readers yield documents and hand every problem to `Problems`, which raises
at the first one or counts them, as the user chose.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from wingspan.files import CorpusError, OnError, Problems, read_json, read_lines, read_text
from wingspan.text import Document


@dataclass(frozen=True)
class Holds:
    """What a format can express. `convert` lists what a target cannot hold before it writes anything."""

    nested: bool = True
    discontinuous: bool = True
    same_span_labels: bool = True
    exact_text: bool = True
    """Whether white space between words survives."""
    documents_without_words: bool = True
    """Whether plain text without given words can be written (False: the words are made by the splitter)."""
    words: bool = False
    """Whether given word boundaries survive."""
    sentences: bool = False
    groups: bool = False
    meta: bool = False
    """Whether unknown keys of documents and entities survive."""
    scores: bool = False
    entity_meta: bool | None = None
    """Whether unknown keys of entities survive, where that differs from those of documents."""
    document_keys: frozenset[str] = frozenset()
    """Keys in the `meta` of documents that survive where not all do."""
    entity_keys: frozenset[str] = frozenset()
    """Keys in the `meta` of entities that survive where not all do."""
    ids: bool = True
    """Whether document ids survive (False: they are made from the file's name and the document's place)."""
    datasets: bool = False
    """Whether the name of the dataset survives."""


@dataclass(frozen=True)
class Format:
    """One file format: how to read it, how to write it, what it can hold."""

    name: str
    read: Callable[[Path, Problems], Iterator[Document]]
    write: Callable[[Iterable[Document], Path], None] | None
    suffixes: tuple[str, ...]
    holds: Holds
    unit: Literal["code points", "utf-16", "words"] = "code points"
    inclusive_ends: bool = False
    description: str = ""
    changes: Callable[[Document], Counter[str]] | None = None
    """What writing and reading one document changes although `holds` has its key: description -> how many."""


# --- Files to documents and back. `read` and `write` find the format by name, by suffix, or by looking at the file.


# format name -> the module and the constant that has it; imported when used, so that extras stay optional
FORMATS: dict[str, str] = {
    "jsonl": "jsonl:FORMAT",
    "conll": "conll:FORMAT",
    "brat": "brat:FORMAT",
    "pubtator": "pubtator:FORMAT",
    "bioc-xml": "bioc:BIOC_XML",
    "bioc-json": "bioc:BIOC_JSON",
    "spert": "research_json:SPERT",
    "pure": "research_json:PURE",
    "w2ner": "research_json:W2NER",
    "doccano": "annotators:DOCCANO",
    "prodigy": "annotators:PRODIGY",
    "label-studio": "annotators:LABEL_STUDIO",
    "docbin": "docbin:FORMAT",
    "hub": "hub:FORMAT",
}


def format_named(name: str) -> Format:
    """The format of that name."""
    if name not in FORMATS:
        raise CorpusError(f"unknown format {name!r}; use one of {', '.join(FORMATS)}")
    module, constant = FORMATS[name].split(":")
    found: Format = getattr(import_module(f"wingspan.corpora.formats.{module}"), constant)
    return found


def read(
    path: str | Path, format: str | None = None, on_error: OnError = "raise", problems: Problems | None = None
) -> Iterator[Document]:
    """The documents of a file or folder, one after the other. What does not fit raises, or is counted in `problems`."""

    problems = problems if problems is not None else Problems(on_error)
    path = Path(path)
    return format_named(format or detect(path)).read(path, problems)


def write(documents: Iterable[Document], path: str | Path, format: str | None = None) -> None:
    """Writes documents under a temporary name, then renames: a failure leaves no half file behind."""

    path = Path(path)
    chosen = format_named(format or by_suffix(path))
    if chosen.write is None:
        raise CorpusError(f"{path}: format {chosen.name!r} can be read, not written; choose another {TARGET}")
    chosen.write(documents, path)


# --- Which format a file is in: by the end of its name where that says it, else by its first records.


# kept here, so that no format is imported to be ruled out; a test compares them with the formats' own
SUFFIXES: dict[str, tuple[str, ...]] = {
    "conll": (".conll", ".iob", ".iob2", ".bio", ".bioes", ".tsv", ".annotated"),
    "brat": (".ann",),
    "pubtator": (".pubtator", ".pubtator.txt"),
    "bioc-xml": (".bioc.xml", ".xml"),
    "bioc-json": (".bioc.json",),
    "spert": (".spert.json",),
    "pure": (".pure.jsonl", ".dygie.jsonl"),
    "w2ner": (".w2ner.json",),
    "doccano": (".doccano.jsonl",),
    "prodigy": (".prodigy.jsonl",),
    "label-studio": (".label-studio.json",),
    "docbin": (".spacy",),
    "hub": (".parquet",),
    "jsonl": (".jsonl", ".ndjson"),
}
_JSON_LINES = (".jsonl", ".ndjson", ".jsonlines")
OPTIONS = "with --format (--from of convert and predict)"
"""How a user names the format of what is read."""
TARGET = "with --to (--format of predict)"
"""How a user names the format of what is written."""
_LOOKED_AT = 50  # records; one without entities often fits several formats


def by_suffix(path: str | Path) -> str:
    """The format that a name asks for, for writing. Longer endings win: .spert.json is said, .json is not."""
    path = Path(path)
    found = named(path)
    if found:
        return found
    if path.is_dir():
        return "brat"
    if path.name.lower().removesuffix(".gz").endswith(".jsonlines"):
        return "jsonl"
    raise CorpusError(f"{path}: its name does not say the format; name it {TARGET} (such as jsonl, conll, brat, spert)")


def detect(path: str | Path) -> str:
    """The format of a file or folder that exists."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(2, "no such file or folder", str(path))
    if path.is_dir():
        return _of_folder(path)
    name = path.name.lower().removesuffix(".gz")
    found = named(path)
    if found and found != "jsonl":
        return found
    if name.endswith(_JSON_LINES):
        return _of_records(path, _json_lines(path), "jsonl")
    return _of_content(path)


def named(path: Path) -> str | None:
    """The format whose declared endings the name has, or None."""
    name = path.name.lower().removesuffix(".gz")
    fitting = [(len(end), known) for known, ends in SUFFIXES.items() for end in ends if name.endswith(end)]
    return max(fitting)[1] if fitting else None


def _of_folder(path: Path) -> str:
    if (path / "dataset_info.json").exists() or (path / "dataset_dict.json").exists():
        return "hub"
    if next(path.rglob("*.ann"), None) is not None:
        return "brat"
    if next(path.rglob("*.parquet"), None) is not None:
        return "hub"
    raise CorpusError(f"{path}: no .ann files in this folder; name one of its files, or its format {OPTIONS}")


def _of_content(path: Path) -> str:
    lines = [line for _, line in islice(read_lines(path), 400)]
    filled = [line for line in lines if line.strip()]
    start = filled[0].lstrip() if filled else ""
    if start.startswith("["):
        return _of_records(path, _json_list(path), None)
    if start.startswith("{"):
        return _of_json(path, start)
    if start.startswith("<"):
        return "bioc-xml"
    if any(PASSAGE.fullmatch(line) for line in filled[:1]):
        return "pubtator"
    if path.suffix == ".txt" and path.with_suffix(".ann").exists():
        return "brat"
    if filled and _in_columns(filled):
        return "conll"
    raise _undecided(path)


def _undecided(path: Path) -> CorpusError:
    return CorpusError(
        f"{path}: cannot tell its format from name and content; name it {OPTIONS}, such as jsonl or conll"
    )


def _of_json(path: Path, start: str) -> str:
    """One object over the whole file, or one on each line."""
    try:
        record = json.loads(start)
    except (ValueError, RecursionError):
        record = read_json(path)
    if isinstance(record, dict) and {"documents", "passages", "PubTator3"} & record.keys():
        return "bioc-json"
    return _of_records(path, _json_lines(path), None)


def _in_columns(lines: list[str]) -> bool:
    """Whether the last filled column of nearly all lines is a tag and not just text that ends in O."""
    last = [re.split(r"[ \t]+", line.rstrip(" \t"))[-1] for line in lines if not line.startswith(("#", "-DOCSTART-"))]
    tags = [value for value in last if re.fullmatch(r"O|[BIMELSUW](?:[-_].+)?", value)]
    divided = all(re.search(r"\S[ \t]+\S", line.rstrip()) for line in lines if not line.startswith("#"))
    return bool(last) and divided and len(tags) >= 0.9 * len(last)


def _json_lines(path: Path) -> Iterator[Any]:
    for _, line in read_lines(path):
        if line.strip():
            try:
                yield json.loads(line)
            except (ValueError, RecursionError):
                return  # the reader tells what is wrong, with the line


def _json_list(path: Path) -> Iterator[Any]:
    """The first records of a list, without reading the others."""
    text = read_text(path)
    at = text.index("[") + 1
    decoder = json.JSONDecoder()
    while found := re.compile(r"[\s,]*").match(text, at):
        try:
            record, at = decoder.raw_decode(text, found.end())
        except (ValueError, RecursionError):
            return
        yield record


def _of_records(path: Path, records: Iterator[Any], otherwise: str | None) -> str:
    maybe: str | None = None
    for record in islice(records, _LOOKED_AT):
        if isinstance(record, dict):
            sure, found = _of_record(record)
            if found and sure:
                return found
            maybe = maybe or found
    if maybe or otherwise:
        return maybe or otherwise or ""
    raise _undecided(path)


def _of_record(record: dict[str, Any]) -> tuple[bool, str | None]:
    """Whether it is certain, and the format that a record has the keys of."""
    keys = record.keys()
    entities = record.get("entities")
    first = entities[0] if isinstance(entities, list) and entities and isinstance(entities[0], dict) else {}
    if "passages" in keys or "documents" in keys:
        return True, "bioc-json"
    if "doc_key" in keys or ("sentences" in keys and "ner" in keys):
        return True, "pure"
    if ("sentence" in keys and "ner" in keys) or ("tokens" in keys and "entity_mentions" in keys):
        return True, "w2ner"
    if "data" in keys and keys & {"annotations", "predictions", "completions"}:
        return True, "label-studio"
    if "start_offset" in first:
        return True, "doccano"
    if "type" in first and "tokens" in keys:
        return True, "spert"
    if "label" in first or "fragments" in first:
        return True, "jsonl"
    if "text" in keys and "spans" in keys:
        return True, "prodigy"
    if "text" in keys and isinstance(label := record.get("label", record.get("labels")), list):
        # doccano writes [start, end, label], Label Studio's short export objects with start and end
        return bool(label), "label-studio" if label and isinstance(label[0], dict) else "doccano"
    if "tokens" in keys and keys & {"orig_id", "relations"}:
        return False, "spert"
    if "text" in keys and keys & {"Comments", "relations"}:
        return False, "doccano"
    return False, "jsonl" if keys & {"text", "tokens"} else None


# --- PubTator: `id|t|title` and `id|a|abstract`, then one mention on each line, divided by tabs.
#
# Offsets count over the title, one separator and the abstract, in code points. A blank line ends a document.


PASSAGE = re.compile(r"([^|\t]*[^|\t\s][^|\t]*)\|([A-Za-z0-9_]{1,20})\|(.*)", re.DOTALL)
