"""Text into words, for any script. Entities start and end with words.

A splitter is any callable from a text to its words' character ranges, in order and without overlap. `SPLITTERS` names
the ones that a recipe can ask for. A regular expression defines the words; where no character joins others, most of the
time, the same words are found for all of a text at once.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import regex
from numpy.typing import NDArray

from wingspan.corpora.conventions import CONVENTIONS
from wingspan.files import CorpusError
from wingspan.text import Document, Entity, Offsets, Span, offsets_of

Splitter = Callable[[str], Offsets]

# Scripts written without spaces: one character, with its marks, is one word. The two long-vowel marks have no script.
_SPACELESS = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\u30fc\uff70]"
_LETTER = rf"[\p{{L}}--{_SPACELESS}]"
# What never starts a word after a letter: marks, joiners (zero-width, soft hyphen, word joiner), parts of a grapheme.
_ATTACHED = r"[\p{M}\p{GCB=Extend}\p{GCB=SpacingMark}\u200c\u200d\u00ad\u2060]"
# Signs that enclose the number or letter they precede, as in Arabic and Syriac.
_BEFORE = r"[\p{GCB=Prepend}&&\p{Cf}]"

# Only character classes are repeated, possessively, and every branch consumes what it has looked at: linear time and no
# memory for any text. Flags have a separate branch because \X looks back over a whole row of them.
_WORD = regex.compile(
    rf"""
      {_BEFORE}*+ {_LETTER} [{_LETTER}{_ATTACHED}]*+    # letters
    | {_BEFORE}*+ \p{{Nd}} [\p{{Nd}}{_ATTACHED}]*+      # digits
    | \p{{RI}}{{2}} {_ATTACHED}*+                       # flags
    | (?! \s ) \X                                       # one character as it is seen: signs, emoji, Han
    """,
    regex.VERSION1 | regex.VERBOSE,
)


def split_words(text: str) -> tuple[Span, ...]:
    """The words of a text: letters with their marks, digits apart from letters, one word per Han or Kana character."""
    return tuple(Span(*match.span()) for match in _WORD.finditer(text))


def word_strings(text: str) -> list[str]:
    """The words of `split_words` as strings, where their places do not matter; more than twice as fast."""
    return list(_WORD.findall(text))


# Kinds of characters, as the expressions above see them. From JOINING on, the expression itself has to look.
SPACE, LETTER, DIGIT, SIGN, JOINING, LEADING = range(6)
_KINDS = {
    # a sign is a word by itself, and so is one character of a script without spaces
    SIGN: regex.compile(r"[\p{GCB=Other}\p{GCB=Control}]++"),
    DIGIT: regex.compile(r"\p{Nd}++"),
    LETTER: regex.compile(rf"{_LETTER}++", regex.VERSION1),
    JOINING: regex.compile(rf"[{_ATTACHED}\p{{RI}}]++", regex.VERSION1),
    LEADING: regex.compile(r"[\p{GCB=Prepend}&&\P{L}]++", regex.VERSION1),  # joins even a space after it
    SPACE: regex.compile(r"\s++"),
}
_PLANE = 0x10000  # characters beyond the first plane are rare, and many of them join others


@cache
def _kind_of_code() -> NDArray[np.uint8]:
    """The kind of each code point of the first plane; the last one, which is no character, stands for all others."""
    kinds = np.full(_PLANE, JOINING, dtype=np.uint8)
    every = "".join(map(chr, range(_PLANE)))
    for number, pattern in _KINDS.items():
        for match in pattern.finditer(every):
            kinds[match.start() : match.end()] = number
    kinds[-1] = LEADING
    return kinds


def code_points(text: str) -> NDArray[np.uint32]:
    """The characters of a text as numbers."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")


def find_words(text: str) -> Offsets:
    """The words of `split_words` as an array, for long texts: those of plain characters all at once.  (W, 2)"""
    kinds = _kind_of_code().take(code_points(text), mode="clip")
    rest = [match.span() for start, end in _joined(kinds) for match in _WORD.finditer(text, start, end)]
    words = _runs(kinds, alone=kinds == SIGN)
    if not rest:
        return words
    words = np.concatenate([words, np.array(rest, dtype=np.int64)])
    return words[words[:, 0].argsort()]


def find_unspaced(text: str) -> Offsets:
    """The words of a text: everything between white space.  (W, 2)"""
    kinds = _kind_of_code().take(code_points(text), mode="clip")
    return _runs((kinds != SPACE).astype(np.uint8))


def _joined(kinds: NDArray[np.uint8]) -> list[tuple[int, int]]:
    """Stretches without white space that have a character for the expression; they become white space here."""
    joining = np.flatnonzero(kinds >= JOINING)
    if not len(joining):
        return []
    divides = kinds == SPACE
    divides[1:] &= kinds[:-1] != LEADING
    divides = np.concatenate([[-1], np.flatnonzero(divides), [len(kinds)]])
    after = np.unique(np.searchsorted(divides, joining))
    stretches: list[tuple[int, int]] = np.stack([divides[after - 1] + 1, divides[after]], axis=1).tolist()
    for start, end in stretches:
        kinds[start:end] = SPACE
    return stretches


def _runs(kinds: NDArray[np.uint8], alone: NDArray[np.bool_] | None = None) -> Offsets:
    """Runs of one kind other than 0 (white space); a character that stands alone is a run by itself."""
    starts, ends = np.ones(len(kinds), dtype=bool), np.ones(len(kinds), dtype=bool)
    np.not_equal(kinds[1:], kinds[:-1], out=starts[1:])
    ends[:-1] = starts[1:]
    if alone is not None:
        starts |= alone
        ends |= alone
    visible = kinds != SPACE
    return np.stack([np.flatnonzero(starts & visible), np.flatnonzero(ends & visible) + 1], axis=1)


def kind(character: str) -> str:
    """One letter for a class of characters: X upper case, x lower case, 9 digit, the character itself otherwise."""
    if character.isdigit():
        return "9"
    if character.isalpha():
        return "X" if character.isupper() else "x"
    return character


AUTO = "auto"  # training chooses the splitter that agrees best with given words; until then it is `words`
SPLITTERS: dict[str, Splitter] = {AUTO: find_words, "words": find_words, "whitespace": find_unspaced, **CONVENTIONS}


# Documents in words, for formats that count in words


def word_spans(document: Document) -> Sequence[Span]:
    """The given words of the document, or the splitter's."""
    return split_words(document.text) if document.words is None else document.words


def word_offsets(document: Document, splitter: str = "words") -> Offsets:
    """The given words of the document, or the splitter's, as an array.  (W, 2)"""
    return SPLITTERS[splitter](document.text) if document.words is None else offsets_of(document.words)


class WordRanges:
    """Turns ranges of characters into ranges of words."""

    def __init__(self, words: Sequence[Span]) -> None:
        """Takes the words in the order of the text."""
        self.words = words
        self._starts, self._ends = offsets_of(words).T.tolist()

    def touched(self, span: Span) -> Span:
        """The words that share a character with the span; empty (start == end) if there is none."""
        first = bisect_right(self._ends, span.start)
        return Span(first, max(first, bisect_left(self._starts, span.end)))

    def exact(self, span: Span) -> Span | None:
        """The words that make up the span exactly, or None where an edge lies inside a word or on white space."""
        words = self.touched(span)
        return words if words.start < words.end and self.characters(words) == span else None

    def characters(self, words: Span) -> Span:
        """A range of words as a range of characters."""
        return Span(self.words[words.start].start, self.words[words.end - 1].end)


def in_words(document: Document) -> tuple[list[str], list[tuple[Entity, tuple[Span, ...]]]]:
    """The words, and the entities with their fragments in words.

    Entities have to fall on word boundaries, and all text has to belong to a word, because only words are written.
    """
    words = word_spans(document)
    at = 0
    for word in (*words, Span(len(document.text), len(document.text))):
        if left := document.text[at : word.start].strip():
            raise CorpusError(
                f"document {document.id}: {left[:40]!r} after character {at} belongs to no word, and a format of words "
                "would lose it; add it to the words, or write jsonl"
            )
        at = word.end
    ranges = WordRanges(words)
    placed = []
    for entity in document.entities:
        exact = tuple(ranges.exact(span) for span in entity.spans)
        fragments = tuple(span for span in exact if span is not None)
        if len(fragments) < len(exact):
            raise CorpusError(
                f"document {document.id}: {entity.label!r} at {entity.start}-{entity.end} does not fall on word "
                "boundaries; widen such entities with `wingspan convert --lossy`"
            )
        placed.append((entity, fragments))
    return [document.text[word.start : word.end] for word in words], placed


# Normalized texts: letters and digits count; case, white space and signs do not.
# A file of words has "( IL - 2 )" where a file of characters has "(IL-2)", and one source writes a quote or a dash
# otherwise than the next: none of that makes another text.


_SIGNS = bytes(code for code in range(128) if not chr(code).isalnum())
_NEITHER = re.compile(r"[\W_]+")


def bare(text: str) -> str:
    """The letters and digits of a text, without case (NFKC, then case-folded); empty if there are none."""
    if text.isascii():
        return text.lower().encode("ascii").translate(None, _SIGNS).decode("ascii")
    return _NEITHER.sub("", unicodedata.normalize("NFKC", text).casefold())


def text_key(text: str) -> str:
    """A key that equal texts share: their letters and digits, or their signs where they have no others."""
    return bare(text) or "".join(text.split())


def bare_places(text: str) -> NDArray[np.int64]:
    """How many characters of `bare(text)` come before each character of the text, and their total.  (len + 1,)"""
    kept = {character: len(bare(character)) for character in set(text)}
    return np.concatenate([[0], np.cumsum([kept[character] for character in text], dtype=np.int64)])
