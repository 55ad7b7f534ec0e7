"""Documents as HTML: text with a lane of bars below it for overlaps, fragments joined by a dotted line, no script.

Everything is inline: lines wrap where the reader's window wants them to, scripts from right to left keep their order,
and a label follows the last character of its entity, where it hides nothing. The markup is in the templates (`*.html`)
beside this file.
"""

import html
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from wingspan.files import atomic_write
from wingspan.text import Document, Entity, Span
from wingspan.views.entities import VERDICT_COLORS, VERDICTS, EntityVerdict, judged, label_colors, misfit

SIGNS: dict[EntityVerdict, str] = {"found": "", "right": "✓\u00a0", "spurious": "+\u00a0", "missed": "✗\u00a0"}
PITCH = 5  # pixels from lane to lane; fewer where the lanes of a line would be higher than HIGHEST
HIGHEST = 60
VISIBLE_CONTROLS = {code: chr(0x2400 + code) for code in range(32) if code not in (9, 10, 13)} | {127: "\u2421"}
UNPAIRED = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")  # halves of surrogate pairs, which no file can hold


# Templates: every value is escaped by the same rule.


def escaped(text: str) -> Markup:
    """Text that a browser shows as it is: nothing in it is markup, control characters are visible."""
    return Markup(html.escape(text.translate(VISIBLE_CONTROLS | UNPAIRED), quote=True))


@cache
def template(name: str) -> Template:
    """A template by its path in the package, such as `views/page.html`."""
    return _environment().get_template(name)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("wingspan", ""),
        autoescape=True,
        finalize=lambda value: value if isinstance(value, Markup) else escaped(str(value)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    environment.globals |= {"asset": asset, "marked": marked, "legend": legend, "tally": tally}
    return environment


@cache
def asset(name: str) -> Markup:
    """A style sheet or script by its path in the package."""
    return Markup(files("wingspan").joinpath(name).read_text(encoding="utf-8"))


def write_page(path: Path, name: str, **context: Any) -> None:
    """Writes a page piece by piece while its template is filled in; a failure leaves no half page."""
    with atomic_write(path) as file:
        file.writelines(template(name).generate(context))


# Where the bars of overlapping entities go: a lane for each below the text, which is cut where anything changes.


class Piece(NamedTuple):
    """A stretch of text in which nothing begins or ends; entities by their number."""

    span: Span
    inside: tuple[int, ...]  # entities with a fragment here
    between: tuple[int, ...]  # entities that go on behind a gap
    closing: tuple[int, ...]  # entities that end with this piece, the shortest first


def lanes(entities: Sequence[Entity]) -> list[int]:
    """A lane for each entity, 0 next to the text: an outer entity lies below the inner ones."""
    chosen = [0] * len(entities)
    for cluster in _clusters(entities):
        placed: list[int] = []
        for number in sorted(cluster, key=lambda n: (entities[n].hull.width, entities[n].hull, entities[n].label)):
            touched = [chosen[other] for other in placed if entities[other].hull.overlaps(entities[number].hull)]
            chosen[number] = max(touched, default=-1) + 1
            placed.append(number)
    return chosen


def _clusters(entities: Sequence[Entity]) -> Iterator[list[int]]:
    """Groups of entities connected by overlaps of their hulls; each is compared with its own group only."""
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


# Documents, legends and tallies.


class EntityBar(NamedTuple):
    """An entity as it is drawn: its color, and where its bar lies in pixels above the lower edge of the lanes."""

    entity: Entity
    verdict: EntityVerdict
    color: str
    lane: int
    bottom: float
    height: float

    def layers(self, in_gap: bool) -> list[str]:
        """Layers of a CSS background: solid, doubled if spurious, dashed if missed, dotted in a gap."""
        if in_gap:
            return [self._line(self.bottom + self.height / 2 - 0.5, 1, "1px", "3px")]
        if self.verdict == "missed":
            return [self._line(self.bottom, self.height, "4px", "7px")]
        if self.verdict == "spurious" and self.height >= 3:
            return [self._line(self.bottom, 1), self._line(self.bottom + self.height - 1, 1)]
        return [self._line(self.bottom, self.height)]

    def _line(self, bottom: float, height: float, dash: str = "", period: str = "") -> str:
        place = f"0 calc(100% - {bottom:g}px)/100% {height:g}px no-repeat"
        if dash:
            return f"repeating-linear-gradient(90deg,{self.color} 0 {dash},#0000 {dash} {period}) {place}"
        return f"linear-gradient({self.color},{self.color}) {place}"


def marked(document: Document, gold: Document | None = None, labels: Iterable[str] = ()) -> Markup:
    """The document as one `<div>`. With all `labels` of a corpus, a label has one color in every document."""
    verdicts = judged(document, gold)
    colors = label_colors([*labels, *(entity.label for entity, _ in verdicts)])
    notes = [note for entity, _ in verdicts if (note := misfit(entity, document))]
    drawn = [(entity, verdict) for entity, verdict in verdicts if not misfit(entity, document)]
    places = lanes([entity for entity, _ in drawn])
    depth = max(places, default=-1) + 1
    pitch = max(2.0, min(PITCH, HIGHEST / max(depth, 1)))
    bars = []
    for (entity, verdict), lane in zip(drawn, places, strict=True):
        color = VERDICT_COLORS[verdict] or colors[entity.label]
        bars.append(EntityBar(entity, verdict, color, lane, (depth - 1 - lane) * pitch, max(1.0, pitch - 2)))
    cut = [_drawn(piece, document, bars) for piece in pieces(len(document.text), [bar.entity for bar in bars])]
    return _macro("marked", cut, f"{depth * pitch:g}", notes if document.text else ["(empty text)", *notes])


def _drawn(piece: Piece, document: Document, bars: Sequence[EntityBar]) -> dict[str, Any]:
    """A piece for the template: its text, its bars, and the labels of the entities that end with it."""
    here = {n: n in piece.between for n in (*piece.inside, *piece.between)}
    text_layers = [layer for n, in_gap in here.items() for layer in bars[n].layers(in_gap)]
    if piece.inside:  # a light background behind the words only, not behind the lanes
        color = f"{min((bars[n] for n in piece.inside), key=lambda bar: bar.lane).color}22"
        text_layers.append(f"linear-gradient({color},{color}) 0 0/100% calc(100% - var(--ws-lanes)) no-repeat")
    chips = []
    for number in piece.closing:
        bar = bars[number]
        layers = [layer for n in sorted(here) for layer in bars[n].layers(here[n])]
        about = [bar.entity.label, document.text_of(bar.entity)]
        about += [] if bar.verdict == "found" else [bar.verdict]
        about += [] if bar.entity.score == 1.0 else [f"score {bar.entity.score:.3f}"]
        name = f"{SIGNS[bar.verdict]}{bar.entity.label}"
        chips.append({"bars": ",".join(layers), "color": bar.color, "title": " · ".join(about), "name": name})
        del here[number]
    return {"text": document.text[slice(*piece.span)], "bars": ",".join(text_layers), "chips": chips}


def legend(labels: Iterable[str] | Mapping[str, int]) -> Markup:
    """The labels in their colors, with how often they occur where that is known."""
    return _macro("legend", label_colors(labels), labels if isinstance(labels, Mapping) else {})


def tally(document: Document, gold: Document) -> Markup:
    """The number of right, spurious and missed entities, with their signs."""
    counts = Counter(verdict for _, verdict in judged(document, gold))
    return _macro("tally", [(name, SIGNS[name].strip(), VERDICT_COLORS[name], counts[name]) for name in VERDICTS])


def cell(document: Document) -> str:
    """The document for a notebook, with its style sheet."""
    return f"<style>{asset('views/document.css')}</style>{marked(document)}"


def _macro(name: str, *values: Any) -> Markup:
    filled: Markup = getattr(template("views/document.html").module, name)(*values)
    return filled
