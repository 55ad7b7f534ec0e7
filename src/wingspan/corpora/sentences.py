"""Sentence ends by rules: stops, abbreviations of English and biomedical prose, line breaks and titles.

The rules look one word ahead and a few characters back, so that a text of any length is split while it is read.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import regex

from wingspan.text import Span

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


def mark_sentence_ends(text: str, words: Iterable[Span], keep: Iterable[Span] = ()) -> Iterator[tuple[Span, bool]]:
    """Each word, and whether a sentence ends with it. No sentence ends inside a range of `keep`."""
    kept, kept_to = deque(sorted(keep)), -1
    state = _RuleState(text)
    current: Span | None = None
    for following in words:
        if current is not None:
            while kept and kept[0].start < current.end:
                kept_to = max(kept_to, kept.popleft().end)
            ends = state.ends(current, following) and kept_to <= following.start
            if ends:
                state.sentence_start = following.start
            yield current, ends
        current = following
        state.see(current)
    if current is not None:
        yield current, True


def is_one_sentence(text: str) -> bool:
    """Whether the rules cannot find an end inside the text, checked without splitting it into words.

    It has no line break, no stop that ends a sentence anywhere, and no other stop before any white space.
    """
    before_last_space = text.rstrip().rsplit(None, 1)[:-1]
    return not _ENDS_ANYWHERE.search(text) and not any(_STOP.search(part) for part in before_last_space)


def split_sentences(text: str, words: Sequence[Span], keep: Iterable[Span] = ()) -> tuple[Span, ...]:
    """The sentences as character ranges, from the first word's start to the last one's end.

    `keep` are character ranges that no sentence end may cut, such as the hulls of gold entities.
    """
    sentences: list[Span] = []
    start: int | None = None
    for word, ends in mark_sentence_ends(text, words, keep):
        start = word.start if start is None else start
        if ends:
            sentences.append(Span(start, word.end))
            start = None
    return tuple(sentences)


@dataclass(slots=True)
class _RuleState:
    """The state of the rules: the last stop, and where the sentence and the line began."""

    text: str
    stop: str = ""
    stop_at: int = 0
    seen_to: int = 0
    sentence_start: int = 0
    line_start: int = 0
    first_line: bool = True

    def see(self, word: Span) -> None:
        """A stop is remembered while only closing quotes and brackets follow it."""
        sign = self.text[word.start : word.start + 1]
        if sign in _STOPS:
            self.stop, self.stop_at = sign, word.start
        elif not (self.stop and sign in _CLOSERS and word.start == self.seen_to):
            self.stop = ""
        self.seen_to = word.end

    def ends(self, word: Span, following: Span) -> bool:
        """Whether a sentence ends between the two words."""
        gap = self.text[word.end : following.start]
        by_line = False
        if gap not in ("", " ") and _LINE_BREAK.search(gap):
            by_line = _BLANK_LINE.search(gap) is not None or self._line_ends(word, following)
            self.line_start, self.first_line = following.start, False
        elif "\u2029" in gap or "\f" in gap:
            by_line = True
        if by_line or not self.stop:
            return by_line
        sign = self.text[following.start : following.start + 1]
        if not gap and (sign in _CLOSERS or sign in _STOPS):
            return False
        if self.stop in _HARD_STOPS:
            return True
        return gap != "" and self._begins(following) and not (self.stop == "." and self._abbreviates(following))

    def _line_ends(self, word: Span, following: Span) -> bool:
        """Whether a single line break is meant as an end, or only wraps a long line."""
        if self.text[following.start] in _BULLETS:
            return True
        length = word.end - self.line_start
        meant = self.first_line or length + following.width < _WRAPPED or length > _UNWRAPPED
        return meant and self._begins(following) and self.text[word.end - 1 : word.end] not in (",", ";", "-")

    def _begins(self, word: Span) -> bool:
        """Whether a sentence can begin with the word: not in lower case, unless it is a name such as p53 or mRNA."""
        if self.text[word.start : word.start + 1] in _OPENERS:
            return not self.text[word.end : word.end + 1].islower()
        shown = self.text[word.start : min(word.end, word.start + 64)]
        return not shown.islower() or self.text[word.end : word.end + 1].isdigit()

    def _abbreviates(self, following: Span) -> bool:
        """Whether the full stop belongs to an abbreviation, an initial, a decimal, or the number of a list item."""
        before = self.text[max(self.stop_at - 12, self.sentence_start) : self.stop_at]
        before = before.split()[-1] if before and not before[-1].isspace() else ""
        chunk = before.lstrip("([{\"'“‘«")
        if self.stop_at - len(before) <= self.sentence_start and chunk.isdigit():
            return True
        # sentences hardly ever begin with a figure, while older abstracts write 0. 5
        figure = self.text[following.start : following.start + 1].isdigit()
        if chunk.lower() in _LEADING or (figure and (chunk.isdigit() or chunk.lower() in _COUNTING)):
            return True
        initial = len(chunk) == 1 and chunk.isupper()
        if not (initial or chunk.lower() in _TRAILING or _DOTTED.fullmatch(chunk)):
            return False
        return self.text[following.start : min(following.end, following.start + 16)].lower() not in _STARTERS
