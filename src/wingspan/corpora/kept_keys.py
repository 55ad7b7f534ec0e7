"""Keys of `meta` that a format keeps, compared before and after: what does not come back as it was is counted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from wingspan.corpora.formats import Holds
from wingspan.text import Document, Entity, Span

_NOTHING: Mapping[str, Any] = {}


def of_document(key: str) -> str:
    """The description of a lost value of documents."""
    return f"values of {key!r} of documents (not written)"


def of_entity(key: str) -> str:
    """The description of a lost value of entities."""
    return f"values of {key!r} of entities (not written)"


def changed(document: Document, after: Iterable[Document], holds: Holds) -> Counter[str]:
    """Which values of the keys that a format names as kept are otherwise, or gone, once a document is read again."""
    back = next(iter(after), None)
    lost = Counter(map(of_document, _differing(document.meta, back.meta if back else _NOTHING, holds.document_keys)))
    places: defaultdict[tuple[str, tuple[Span, ...]], list[Entity]] = defaultdict(list)
    for entity in back.entities if back else ():
        places[entity.label, entity.spans].append(entity)
    for entity in document.entities:
        same_place = places[entity.label, entity.spans]
        meta = same_place.pop(0).meta if same_place else _NOTHING
        lost.update(map(of_entity, _differing(entity.meta, meta, holds.entity_keys)))
    return lost


def _differing(before: Mapping[str, Any], after: Mapping[str, Any], keys: frozenset[str]) -> list[str]:
    return [key for key, value in before.items() if key in keys and (key not in after or after[key] != value)]
