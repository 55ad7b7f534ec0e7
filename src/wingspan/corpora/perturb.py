"""Perturbed documents: other case, typing and scanning errors, punctuation, line breaks, other names.

Every perturbation takes documents and a seed and returns documents whose entities have moved along exactly. The draws
of a document depend on the seed, the perturbation and the document's number alone.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import wraps
from random import Random
from typing import NamedTuple
from unicodedata import category

import numpy as np
from numpy.typing import NDArray

from wingspan.corpora.overlaps import joined, overlapping
from wingspan.corpora.words import find_unspaced, split_words, word_spans
from wingspan.text import ABOUT_ENTITIES, LAYOUTS, Document, Entity, Span, spans_of

_POSITIONED = ABOUT_ENTITIES | LAYOUTS | {"columns"}  # keys of `meta` that hold offsets or one value per word


# Edits, and the annotations after them


class Edit(NamedTuple):
    """Characters from start to end become `text`; an insertion has end == start and belongs to no annotation there."""

    start: int
    end: int
    text: str


def edited(document: Document, edits: Iterable[Edit]) -> Document:
    """The document after all edits that can be made; they must not overlap.

    An edit is left out if it replaces characters on both sides of an entity's border, or blanks one out.
    """
    text, size = document.text, len(document.text) + 1
    starts = {span.start for entity in document.entities for span in entity.spans}
    ends = {span.end for entity in document.entities for span in entity.spans}
    border = _marked(size, starts | ends)
    made = []
    for edit in sorted(edits):
        blanks = edit.start < edit.end and not edit.text.strip() and (edit.start in starts or edit.end in ends)
        if not border[edit.start + 1 : edit.end].any() and not blanks:
            made.append(edit)
    if not made:
        return document
    # where a start and an end at each place move to: a start after an insertion there, an end before it
    grown, inserted = np.zeros(size, np.int64), np.zeros(size, np.int64)
    pieces, done = [], 0
    for edit in made:
        assert done <= edit.start <= edit.end < size, f"edits overlap or leave the text at {edit.start}"
        pieces += [text[done : edit.start], edit.text]
        done = edit.end
        grown[edit.end] += len(edit.text) - (edit.end - edit.start)
        inserted[edit.end] += len(edit.text) if edit.start == edit.end else 0
    starts_at = np.arange(size) + np.cumsum(grown)
    ends_at = starts_at - inserted
    for edit in made:
        starts_at[edit.start + 1 : edit.end] = starts_at[edit.start]

    def moved(span: Span) -> Span:
        return Span(int(starts_at[span.start]), int(ends_at[span.end]))

    text = "".join([*pieces, text[done:]])
    words, sentences = document.words, document.sentences
    return replace(
        document,
        text=text,
        entities=tuple(replace(e, spans=tuple(map(moved, e.spans))) for e in document.entities),
        words=None if words is None else _words(words, made, size, moved, text),
        # an insertion between two sentences goes to the first one
        sentences=None if sentences is None else tuple(Span(*map(int, starts_at[list(s)])) for s in sentences),
        meta={key: value for key, value in document.meta.items() if key not in _POSITIONED},
    )


def _marked(size: int, places: Iterable[int]) -> NDArray[np.bool_]:
    marked = np.zeros(size, bool)
    marked[list(places)] = True
    return marked


def _words(
    words: Sequence[Span], edits: Sequence[Edit], size: int, moved: Callable[[Span], Span], text: str
) -> tuple[Span, ...]:
    """The words after the edits, without white space in them; text that belongs to no word is split by the rules.

    So are words that share an edit with other text.
    """
    border, broken = _marked(size, {place for word in words for place in word}), np.zeros(size, bool)
    for edit in edits:
        broken[edit.start : edit.end] = border[edit.start + 1 : edit.end].any()
    kept: list[Span] = []
    done = 0
    for start, end in (moved(word) for word in words if not broken[word.start : word.end].any()):
        end = max(start, end)
        kept += _moved(split_words(text[done:start]), done)
        kept += _moved(spans_of(find_unspaced(text[start:end])), start)
        done = end
    return (*kept, *_moved(split_words(text[done:]), done))


def _moved(spans: Iterable[Span], by: int) -> list[Span]:
    return [Span(start + by, end + by) for start, end in spans]


# Other names: of other entities with the same label, or invented

_LETTERS = ("aeiou", "bcdfghjklmnprstvwxz", "0123456789")


def swapped_entities(documents: Sequence[Document], seed: int) -> list[Document]:
    """Entities with the text of another entity of the same label, all mentions of one name in a document alike.

    Only entities of one fragment that overlap no other give and take names; the others stay as they are.
    """
    alone: list[list[Entity]] = []
    for document in documents:
        involved = overlapping(document.entities)
        alone.append([e for at, e in enumerate(document.entities) if at not in involved and not e.discontinuous])
    names: defaultdict[str, set[str]] = defaultdict(set)
    for document, entities in zip(documents, alone, strict=True):
        for entity in entities:
            names[entity.label].add(document.text_of(entity))
    sorted_names = {label: sorted(texts) for label, texts in names.items()}

    def swaps(document: Document, entities: list[Entity], random: Random) -> Iterator[Edit]:
        chosen: dict[tuple[str, str], str] = {}
        for entity in entities:
            own, others = document.text_of(entity), sorted_names[entity.label]
            if len(others) > 1 and (entity.label, own) not in chosen:
                # any other name, each as likely: the last one takes the place of the entity's own
                drawn = others[random.randrange(len(others) - 1)]
                chosen[entity.label, own] = others[-1] if drawn == own else drawn
            if (entity.label, own) in chosen:
                yield Edit(entity.start, entity.end, chosen[entity.label, own])

    return [
        edited(document, swaps(document, entities, Random(f"{seed} swapped {number}")))
        for number, (document, entities) in enumerate(zip(documents, alone, strict=True))
    ]


def unseen_entities(documents: Sequence[Document], seed: int) -> list[Document]:
    """Entities with invented words of the same length and shape, the same word alike in the whole corpus.

    Short words in lower case (of, and) stay. Nested and discontinuous entities change as well: no character moves. An
    invented word does not occur in the corpus, if its shape leaves room for another one.
    """
    taken = {_lower(document.text[start:end]) for document in documents for start, end in word_spans(document)}
    invented: dict[str, str] = {}

    def renamed(document: Document) -> Iterator[Edit]:
        """One edit per character, so that no border of an entity inside a word prevents it."""
        covered = joined(span for entity in document.entities for span in entity.spans)
        for whole in covered:
            for start, end in _moved(split_words(document.text[whole.start : whole.end]), whole.start):
                word = document.text[start:end]
                if word.islower() and len(word) <= 3:
                    continue
                key = _lower(word)
                if key not in invented:
                    invented[key] = _invent(key, taken, Random(f"{seed} unseen {key}"))
                for at, old, new in zip(range(start, end), word, invented[key], strict=True):
                    if _lower(old) != new:
                        yield Edit(at, at + 1, new.upper() if old.isupper() else new)

    return [edited(document, renamed(document)) for document in documents]


def _lower(text: str) -> str:
    """Lower case, character by character, so that the length stays; an İ, whose lower case is longer, stays as well."""
    return "".join(low if len(low := sign.lower()) == 1 else sign for sign in text)


def _invent(word: str, taken: set[str], random: Random) -> str:
    """A vowel for a vowel, a consonant for a consonant, a digit for a digit; other characters stay."""
    made = word
    for _ in range(20):
        made = "".join(next((random.choice(letters) for letters in _LETTERS if sign in letters), sign) for sign in word)
        if made not in taken:
            break
    return made


# Other characters, one document at a time: each function yields the edits of a document

Perturbation = Callable[[Sequence[Document], int], list[Document]]

# The shares of words with a typing error; of signs that scanners confuse; of words followed by a sign, and of entities
# put into brackets; of spaces that become line breaks; of long words divided at a line's end.
TYPOS, SCANNED, PUNCTUATED, BROKEN, HYPHENATED = 0.1, 0.03, 0.1, 0.15, 0.05

_KEYS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_CONFUSED = {
    **{"rn": "m", "m": "rn", "cl": "d", "d": "cl", "vv": "w", "w": "vv", "fi": "ﬁ", "fl": "ﬂ"},
    **{"l": "1", "1": "l", "I": "l", "O": "0", "0": "O", "S": "5", "5": "S", "B": "8", "8": "B", "e": "c", "h": "b"},
}
_HYPHENS = "-\u2010\u2011\u2012\u2013\u2212"


def each_document(edits: Callable[[Document, Random], Iterable[Edit]]) -> Perturbation:
    """A perturbation that looks at one document at a time."""

    @wraps(edits)
    def perturbed(documents: Sequence[Document], seed: int) -> list[Document]:
        draws = (Random(f"{seed} {edits.__name__} {number}") for number in range(len(documents)))
        return [edited(document, edits(document, draw)) for document, draw in zip(documents, draws, strict=True)]

    return perturbed


@each_document
def lower_case(document: Document, _: Random) -> Iterator[Edit]:
    """Everything in lower case."""
    return _recased(document.text, 0, str.lower)


@each_document
def upper_case(document: Document, _: Random) -> Iterator[Edit]:
    """Everything in upper case."""
    return _recased(document.text, 0, str.upper)


@each_document
def title_case(document: Document, _: Random) -> Iterator[Edit]:
    """Every Word Like This."""
    for start, end in word_spans(document):
        yield from _recased(document.text[start : start + 1], start, str.upper)
        yield from _recased(document.text[start + 1 : end], start + 1, str.lower)


def _recased(text: str, at: int, change: Callable[[str], str]) -> Iterator[Edit]:
    return (Edit(place, place + 1, change(sign)) for place, sign in enumerate(text, at) if change(sign) != sign)


@each_document
def typos(document: Document, random: Random) -> Iterator[Edit]:
    """In some words of four letters or more: two letters swapped, one left out, doubled, or a neighboring key hit."""
    for start, end in word_spans(document):
        word = document.text[start:end]
        if len(word) < 4 or not word.isalpha() or random.random() >= TYPOS:
            continue
        inner = random.randrange(1, len(word) - 2)  # readers notice wrong first letters
        one, two, at = word[inner], word[inner + 1], start + inner
        beside = _beside(one, random)
        yield random.choice(
            [Edit(at, at + 2, two + one), Edit(at, at + 1, ""), Edit(at, at + 1, 2 * one), Edit(at, at + 1, beside)]
        )


def _beside(letter: str, random: Random) -> str:
    """The letter of a neighboring key; a letter that is on no key is doubled."""
    low = letter.lower()
    for row in _KEYS:
        if (place := row.find(low)) >= 0:
            hit = random.choice([key for key in row[max(0, place - 1) : place + 2] if key != low])
            return hit.upper() if letter.isupper() else hit
    return 2 * letter


@each_document
def scanned(document: Document, random: Random) -> Iterator[Edit]:
    """Confusions of optical character recognition: rn and m, l and 1, O and 0, ligatures."""
    text, at = document.text, 0
    while at < len(text):
        size = 2 if text[at : at + 2] in _CONFUSED else 1
        if text[at : at + size] in _CONFUSED and random.random() < SCANNED:
            yield Edit(at, at + size, _CONFUSED[text[at : at + size]])
            at += size
        else:
            at += 1


@each_document
def without_punctuation(document: Document, _: Random) -> Iterator[Edit]:
    """No punctuation, except hyphens and the points of numbers."""
    text = document.text
    for at, sign in enumerate(text):
        within_number = text[at - 1 : at].isdigit() and text[at + 1 : at + 2].isdigit()
        if category(sign)[0] == "P" and sign not in _HYPHENS and not within_number:
            yield Edit(at, at + 1, "")


@each_document
def more_punctuation(document: Document, random: Random) -> Iterator[Edit]:
    """Commas and the like after words, and entities in brackets or quotes; nothing goes into an entity."""
    signs: dict[int, str] = {}
    for entity in document.entities:
        if random.random() < PUNCTUATED:
            opening, closing = random.choice([("(", ")"), ("[", "]"), ('"', '"'), ("“", "”")])
            signs.setdefault(entity.start, opening)
            signs.setdefault(entity.end, closing)
    for word in word_spans(document):
        if document.text[word.end - 1].isalnum() and random.random() < PUNCTUATED:
            signs.setdefault(word.end, random.choice(",;:."))
    hulls = joined(entity.hull for entity in document.entities)
    starts = [hull.start for hull in hulls]
    for at, sign in signs.items():
        near = bisect_left(starts, at) - 1  # the last hull that starts before the place
        if near < 0 or hulls[near].end <= at:
            yield Edit(at, at, sign)


@each_document
def line_breaks(document: Document, random: Random) -> Iterator[Edit]:
    """Lines that end anywhere, also inside entities."""
    for at, sign in enumerate(document.text):
        if sign == " " and random.random() < BROKEN:
            yield Edit(at, at + 1, "\n")


@each_document
def hyphens(document: Document, random: Random) -> Iterator[Edit]:
    """Other hyphens, dashes or spaces for hyphens inside words; long words divided at the end of a line."""
    text = document.text
    for at, sign in enumerate(text):
        if sign in _HYPHENS and text[at - 1 : at].isalnum() and text[at + 1 : at + 2].isalnum():
            yield Edit(at, at + 1, random.choice([" ", "\u2010", "\u2011", "\u2013"]))
    for start, end in word_spans(document):
        if end - start >= 8 and text[start:end].isalpha() and random.random() < HYPHENATED:
            at = random.randrange(start + 3, end - 2)
            yield Edit(at, at, "-\n")


_ALL = (lower_case, upper_case, title_case, typos, scanned, without_punctuation, more_punctuation, line_breaks, hyphens)
PERTURBATIONS: dict[str, Perturbation] = {made.__name__: made for made in (*_ALL, swapped_entities, unseen_entities)}


def perturb(documents: Sequence[Document], name: str, seed: int = 1) -> list[Document]:
    """The documents under one perturbation."""
    if name not in PERTURBATIONS:
        raise ValueError(f"unknown perturbation {name!r}; use one of {', '.join(PERTURBATIONS)}")
    return PERTURBATIONS[name](documents, seed)
