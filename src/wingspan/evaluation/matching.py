"""Which found entity answers which gold entity of one document: one to one, best total, whatever the order.

The verdicts are those of MUC and SemEval-2013 task 9.1. Among all one-to-one matchings the one with the most credit is
taken (correct 1, partial 1/2), then the most correct pairs, then the most pairs; that fixes every count, so no order of
the entities can change a score. Nested, crossing, multi-label and discontinuous entities need no special case.
"""

from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from os.path import commonprefix
from typing import Literal, NamedTuple

import numpy as np

from wingspan.corpora.segment import Segmenting, marked_words
from wingspan.corpora.sentences import is_one_sentence
from wingspan.corpora.words import WordRanges, in_words, split_words
from wingspan.text import Document, Entity, Span, reading_order, spans_of

Mode = Literal["strict", "exact", "partial", "type", "lenient", "fragments"]
Verdict = Literal["correct", "incorrect", "partial", "missed", "spurious"]

HALVES: dict[Verdict, int] = {"correct": 2, "partial": 1, "incorrect": 0}
"""Credit of a pair in halves, so that sums stay integers."""


class Match(NamedTuple):
    """A verdict and its entities: `gold` is None for spurious ones, `found` is None for missed ones."""

    verdict: Verdict
    gold: Entity | None
    found: Entity | None


def match(gold: Iterable[Entity], found: Iterable[Entity], mode: Mode = "strict") -> list[Match]:
    """Every gold and every found entity of one document in exactly one match. Repeated entities count once."""
    if mode == "fragments":
        gold, found = fragments(gold), fragments(found)
    gold_set, found_set = set(gold), set(found)
    same = gold_set & found_set
    # An entity found exactly as it is in the gold can be set aside if giving it to another never pays. That holds where
    # being correct needs equal boundaries. By type it does not: two pairs that overlap beat one that is identical.
    if same and (mode not in ("type", "lenient") or gold_set == found_set):
        gold_set -= same
        found_set -= same
        matches = [Match("correct", entity, entity) for entity in sorted(same, key=reading_order)]
    else:
        matches = []
    if gold_set and found_set:
        return matches + _assign(sorted(gold_set, key=reading_order), sorted(found_set, key=reading_order), mode)
    matches += [Match("missed", entity, None) for entity in sorted(gold_set, key=reading_order)]
    matches += [Match("spurious", None, entity) for entity in sorted(found_set, key=reading_order)]
    return matches


def fragments(entities: Iterable[Entity]) -> set[Entity]:
    """Every fragment as an entity."""
    return {Entity(entity.label, (span,)) for entity in entities for span in entity.spans}


def judge(gold: Entity, found: Entity, mode: Mode) -> Verdict | None:
    """The verdict on two overlapping entities, or None if the mode does not allow them as a pair."""
    if mode == "type":
        return "correct" if gold.label == found.label else "incorrect"
    if mode == "lenient":
        return "correct" if gold.label == found.label else None
    if gold.spans == found.spans and (mode in ("exact", "partial") or gold.label == found.label):
        return "correct"
    return "partial" if mode == "partial" else "incorrect"


def _assign(gold: Sequence[Entity], found: Sequence[Entity], mode: Mode) -> list[Match]:
    """The best matching of entities that have no counterpart yet."""
    base = min(len(gold), len(found)) + 1  # no count of pairs reaches it, so the three aims are digits of one number
    edges: list[dict[int, int]] = [{} for _ in gold]
    verdicts: dict[tuple[int, int], Verdict] = {}
    for g, f in overlaps(gold, found):
        verdict = judge(gold[g], found[f], mode)
        if verdict is not None:
            verdicts[g, f] = verdict
            edges[g][f] = (HALVES[verdict] * base + (verdict == "correct")) * base + 1
    assigned = heaviest(edges)
    matches = [
        Match("missed", gold[g], None) if f == NOWHERE else Match(verdicts[g, f], gold[g], found[f])
        for g, f in enumerate(assigned)
    ]
    taken = set(assigned)
    return matches + [Match("spurious", None, entity) for f, entity in enumerate(found) if f not in taken]


def overlaps(gold: Sequence[Entity], found: Sequence[Entity]) -> list[tuple[int, int]]:
    """The pairs (index in gold, index in found) that share a character in some fragment, sorted.

    An empty fragment counts as its next character, so that it overlaps at least itself.
    """
    spans = sorted(
        (span.start, max(span.end, span.start + 1), side, index)
        for side, entities in enumerate((gold, found))
        for index, entity in enumerate(entities)
        for span in entity.spans
    )
    pairs = set()
    open_spans: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    for start, end, side, index in spans:
        others = open_spans[1 - side]
        others[:] = [other for other in others if other[0] > start]
        for _, other in others:
            pairs.add((index, other) if side == 0 else (other, index))
        open_spans[side].append((end, index))
    return sorted(pairs)


NOWHERE = -1
"""The column of a row that stays alone."""


def heaviest(edges: Sequence[Mapping[int, int]]) -> list[int]:
    """The heaviest one-to-one assignment of a sparse bipartite graph, exact: the column of every row, or NOWHERE.

    `edges[row][column]` is a positive weight; a missing edge cannot be used. Rows are added one at a time. A new row
    may take a column from another row, which then moves on to a third or stays alone; of all such paths the one with
    the largest gain is taken, which keeps the assignment the heaviest (Kuhn 1955, Edmonds and Karp 1972). Rows that
    have a column already cannot gain by moving among themselves, so a path never gains more than at any of its columns:
    one that is not ahead of the best complete path is dropped, and sparse graphs cost about as much as reading them.
    """
    assigned = [NOWHERE] * len(edges)
    holder: dict[int, int] = {}
    for new, weights in enumerate(edges):
        gain = {new: 0}  # by row: the gain when it has to leave its column
        gain_at: dict[int, int] = {}  # by column
        came_from: dict[int, int] = {}
        best, row, column = 0, new, NOWHERE  # the last step of the best path
        limit = max(weights.values(), default=0)
        waiting = deque([new])
        while waiting and best < limit:
            mover = waiting.popleft()
            if gain[mover] > best:
                best, row, column = gain[mover], mover, NOWHERE
            for wish, weight in edges[mover].items():
                total = gain[mover] + weight
                if total <= max(best, gain_at.get(wish, 0)):
                    continue
                gain_at[wish], came_from[wish] = total, mover
                if wish not in holder:
                    best, row, column = total, mover, wish
                else:
                    gain[holder[wish]] = total - edges[holder[wish]][wish]
                    waiting.append(holder[wish])
        while best:
            freed, assigned[row] = assigned[row], column
            if column != NOWHERE:
                holder[column] = row
            if row == new:
                break
            row, column = came_from[freed], freed
    return assigned


# Pairs of gold and found documents


def pair(
    gold: Sequence[Document], found: Sequence[Document], allow_missing: bool = False
) -> list[tuple[Document, Document]]:
    """Gold documents with their found counterparts, in the order of the gold.

    They are paired by id (the second row of an id with the second), or by position if no id occurs on both sides and
    both have equally many documents. Texts must agree to the character. With `allow_missing`, a gold document without
    prediction counts as predicted empty; a found document without gold is always an error.
    """
    gold_keys, by_key = keys_of(gold), dict(zip(keys_of(found), found, strict=True))
    known = set(gold_keys)

    def refuse(keys: list[tuple[str, int]], side: str, other: str, fix: str) -> None:
        if keys:
            named = ", ".join(repr(id) for id, _ in keys[:5]) + (", ..." if len(keys) > 5 else "")
            raise ValueError(
                f"{len(keys)} {side} documents have no {other} counterpart of the same id ({named}); {fix}"
            )

    if len(gold) == len(found) and not by_key.keys() & known:
        pairs = list(zip(gold, found, strict=True))
    else:
        refuse([key for key in by_key if key not in known], "predicted", "gold", "remove them or add their gold")
        if not allow_missing:
            missing = [key for key in gold_keys if key not in by_key]
            refuse(missing, "gold", "predicted", "predict them, or let them count as empty (--allow-missing)")
        pairs = [(g, by_key.get(key) or replace(g, entities=())) for key, g in zip(gold_keys, gold, strict=True)]
    for reference, prediction in pairs:
        if reference.text != prediction.text:
            raise ValueError(_difference(reference, prediction))
    return pairs


def keys_of(documents: Iterable[Document]) -> list[tuple[str, int]]:
    """Ids with a running number, so that rows that share an id stay apart."""
    seen: Counter[str] = Counter()
    keys = []
    for document in documents:
        keys.append((document.id, seen[document.id]))
        seen[document.id] += 1
    return keys


def _difference(gold: Document, found: Document) -> str:
    """Where and how two texts that should be equal differ."""
    shorter = min(len(gold.text), len(found.text))
    at = next((i for i in range(shorter) if gold.text[i] != found.text[i]), shorter)
    here = slice(max(0, at - 10), at + 10)
    where = f"{gold.text[here]!r} in the gold, {found.text[here]!r} predicted, at character {at}"
    name = repr(gold.id) if gold.id == found.id else f"{gold.id!r} (predicted as {found.id!r})"
    if "".join(gold.text.split()) == "".join(found.text.split()):
        return (
            f"document {name}: the two texts differ only in white space or tokenization ({where}); scores compare"
            " character positions, so predict on the gold text, or put the predictions there with `realign`"
        )
    return f"document {name}: the two texts differ ({where}); check that both files come from the same corpus"


class SentenceIndex:
    """The words and sentences of a document as in training, and which of them an entity touches.

    They are the document's own, or found by rules; no sentence found by rules cuts an entity of the document or of
    `keep`.
    """

    def __init__(self, document: Document, keep: Iterable[Entity] = ()) -> None:
        self.document = document
        if document.words is None and document.sentences is None and is_one_sentence(document.text):
            self.ranges = WordRanges(split_words(document.text))
            self.sentences = [Span(0, len(self.ranges.words))]
            return
        hulls = [entity.hull for entity in (*document.entities, *keep)]
        words, ends = marked_words(document, Segmenting(), hulls)
        past = (np.flatnonzero(ends) + 1).tolist() or [0]
        self.sentences = list(map(Span, [0, *past], past))  # in words
        self.ranges = WordRanges(spans_of(words))

    @cached_property
    def words(self) -> list[str]:
        """The words as strings."""
        text = self.document.text
        return [text[start:end] for start, end in self.ranges.words]

    @cached_property
    def _starts(self) -> list[int]:
        """The first character of each sentence."""
        return [self.ranges.words[sentence.start].start for sentence in self.sentences]

    def width(self, entity: Entity) -> int:
        """The number of words that the fragments touch."""
        return sum(self.ranges.touched(span).width for span in entity.spans)

    def sentence_of(self, entity: Entity) -> int:
        """The number of the sentence in which the entity starts."""
        return max(bisect_right(self._starts, entity.start) - 1, 0) if len(self.sentences) > 1 else 0

    def characters(self, sentence: int) -> Span:
        """A sentence as a range of characters; the only sentence of a text is the whole text."""
        if len(self.sentences) == 1:
            return Span(0, len(self.document.text))
        return self.ranges.characters(self.sentences[sentence])


# Realigning predictions made on other words or documents than the gold
#
# A tagger's column file has words and no text: the same characters in the same order, with other white space, and a
# row for each sentence where the gold has a document. Both sides are compared without white space.


# How the Penn Treebank's tokenizer, and many taggers with it, write brackets, quotes and slashes.
_ESCAPED = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
_ESCAPED |= {"``": '"', "''": '"', "\\/": "/", "\\*": "*"}


class Realigned(NamedTuple):
    """Predictions on the texts of the gold, and notes on what was changed."""

    documents: list[Document]
    notes: tuple[str, ...] = ()


def realign(gold: Sequence[Document], found: Sequence[Document]) -> Realigned:
    """The predictions on the texts of the gold, if they hold the same characters; otherwise unchanged.

    Documents are paired by id, then by position, then by content: several rows that together read like a gold document,
    or one that reads like several, in any order. If nothing fits and the two sides share no id, a ValueError says where
    they first differ.
    """
    if not gold or not found:
        return Realigned(list(found))
    known = dict(zip(keys_of(gold), gold, strict=True))
    names = keys_of(found)
    pairs: list[tuple[Document, Document]] = []
    if known.keys() >= set(names):
        pairs = [(known[name], prediction) for name, prediction in zip(names, found, strict=True)]
    elif len(gold) == len(found) and not known.keys() & set(names):
        pairs = list(zip(gold, found, strict=True))
    if pairs and all(reference.text == prediction.text for reference, prediction in pairs):
        return Realigned(list(found))
    for candidates in (found, [_unescaped(document) for document in found]):
        stream = _Stream(candidates)
        if pairs and all(_squeezed(w.text) == text for (w, _), text in zip(pairs, stream.texts, strict=True)):
            tiles, unfit = [(start, w) for start, (w, _) in zip(stream.starts, pairs, strict=True)], None
        else:
            tiles, unfit = _tiles(gold, stream)
        if unfit is None:
            note = (
                f"the predictions ({len(found)} rows) were put onto the texts of {len(tiles)} gold documents by their "
                "characters, white space aside"
            )
            return Realigned(stream.onto(tiles), (note,))
    if pairs or known.keys() & set(names):
        return Realigned(list(found))  # they share ids, so `pair` can say what is wrong
    raise ValueError(unfit)


def _squeezed(text: str) -> str:
    return "".join(text.split())


@dataclass
class _Stream:
    """All predicted documents one after the other, without white space."""

    documents: Sequence[Document]

    def __post_init__(self) -> None:
        self.texts = [_squeezed(document.text) for document in self.documents]
        self.starts = list(accumulate(map(len, self.texts), initial=0))[:-1]
        self.text = "".join(self.texts)

    def row_at(self, place: int) -> Document:
        """The document at this position of the stream."""
        return self.documents[bisect_right(self.starts, place) - 1]

    def onto(self, tiles: Sequence[tuple[int, Document]]) -> list[Document]:
        """The entities on the gold documents that start at these positions of the stream."""
        starts = [start for start, _ in tiles]
        places = [[at for at, sign in enumerate(tile.text) if not sign.isspace()] for _, tile in tiles]
        moved: list[list[Entity]] = [[] for _ in tiles]
        for first, document in zip(self.starts, self.documents, strict=True):
            if not document.entities:
                continue
            before = list(accumulate((not sign.isspace() for sign in document.text), initial=first))
            for entity in document.entities:
                where = f"predicted document {document.id!r}: {entity.label!r} at {entity.start}-{entity.end}"
                spans = [Span(before[start], before[end]) for start, end in entity.spans]  # in the stream
                if any(span.width == 0 for span in spans):
                    raise ValueError(f"{where} holds nothing but white space; remove it")
                number = bisect_right(starts, spans[0].start) - 1
                start, own = starts[number], places[number]
                if max(span.end for span in spans) > start + len(own):
                    raise ValueError(
                        f"{where} goes beyond the end of the gold document {tiles[number][1].id!r}; "
                        "give both sides the same documents"
                    )
                fragments = tuple(Span(own[a - start], own[b - start - 1] + 1) for a, b in spans)
                moved[number].append(replace(entity, spans=fragments))
        return [replace(tile, entities=tuple(entities)) for (_, tile), entities in zip(tiles, moved, strict=True)]


def _tiles(gold: Sequence[Document], stream: _Stream) -> tuple[list[tuple[int, Document]], str | None]:
    """The position of each gold document in the stream; or an error message if something does not fit.

    A document is looked up by its first characters; if several fit, the next one of the gold is taken, else the
    longest.
    """
    texts = [_squeezed(document.text) for document in gold]
    by_head: dict[str, list[int]] = {}
    for number, text in enumerate(texts):
        if text:
            by_head.setdefault(text[:24], []).append(number)
    sizes = sorted({len(head) for head in by_head}, reverse=True)
    tiles: list[tuple[int, Document]] = [(0, document) for document, text in zip(gold, texts, strict=True) if not text]
    used: set[int] = set()
    place, following = 0, 0
    while place < len(stream.text):
        near = [n for size in sizes for n in by_head.get(stream.text[place : place + size], ()) if n not in used]
        fitting = [number for number in near if stream.text.startswith(texts[number], place)]
        if not fitting:
            return [], _unfit(gold, texts, [*near, *range(following, min(following + 1, len(gold)))], stream, place)
        number = following if following in fitting else max(fitting, key=lambda n: len(texts[n]))
        tiles.append((place, gold[number]))
        used.add(number)
        place += len(texts[number])
        following = number + 1
    return tiles, None


def _unfit(gold: Sequence[Document], texts: Sequence[str], near: Sequence[int], stream: _Stream, place: int) -> str:
    """The error message: where the predictions differ from the gold document that they follow the furthest."""
    row, shown = stream.row_at(place), stream.text[place : place + 30]
    if not near:
        return f"predicted document {row.id!r} reads {shown!r}, as no gold does; check that both are of one corpus"
    ahead = {number: stream.text[place : place + len(texts[number])] for number in near}
    shared = {number: len(commonprefix([texts[number], ahead[number]])) for number in near}
    number = max(near, key=lambda n: shared[n])
    at = shared[number]
    here = slice(max(0, at - 10), at + 10)
    there = slice(max(place, place + at - 10), place + at + 10)
    return (
        f"the predictions fit no gold document, white space aside: {stream.text[there]!r} in predicted document "
        f"{stream.row_at(min(place + at, len(stream.text) - 1)).id!r}, {texts[number][here]!r} in gold document "
        f"{gold[number].id!r}; check that both files are of one corpus, with no words changed"
    )


def _unescaped(document: Document) -> Document:
    """The document with plain brackets and quotes instead of the treebank's names for them."""
    spelled = [document.text[start:end] for start, end in document.words or ()]
    if not any(word in _ESCAPED for word in spelled) or "".join(spelled) != _squeezed(document.text):
        return document
    words, placed = in_words(document)
    entities = tuple(replace(entity, spans=fragments) for entity, fragments in placed)
    return Document.from_words(document.id, tuple(_ESCAPED.get(word, word) for word in words), entities)
