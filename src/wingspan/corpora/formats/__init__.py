"""Corpus formats: what a format is, which there are, and which one a file is in.

A format is a `Format`, built in or the user's own. Readers yield documents and hand every problem to `Problems`, which
raises at the first one or collects them, as the user chose.
"""

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from wingspan.files import CorpusError, OnError, Problems, read_json, read_lines
from wingspan.text import Document

Keys = frozenset[str] | Literal["all"]
ALL: Literal["all"] = "all"


@dataclass(frozen=True)
class Holds:
    """What a format can hold. `convert` lists what a target cannot hold before it writes anything."""

    nested: bool = True  # entities may overlap, or share a span with another label
    discontinuous: bool = True
    exact_text: bool = True  # white space between words survives
    documents_without_words: bool = True  # plain text can be written (False: the splitter makes the words)
    words: bool = False  # given word boundaries survive
    sentences: bool = False
    groups: bool = False
    scores: bool = False
    ids: bool = True  # document ids survive (False: they are made from the file's name and the document's number)
    document_keys: Keys = frozenset()  # those in `meta` that survive; where all do, so does the name of the dataset
    entity_keys: Keys = frozenset()  # those in the `meta` of entities that survive

    @property
    def datasets(self) -> bool:
        """Whether the name of the dataset survives."""
        return self.document_keys == ALL


Reader = Callable[[Path, Problems], Iterator[Document]]


@dataclass(frozen=True)
class Format:
    """A file format: how to read it, how to write it, what it can hold."""

    name: str
    read: Reader
    write: Callable[[Iterable[Document], Path], None] | None = None
    holds: Holds = Holds()
    changes: Callable[[Document], Counter[str]] | None = None
    """Counts what writing and reading one document changes although `holds` has its key, by description."""
    read_named: Callable[[Path, Problems, Sequence[str]], Iterator[Document]] | None = None
    """Reads a file whose tags may be numbers, with the names of the tags in the order of the numbers."""
    write_predictions: Callable[[Iterable[Document], Path, str], None] | None = None
    """Writes documents as the work of a model of that version, where the format tells it from that of people."""


class BuiltIn(NamedTuple):
    """Where a format of this package is, and the file name endings that mean it. It is imported when it is used."""

    constant: str
    suffixes: tuple[str, ...]


FORMATS: dict[str, BuiltIn] = {
    "jsonl": BuiltIn("jsonl:FORMAT", (".jsonl", ".ndjson")),
    "conll": BuiltIn("conll:FORMAT", (".conll", ".iob", ".iob2", ".bio", ".bioes", ".tsv", ".annotated")),
    "brat": BuiltIn("brat:FORMAT", (".ann",)),
    "pubtator": BuiltIn("pubtator:FORMAT", (".pubtator", ".pubtator.txt")),
    "bioc": BuiltIn("bioc:BIOC", (".bioc",)),
    "bioc-xml": BuiltIn("bioc:BIOC_XML", (".bioc.xml", ".xml")),
    "bioc-json": BuiltIn("bioc:BIOC_JSON", (".bioc.json",)),
    "spert": BuiltIn("research_json:SPERT", (".spert.json",)),
    "pure": BuiltIn("research_json:PURE", (".pure.jsonl", ".dygie.jsonl")),
    "w2ner": BuiltIn("research_json:W2NER", (".w2ner.json",)),
    "doccano": BuiltIn("annotators:DOCCANO", (".doccano.jsonl",)),
    "prodigy": BuiltIn("annotators:PRODIGY", (".prodigy.jsonl",)),
    "label-studio": BuiltIn("annotators:LABEL_STUDIO", (".label-studio.json",)),
    "gliner": BuiltIn("research_json:GLINER", (".gliner.json",)),
    "ner-tags": BuiltIn("tagged:NER_TAGS", (".tags.jsonl",)),
    "csv": BuiltIn("tagged:CSV", (".csv",)),
    "docbin": BuiltIn("docbin:FORMAT", (".spacy",)),
    "hub": BuiltIn("hub:FORMAT", (".parquet",)),
}
TAG_KEYS = ("ner_tags", "tags", "labels", "ner")  # of records that have a tag for each word
# how a user names the format of the input, and of the output
HOW_TO_NAME_INPUT, HOW_TO_NAME_OUTPUT = (
    "with --format (--from of convert and predict)",
    "with --to (--format of predict)",
)
PROSE = (".txt", ".md", "")  # endings of files that may be plain text
# a line of text in PubTator: id, letter, text; nothing is looked at twice, so that a long line without | costs no more
PUBTATOR_LINE = re.compile(r"(?=\s*+[^|\t])([^|\t\r]++)\|([A-Za-z0-9_]{1,20})\|(.*)", re.DOTALL)


def read(
    path: str | Path,
    format: str | Format | None = None,
    on_error: OnError = "raise",
    problems: Problems | None = None,
    labels: Sequence[str] | None = None,
) -> Iterator[Document]:
    """The documents of a file or folder, one after the other; what does not fit raises, or is put into `problems`.

    A format is a built-in name, the name that an installed package gives it (entry points `wingspan.formats`),
    `module:CONSTANT` of a module in the working directory or installed, or a `Format`; None finds it out. `labels`
    are the names of tags that the file has as numbers.
    """
    problems = problems if problems is not None else Problems(on_error, warns=True)
    path = Path(path)
    return reader_of(format or detect(path), labels)(path, problems)


def reader_of(
    format: str | Format, labels: Sequence[str] | None = None
) -> Callable[[Path, Problems], Iterator[Document]]:
    """The function that reads a format; with `labels`, tags that are numbers have these names."""
    chosen = format_named(format)
    named = chosen.read_named
    if labels is None:
        return chosen.read
    if named is None:
        raise CorpusError(f"format {chosen.name!r} has no tags in numbers, which labels could name; leave them out")
    return lambda path, problems: named(path, problems, labels)


def write(documents: Iterable[Document], path: str | Path, format: str | Format | None = None) -> None:
    """Writes documents under a temporary name, then renames: a failure leaves no half file behind."""
    path = Path(path)
    chosen = format_named(format or by_suffix(path))
    if chosen.write is None:
        raise CorpusError(
            f"{path}: format {chosen.name!r} can be read, not written; choose another {HOW_TO_NAME_OUTPUT}"
        )
    chosen.write(documents, path)


def write_predictions(
    documents: Iterable[Document], path: str | Path, format: str | Format | None = None, model: str = "wingspan"
) -> None:
    """Writes documents whose entities a model found; `model` is its version, for tools that show which one it was."""
    path = Path(path)
    chosen = format_named(format or by_suffix(path))
    if chosen.write_predictions is None:
        write(documents, path, chosen)
    else:
        chosen.write_predictions(documents, path, model)


def keep_apart(output: Path, inputs: Iterable[Path]) -> None:
    """Refuses to write over what is read: the same file or folder, or a brat pair of files of an input."""
    for path in inputs if output.exists() else ():
        pair = output.suffix == ".ann" and path == output.with_suffix(".txt")
        inside = path.suffix in (".txt", ".ann") and path.resolve().is_relative_to(output.resolve())
        if pair or inside or (path.exists() and output.samefile(path)):
            which = "it" if path == output else str(path)
            raise CorpusError(f"{output}: {which} is read, and would be written over; choose another output")


def format_named(name: str | Format) -> Format:
    """The format of a name: built in, of an installed package, or `module:CONSTANT`."""
    if isinstance(name, Format):
        return name
    if name in FORMATS:
        return _constant(f"{__name__}.{FORMATS[name].constant}", name)
    if ":" in name:
        if os.getcwd() not in sys.path:  # last: a file here must not hide an installed module
            sys.path.append(os.getcwd())
        return _constant(name, name)
    installed = {entry.name: entry.value for entry in entry_points(group="wingspan.formats")}
    if name in installed:
        return _constant(installed[name], name)
    raise CorpusError(
        f"unknown format {name!r}; use one of {', '.join([*FORMATS, *installed])}, or module:CONSTANT for your own"
    )


def _constant(place: str, name: str) -> Format:
    """The `Format` at module:CONSTANT; importing it runs the module, which the user has asked for by name."""
    module_name, _, constant = place.partition(":")
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        raise CorpusError(
            f"format {name!r}: there is no module {error.name!r}; install it, or run where {module_name}.py is"
        ) from error
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise CorpusError(f"format {name!r}: module {module_name!r} cannot be imported ({reason}); fix it") from error
    chosen = getattr(module, constant, None)
    if not isinstance(chosen, Format):
        known = [key for key, value in vars(module).items() if isinstance(value, Format)]
        hint = f"; it has {', '.join(known)}" if known else "; make one with wingspan.corpora.formats.Format"
        raise CorpusError(f"format {name!r}: {constant!r} in module {module_name!r} is not a Format{hint}")
    return chosen


# Detection: by the end of the file's name where that is enough, otherwise by the first records


def by_suffix(path: str | Path) -> str:
    """The format that a name asks for, for writing. Longer endings win: .spert.json is enough, .json is not."""
    path = Path(path)
    if name := named(path):
        return name
    if path.is_dir():
        return "brat"
    if path.name.lower().removesuffix(".gz").endswith(".jsonlines"):
        return "jsonl"
    raise CorpusError(
        f"{path}: its name does not say the format; name it {HOW_TO_NAME_OUTPUT} (such as jsonl, conll, brat, spert)"
    )


def named(path: Path) -> str | None:
    """The format with the longest ending that the name has, or None."""
    name = path.name.lower().removesuffix(".gz")
    fitting = [(len(end), known) for known, form in FORMATS.items() for end in form.suffixes if name.endswith(end)]
    return max(fitting)[1] if fitting else None


def detect(path: str | Path) -> str:
    """The format of a file or folder that exists."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(2, "no such file or folder", str(path))
    if path.is_dir():
        if (path / "dataset_info.json").exists() or (path / "dataset_dict.json").exists():
            return "hub"
        for ending, name in (("ann", "brat"), ("parquet", "hub")):
            if any(path.rglob(f"*.{ending}")):
                return name
        raise CorpusError(
            f"{path}: no .ann files in this folder; name one of its files, or its format {HOW_TO_NAME_INPUT}"
        )
    by_name = named(path)
    if by_name == "conll" and _has_headings(path):
        return "csv"
    if by_name and by_name != "jsonl":
        return by_name
    if path.name.lower().removesuffix(".gz").endswith((".jsonl", ".ndjson", ".jsonlines")):
        return _of_records(path) or "jsonl"
    if by_content := _of_content(path)[0]:
        return by_content
    raise CorpusError(
        f"{path}: cannot tell its format from name and content; name it {HOW_TO_NAME_INPUT}, such as jsonl or conll"
    )


LONGEST_HEADING = 10_000  # characters of a line that can name columns


def _has_headings(path: Path) -> bool:
    """Whether the first line names columns of words and tags, as in CSV."""
    from wingspan.corpora.formats.tagged import csv_columns

    first = next((line for _, line in read_lines(path) if line.strip()), "")
    return len(first) < LONGEST_HEADING and csv_columns(first) is not None


def is_prose(path: Path, problems: Problems) -> bool:
    """Whether a file is plain text, by name and content; a note says so where it looks a little like a format."""
    if Path(path.name.removesuffix(".gz")).suffix not in PROSE or not path.is_file() or named(path):
        return False
    try:
        like, sure = _of_content(path)
    except CorpusError:  # only JSON is parsed to be recognized
        like, sure = "JSON", False
    if like and not sure:
        problems.note(path, f"read as text although it looks like {like}; name the format {HOW_TO_NAME_INPUT} if it is")
    return not (like and sure)


def _of_content(path: Path) -> tuple[str | None, bool]:
    """The format that the first lines look like, and whether no text would."""
    if path.suffix == ".txt" and path.with_suffix(".ann").exists():
        return "brat", True
    lines = [line for _, line in islice(read_lines(path), 400) if line.strip()]
    start = lines[0].lstrip() if lines else ""
    if start.startswith("{"):
        try:
            record = json.loads(start)
        except (ValueError, RecursionError):
            record = read_json(path)  # one object over the whole file
        if isinstance(record, dict) and {"documents", "passages", "PubTator3"} & record.keys():
            return "bioc-json", True
    if start.startswith(("[", "{")):
        return _of_records(path), True
    if start.startswith("<"):
        return "bioc-xml", any("<collection" in line for line in lines)
    if lines and (text := PUBTATOR_LINE.fullmatch(lines[0])):
        return "pubtator", text[2] in ("t", "a")
    # columns: the last one of most lines is a tag; a text may have a line or two that end in B or O
    rows = [re.split(r"[ \t]+", line.strip()) for line in lines if not line.startswith(("#", "-DOCSTART-"))]
    tagged = [len(row) for row in rows if len(row) > 1 and re.fullmatch(r"O|[BIMELSUW](?:[-_].+)?", row[-1])]
    if len(tagged) <= 0.5 * len(rows):
        return None, False
    alike = Counter(tagged).most_common(1)[0][1]
    return "conll", (len(rows) >= 3 or "-DOCSTART-" in start) and alike >= 0.9 * len(rows)


def _of_records(path: Path) -> str | None:
    """The format of the first record that is sure of it; one without entities often fits several formats."""
    from wingspan.corpora.formats.records import read_records

    maybe: str | None = None
    for _, record in islice(read_records(path, Problems("skip")), 50):
        sure, name = _of_record(record)
        if name and sure:
            return name
        maybe = maybe or name
    return maybe


def _fits_words(tags: Any, words: list[Any]) -> bool:
    return isinstance(tags, list) and len(tags) == len(words) and all(isinstance(tag, str | int) for tag in tags)


def _of_record(record: dict[str, Any]) -> tuple[bool, str | None]:
    """Whether it is certain, and the format whose keys a record has."""
    keys = record.keys()
    entities = record.get("entities")
    first = entities[0] if isinstance(entities, list) and entities and isinstance(entities[0], dict) else {}
    if "passages" in keys or "documents" in keys:
        return True, "bioc-json"
    if "doc_key" in keys or ("sentences" in keys and "ner" in keys):
        return True, "pure"
    if ("sentence" in keys and "ner" in keys) or ("tokens" in keys and "entity_mentions" in keys):
        return True, "w2ner"
    if "tokenized_text" in keys:
        return True, "gliner"
    words = next((record[key] for key in ("tokens", "words") if isinstance(record.get(key), list)), None)
    if words and "entities" not in keys and any(_fits_words(record.get(key), words) for key in TAG_KEYS):
        return True, "ner-tags"
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
