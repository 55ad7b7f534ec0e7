"""What is shown of a document beside its gold: each entity once, as right, spurious or missed."""

from __future__ import annotations

from collections import Counter
from typing import Literal

from wingspan.text import Document, Entity
from wingspan.views.colors import PALETTE

Verdict = Literal["found", "right", "spurious", "missed"]

COLORS: dict[Verdict, str | None] = {
    "found": None,
    "right": PALETTE[2],
    "spurious": PALETTE[1],
    "missed": PALETTE[3],
}
"""The color of a verdict; None: the label's own."""


def judged(document: Document, gold: Document | None) -> list[tuple[Entity, Verdict]]:
    """All entities to show, in reading order. Right is what has the gold's label and boundaries, one to one."""
    if gold is None:
        return [(entity, "found") for entity in document.entities]
    if gold.text != document.text:
        raise ValueError(f"document {document.id!r} and its gold {gold.id!r} differ in their text; compare equal texts")
    open_gold = Counter(gold.entities)
    verdicts: list[tuple[Entity, Verdict]] = []
    for entity in document.entities:
        verdicts.append((entity, "right" if open_gold[entity] > 0 else "spurious"))
        open_gold[entity] -= 1
    verdicts += [(entity, "missed") for entity in (+open_gold).elements()]
    return sorted(verdicts, key=lambda pair: pair[0].spans)


def fits(entity: Entity, document: Document) -> bool:
    """Whether every fragment holds characters of the text."""
    return all(0 <= start < end <= len(document.text) for start, end in entity.spans)
