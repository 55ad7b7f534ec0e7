"""Documents as they might also have come: other case, typing and scanning errors, punctuation, line breaks, names.

Every perturbation takes documents and a seed and gives documents whose entities have been moved along exactly
(`corpora.edits`). The draws of a document depend on the seed, the perturbation and the document's place alone.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from random import Random
from typing import NamedTuple
from unicodedata import category

from wingspan.corpora.overlaps import joined, overlapping
from wingspan.corpora.words import each_word, split_words, word_spans
from wingspan.text import ABOUT_ENTITIES, LAYOUTS, Document, Entity, Span

_POSITIONED = ABOUT_ENTITIES | LAYOUTS | {"columns"}
"""Keys of `meta` that speak of offsets or of one value per word."""


class Edit(NamedTuple):
    """Characters from start to end become `text`; an insertion has end == start and belongs to no annotation there."""

    start: int
    end: int
    text: str


def edited(document: Document, edits: Iterable[Edit]) -> Document:
    """The document after all edits that can be made. They must not overlap; the order does not matter."""
    made = _allowed(document, sorted(edits))
    if not made:
        return document
    at = _Positions(made)
    text = _text(document.text, made)
    entities = tuple(
        replace(entity, spans=tuple(Span(at.start(s), at.end(e)) for s, e in entity.spans))
        for entity in document.entities
    )
    return replace(
        document,
        text=text,
        entities=entities,
        words=None if document.words is None else _words(document.words, made, at, text),
        # what is inserted between two sentences goes to the first one
        sentences=None if document.sentences is None else tuple(Span(*map(at.start, s)) for s in document.sentences),
        meta={key: value for key, value in document.meta.items() if key not in _POSITIONED},
    )


def _allowed(document: Document, edits: Sequence[Edit]) -> list[Edit]:
    starts = {span.start for entity in document.entities for span in entity.spans}
    ends = {span.end for entity in document.entities for span in entity.spans}
    borders = sorted(starts | ends)
    kept = []
    for edit in edits:
        cuts = bisect_left(borders, edit.end) > bisect_right(borders, edit.start)
        empties = edit.start < edit.end and not edit.text.strip() and (edit.start in starts or edit.end in ends)
        if not cuts and not empties:
            kept.append(edit)
    return kept


def _text(text: str, edits: Sequence[Edit]) -> str:
    pieces, done = [], 0
    for edit in edits:
        assert done <= edit.start <= edit.end <= len(text), f"edits overlap or leave the text at {edit.start}"
        pieces += [text[done : edit.start], edit.text]
        done = edit.end
    return "".join([*pieces, text[done:]])


class _Positions:
    """Where borders of annotations are after the edits."""

    def __init__(self, edits: Sequence[Edit]) -> None:
        self._edits = edits
        self._ends = [edit.end for edit in edits]
        self._shifts = list(accumulate((len(e.text) - (e.end - e.start) for e in edits), initial=0))

    def start(self, place: int) -> int:
        """A start comes after what is inserted there; within something replaced it goes to the beginning of that."""
        before = bisect_right(self._ends, place)
        if before < len(self._edits):
            place = min(place, self._edits[before].start)
        return place + self._shifts[before]

    def end(self, place: int) -> int:
        """An end comes before what is inserted there."""
        before = bisect_right(self._ends, place)
        while before and self._edits[before - 1].start == place:
            before -= 1
        return place + self._shifts[before]


def _words(words: Sequence[Span], edits: Sequence[Edit], at: _Positions, text: str) -> tuple[Span, ...]:
    """The words where they are now, without white space in them; what belongs to none is split by the rules.

    Words of which an edit has taken a part together with something else are split anew.
    """
    borders = sorted({border for word in words for border in word})
    breaking = [e for e in edits if bisect_left(borders, e.end) > bisect_right(borders, e.start)]
    starts = [edit.start for edit in breaking]
    kept: list[Span] = []
    done = 0
    for word in words:
        near = bisect_left(starts, word.end) - 1  # the last breaking edit that starts before the word ends
        if near >= 0 and breaking[near].end > word.start:
            continue
        now = Span(at.start(word.start), max(at.end(word.end), at.start(word.start)))
        kept += _moved(split_words(text[done : now.start]), done)
        kept += _visible(text, now)
        done = now.end
    return (*kept, *_moved(split_words(text[done:]), done))


def _moved(spans: Iterable[Span], by: int) -> list[Span]:
    return [Span(start + by, end + by) for start, end in spans]


def _visible(text: str, span: Span) -> list[Span]:
    """The parts of a word between white space; nothing if the word has gone."""
    parts, at = [], span.start
    for part in text[span.start : span.end].split():
        at = text.index(part, at)
        parts.append(Span(at, at + len(part)))
        at += len(part)
    return parts


# --- Documents in which entities have other names: those of other entities of their label, or names nobody has
# seen.


_VOWELS = "aeiou"
_CONSONANTS = "bcdfghjklmnprstvwxz"
_TRIES = 20
"""How often a word is drawn again when there is such a word already."""


def swapped(documents: Sequence[Document], seed: int) -> list[Document]:
    """Entities with the text of another entity of the same label, all mentions of one name in a document alike.

    Only entities of one fragment that overlap no other give and take names; the others stay as they are.
    """
    names: dict[str, list[str]] = {}
    for document in documents:
        for entity in _alone(document):
            names.setdefault(entity.label, []).append(document.text_of(entity))
    distinct = {label: sorted(set(given)) for label, given in names.items()}
    return [
        edited(document, _swaps(document, distinct, Random(f"{seed} swapped {number}")))
        for number, document in enumerate(documents)
    ]


def _alone(document: Document) -> list[Entity]:
    involved = overlapping(document.entities)
    return [entity for at, entity in enumerate(document.entities) if at not in involved and not entity.discontinuous]


def _swaps(document: Document, names: dict[str, list[str]], random: Random) -> Iterator[Edit]:
    chosen: dict[tuple[str, str], str] = {}
    for entity in _alone(document):
        own, others = document.text_of(entity), names[entity.label]
        if len(others) > 1 and (entity.label, own) not in chosen:
            # one of the others, each as likely: the own one's place is taken by the last
            drawn = others[random.randrange(len(others) - 1)]
            chosen[entity.label, own] = others[-1] if drawn == own else drawn
        if (entity.label, own) in chosen:
            yield Edit(entity.start, entity.end, chosen[entity.label, own])


def unseen(documents: Sequence[Document], seed: int) -> list[Document]:
    """Entities with invented words of the same length and shape, the same word alike in the whole corpus.

    Short words in lower case (of, and) stay. Nested and discontinuous entities change as well: no character moves. An
    invented word is none of the corpus, if its shape leaves room for another one.
    """
    taken = {document.text[start:end].lower() for document in documents for start, end in word_spans(document)}
    invented: dict[str, str] = {}
    return [edited(document, _renamed(document, invented, taken, seed)) for document in documents]


def _renamed(document: Document, invented: dict[str, str], taken: set[str], seed: int) -> Iterator[Edit]:
    """One edit for each character, so that no border of an entity within a word stands in the way."""
    covered = joined(span for entity in document.entities for span in entity.spans)
    for whole in covered:
        for start, end in each_word(document.text[whole.start : whole.end]):
            word = document.text[whole.start + start : whole.start + end]
            if word.islower() and len(word) <= 3:
                continue
            if word.lower() not in invented:
                invented[word.lower()] = _invent(word.lower(), taken, Random(f"{seed} unseen {word.lower()}"))
            for at, (old, new) in enumerate(zip(word, invented[word.lower()], strict=False), whole.start + start):
                if old.lower() != new:
                    yield Edit(at, at + 1, new.upper() if old.isupper() else new)


def _invent(word: str, taken: set[str], random: Random) -> str:
    made = word
    for _ in range(_TRIES):
        made = "".join(_other(sign, random) for sign in word)
        if made not in taken:
            break
    return made


def _other(sign: str, random: Random) -> str:
    """A vowel for a vowel, a consonant for a consonant, a digit for a digit; other signs and letters stay."""
    for group in (_VOWELS, _CONSONANTS, "0123456789"):
        if sign in group:
            return random.choice(group)
    return sign


Edits = Callable[[Document, Random], Iterable[Edit]]
Perturbation = Callable[[Sequence[Document], int], list[Document]]

TYPOS = 0.1
"""The share of words with a typing error."""
SCANNED = 0.03
"""How often something that scanners confuse is confused."""
PUNCTUATED = 0.1
"""The share of words followed by a sign, and of entities put into brackets or quotes."""
BROKEN = 0.15
"""The share of spaces that become line breaks."""
HYPHENATED = 0.05
"""The share of long words divided at a line's end."""

_KEYS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_CONFUSED = {
    **{"rn": "m", "m": "rn", "cl": "d", "d": "cl", "vv": "w", "w": "vv", "fi": "ﬁ", "fl": "ﬂ"},
    **{"l": "1", "1": "l", "I": "l", "O": "0", "0": "O", "S": "5", "5": "S", "B": "8", "8": "B", "e": "c", "h": "b"},
}
_HYPHENS = "-\u2010\u2011\u2012\u2013\u2212"


def lower_case(document: Document, _: Random) -> Iterator[Edit]:
    """Everything in lower case."""
    return _recased(document.text, 0, str.lower)


def upper_case(document: Document, _: Random) -> Iterator[Edit]:
    """Everything in upper case."""
    return _recased(document.text, 0, str.upper)


def title_case(document: Document, _: Random) -> Iterator[Edit]:
    """Every Word Like This."""
    for start, end in word_spans(document):
        yield from _recased(document.text[start : start + 1], start, str.upper)
        yield from _recased(document.text[start + 1 : end], start + 1, str.lower)


def _recased(text: str, at: int, change: Callable[[str], str]) -> Iterator[Edit]:
    for place, sign in enumerate(text, start=at):
        if change(sign) != sign:
            yield Edit(place, place + 1, change(sign))


def typos(document: Document, random: Random) -> Iterator[Edit]:
    """In some words of four letters or more: two letters swapped, one left out, doubled, or a neighbor's key hit."""
    for start, end in word_spans(document):
        word = document.text[start:end]
        if len(word) < 4 or not word.isalpha() or random.random() >= TYPOS:
            continue
        inner = random.randrange(1, len(word) - 2)  # people see first letters that are wrong
        one, two, at = word[inner], word[inner + 1], start + inner
        yield random.choice(
            [Edit(at, at + 2, two + one), Edit(at, at + 1, ""), Edit(at, at + 1, 2 * one), _beside(one, at, random)]
        )


def _beside(letter: str, at: int, random: Random) -> Edit:
    """The letter of a neighboring key; a letter that is on no key is doubled."""
    for row in _KEYS:
        place = row.find(letter.lower())
        if place >= 0:
            hit = random.choice([key for key in row[max(0, place - 1) : place + 2] if key != letter.lower()])
            return Edit(at, at + 1, hit.upper() if letter.isupper() else hit)
    return Edit(at, at + 1, 2 * letter)


def scanned(document: Document, random: Random) -> Iterator[Edit]:
    """What optical character recognition confuses: rn and m, l and 1, O and 0, ligatures."""
    text, at = document.text, 0
    while at < len(text):
        size = 2 if text[at : at + 2] in _CONFUSED else 1
        if text[at : at + size] in _CONFUSED and random.random() < SCANNED:
            yield Edit(at, at + size, _CONFUSED[text[at : at + size]])
            at += size
        else:
            at += 1


def without_punctuation(document: Document, _: Random) -> Iterator[Edit]:
    """No punctuation, hyphens and the points of numbers aside."""
    text = document.text
    for at, sign in enumerate(text):
        within_number = text[at - 1 : at].isdigit() and text[at + 1 : at + 2].isdigit()
        if category(sign)[0] == "P" and sign not in _HYPHENS and not within_number:
            yield Edit(at, at + 1, "")


def more_punctuation(document: Document, random: Random) -> Iterator[Edit]:
    """Commas and the like after words, and entities in brackets or quotes; nothing goes into an entity."""
    signs: dict[int, str] = {}
    for entity in document.entities:
        if random.random() < PUNCTUATED:
            opening, closing = random.choice([("(", ")"), ("[", "]"), ('"', '"'), ("“", "”")])
            signs.setdefault(entity.start, opening)
            signs.setdefault(entity.end, closing)
    inside = _Inside(entity.hull for entity in document.entities)
    for word in word_spans(document):
        if document.text[word.end - 1].isalnum() and random.random() < PUNCTUATED:
            signs.setdefault(word.end, random.choice(",;:."))
    for at, sign in sorted(signs.items()):
        if not inside.strictly(at):
            yield Edit(at, at, sign)


class _Inside:
    """Whether places lie inside of any of some ranges; asked from left to right."""

    def __init__(self, ranges: Iterable[Span]) -> None:
        self._ranges = sorted(ranges)
        self._next = 0
        self._end = -1

    def strictly(self, place: int) -> bool:
        """Whether a range starts before the place and ends after it."""
        while self._next < len(self._ranges) and self._ranges[self._next].start < place:
            self._end = max(self._end, self._ranges[self._next].end)
            self._next += 1
        return place < self._end


def line_breaks(document: Document, random: Random) -> Iterator[Edit]:
    """Lines that end anywhere, also within entities."""
    for at, sign in enumerate(document.text):
        if sign == " " and random.random() < BROKEN:
            yield Edit(at, at + 1, "\n")


def hyphens(document: Document, random: Random) -> Iterator[Edit]:
    """Other hyphens, dashes or spaces for hyphens within words; long words divided at the end of a line."""
    text = document.text
    for at, sign in enumerate(text):
        if sign in _HYPHENS and text[at - 1 : at].isalnum() and text[at + 1 : at + 2].isalnum():
            yield Edit(at, at + 1, random.choice([" ", "\u2010", "\u2011", "\u2013"]))
    for start, end in word_spans(document):
        if end - start >= 8 and text[start:end].isalpha() and random.random() < HYPHENATED:
            at = random.randrange(start + 3, end - 2)
            yield Edit(at, at, "-\n")


def each_document(edits: Edits) -> Perturbation:
    """A perturbation that looks at one document at a time."""

    def perturbed(documents: Sequence[Document], seed: int) -> list[Document]:
        return [
            edited(document, edits(document, Random(f"{seed} {edits.__name__} {number}")))
            for number, document in enumerate(documents)
        ]

    return perturbed


PERTURBATIONS: dict[str, Perturbation] = {
    **{edits.__name__: each_document(edits) for edits in (lower_case, upper_case, title_case, typos, scanned)},
    **{edits.__name__: each_document(edits) for edits in (without_punctuation, more_punctuation)},
    **{edits.__name__: each_document(edits) for edits in (line_breaks, hyphens)},
    "swapped_entities": swapped,
    "unseen_entities": unseen,
}


def perturb(documents: Sequence[Document], name: str, seed: int = 1) -> list[Document]:
    """The documents under one perturbation."""
    if name not in PERTURBATIONS:
        raise ValueError(f"unknown perturbation {name!r}; use one of {', '.join(PERTURBATIONS)}")
    return PERTURBATIONS[name](documents, seed)
