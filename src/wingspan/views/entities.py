"""Entities as every view shows them: one color for each label and, beside gold, one verdict for each entity."""

import zlib
from collections import Counter
from collections.abc import Iterable
from typing import Literal

from wingspan.text import Document, Entity

PALETTE = ("#0274e0", "#b06202", "#008923", "#db0ca0", "#028383", "#ec001a", "#9945f9", "#7f7803")
"""Eight hues of one luminance, which has a contrast of at least 4.5 to both black and white backgrounds."""

EntityVerdict = Literal["found", "right", "spurious", "missed"]
VERDICTS: tuple[EntityVerdict, ...] = ("right", "spurious", "missed")
VERDICT_COLORS: dict[EntityVerdict, str | None] = {
    "found": None,  # the label's own color
    "right": PALETTE[2],
    "spurious": PALETTE[1],
    "missed": PALETTE[3],
}


def label_colors(labels: Iterable[str]) -> dict[str, str]:
    """A color for each label; two share one only when there are more labels than colors.

    It follows from the name and gives way only to labels that come earlier in the alphabet, so it seldom changes.
    """
    colors: dict[str, str] = {}
    for label in sorted(set(labels)):
        first = zlib.crc32(label.encode("utf-8", "surrogatepass")) % len(PALETTE)
        turned = PALETTE[first:] + PALETTE[:first]
        colors[label] = next((color for color in turned if color not in colors.values()), turned[0])
    return colors


def judged(document: Document, gold: Document | None) -> list[tuple[Entity, EntityVerdict]]:
    """All entities to show, in reading order. An entity is right if gold has its label and boundaries, one to one."""
    if gold is None:
        return [(entity, "found") for entity in document.entities]
    if gold.text != document.text:
        raise ValueError(f"document {document.id!r} and its gold {gold.id!r} differ in their text; compare equal texts")
    open_gold = Counter(gold.entities)
    verdicts: list[tuple[Entity, EntityVerdict]] = []
    for entity in document.entities:
        verdicts.append((entity, "right" if open_gold[entity] > 0 else "spurious"))
        open_gold[entity] -= 1
    verdicts += [(entity, "missed") for entity in (+open_gold).elements()]
    return sorted(verdicts, key=lambda pair: pair[0].spans)


def misfit(entity: Entity, document: Document) -> str:
    """Why an entity cannot be drawn: a fragment is empty or lies outside the text. Empty where it can."""
    if all(0 <= start < end <= len(document.text) for start, end in entity.spans):
        return ""
    place = ", ".join(f"{start}-{end}" for start, end in entity.spans)
    return f"not drawn: {entity.label} at {place}; the text ends at {len(document.text)}"
