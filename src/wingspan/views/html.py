"""A document as HTML: text with a lane of bars below it for overlaps, fragments joined by a dotted line, no script.

Everything is inline: lines wrap where the reader's window wants them to, scripts from right to left keep their order,
and a label stands behind the last character of its entity, where it can hide nothing.
"""

from __future__ import annotations

import html
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple

from wingspan.files import atomic_write
from wingspan.text import Document, Entity, Span

PALETTE = ("#0274e0", "#b06202", "#008923", "#db0ca0", "#028383", "#ec001a", "#9945f9", "#7f7803")
"""Eight hues of one luminance, which has a contrast of at least 4.5 to both black and white backgrounds."""


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


# --- Where the bars of overlapping entities go: a lane for each below the text, which is cut where anything
# changes.


class Piece(NamedTuple):
    """A stretch of text in which nothing begins or ends; entities by their number."""

    span: Span
    inside: tuple[int, ...]  # those with a fragment here
    between: tuple[int, ...]  # those that go on behind a gap
    closing: tuple[int, ...]  # those that end with this piece, the shortest first


def lanes(entities: Sequence[Entity]) -> list[int]:
    """A lane for each entity, 0 next to the text: what is around another lies below it."""
    chosen = [0] * len(entities)
    for cluster in clusters(entities):
        placed: list[int] = []
        for number in sorted(cluster, key=lambda n: (entities[n].hull.width, entities[n].hull, entities[n].label)):
            touched = [chosen[other] for other in placed if entities[other].hull.overlaps(entities[number].hull)]
            chosen[number] = max(touched, default=-1) + 1
            placed.append(number)
    return chosen


def clusters(entities: Sequence[Entity]) -> Iterator[list[int]]:
    """Entities that hang together by overlaps of their hulls; each is compared with its own cluster only."""
    cluster: list[int] = []
    reach = 0
    for number in sorted(range(len(entities)), key=lambda n: entities[n].start):
        if cluster and entities[number].start >= reach:
            yield cluster
            cluster = []
        cluster.append(number)
        reach = max(reach, entities[number].end)
    if cluster:
        yield cluster


def pieces(length: int, entities: Sequence[Entity]) -> Iterator[Piece]:
    """The text from 0 to `length`, cut at every border of a fragment."""
    opening: dict[int, list[int]] = {}
    for number, entity in enumerate(entities):
        opening.setdefault(entity.start, []).append(number)
    borders = {0, length, *(border for entity in entities for span in entity.spans for border in span)}
    active: list[int] = []
    for start, end in pairwise(sorted(borders)):
        active += opening.get(start, [])
        inside = [n for n in active if any(s <= start and end <= e for s, e in entities[n].spans)]
        closing = sorted((n for n in active if entities[n].end == end), key=lambda n: entities[n].hull.width)
        between = (n for n in active if n not in inside)
        yield Piece(Span(start, end), tuple(inside), tuple(between), tuple(closing))
        active = [n for n in active if entities[n].end > end]


# --- What is shown of a document beside its gold: each entity once, as right, spurious or missed.


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


# --- A whole HTML page in one file: style and script inside, nothing from the network, written as it is made.


POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:"
"""What the browser is told: this page may load nothing, whatever is in it."""


def asset(package: str, name: str) -> str:
    """A style sheet or script that lies beside the modules of a package."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


def page(title: str, body: Iterable[str], styles: Sequence[str] = (), scripts: Sequence[str] = ()) -> Iterator[str]:
    """The page around its body, piece by piece; light or dark as the system is, with a button for the other."""
    sheets = "\n".join([asset("wingspan.views", "page.css"), style(), *styles])
    yield (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escaped(title)}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>\n{sheets}\n</style>\n</head>\n<body>\n"
        '<button id="theme" type="button" hidden aria-label="Switch between light and dark">Dark</button>\n'
    )
    yield from body
    for script in [asset("wingspan.views", "theme.js"), *scripts]:
        yield f"<script>\n{script}\n</script>\n"
    yield "</body>\n</html>\n"


def write_page(path: Path, parts: Iterable[str]) -> None:
    """Writes a whole page, or none of it."""
    with atomic_write(path) as out:
        out.writelines(parts)
