"""Mentions of standoff formats: offsets, and the surface beside them in the file, checked against the text.

Formats define what offsets count, and tools often count something else. The surfaces decide: a file was written in the
unit in which most of them fit.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wingspan.corpora.formats.records import INSIDE, Misfit, label_of, positions, shorten
from wingspan.text import Entity, Span

UNITS = ("code points", "utf-16", "bytes")
_NEARBY = 1000  # characters in which a surface that is not at its offsets is looked for


@dataclass(frozen=True)
class Mention:
    """One annotation of a file: its pieces in the file's unit, relative to the text."""

    label: str
    pieces: tuple[tuple[int, int], ...]
    surface: str | None
    line: int | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)


def best_unit(text: str, mentions: Sequence[Mention]) -> str:
    """The unit in which most surfaces fit the text; code points unless another one is better."""
    if text.isascii() or fitting(text, mentions) == sum(mention.surface is not None for mention in mentions):
        return UNITS[0]
    return max(UNITS, key=lambda unit: fitting(text, mentions, unit))


def fitting(text: str, mentions: Sequence[Mention], unit: str = UNITS[0]) -> int:
    """How many surfaces fit the text if offsets count in that unit."""
    places = positions(text, unit)
    count = 0
    for mention in mentions:
        spans = placed(mention, places)
        count += mention.surface is not None and not isinstance(spans, str) and fits(text, spans, mention)
    return count


def placed(mention: Mention, places: Sequence[int]) -> tuple[Span, ...] | str:
    """The mention's pieces in code points, in the order of the surface, or what is wrong with them."""
    spans = []
    for start, end in mention.pieces:
        where = f'entity "{mention.label}" at {start}-{end}'
        if start < 0:
            return f"{where} starts before the text; offsets start at 0"
        if start >= end:
            return f"{where} holds nothing; ends are half-open, so the end is greater than the start"
        if end >= len(places):
            return f"{where} goes past the end of the text, which ends at {len(places) - 1}; correct the offsets"
        span = Span(places[start], places[end])
        if INSIDE in span or span.start >= span.end:
            return f"{where} cuts a character in half; correct the offsets"
        spans.append(span)
    return tuple(spans)


def fits(text: str, spans: Sequence[Span], mention: Mention) -> bool:
    """Whether the text at the spans is the surface, white space aside."""
    if mention.surface is None:
        return True
    ours, theirs = _surface(text, spans).split(), mention.surface.split()
    # tools join fragments with a blank, or with nothing
    return ours == theirs or (len(spans) > 1 and "".join(ours) == "".join(theirs))


def entities_of(
    text: str,
    mentions: Iterable[Mention],
    unit: str,
    complain: Callable[[int | None, str], None],
    merge: Callable[[tuple[Span, ...], Mention], tuple[Span, ...]] | None = None,
) -> tuple[list[Entity], int]:
    """The entities of a text, and how many surfaces differ from the text at their place but clearly mean it."""
    places = positions(text, unit)
    entities, inexact = [], 0
    for mention in mentions:
        try:
            label_of(mention.label)
        except Misfit as misfit:
            complain(mention.line, str(misfit))
            continue
        spans = placed(mention, places)
        if isinstance(spans, str):
            complain(mention.line, spans)
            continue
        if not fits(text, spans, mention):
            ours, theirs = _surface(text, spans), mention.surface or ""
            # apart from case, blanks for signs, and ASCII for other letters (TNF-a for TNF-α)
            alike = len(ours) == len(theirs) and all(
                a.casefold() == b.casefold() or b in " ?" or not a.isascii() for a, b in zip(ours, theirs, strict=True)
            )
            if not alike:
                complain(mention.line, _mismatch(text, spans, mention))
                continue
            inexact += 1
        entities.append(Entity(mention.label, merge(spans, mention) if merge else spans, meta=mention.meta))
    return entities, inexact


def _surface(text: str, spans: Sequence[Span]) -> str:
    return " ".join(text[span.start : span.end] for span in spans)


def _mismatch(text: str, spans: Sequence[Span], mention: Mention) -> str:
    surface = mention.surface or ""
    start, end = spans[0].start, spans[-1].end
    message = f'entity "{mention.label}" at {start}-{end} is {shorten(_surface(text, spans))} in the text, '
    message += f"but the file says {shorten(surface)}"
    # only nearby, because a file may have many mentions that are off, and a long text
    first, last = max(0, start - _NEARBY), end + _NEARBY
    found = (text.rfind(surface, first, end), text.find(surface, start, last)) if len(spans) == 1 and surface else ()
    places = [place for place in found if place >= 0]
    if not places:
        return f"{message}; correct the offsets or the surface"
    nearest = min(places, key=lambda place: abs(place - start))
    return f"{message}, which is at {nearest}-{nearest + len(surface)}; correct the offsets"
