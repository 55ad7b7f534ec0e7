"""Documents in which entities have other names: those of other entities of their label, or names nobody has seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from wingspan.corpora.edits import Edit, edited
from wingspan.corpora.overlaps import joined, overlapping
from wingspan.corpora.word_level import word_spans
from wingspan.corpora.words import each_word
from wingspan.text import Document, Entity

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
