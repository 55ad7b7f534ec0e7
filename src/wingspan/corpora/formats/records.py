"""JSON files of records: a list, or one record on each line. Records are read one by one, with their lines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wingspan.files import CorpusError, Problems, atomic_write, numbered, read_json_lines, read_lines, read_text
from wingspan.text import Document, Entity, Span

_SPACE = re.compile(r"[ \t\r\n]*")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Place:
    """Where a record stands, for messages and for the names of records without an id."""

    path: Path
    line: int | None
    number: int
    problems: Problems

    @property
    def name(self) -> str:
        """An id for a record that has none."""
        return numbered(self.path, self.number)

    def complain(self, message: str) -> None:
        """Tells what does not fit."""
        self.problems.add(self.path, self.line, f"record {self.number}: {message}")


def read_documents(
    path: Path, problems: Problems, build: Callable[[dict[str, Any], Place], Iterable[Document]]
) -> Iterator[Document]:
    """The documents that `build` makes of the records; a record that does not fit is told and left out."""
    for number, (line, record) in enumerate(read_records(path, problems), 1):
        place = Place(path, line, number, problems)
        try:
            yield from build(record, place)
        except Misfit as misfit:
            place.complain(f"{misfit}; mend the record, or leave it out with --on-error skip")


def read_records(path: Path, problems: Problems) -> Iterator[tuple[int, dict[str, Any]]]:
    """The records of a JSON list, or of a file with one record on each line, with their lines."""
    if _starts_list(path):
        return _read_list(path, problems)
    return read_json_lines(path, problems)


def _starts_list(path: Path) -> bool:
    return next((line.lstrip().startswith("[") for _, line in read_lines(path) if line.strip()), False)


def _read_list(path: Path, problems: Problems) -> Iterator[tuple[int, dict[str, Any]]]:
    """Parses record by record, so that only the text and one record are in memory, and every record has its line."""
    text = read_text(path)
    decoder = json.JSONDecoder()
    at = _skip(text, _skip(text, 0) + 1)
    line, counted = 1, 0
    while text[at : at + 1] != "]":
        try:
            record, end = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            problems.add(path, error.lineno, f"no valid JSON ({error.msg}); nothing after column {error.colno} is read")
            return
        except (ValueError, RecursionError) as error:  # a number of thousands of digits, or lists in lists in lists
            problems.add(path, None, f"JSON that cannot be read ({error}); nothing after character {at} is read")
            return
        line, counted = line + text.count("\n", counted, at), at
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
    found = _SPACE.match(text, at)
    return found.end() if found else at


def write_list(records: Iterable[dict[str, Any]], path: Path) -> None:
    """Writes a JSON list with one record on each line."""
    with atomic_write(path) as out:
        out.write("[")
        for number, record in enumerate(records):
            out.write(",\n" if number else "\n")
            out.write(dumps(record))
        out.write("\n]\n")


def write_lines(records: Iterable[dict[str, Any]], path: Path) -> None:
    """Writes one JSON record on each line."""
    with atomic_write(path) as out:
        for record in records:
            out.write(dumps(record) + "\n")


def dumps(record: dict[str, Any]) -> str:
    """A record as one line; what JSON does not know, such as dates in `meta`, becomes a string."""
    return json.dumps(record, ensure_ascii=False, default=str)


# --- Checks on values that come out of a file. What does not fit is a `Misfit`: one sentence, told with file and
# line.


META = "_meta"
"""Where a JSON format keeps keys of other formats that have the name of one of its own."""

SHAPE, WORDS = "record_shape", "words"
"""The key in `meta`, and its value, by which readers of word formats ask for word records in JSON-lines."""
FAR = 10**12
"""No text is as long as this; larger numbers are no offsets."""
COMMON = frozenset({"doc_id", "dataset"})


class Misfit(ValueError):
    """A record or an entity that cannot be used as it is."""


def text_of(value: Any, name: str) -> str:
    """A string that can be written again: half a surrogate pair cannot."""
    if not isinstance(value, str):
        raise Misfit(f"{name} is {kind_of(value)}, not a string")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise Misfit(
                f"{name} holds half of a surrogate pair at character {error.start}; write the character whole"
            ) from None
    return value


def label_of(value: Any) -> str:
    """A label: any string that is not empty. Labels may hold spaces."""
    label = text_of(value, "the label")
    if not label.strip():
        raise Misfit("the label is empty; give every entity a label")
    return label


def list_of(value: Any, name: str) -> list[Any]:
    """A list; nothing at all counts as an empty one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise Misfit(f"{name} is {kind_of(value)}, not a list")
    return value


def record_of(value: Any, name: str) -> dict[str, Any]:
    """An object with keys."""
    if not isinstance(value, dict):
        raise Misfit(f"{name} is {kind_of(value)}, not an object with keys")
    return value


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
    if not 0 <= value < FAR:
        raise Misfit(f"{name} is {shorten(str(value))}; offsets start at 0 and end with the text")
    return value


def span_of(start: Any, end: Any, size: int, unit: str = "characters") -> Span:
    """A half-open range that holds something and lies inside of the text."""
    span = Span(whole(start, "start"), whole(end, "end"))
    if span.start >= span.end:
        raise Misfit(f"{span.start}-{span.end} holds nothing; ends are half-open, so end must be greater than start")
    if span.end > size:
        raise Misfit(f"{span.start}-{span.end} goes past the end of the text, which has {size} {unit}")
    return span


def same_surface(found: str, given: Any, span: Span) -> None:
    """Compares the text at the offsets with the surface form that the file gives, white space aside."""
    if isinstance(given, str) and found.split() != given.split():
        raise Misfit(f"the text at {span.start}-{span.end} is {shorten(found)}, the file says {shorten(given)}")


def gather(values: Iterable[Any], build: Callable[[Any], Entity], complain: Callable[[str], None]) -> list[Entity]:
    """The entities that fit; the others are told one by one."""
    entities = []
    for at, value in enumerate(values):
        try:
            entities.append(build(value))
        except Misfit as misfit:
            complain(f"entity {at + 1}: {misfit}; mend or remove it, or skip such entities with --on-error skip")
    return entities


def identity(record: Mapping[str, Any], key: str, otherwise: str) -> str:
    """The id that a record gives itself, as a string."""
    value = record.get(key)
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        return otherwise
    return text_of(str(value), key)


def numeric(name: str) -> int | str:
    """An id as its tool writes it: digits as a number."""
    return int(name) if name.isascii() and name.isdigit() and str(int(name[:18])) == name else name


def score_of(value: Any) -> float:
    """A score, or 1 where there is none."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 1.0


def other_keys(record: Mapping[str, Any], own: frozenset[str]) -> dict[str, Any]:
    """The keys that a format does not know, to be kept in `meta`."""
    kept = {key: value for key, value in record.items() if key not in own and key != META}
    stored = record.get(META)
    return {**kept, **stored} if isinstance(stored, dict) else kept


def with_meta(record: dict[str, Any], meta: Mapping[str, Any], own: frozenset[str]) -> dict[str, Any]:
    """A record and the keys that were kept for it; those named like one of its own go under `_meta`."""
    plain = {key: value for key, value in meta.items() if key not in own and key != SHAPE}
    hidden = {key: value for key, value in meta.items() if key in own}
    return {**record, **plain, **({META: hidden} if hidden else {})}


def common_fields(record: Mapping[str, Any], own: frozenset[str], **meta: Any) -> dict[str, Any]:
    """What JSON formats have no key of their own for: group (`doc_id`), dataset, and the keys kept in `meta`."""
    dataset = record.get("dataset")
    return {
        "group": identity(record, "doc_id", "") or None,
        "dataset": text_of(dataset, "dataset") if isinstance(dataset, str) and dataset else "main",
        "meta": {**other_keys(record, own | COMMON), **meta},
    }


def with_common_fields(record: dict[str, Any], document: Document, own: frozenset[str]) -> dict[str, Any]:
    """A record with group, dataset and meta of its document."""
    if document.group is not None:
        record["doc_id"] = document.group
    if document.dataset != "main":
        record["dataset"] = document.dataset
    return with_meta(record, document.meta, own | COMMON)


def refuse_fragments(document: Document, tool: str) -> None:
    """Stops a writer whose format has one range for each entity; `convert --lossy` makes such documents fit."""
    for entity in document.entities:
        if entity.discontinuous:
            raise CorpusError(
                f"document {document.id}: {tool} cannot hold the discontinuous {entity.label!r} at "
                f"{entity.start}-{entity.end}; `wingspan convert --lossy` makes an entity of each fragment"
            )


def kind_of(value: Any) -> str:
    """What a value is, in words that a user of JSON knows."""
    if value is None:
        return "missing"
    if isinstance(value, bool):
        return "true or false"
    names = {str: "a string", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return names.get(type(value), type(value).__name__)


def shorten(text: str, size: int = 40) -> str:
    """A text in quotes, cut to a size that fits a message."""
    return repr(text if len(text) <= size else text[: size - 3] + "...")


# --- Offsets in other units than code points: UTF-16 units, and texts in which a browser made one character of CR
# LF.


ASTRAL = 0xFFFF
"""Code points above this one are two units in UTF-16, which is what JavaScript counts in."""

UNITS = ("code points", "utf-16", "code points, CR LF as one", "utf-16, CR LF as one")


def positions(text: str, unit: str) -> Sequence[int]:
    """Where each offset of the unit lies in code points; half of a character lies at its start. The end is included."""
    wide, joined = unit.startswith("utf-16"), unit.endswith("as one")
    if (not wide or text.isascii()) and not (joined and "\r\n" in text):
        return range(len(text) + 1)
    found: list[int] = []
    for at, character in enumerate(text):
        if joined and character == "\n" and text[at - 1 : at] == "\r":
            continue
        found.append(at)
        if wide and ord(character) > ASTRAL:
            found.append(at)
    found.append(len(text))
    return found
