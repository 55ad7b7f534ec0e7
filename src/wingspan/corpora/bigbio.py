"""Rows in the BigBIO knowledge-base schema: passages with offsets, entities with fragments and concept ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wingspan.corpora.checks import (
    Misfit,
    gather,
    identity,
    label_of,
    list_of,
    other_keys,
    record_of,
    same_surface,
    span_of,
    text_of,
    whole,
)
from wingspan.text import Document, Entity, Span

_OWN = frozenset({"id", "document_id", "passages", "entities"})
_OWN_OF_ENTITY = frozenset({"type", "text", "offsets"})


def is_bigbio(columns: set[str]) -> bool:
    """Whether a dataset with these columns follows the schema."""
    return {"passages", "entities"} <= columns


def document_of(row: dict[str, Any], name: str, complain: Callable[[str], None]) -> Document:
    """A row as one document; passages stand at their offsets, with spaces where the passages leave gaps."""
    text = ""
    for passage in rows_of(row.get("passages"), "passages"):
        parts = list_of(passage.get("text"), "the text of a passage")
        offsets = list_of(passage.get("offsets"), "the offsets of a passage")
        if len(parts) != len(offsets):
            raise Misfit(f"a passage has {len(parts)} texts and {len(offsets)} offsets")
        for part, pair in zip(parts, offsets, strict=True):
            text = _append(text, text_of(part, "the text of a passage"), _pair(pair))
    entities = gather(rows_of(row.get("entities"), "entities"), lambda raw: _entity(raw, text), complain)
    return Document(identity(row, "document_id", name), text, tuple(entities), meta=other_keys(row, _OWN))


def _append(text: str, part: str, pair: list[Any]) -> str:
    start = whole(pair[0], "the start of a passage")
    if start < len(text):
        raise Misfit(f"a passage starts at {start}, inside of the one before it, which ends at {len(text)}")
    if start > len(text) + 1_000_000:
        raise Misfit(f"a passage starts at {start}, more than a million characters after the one before it")
    return text.ljust(start) + part


def _entity(raw: dict[str, Any], text: str) -> Entity:
    pairs = [_pair(pair) for pair in list_of(raw.get("offsets"), "offsets")]
    if not pairs:
        raise Misfit("an entity without offsets")
    spans = tuple(span_of(start, end, len(text)) for start, end in pairs)
    surfaces = list_of(raw.get("text"), "text")
    if len(surfaces) == len(spans):
        for span, surface in zip(spans, surfaces, strict=True):
            same_surface(text[span.start : span.end], surface, Span(*span))
    return Entity(label_of(raw.get("type")), spans, meta=other_keys(raw, _OWN_OF_ENTITY))


def _pair(value: Any) -> list[Any]:
    pair = list_of(value, "an offset")
    if len(pair) != 2:
        raise Misfit(f"an offset has {len(pair)} numbers, not [start, end]")
    return pair


def rows_of(value: Any, name: str) -> list[dict[str, Any]]:
    """A list of objects; older datasets store it as an object of lists."""
    if isinstance(value, dict):
        columns = {key: list_of(column, f"{name}.{key}") for key, column in value.items()}
        size = min(map(len, columns.values()), default=0)
        return [{key: column[at] for key, column in columns.items()} for at in range(size)]
    return [record_of(item, f"one of {name}") for item in list_of(value, name)]
