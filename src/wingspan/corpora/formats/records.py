"""JSON records: read one by one with their lines, checked value by value, and written with every key they came with."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from wingspan.corpora.formats import HOW_TO_NAME_INPUT, Format, Holds
from wingspan.files import (
    CorpusError,
    Problems,
    atomic_write,
    distinct,
    numbered,
    read_json_lines,
    read_lines,
    read_text,
)
from wingspan.text import Document, Entity, Span, join_words

Json = dict[str, Any]

META = "_meta"  # where a JSON format keeps keys of other formats that have the name of one of its own keys
# the key in `meta`, and its value, with which readers of word formats ask for word records in JSON-lines
SHAPE, WORDS = "record_shape", "words"
COMMON = frozenset({"doc_id", "dataset"})
INSIDE = -1  # an offset inside a character
UNITS = ("code points", "utf-16", "code points, CR LF as one", "utf-16, CR LF as one")

_SPACE = re.compile(r"[ \t\r\n]*")
_BREAK = re.compile(r"[\t\r\n]")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Misfit(ValueError):
    """A record or an entity that cannot be used, in one sentence; file and line are added where it is reported."""


@dataclass(frozen=True)
class RecordRef:
    """One record of a file, for messages and for naming records without an id."""

    path: Path
    line: int | None
    number: int
    problems: Problems

    @property
    def name(self) -> str:
        """An id for a record without one."""
        return numbered(self.path, self.number)

    def complain(self, message: str) -> None:
        """Reports a problem with this record."""
        self.problems.add(self.path, self.line, f"record {self.number}: {message}")


Build = Callable[[Json, RecordRef], Iterable[Document]]


def json_format(
    name: str,
    build: Build,
    record: Callable[[Document], Json],
    holds: Holds,
    *,
    as_list: bool = False,
    changes: Callable[[Document], Counter[str]] | None = None,
) -> Format:
    """A format of JSON records: `build` makes documents of a record, and `record` a record of a document."""

    def read(path: Path, problems: Problems) -> Iterator[Document]:
        return read_documents(path, problems, build)

    def write(documents: Iterable[Document], path: Path) -> None:
        (write_list if as_list else write_lines)(map(record, documents), path)

    return Format(name, read, write, holds, changes)


# Reading and writing files of records: a JSON list, or one record per line


def read_documents(path: Path, problems: Problems, build: Build) -> Iterator[Document]:
    """The documents that `build` makes of the records of a file."""
    return build_documents(read_records(path, problems), path, problems, build)


def build_documents(
    records: Iterable[tuple[int | None, Json]], path: Path, problems: Problems, build: Build
) -> Iterator[Document]:
    """The documents that `build` makes of the records; a record that does not fit is reported and left out."""

    def documents() -> Iterator[Document]:
        for number, (line, record) in enumerate(records, 1):
            ref = RecordRef(path, line, number, problems)
            try:
                yield from build(record, ref)
            except Misfit as misfit:
                ref.complain(f"{misfit}; mend the record, or leave it out with --on-error skip")

    return noting_unused(documents(), path, problems)


# keys under which tools and people keep annotations
_ANNOTATIONS = frozenset(
    [
        *("entities", "entity", "named_entities", "ents", "mentions", "entity_mentions", "spans", "annotations"),
        *("completions", "label", "labels", "tags", "ner", "ner_tags", "ner_labels", "bio", "iob"),
        *("bio_tags", "iob_tags"),
    ]
)


def noting_unused(documents: Iterable[Document], path: Path, problems: Problems) -> Iterator[Document]:
    """The documents; after the last, a warning of keys that look like annotation and were kept, but not read."""
    unused: Counter[str] = Counter()
    for document in documents:
        unused.update(key for key, value in document.meta.items() if _annotates(key, value, document))
        yield document
    for key, count in unused.items():
        problems.warn(
            path,
            f"the key {key!r} of {count} record{'' if count == 1 else 's'} looks like annotation and is not read as "
            f"such; name the format of the file {HOW_TO_NAME_INPUT}, or rename the key if it is something else",
        )


def _annotates(key: str, value: Any, document: Document) -> bool:
    """Whether a key that was kept could be annotation: objects or lists, or a tag for each word."""
    if key.lower() not in _ANNOTATIONS or not value or not isinstance(value, list | dict):
        return False
    nested = any(isinstance(item, list | dict) for item in (value if isinstance(value, list) else value.values()))
    return nested or len(value) == len(document.words or ())


def read_records(path: Path, problems: Problems) -> Iterator[tuple[int, Json]]:
    """The records of a JSON list, or of a file with one record per line, with their lines."""
    first = next((line for _, line in read_lines(path) if line.strip()), "")
    return (_read_list if first.lstrip().startswith("[") else read_json_lines)(path, problems)


def _read_list(path: Path, problems: Problems) -> Iterator[tuple[int, Json]]:
    """Parses record by record, so that only the text and one record are in memory, and every record has its line."""
    text = read_text(path)
    decoder = json.JSONDecoder(object_pairs_hook=distinct)
    at = _skip(text, _skip(text, 0) + 1)
    line, counted = 1, 0
    while text[at : at + 1] != "]":
        line, counted = line + text.count("\n", counted, at), at
        try:
            record, end = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            problems.add(path, error.lineno, f"no valid JSON ({error.msg}); nothing after column {error.colno} is read")
            return
        except (ValueError, RecursionError) as error:  # a key twice, a number of thousands of digits, lists in lists
            problems.add(path, line, f"JSON that cannot be read ({error}); nothing after character {at} is read")
            return
        if not isinstance(record, dict):
            problems.add(path, line, "a list may only hold objects {...} here; remove the other values")
        elif "\\ud" in text[at:end].lower() and _SURROGATE.search(json.dumps(record, ensure_ascii=False)):
            problems.add(path, line, "an escape \\ud... stands alone; write both halves of the character")
        else:
            yield line, record
        at = _skip(text, end)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        elif text[at : at + 1] != "]":
            problems.add(path, line, "the list of records does not end with ]; the file is cut off or damaged here")
            return


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


def write_list(records: Iterable[Json], path: Path) -> None:
    """Writes a JSON list with one record per line."""
    with atomic_write(path) as out:
        out.write("[")
        for number, record in enumerate(records):
            out.write((",\n" if number else "\n") + dumps(record))
        out.write("\n]\n")


def write_lines(records: Iterable[Json], path: Path) -> None:
    """Writes one JSON record per line."""
    with atomic_write(path) as out:
        out.writelines(dumps(record) + "\n" for record in records)


def dumps(record: Json) -> str:
    """A record as one line; values that JSON does not know, such as dates in `meta`, become strings."""
    return json.dumps(record, ensure_ascii=False, default=str)


# Checks of values that come out of a file


def text_of(value: Any, name: str) -> str:
    """A string that can be written again: half a surrogate pair cannot."""
    if not isinstance(value, str):
        raise Misfit(f"{name} is {kind_of(value)}, not a string")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise Misfit(
            f"{name} holds half of a surrogate pair at character {error.start}; write the character whole"
        ) from None
    return value


def label_of(value: Any) -> str:
    """A label: any string on one line that is not empty. Labels may hold spaces."""
    label = text_of(value, "the label")
    if not label.strip():
        raise Misfit("the label is empty; give every entity a label")
    if _BREAK.search(label):
        raise Misfit(f"the label {shorten(label)} holds a tab or line end; rename it")
    return label


def list_of(value: Any, name: str) -> list[Any]:
    """A list; a missing one is empty."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise Misfit(f"{name} is {kind_of(value)}, not a list")
    return value


def record_of(value: Any, name: str) -> Json:
    """An object with keys."""
    if not isinstance(value, dict):
        raise Misfit(f"{name} is {kind_of(value)}, not an object with keys")
    return value


def records_of(value: Any, name: str, one: str) -> list[Json]:
    """A list of objects; a missing one is empty. `one` names a single object in messages."""
    return [record_of(item, one) for item in list_of(value, name)]


def words_of(value: Any, name: str) -> tuple[str, ...]:
    """A list of words, none of them empty."""
    if not isinstance(value, list):
        raise Misfit(f"{name} is {kind_of(value)}, not a list of words")
    words = tuple(text_of(word, f"word {at} of {name}") for at, word in enumerate(value))
    if "" in words:
        raise Misfit(f"word {words.index('')} of {name} is empty; remove it and move the offsets after it")
    return words


def whole(value: Any, name: str) -> int:
    """A whole number, not below zero."""
    if isinstance(value, float) and value.is_integer():  # some exports write 3.0
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise Misfit(f"{name} is {kind_of(value)}, not a whole number")
    if not 0 <= value < 10**12:  # no text is this long
        raise Misfit(f"{name} is {shorten(str(value))}; offsets start at 0 and end with the text")
    return value


def span_of(start: Any, end: Any, size: int, unit: str = "characters") -> Span:
    """A half-open range that is not empty and lies inside the text."""
    span = Span(whole(start, "start"), whole(end, "end"))
    if span.start >= span.end:
        raise Misfit(f"{span.start}-{span.end} holds nothing; ends are half-open, so end must be greater than start")
    if span.end > size:
        raise Misfit(f"{span.start}-{span.end} goes past the end of the text, which has {size} {unit}")
    return span


def range_of(pair: Any, name: str, size: int, unit: str) -> Span:
    """A range that is not empty and lies inside the record; `name` says whose range it is."""
    if not isinstance(pair, list) or len(pair) != 2:
        raise Misfit(f"{name} has {shorten(str(pair))} where [start, end] is needed")
    start, end = whole(pair[0], f"the start of {name}"), whole(pair[1], f"the end of {name}")
    if end > size:
        holder = "sentence" if unit == "word" else "text"
        raise Misfit(f"{name} ends at {unit} {end} but the {holder} has {size} {unit}s; offsets are half-open")
    if start >= end:
        raise Misfit(
            f"{name} goes from {start} to {end} and holds nothing; offsets are half-open, so end is after start"
        )
    return Span(start, end)


def ranges_of(values: Any, name: str, size: int, unit: str) -> tuple[Span, ...]:
    """Ranges in the order of the text that do not overlap."""
    spans = tuple(range_of(pair, f"{name} {at}", size, unit) for at, pair in enumerate(list_of(values, name)))
    for at, (left, right) in enumerate(pairwise(spans)):
        if right.start < left.end:
            raise Misfit(f"{name} {at} and {at + 1} overlap or are out of order; sort them")
    return spans


def pair_of(value: Any, name: str) -> tuple[Any, Any]:
    """The two values of [start, end]."""
    pair = list_of(value, name)
    if len(pair) != 2:
        raise Misfit(f"{name} has {len(pair)} numbers, not [start, end]")
    return pair[0], pair[1]


def same_surface(ours: str, theirs: Any, span: Span) -> None:
    """Compares the text at the offsets with the surface form that the file gives, white space aside."""
    if theirs is not None and "".join(ours.split()) != "".join(text_of(theirs, "the text of an entity").split()):
        raise Misfit(f"the text at {span.start}-{span.end} is {shorten(ours)}, the file says {shorten(theirs)}")


def gather(values: Iterable[Any], build: Callable[[Any], Entity], ref: RecordRef) -> tuple[Entity, ...]:
    """The entities that fit; each of the others is reported."""
    entities = []
    for number, value in enumerate(values, 1):
        try:
            entities.append(build(value))
        except Misfit as misfit:
            ref.complain(f"entity {number}: {misfit}; mend or remove it, or skip such entities with --on-error skip")
    return tuple(entities)


def identity(record: Mapping[str, Any], key: str, default: str) -> str:
    """The id of a record, as a string; the default where it is missing or empty."""
    value = record.get(key)
    if value is None or value == "":
        return default
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise Misfit(f"{key} is {kind_of(value)}, not a string or a number")
    return text_of(str(int(value) if isinstance(value, float) and value.is_integer() else value), key)


def numeric(name: str) -> int | str:
    """An id as its tool writes it: digits as a number."""
    return int(name) if name.isascii() and name.isdigit() and str(int(name[:18])) == name else name


def score_of(value: Any) -> float:
    """A score, or 1 where there is none."""
    if value is None:
        return 1.0
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Misfit(f"the score is {kind_of(value)}, not a number")
    return float(value)


def refuse_fragments(document: Document, tool: str) -> None:
    """Stops a writer whose format has one range per entity; `convert --lossy` makes such documents fit."""
    for entity in document.entities:
        if entity.discontinuous:
            raise CorpusError(
                f"document {document.id}: {tool} cannot hold the discontinuous {entity.label!r} at "
                f"{entity.start}-{entity.end}; `wingspan convert --lossy` makes an entity of each fragment"
            )


def kind_of(value: Any) -> str:
    """The type of a value, in words that a user of JSON knows."""
    names = {type(None): "missing", bool: "true or false", str: "a string", int: "a number", float: "a number"}
    return {**names, list: "a list", dict: "an object"}.get(type(value), type(value).__name__)


def shorten(text: str, size: int = 40) -> str:
    """A text in quotes, cut to a size that fits a message."""
    return repr(text if len(text) <= size else text[: size - 3] + "...")


# Keys that a format has no place for: read into `meta`, written back


def other_keys(record: Mapping[str, Any], own: frozenset[str]) -> Json:
    """The keys that a format does not know, to be kept in `meta`."""
    kept = {key: value for key, value in record.items() if key not in own}
    stored = kept.get(META)
    if isinstance(stored, dict) and stored.keys() <= {*own, META}:  # otherwise it is a key of the file's own
        del kept[META]
        kept |= stored
    return kept


def with_meta(record: Json, meta: Mapping[str, Any], own: frozenset[str]) -> Json:
    """A record and the keys that were kept for it; keys with the name of one of its own go under `_meta`."""
    plain = {key: value for key, value in meta.items() if key not in own and key not in (SHAPE, META)}
    hidden = {key: value for key, value in meta.items() if key in own or key == META}
    return {**record, **plain, **({META: hidden} if hidden else {})}


def common_fields(record: Mapping[str, Any], own: frozenset[str], **meta: Any) -> Json:
    """Fields that most JSON formats have no key for: group (`doc_id`), dataset, and the keys kept in `meta`."""
    dataset = record.get("dataset")
    return {
        "group": identity(record, "doc_id", "") or None,
        "dataset": "main" if dataset is None or dataset == "" else text_of(dataset, "dataset"),
        "meta": {**other_keys(record, own | COMMON), **meta},
    }


def with_common_fields(record: Json, document: Document, own: frozenset[str]) -> Json:
    """A record with the group, dataset and meta of its document."""
    return with_meta({**record, **group_and_dataset(document)}, document.meta, own | COMMON)


def group_and_dataset(document: Document) -> Json:
    """The keys `doc_id` and `dataset`, where they say something."""
    group = {} if document.group is None else {"doc_id": document.group}
    return group if document.dataset == "main" else {**group, "dataset": document.dataset}


@dataclass(frozen=True)
class EntityKeys:
    """The keys under which a JSON format has an entity of one range; all other keys are kept in `meta`."""

    label: str
    start: str = "start"
    end: str = "end"
    score: bool = True
    surface: str | None = None
    derived: tuple[str, ...] = ()
    """Keys that follow from the others and are written anew."""

    @property
    def own(self) -> frozenset[str]:
        """All of them."""
        keys = {self.label, self.start, self.end, *self.derived}
        return frozenset(keys | ({"score"} if self.score else set()) | ({self.surface} if self.surface else set()))

    def read(self, value: Any, text: str | tuple[str, ...]) -> Entity:
        """An entity of a text, in characters, or of words, in words."""
        raw = record_of(value, "an entity")
        unit = "characters" if isinstance(text, str) else "words"
        span = span_of(raw.get(self.start), raw.get(self.end), len(text), unit)
        if self.surface:
            inside = text[span.start : span.end]
            same_surface(inside if isinstance(inside, str) else join_words(inside), raw.get(self.surface), span)
        score = score_of(raw.get("score")) if self.score else 1.0
        return Entity(label_of(raw.get(self.label)), (span,), score, other_keys(raw, self.own))

    def write(self, entity: Entity, span: Span) -> Json:
        """The object of an entity at a range of characters or words."""
        row = {self.label: entity.label, self.start: span.start, self.end: span.end}
        if self.score and entity.score != 1.0:
            row["score"] = entity.score
        return with_meta(row, entity.meta, self.own)


# Offsets in other units than code points


def positions(text: str, unit: str) -> Sequence[int]:
    """Where each offset of the unit lies in code points, with the end of the text.

    Half of a UTF-16 pair (which JavaScript counts in) lies at its character's start, a later byte nowhere: `INSIDE`.
    """
    wide, joined = unit.startswith("utf-16"), unit.endswith("as one")
    if (text.isascii() or not (wide or unit == "bytes")) and not (joined and "\r\n" in text):
        return range(len(text) + 1)
    places: list[int] = []
    for at, character in enumerate(text):
        if unit == "bytes":
            places += [at, *[INSIDE] * (len(character.encode("utf-8", "surrogatepass")) - 1)]
        elif not (joined and character == "\n" and text[at - 1 : at] == "\r"):
            places += [at] * (1 + (wide and ord(character) > 0xFFFF))
    return [*places, len(text)]
