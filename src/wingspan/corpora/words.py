"""Text into words, for any script. A word is what an entity can start or end with.

A splitter is any callable from a text to its words' character ranges, in order and without overlap. `SPLITTERS` names
the ones that a recipe can ask for; they yield word by word, so that a long text needs no list of all its words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import regex

from wingspan.text import Span

Splitter = Callable[[str], Iterable[Span]]

# Scripts written without spaces: one character, with its marks, is one word. The two long-vowel marks have no script.
_SPACELESS = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\u30fc\uff70]"
_LETTER = rf"[\p{{L}}--{_SPACELESS}]"
# What never starts a word after a letter: marks, joiners (zero-width, soft hyphen, word joiner), parts of a grapheme.
_ATTACHED = r"[\p{M}\p{GCB=Extend}\p{GCB=SpacingMark}\u200c\u200d\u00ad\u2060]"
# Signs that enclose the number or letter they precede, as in Arabic and Syriac.
_BEFORE = r"[\p{GCB=Prepend}&&\p{Cf}]"

# Only character classes are repeated, possessively, and every branch consumes what it has looked at: linear time and no
# memory, whatever the text holds. Flags have a branch of their own because \X looks back over a whole row of them.
_WORD = regex.compile(
    rf"""
      {_BEFORE}*+ {_LETTER} [{_LETTER}{_ATTACHED}]*+    # letters
    | {_BEFORE}*+ \p{{Nd}} [\p{{Nd}}{_ATTACHED}]*+      # digits
    | \p{{RI}}{{2}} {_ATTACHED}*+                       # flags
    | (?! \s ) \X                                       # one character as it is seen: signs, emoji, Han
    """,
    regex.VERSION1 | regex.VERBOSE,
)
_NO_SPACE = regex.compile(r"\S++")


def each_word(text: str) -> Iterator[Span]:
    """The words one by one: runs of letters, runs of digits, and every other visible character alone."""
    for match in _WORD.finditer(text):
        yield Span(*match.span())


def each_unspaced(text: str) -> Iterator[Span]:
    """The words one by one: whatever stands between white space."""
    for match in _NO_SPACE.finditer(text):
        yield Span(*match.span())


def split_words(text: str) -> tuple[Span, ...]:
    """The words of a text: letters with their marks, digits apart from letters, one word per Han or Kana character."""
    return tuple(each_word(text))


def word_strings(text: str) -> list[str]:
    """The words of `split_words` as strings, where their places do not matter; more than twice as fast."""
    return list(_WORD.findall(text))


def split_whitespace(text: str) -> tuple[Span, ...]:
    """The words of a text that has been split already: whatever stands between white space."""
    return tuple(each_unspaced(text))


def kind(character: str) -> str:
    """One letter for a class of characters: X upper case, x lower case, 9 digit, the character itself otherwise."""
    if character.isdigit():
        return "9"
    if character.isalpha():
        return "X" if character.isupper() else "x"
    return character


SPLITTERS: dict[str, Splitter] = {"words": each_word, "whitespace": each_unspaced}
