"""Checks on values that come out of a file. What does not fit is a `Misfit`: one sentence, told with file and line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from wingspan.corpora.formats import CorpusError
from wingspan.text import Document, Entity, Span

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
