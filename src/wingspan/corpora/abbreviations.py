"""Abbreviations and what they stand for, where brackets say so: "breast cancer (BC)" or "BC (breast cancer)".

After Schwartz and Hearst, "A simple algorithm for identifying abbreviation definitions in biomedical text" (PSB 2003):
the characters of the short form are looked for in the words before it, from right to left.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_BRACKETS = re.compile(r"\(\s*([^()]*[^()\s])\s*\)")
_NEW_SENTENCE = re.compile(r"[.!?;:]\s|[()\[\]\n]")
_INSIDE_END = re.compile(r"\s*[;,]\s")
_TOKEN = re.compile(r"\S+")
_MOST_CHARACTERS, _MOST_WORDS = 10, 2


class Abbreviation(NamedTuple):
    """A short form and its long form, as the text writes them."""

    short: str
    long: str


def abbreviations(text: str) -> Iterator[Abbreviation]:
    """The definitions in a text, in order."""
    for brackets in _BRACKETS.finditer(text):
        inside = _INSIDE_END.split(brackets[1])[0]
        before = _NEW_SENTENCE.split(text[: brackets.start()].rstrip()[-400:])[-1]
        if _is_short_form(inside):
            if long := _long_form(inside, _last_words(before, inside)):
                yield Abbreviation(inside, long)
        elif (words := before.split()) and _is_short_form(words[-1]) and (long := _long_form(words[-1], inside)):
            yield Abbreviation(words[-1], long)


def _is_short_form(term: str) -> bool:
    """Two to ten characters in one or two words, with a letter, starting with a letter or digit."""
    return (
        2 <= len(term) <= _MOST_CHARACTERS
        and len(term.split()) <= _MOST_WORDS
        and term[0].isalnum()
        and any(character.isalpha() for character in term)
    )


def _last_words(text: str, short: str) -> str:
    """As many words before the brackets as the long form may have."""
    most = min(len(short) + 5, 2 * len(short))
    starts = [word.start() for word in _TOKEN.finditer(text)]
    return text[starts[-most:][0] :] if starts else ""


def _long_form(short: str, candidate: str) -> str | None:
    """The shortest end of the candidate with the short form's characters in order, the first at a word's start."""
    candidate = candidate.rstrip()
    at = len(candidate)
    wanted = [character for character in short.lower() if character.isalnum()]
    for number, character in reversed(list(enumerate(wanted))):
        at -= 1
        while at >= 0 and (
            candidate[at].lower() != character or (number == 0 and at > 0 and candidate[at - 1].isalnum())
        ):
            at -= 1
        if at < 0:
            return None
    start = candidate.rfind(" ", 0, at) + 1
    long = candidate[start:].strip()
    known = short.lower() in long.lower().split()
    return long if len(long) > len(short) and not known and long[0].isalnum() else None
