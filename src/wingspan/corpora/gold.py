"""A document as a system may see it: without its gold entities, and without what a file says about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from wingspan.text import Document

ABOUT_ENTITIES = frozenset({"brat", "relations", "events", "coreferences"})
"""What readers keep of a document that names its entities."""
LAYOUTS = frozenset({"bioc", "pubtator"})
"""What readers keep of its passages, relations among it."""


def without_gold(document: Document) -> Document:
    """No entities; and no notes or relations, which would end up at the entities that are found."""
    kept = {key: value for key, value in document.meta.items() if key not in ABOUT_ENTITIES}
    meta = {key: _without_relations(value) if key in LAYOUTS else value for key, value in kept.items()}
    return replace(document, entities=(), meta=meta)


def _without_relations(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_relations(part) for key, part in value.items() if key not in ABOUT_ENTITIES}
    return [_without_relations(part) for part in value] if isinstance(value, list) else value
