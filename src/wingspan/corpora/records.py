"""JSON files of records: a list, or one record on each line. Records are read one by one, with their lines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wingspan.corpora.checks import Misfit
from wingspan.corpora.files import atomic_write, numbered, read_json_lines, read_lines, read_text
from wingspan.corpora.formats import Problems
from wingspan.text import Document

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
