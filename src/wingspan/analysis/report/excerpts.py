"""The part of a long document that is worth looking at, with its entities at their new places."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from wingspan.text import Document, Entity, Span

SHORT = 500
"""A text of so many characters is shown as a whole."""
MARGIN = 140
ELLIPSIS = "… "


def windows(text: str, places: Iterable[Span]) -> list[Span]:
    """Ranges of the text around the places, ending between words; those that touch are one."""
    if len(text) <= SHORT:
        return [Span(0, len(text))]
    found: list[Span] = []
    for place in sorted(places):
        window = Span(_border(text, place.start - MARGIN, -1), _border(text, place.end + MARGIN, +1))
        if found and window.start <= found[-1].end:
            found[-1] = Span(found[-1].start, max(found[-1].end, window.end))
        else:
            found.append(window)
    return found


def _border(text: str, at: int, step: int) -> int:
    """The next white space in a direction, within reach; texts without any are cut where they are."""
    at = max(0, min(len(text), at))
    for moved in range(at, max(0, min(len(text), at + 40 * step)), step):
        if text[moved : moved + 1].isspace():
            return moved + 1 if step < 0 else moved
    return at if 40 <= at <= len(text) - 40 else (0 if step < 0 else len(text))


def cropped(document: Document, window: Span) -> Document:
    """The document within a window, dots where something is left out. Entities are cut at its edges."""
    if window == Span(0, len(document.text)):
        return document
    before = ELLIPSIS if window.start > 0 else ""
    after = ELLIPSIS[::-1] if window.end < len(document.text) else ""
    moved = len(before) - window.start
    entities = []
    for entity in document.entities:
        cut = (Span(max(span.start, window.start), min(span.end, window.end)) for span in entity.spans)
        spans = tuple(Span(start + moved, end + moved) for start, end in cut if start < end)
        if spans:
            entities.append(Entity(entity.label, spans, entity.score))
    text = before + document.text[window.start : window.end] + after
    return replace(document, text=text, entities=tuple(entities), words=None, sentences=None)
