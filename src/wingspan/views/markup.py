"""A document as HTML: text with a lane of bars below it for overlaps, fragments joined by a dotted line, no script.

Everything is inline: lines wrap where the reader's window wants them to, scripts from right to left keep their order,
and a label stands behind the last character of its entity, where it can hide nothing.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from wingspan.text import Document, Entity
from wingspan.views.colors import label_colors
from wingspan.views.lanes import Piece, lanes, pieces
from wingspan.views.verdicts import COLORS, Verdict, fits, judged

SIGNS: dict[Verdict, str] = {"found": "", "right": "✓\u00a0", "spurious": "+\u00a0", "missed": "✗\u00a0"}
PITCH = 5
"""Pixels from lane to lane; less where so many lie above each other that a line would become too high."""
HIGHEST = 60
NARROW_SPACE = "\u202f"  # forbids a line break between an entity and its label
PICTURES = {code: chr(0x2400 + code) for code in range(32) if code not in (9, 10, 13)} | {127: "\u2421"}
UNPAIRED = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")  # halves of surrogate pairs, which no file can hold


class Drawn(NamedTuple):
    """An entity as it is drawn."""

    entity: Entity
    verdict: Verdict
    color: str
    lane: int


def escaped(text: str) -> str:
    """Text that a browser shows as it is: nothing in it is markup, control characters are visible."""
    return html.escape(text.translate(PICTURES | UNPAIRED), quote=True)


@cache
def style() -> str:
    """The style sheet of marked-up documents; once on a page is enough."""
    return files("wingspan.views").joinpath("document.css").read_text(encoding="utf-8")


def marked(document: Document, gold: Document | None = None, labels: Iterable[str] = ()) -> str:
    """The document as one `<div>`. With `gold`, entities are marked as right, spurious or missed.

    Given all `labels` of a corpus, a label has one color in every document.
    """
    verdicts = judged(document, gold)
    colors = label_colors([*labels, *(entity.label for entity, _ in verdicts)])
    drawn = [(entity, verdict) for entity, verdict in verdicts if fits(entity, document)]
    places = lanes([entity for entity, _ in drawn])
    marks = [
        Drawn(entity, verdict, COLORS[verdict] or colors[entity.label], lane)
        for (entity, verdict), lane in zip(drawn, places, strict=True)
    ]
    depth = max(places, default=-1) + 1
    pitch = max(2.0, min(PITCH, HIGHEST / max(depth, 1)))
    body = "".join(
        _piece(piece, document, marks, pitch, depth) for piece in pieces(len(document.text), [m.entity for m in marks])
    )
    notes = [] if document.text else ["(empty text)"]
    notes += [
        f"not drawn: {entity.label} at {', '.join(f'{s}-{e}' for s, e in entity.spans)}; "
        f"the text ends at {len(document.text)}"
        for entity, _ in verdicts
        if not fits(entity, document)
    ]
    remarks = "".join(f'<p class="ws-note">{escaped(note)}</p>' for note in notes)
    return f'<div class="ws-text" dir="auto" style="--ws-lanes:{depth * pitch:g}px">{body}</div>{remarks}'


def legend(labels: Iterable[str] | Mapping[str, int]) -> str:
    """The labels in their colors, with how often they occur where that is known."""
    counts = labels if isinstance(labels, Mapping) else {}
    entries = (
        f'<span class="ws-chip" style="background:{color}">{escaped(label)}</span>'
        + (f" {counts[label]:,}" if label in counts else "")
        for label, color in label_colors(labels).items()
    )
    return '<p class="ws-legend">' + " ".join(f"<span>{entry}</span>" for entry in entries) + "</p>"


def tally(document: Document, gold: Document) -> str:
    """How many entities are right, spurious and missed, with their signs."""
    counts = Counter(verdict for _, verdict in judged(document, gold))
    verdicts: tuple[Verdict, ...] = ("right", "spurious", "missed")
    return (
        '<p class="ws-legend">'
        + " ".join(
            f'<span><span class="ws-chip" style="background:{COLORS[verdict]}">{SIGNS[verdict].strip()}</span> '
            f"{counts[verdict]} {verdict}</span>"
            for verdict in verdicts
        )
        + "</p>"
    )


def cell(document: Document) -> str:
    """The document for a notebook: its own style sheet with it."""
    return f"<style>{style()}</style>{marked(document)}"


def _piece(piece: Piece, document: Document, marks: Sequence[Drawn], pitch: float, depth: int) -> str:
    """A stretch of text above its bars, then the labels of the entities that end with it."""
    text = escaped(document.text[piece.span.start : piece.span.end])
    here = [(marks[n], False) for n in piece.inside] + [(marks[n], True) for n in piece.between]
    if not here:
        return text
    tint = min((mark for mark, gap in here if not gap), key=lambda mark: mark.lane, default=None)
    shown = [f'<span class="ws-p" style="background:{_bars(here, pitch, depth, tint)}">{text}</span>']
    left = set(piece.inside + piece.between)
    for number in piece.closing:
        bars = _bars([(marks[n], n in piece.between) for n in sorted(left)], pitch, depth, None)
        shown.append(f'<span class="ws-p" style="background:{bars}">{_chip(marks[number], document)}</span>')
        left.discard(number)
    return "".join(shown)


def _bars(here: Sequence[tuple[Drawn, bool]], pitch: float, depth: int, tint: Drawn | None) -> str:
    """The bars of a piece as layers of a background: solid, doubled if spurious, dashed if missed, dotted in a gap."""
    layers = []
    for mark, gap in here:
        thick = max(1.0, pitch - 2)
        bottom = (depth - 1 - mark.lane) * pitch
        if gap:
            layers.append(_layer(mark.color, bottom + thick / 2 - 0.5, 1, "1px", "3px"))
        elif mark.verdict == "missed":
            layers.append(_layer(mark.color, bottom, thick, "4px", "7px"))
        elif mark.verdict == "spurious" and thick >= 3:
            layers += [_layer(mark.color, bottom, 1), _layer(mark.color, bottom + thick - 1, 1)]
        else:
            layers.append(_layer(mark.color, bottom, thick))
    if tint is not None:
        color = f"{tint.color}22"  # behind the words only, not behind the lanes
        layers.append(f"linear-gradient({color},{color}) 0 0/100% calc(100% - var(--ws-lanes)) no-repeat")
    return ",".join(layers)


def _layer(color: str, bottom: float, height: float, dash: str = "", period: str = "") -> str:
    """One horizontal line of a background, so far above its lower edge."""
    place = f"0 calc(100% - {bottom:g}px)/100% {height:g}px no-repeat"
    if dash:
        return f"repeating-linear-gradient(90deg,{color} 0 {dash},#0000 {dash} {period}) {place}"
    return f"linear-gradient({color},{color}) {place}"


def _chip(mark: Drawn, document: Document) -> str:
    """The label of an entity; the full mention and the score appear when it is pointed at."""
    entity = mark.entity
    about = [entity.label, document.text_of(entity)]
    about += [] if mark.verdict == "found" else [mark.verdict]
    about += [] if entity.score == 1.0 else [f"score {entity.score:.3f}"]
    title = escaped(" · ".join(about))
    name = f"{SIGNS[mark.verdict]}{entity.label}"
    return f'{NARROW_SPACE}<bdi class="ws-chip" title="{title}" style="background:{mark.color}">{escaped(name)}</bdi>'
