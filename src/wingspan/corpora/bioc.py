"""BioC: what its XML and its JSON share. Both are read into the objects of BioC JSON; this module knows what they mean.

A document is a row of passages, each with its offset; an annotation has one or several locations, counted over the
document. The specification counts bytes, most files count code points; the surfaces decide.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wingspan.corpora.checks import Misfit, identity, label_of, list_of, record_of, text_of, whole
from wingspan.corpora.formats import Holds, Problems
from wingspan.corpora.mentions import UNITS, Mention, code_points, entities_of, fitting
from wingspan.text import Document, Span

Record = dict[str, Any]
META = "bioc"
HOLDS = Holds(document_keys=frozenset({META}), entity_keys=frozenset({"id", "concept_id", "infons"}))
_LARGEST_GAP = 1000  # a larger one is no white space between passages, and the offsets mean something else
_OWN_OF_DOCUMENT = frozenset({"id", "passages", "annotations"})
_OWN_OF_PASSAGE = frozenset({"offset", "text", "annotations", "sentences"})


@dataclass(frozen=True)
class _Piece:
    """A passage, or a sentence of one that has no text of its own."""

    offset: int
    text: str
    annotations: list[Any]


def document_of(record: Record, collection: Record, name: str, path: Path, problems: Problems) -> Document:
    """A document of BioC JSON as ours. What has no place in ours is kept in `meta`."""
    identifier = identity(record, "id", name)
    passages = [record_of(value, "a passage") for value in list_of(record.get("passages"), "passages")]
    pieces = [list(_pieces(passage)) for passage in passages]
    flat = [piece for row in pieces for piece in row]
    loose = list_of(record.get("annotations"), "annotations")

    def read_in(unit: str) -> tuple[tuple[int, int], str, list[int], list[Mention], list[str]]:
        places = [code_points(piece.text, unit) for piece in flat]
        text, starts, single_gaps = _joined(flat, places)
        mentions, wrong = [], []
        for at, annotation in [*((i, a) for i, p in enumerate(flat) for a in p.annotations), *((0, a) for a in loose)]:
            try:
                mentions.append(_mention(record_of(annotation, "an annotation"), at, flat, starts, places))
            except Misfit as misfit:
                wrong.append(str(misfit))
        return (fitting(text, mentions), single_gaps), text, starts, mentions, wrong

    unit = UNITS[0]
    best, text, starts, mentions, wrong = read_in(unit)
    if best < (len(mentions), len(flat) - 1) and not text.isascii():
        for other in UNITS[1:]:
            reading = read_in(other)
            if reading[0] > best:
                unit, (best, text, starts, mentions, wrong) = other, reading
    for reason in wrong:
        problems.add(path, None, f"document {identifier}: {reason}")
    if unit != UNITS[0]:
        problems.note(path, f"document {identifier}: the surfaces fit if offsets count {unit}; it is read so")

    def complain(_: int | None, reason: str) -> None:
        problems.add(path, None, f"document {identifier}: {reason}")

    entities, otherwise = entities_of(text, mentions, UNITS[0], complain)
    if otherwise:
        problems.note(path, f"document {identifier}: {otherwise} surfaces differ a little from the text, which is kept")
    spans = [Span(start, start + len(piece.text)) for start, piece in zip(starts, flat, strict=True)]
    in_sentences = any(passage.get("sentences") for passage in passages)
    return Document(
        identifier,
        text,
        tuple(entities),
        sentences=tuple(span for span in spans if span.width) if in_sentences else None,
        meta={META: _layout(record, collection, passages, pieces, spans, unit)},
    )


def _pieces(passage: Record) -> Iterator[_Piece]:
    sentences = list_of(passage.get("sentences"), "sentences")
    rows = [record_of(value, "a sentence") for value in sentences] if sentences else [passage]
    for number, row in enumerate(rows):
        found = list_of(row.get("annotations"), "annotations")
        if sentences and number == 0:
            found = [*found, *list_of(passage.get("annotations"), "annotations")]
        text = row.get("text")
        yield _Piece(whole(row.get("offset"), "offset"), "" if text is None else text_of(text, "text"), found)


def _joined(pieces: Sequence[_Piece], places: Sequence[Sequence[int]]) -> tuple[str, list[int], int]:
    """The text of a document, blanks between its pieces as their offsets ask, and where each piece starts in it.

    Also how many gaps are of one blank, which tells units apart where no surface does.
    """
    parts: list[str] = []
    starts: list[int] = []
    at = end = single = 0
    for number, (piece, inside) in enumerate(zip(pieces, places, strict=True)):
        gap = piece.offset - end
        single += number > 0 and gap == 1
        if number == 0:
            gap = 0
        elif not 0 <= gap <= _LARGEST_GAP:
            gap = 1
        parts.append(" " * gap + piece.text)
        starts.append(at + gap)
        at += gap + len(piece.text)
        end = piece.offset + len(inside) - 1
    return "".join(parts), starts, single


def _mention(
    annotation: Record, at: int, pieces: Sequence[_Piece], starts: Sequence[int], places: Sequence[Sequence[int]]
) -> Mention:
    infons = dict(record_of(annotation.get("infons") or {}, "infons"))
    if "type" not in infons:
        raise Misfit(f"annotation {annotation.get('id')!r} has no infon 'type', which is its label")
    label = label_of(infons.pop("type"))
    locations = [record_of(value, "a location") for value in list_of(annotation.get("locations"), "locations")]
    if not locations:
        raise Misfit(f"annotation {annotation.get('id')!r} has no location; give offset and length")
    ranges = []
    for location in locations:
        start = whole(location.get("offset"), f'the offset of entity "{label}"')
        end = start + whole(location.get("length"), f'the length of entity "{label}"')
        # a border belongs to the piece that starts there if a mention starts, to the one before if it ends
        backward, forward = range(len(pieces) - 1, -1, -1), range(len(pieces))
        first = _place(start, [at, *backward], pieces, starts, places)
        ranges.append((first, _place(end, [at, *forward], pieces, starts, places)))
    meta: Record = {}
    if annotation.get("id") is not None:
        meta["id"] = annotation["id"]
    if isinstance(infons.get("identifier"), str):
        meta["concept_id"] = infons.pop("identifier")
    if infons:
        meta["infons"] = infons
    surface = annotation.get("text")
    return Mention(label, tuple(ranges), surface if isinstance(surface, str) else None, None, meta)


def _place(
    offset: int,
    order: Sequence[int],
    pieces: Sequence[_Piece],
    starts: Sequence[int],
    places: Sequence[Sequence[int]],
) -> int:
    """An offset of the file as a place in our text, by the piece that it lies in, the annotation's own piece first."""
    for at in order if pieces else ():
        local = offset - pieces[at].offset
        if 0 <= local < len(places[at]):
            inside = places[at][local]
            return starts[at] + inside if inside >= 0 else -1
    return offset - (pieces[0].offset if pieces else 0)


def _layout(
    record: Record,
    collection: Record,
    passages: Sequence[Record],
    pieces: Sequence[Sequence[_Piece]],
    spans: Sequence[Span],
    unit: str,
) -> Record:
    """What is kept of passages, infons and relations, so that it can be written back."""
    rows, at = [], 0
    for passage, row in zip(passages, pieces, strict=True):
        span = Span(spans[at].start, spans[at + len(row) - 1].end)
        at += len(row)
        others = _kept(passage, _OWN_OF_PASSAGE)
        offset = row[0].offset if unit == UNITS[0] else span.start  # it is written again in code points
        rows.append({"start": span.start, "end": span.end, "offset": offset, **others})
    layout = _kept(record, _OWN_OF_DOCUMENT)
    return {**layout, "passages": rows, **({"collection": collection} if collection else {})}


def _kept(record: Record, own: frozenset[str]) -> Record:
    """What else a record holds; what is empty is left out, as XML and JSON differ in what they write of it."""
    kept = {key: value for key, value in record.items() if key not in own and value}
    if isinstance(relations := kept.get("relations"), list):
        kept["relations"] = [_kept(item, frozenset()) if isinstance(item, dict) else item for item in relations]
    return kept
