"""OBO ontologies: the names of their terms. https://owlcollab.github.io/oboformat/doc/GO.format.obo-1_4.html"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from wingspan.corpora.checks import shorten
from wingspan.corpora.concepts import Concept
from wingspan.corpora.files import read_lines
from wingspan.corpora.formats import Problems

SAME_MEANING = ("EXACT", "RELATED")
"""Scopes that are taken as synonyms; a BROAD or NARROW one names another meaning."""

_STANZA = re.compile(r"\[(\w+)\]\s*(?:!.*)?")
_TAG = re.compile(r"([\w-]+):\s*(.*)")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"\s*(?:(EXACT|BROAD|NARROW|RELATED)\b)?(.*)')
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": " ", "t": " ", "W": " "}
_MODIFIERS = re.compile(r"(?:\s+\{[^{}]*\})?(?:\s+!.*)?$")  # {comment="..."} and ! remark behind a value

Values = dict[str, list[str]]


def read_obo(path: Path, problems: Problems) -> Iterator[Concept]:
    """The terms with their names and synonyms; the type is the namespace. Obsolete terms are left out and noted."""
    default: tuple[str, ...] = ()
    obsolete = 0
    for kind, number, values in _stanzas(path, problems):
        if kind == "header":
            default = tuple(values["default-namespace"][-1:])
        elif kind == "Term":
            if values["is_obsolete"] == ["true"]:
                obsolete += 1
            elif not values["id"] or not values["name"]:
                missing = "an id" if not values["id"] else "a name"
                problems.add(path, number, f"a term without {missing}; give id: and name: below [Term]")
            else:
                names = (*values["name"][:1], *values["synonym"])
                yield Concept(values["id"][0], names, tuple(values["namespace"]) or default)
    if obsolete:
        problems.note(path, f"{obsolete:,} obsolete terms are left out")


def _stanzas(path: Path, problems: Problems) -> Iterator[tuple[str, int, Values]]:
    """The parts of a file: what it is, the line where it starts, and the values of each tag."""
    kind, start = "header", 1
    values: Values = defaultdict(list)
    for number, line in read_lines(path):
        line = line.strip()
        if not line or line.startswith("!"):
            continue
        if stanza := _STANZA.fullmatch(line):
            yield kind, start, values
            kind, start, values = stanza[1], number, defaultdict(list)
        elif not (tag := _TAG.fullmatch(line)):
            problems.add(path, number, f"{shorten(line)} is no line of an OBO file; write tag: value")
        elif tag[1] == "synonym":
            _add_synonym(values, tag[2], path, number, problems)
        elif tag[1] in ("id", "name", "namespace", "default-namespace", "is_obsolete"):
            value = _plain(_MODIFIERS.sub("", tag[2]))
            if value:
                values[tag[1]].append(value)
    yield kind, start, values


def _add_synonym(values: Values, value: str, path: Path, number: int, problems: Problems) -> None:
    found = _QUOTED.fullmatch(value)
    if not found or not _plain(found[1]):
        problems.add(path, number, f'{shorten(value)} is no synonym; write synonym: "name" EXACT []')
    elif (found[2] or "RELATED") in SAME_MEANING:
        values["synonym"].append(_plain(found[1]))


def _plain(value: str) -> str:
    """The value without its escapes, on one line."""
    return " ".join(_ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]), value).split())
