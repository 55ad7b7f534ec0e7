"""Sentence ends by rules: stops, abbreviations of English and biomedical prose, line breaks and titles.

The rules look one word ahead and a few characters back, so that a text of any length is split while it is read. They
are asked only where a sentence can end: behind a stop, and at a line break.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import regex
from numpy.typing import NDArray

from wingspan.corpora.words import code_points
from wingspan.text import Offsets, Span, spans_of

# Stops that end a sentence anywhere; the others need white space and a possible beginning after them.
_HARD_STOPS = frozenset("。！？｡؟।॥።։។။")
_STOPS = _HARD_STOPS | frozenset(".!?…．۔‼⁇⁈⁉")
_CLOSERS = frozenset("\"')]}»”’」』）】》〉］｝")
_OPENERS = frozenset("\"'([{«“‘„「『（【《〈［｛¿¡")
_BULLETS = frozenset("-*•‣–—·")

_BREAK = r"(?>\r\n|[\n\r\x85\u2028])"
_BLANK_LINE = regex.compile(rf"{_BREAK}[^\S\n\r\x85\u2028\u2029]*+{_BREAK}|\u2029|\f")
_LINE_BREAK = regex.compile(_BREAK)
_ENDS_ANYWHERE = regex.compile(rf"[{''.join(_HARD_STOPS)}\n\r\x85\u2028\u2029\f]")
_STOP = regex.compile(rf"[{''.join(_STOPS)}]")
_DOTTED = regex.compile(r"(?:\p{L}\.)++\p{L}")


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Never the end of a sentence: they belong to the next word.
_LEADING = _listed(
    "fig figs eq eqs ref refs tab sec chap ed eds dr mr mrs ms prof st vs cf ca approx viz e.g i.e"
    " resp incl excl var subsp ssp str dept univ jan feb mar apr jun jul aug sept sep oct nov dec"
)
# Not the end where a number follows.
_COUNTING = _listed("no nos vol pp p")
# The end only where a word follows that begins sentences.
_TRAILING = _listed("al etc sp spp inc ltd co corp jr sr")
_STARTERS = _listed(
    "the this these that those it its in on at by for from with we our they their he she there here however thus"
    " therefore moreover furthermore although while when as to both all no two after before since if an a"
)

# A line that ends before this many characters was ended on purpose, as titles are; a longer one than the second
# was not wrapped at all, so that its end is the end of a paragraph.
_WRAPPED = 60
_UNWRAPPED = 100


# What a character can mean to the rules, as bits.
_STOPPING, _STOPPING_HARD, _CLOSING, _BREAKING = 1, 2, 4, 8
_MEANINGS = {_STOPPING: _STOPS, _STOPPING_HARD: _HARD_STOPS, _CLOSING: _CLOSERS, _BREAKING: "\n\r\x85\u2028\u2029\f"}


@cache
def _meanings() -> NDArray[np.uint8]:
    """The meaning of each code point; the last one stands for all others, which have none."""
    meanings = np.zeros(0x10000, dtype=np.uint8)
    for bit, characters in _MEANINGS.items():
        meanings[[ord(character) for character in characters]] |= bit
    return meanings


def mark_last_words(bounds: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each word is the last of a document. `bounds`: their first words, and one past all.  (D + 1,) -> (W,)"""
    last = np.zeros(bounds[-1], dtype=bool)
    last[bounds[1:][bounds[1:] > bounds[:-1]] - 1] = True
    return last


def mark_sentence_ends(
    text: str, words: Offsets, bounds: NDArray[np.int64], rules_of: Callable[[int], "SentenceRules | None"]
) -> NDArray[np.bool_]:
    """Whether a sentence ends with each word of one document or several in a text.  (W, 2), (D + 1,) -> (W,)

    `bounds` are the first word of each document, and the number of all words. `rules_of` gives the rules for a document
    by its number, None where they are not to be asked. A document alone can go on in another call with the same rules,
    from its last word on.
    """
    ends = mark_last_words(bounds)
    if not len(words):
        return ends
    number, rules = 0, rules_of(0)
    possible, stop_at = _possible_ends(text, words, -1 if rules is None else rules.stop_at)
    asked = np.flatnonzero(possible & ~ends[:-1])
    document = np.searchsorted(bounds, asked, "right") - 1
    columns = (asked, document, words[asked, 1], words[asked + 1, 0], words[asked + 1, 1], stop_at[asked])
    for at, of, end, next_start, next_end, stop in zip(*(column.tolist() for column in columns), strict=True):
        if of != number:
            number, rules = of, rules_of(of)
        if rules is not None:
            ends[at] = rules.ends(end, Span(next_start, next_end), stop)
    if rules is not None:
        rules.stop_at = int(stop_at[-1])
    return ends


def _possible_ends(text: str, words: Offsets, stop_before: int) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Between which words the rules could find an end, and where the last stop before each word's end is, or -1.

    A stop counts while only closing quotes and brackets follow it. `stop_before` is that of the first word, if it is
    known from before.  (W, 2) -> (W - 1,), (W,)
    """
    first, last = int(words[0, 0]), int(words[-1, 0])
    codes = code_points(text[first : last + 1] + " ")  # one more, as an empty word may end the text
    meanings = _meanings().take(codes, mode="clip")
    signs = meanings[words[:, 0] - first]
    gaps = words[1:, 0] > words[:-1, 1]
    follows = np.arange(len(words))  # the word whose stop counts for each
    follows[1:][(signs[1:] & _CLOSING > 0) & ~gaps] = 0
    follows = np.maximum.accumulate(follows)
    stop_at = np.where(signs & _STOPPING, words[:, 0], -1)
    hard = signs & _STOPPING_HARD > 0
    if stop_before >= 0:
        stop_at[0], hard[0] = stop_before, text[stop_before] in _HARD_STOPS
    stop_at, hard = stop_at[follows], hard[follows]
    goes_on = signs[1:] & (_STOPPING | _CLOSING) > 0
    possible = (stop_at[:-1] >= 0) & (gaps | (hard[:-1] & ~goes_on))
    breaks = np.flatnonzero(meanings[: last - first] & _BREAKING) + first
    before = np.searchsorted(words[:, 0], breaks, "right") - 1
    possible[before[breaks >= words[before, 1]]] = True
    return possible, stop_at


def is_one_sentence(text: str) -> bool:
    """Whether the rules cannot find an end inside the text, checked without splitting it into words.

    It has no line break, no stop that ends a sentence anywhere, and no other stop before any white space.
    """
    before_last_space = text.rstrip().rsplit(None, 1)[:-1]
    return not _ENDS_ANYWHERE.search(text) and not any(_STOP.search(part) for part in before_last_space)


def split_sentences(text: str, words: Offsets, keep: Iterable[Span] = ()) -> tuple[Span, ...]:
    """The sentences as character ranges, from the first word's start to the last one's end.

    `keep` are character ranges that no sentence end may cut, such as the hulls of gold entities.
    """
    rules = SentenceRules(text, kept=deque(sorted(keep)))
    past = np.flatnonzero(mark_sentence_ends(text, words, np.array([0, len(words)]), lambda _: rules)) + 1
    first = np.concatenate([[0], past[:-1]]) if len(past) else past
    return spans_of(np.stack([words[first, 0], words[past - 1, 1]], axis=1))


@dataclass(slots=True)
class SentenceRules:
    """The rules, and how far they have read a document: where its last sentence and line began."""

    text: str
    sentence_start: int = 0
    line_start: int = 0
    first_line: bool = True
    stop_at: int = -1  # the stop that counts for the last word, if the document goes on
    kept: deque[Span] = field(default_factory=deque)  # ranges in which no sentence ends, in order
    kept_to: int = -1

    def ends(self, end: int, following: Span, stop_at: int) -> bool:
        """Whether a sentence ends with a word that ends here. The following word and the stop before it are given."""
        while self.kept and self.kept[0].start < end:
            self.kept_to = max(self.kept_to, self.kept.popleft().end)
        found = self._found(end, following, stop_at) and self.kept_to <= following.start
        if found:
            self.sentence_start = following.start
        return found

    def _found(self, end: int, following: Span, stop_at: int) -> bool:
        gap = self.text[end : following.start]
        by_line = False
        if gap not in ("", " ") and _LINE_BREAK.search(gap):
            by_line = _BLANK_LINE.search(gap) is not None or self._line_ends(end, following)
            self.line_start, self.first_line = following.start, False
        elif "\u2029" in gap or "\f" in gap:
            by_line = True
        if by_line or stop_at < 0:
            return by_line
        stop, sign = self.text[stop_at], self.text[following.start : following.start + 1]
        if not gap and (sign in _CLOSERS or sign in _STOPS):
            return False
        if stop in _HARD_STOPS:
            return True
        return gap != "" and self._begins(following) and not (stop == "." and self._abbreviates(stop_at, following))

    def _line_ends(self, end: int, following: Span) -> bool:
        """Whether a single line break is meant as an end, or only wraps a long line."""
        if self.text[following.start : following.start + 1] in _BULLETS:
            return True
        length = end - self.line_start
        meant = self.first_line or length + following.width < _WRAPPED or length > _UNWRAPPED
        return meant and self._begins(following) and self.text[end - 1 : end] not in (",", ";", "-")

    def _begins(self, word: Span) -> bool:
        """Whether a sentence can begin with the word: not in lower case, unless it is a name such as p53 or mRNA."""
        if self.text[word.start : word.start + 1] in _OPENERS:
            return not self.text[word.end : word.end + 1].islower()
        shown = self.text[word.start : min(word.end, word.start + 64)]
        return not shown.islower() or self.text[word.end : word.end + 1].isdigit()

    def _abbreviates(self, stop_at: int, following: Span) -> bool:
        """Whether the full stop belongs to an abbreviation, an initial, a decimal, or the number of a list item."""
        before = self.text[max(stop_at - 12, self.sentence_start) : stop_at]
        before = before.split()[-1] if before and not before[-1].isspace() else ""
        chunk = before.lstrip("([{\"'“‘«")
        if stop_at - len(before) <= self.sentence_start and chunk.isdigit():
            return True
        # sentences hardly ever begin with a figure, while older abstracts write 0. 5
        figure = self.text[following.start : following.start + 1].isdigit()
        if chunk.lower() in _LEADING or (figure and (chunk.isdigit() or chunk.lower() in _COUNTING)):
            return True
        initial = len(chunk) == 1 and chunk.isupper()
        if not (initial or chunk.lower() in _TRAILING or _DOTTED.fullmatch(chunk)):
            return False
        return self.text[following.start : min(following.end, following.start + 16)].lower() not in _STARTERS
