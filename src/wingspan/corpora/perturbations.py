"""Documents as they might also have come: other case, typing and scanning errors, punctuation, line breaks, names.

Every perturbation takes documents and a seed and gives documents whose entities have been moved along exactly
(`corpora.edits`). The draws of a document depend on the seed, the perturbation and the document's place alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from unicodedata import category

from wingspan.corpora.edits import Edit, edited
from wingspan.corpora.renaming import swapped, unseen
from wingspan.corpora.word_level import word_spans
from wingspan.text import Document, Span

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
