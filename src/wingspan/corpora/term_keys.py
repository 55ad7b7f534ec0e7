"""When two terms match: lower-cased and, if asked for, with plurals, hyphens or spacing folded away.

Folding finds a term; it makes no name out of two. "tumors" stays a synonym of "tumor" where a concept has both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

_HYPHENS = re.compile("[-\u2010-\u2015\u2212]")
_SIGN = re.compile(r"\s*([^\w\s])\s*")
_WORD = re.compile(r"[^\W\d_]{5,}")  # shorter ones are often abbreviations: AIDS, SARS
_ES = ("sses", "xes", "ches", "shes", "uses", "zes")


def _without_hyphens(key: str) -> str:
    return " ".join(_HYPHENS.sub(" ", key).split())


def _without_spacing(key: str) -> str:
    """No space beside a sign: a corpus of words has "parkinson ' s disease" for "parkinson's disease"."""
    return _SIGN.sub(r"\1", key)


def _without_plurals(key: str) -> str:
    return _WORD.sub(lambda word: _singular(word[0]), key)


def _singular(word: str) -> str:
    """The same form for singular and plural, by rules of English; it need not be a word (metastasis, metastases)."""
    if word.endswith("sis"):
        return word[:-2] + "e"
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(_ES):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


FOLDS: dict[str, Callable[[str], str]] = {
    "hyphen": _without_hyphens,
    "spacing": _without_spacing,
    "plural": _without_plurals,
}
"""What may be folded, in the order in which it is."""


def in_order(folds: Iterable[str]) -> tuple[str, ...]:
    """The chosen folds in the order in which they are applied; an unknown one raises."""
    chosen = set(folds)
    if unknown := chosen - set(FOLDS):
        raise ValueError(f"unknown fold {', '.join(sorted(unknown))}; use {', '.join(FOLDS)}")
    return tuple(name for name in FOLDS if name in chosen)


def spelling(name: str) -> str:
    """What two names share if they are one: all but case and the spacing that splitting into words adds."""
    return term_key(name, ("spacing",))


def term_key(term: str, folds: Iterable[str] = ()) -> str:
    """What two terms must share to match. Case and runs of white space never matter."""
    key = " ".join(term.lower().split())
    for name in folds:
        key = FOLDS[name](key)
    return key
