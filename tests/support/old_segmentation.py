"""The word, sentence and window rules as they were, one generator step per word: what bulk segmentation must equal.

Copied from `corpora/words.py`, `sentences.py` and `segment.py` at commit 0229437, where only `Sentence` is replaced by
`OldSentence`. Nothing of `src` is used but the types of text and the settings.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby, islice, pairwise
from typing import NamedTuple

import regex

from wingspan.corpora.segment import GoldOutcome, Misaligned, Record, Segmenting
from wingspan.text import Document, Entity, Span

Measure = Callable[[Sequence[str]], Sequence[int]]  # words to the number of pieces that an encoder makes of each
Measured = tuple[Span, bool, int]  # a word, whether a sentence ends with it, and its size


@dataclass(frozen=True, slots=True)
class OldSentence:
    """What `Sentence` was."""

    words: tuple[str, ...]
    entities: tuple[Entity, ...]
    core: Span
    reach: Span
    offsets: tuple[Span, ...]
    dataset: str = "main"


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
_NO_SPACE = regex.compile(r"\S++")


def each_word(text: str) -> Iterator[Span]:
    """The words one by one: runs of letters, runs of digits, and every other visible character alone."""
    for match in _WORD.finditer(text):
        yield Span(*match.span())


def each_unspaced(text: str) -> Iterator[Span]:
    """The words one by one: everything between white space."""
    for match in _NO_SPACE.finditer(text):
        yield Span(*match.span())


SPLITTERS = {"auto": each_word, "words": each_word, "whitespace": each_unspaced}


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


def segment(
    document: Document,
    settings: Segmenting,
    measure: Measure | None = None,
    gold: bool = True,
    record: Record | None = None,
) -> Iterator[OldSentence]:
    """The document's sentences; a long one as windows whose cores partition its words.

    With `gold`, no sentence found by rules cuts an entity; prediction uses `gold=False`, so that gold has no influence
    on it. Either way entities are placed where they fit, and `record` is called with the outcome of each.
    """
    return (sentence for sentence, _ in segment_sized(document, settings, measure, gold, record))


def segment_sized(
    document: Document,
    settings: Segmenting,
    measure: Measure | None = None,
    gold: bool = True,
    record: Record | None = None,
) -> Iterator[tuple[OldSentence, list[int]]]:
    """Like `segment`, with the size of each word of a sentence."""
    keep = tuple(entity.hull for entity in document.entities) if gold else ()
    words = _measured(document.text, marked_words(document, settings, keep), measure)
    entities = GoldPlacer(document, settings.misaligned, record)
    for window in _windows(words, settings.max_length, settings.overlap):
        sentence = OldSentence(
            words=tuple(document.text[start:end] for start, end in window.words),
            entities=entities.place(window.words, window.core, window.following),
            core=window.core,
            reach=Span(0, len(window.words)),
            offsets=tuple(window.words),
            dataset=document.dataset,
        )
        yield sentence, window.sizes
    entities.close()


def marked_words(document: Document, settings: Segmenting, keep: Iterable[Span]) -> Iterator[tuple[Span, bool]]:
    """Each word and whether a sentence ends with it: as the document gives it, otherwise by rules."""
    given = document.words
    words = given if given is not None else SPLITTERS[settings.splitter](document.text)
    if settings.sentences == "whole":
        return _ending_at(words, ())
    if document.sentences is not None:
        return _ending_at(words, document.sentences)
    if given is not None:
        return _ending_at(words, ())
    return mark_sentence_ends(document.text, words, keep)


def _ending_at(words: Iterable[Span], sentences: Iterable[Span]) -> Iterator[tuple[Span, bool]]:
    """Given sentences. Words between two of them form another sentence: nothing is left out."""
    borders = iter(sorted({border for span in sentences for border in span}))
    border = next(borders, None)
    previous: Span | None = None
    for word in words:
        crossed = False
        while border is not None and border <= word.start:
            border, crossed = next(borders, None), True
        if previous is not None:
            yield previous, crossed
        previous = word
    if previous is not None:
        yield previous, True


def _measured(text: str, words: Iterator[tuple[Span, bool]], measure: Measure | None) -> Iterator[Measured]:
    """Each word with its size. A word without pieces counts one, as it takes one place among the model's words."""
    if measure is None:
        for word, ends in words:
            yield word, ends, 1
        return
    while block := list(islice(words, 1024)):  # enough to make a call cheap, few enough to keep little in memory
        sizes = measure([text[word.start : word.end] for word, _ in block])
        for (word, ends), size in zip(block, sizes, strict=True):
            yield word, ends, max(int(size), 1)


@dataclass(frozen=True, slots=True)
class _Window:
    """Words that are encoded together, the core of words that it owns, and the word after them."""

    words: list[Span]
    sizes: list[int]
    core: Span
    following: Span | None


def _windows(words: Iterator[Measured], limit: int, overlap: int) -> Iterator[_Window]:
    """Divides the words of each sentence among windows of at most `limit`, with up to `overlap` words around a core.

    Context to the right comes first, because spans that start in the core end there: it gets up to half of the window,
    context to the left up to a quarter, so that the core moves on by at least a quarter. Where the word that does not
    fit is large, the context shrinks; a word larger than a window is alone in one.
    """
    held: list[Span] = []
    sizes: list[int] = []
    total = owned = 0  # owned: how many of the held words belong to earlier windows
    for current, after in pairwise(chain[Measured | None](words, [None])):
        assert current is not None
        word, ends, size = current
        if held and total + size > limit:
            right = _fitting(reversed(sizes[owned:]), overlap, min(limit // 2, limit - size))
            core_end = len(held) - right
            if core_end > owned:
                yield _Window(held, sizes, Span(owned, core_end), word)
                room = min(limit // 4, limit - size - sum(sizes[core_end:]))
                owned = _fitting(reversed(sizes[:core_end]), overlap, room)
                first = core_end - owned
            else:  # nothing to own yet: the context to the left makes room
                room = limit - size - sum(sizes[owned:])
                first = owned - _fitting(reversed(sizes[:owned]), overlap, room)
                owned -= first
            held, sizes = held[first:], sizes[first:]
            total = sum(sizes)
        held.append(word)
        sizes.append(size)
        total += size
        if ends:
            yield _Window(held, sizes, Span(owned, len(held)), after[0] if after else None)
            held, sizes, total, owned = [], [], 0, 0


def _fitting(sizes: Iterable[int], most: int, room: int) -> int:
    """How many of the words, taken in this order, fit into the room; `most` at most."""
    count = 0
    for size in islice(sizes, most):
        if size > room:
            break
        room -= size
        count += 1
    return count


# Gold entities from characters to words


class GoldPlacer:
    """Assigns each entity of a document to the window that owns its first word, from left to right."""

    def __init__(self, document: Document, misaligned: Misaligned, record: Record | None) -> None:
        """Starts before the first word; `record` is called with the outcome of each entity."""
        self.document = document
        self.misaligned = misaligned
        self.record = record
        self.next = 0

    def place(self, words: Sequence[Span], core: Span, following: Span | None) -> tuple[Entity, ...]:
        """The entities whose first word is in the core, in words of the window, those that fit into it."""
        entities = self.document.entities
        last = words[core.end - 1]
        # the first word of an entity is the one it starts in, or, when it is contracted, the first one inside it
        owned_to = last.start if self.misaligned == "contract" else max(last.start, last.end - 1)
        if self.next == len(entities) or entities[self.next].start > owned_to:
            return ()
        starts, ends = [word.start for word in words], [word.end for word in words]
        placed_here: dict[Entity, None] = {}  # two mentions moved to the same words are one
        while self.next < len(entities) and entities[self.next].start <= owned_to:
            entity = entities[self.next]
            self.next += 1
            if self._beyond(entity, following):
                self._tell(entity, "cut")
                continue
            spans, exact = self._in_words(entity, starts, ends)
            if not exact and self.misaligned == "error":
                raise ValueError(self._complaint(entity))
            if not spans or (not exact and self.misaligned == "drop"):
                self._tell(entity, "misaligned")
            elif not core.start <= spans[0].start < core.end:
                self._tell(entity, "cut")
            else:
                placed = Entity(entity.label, spans, entity.score, entity.meta)
                placed_here.setdefault(placed)
                self._tell(entity, "exact" if exact else "moved", placed)
        return tuple(placed_here)

    def close(self) -> None:
        """After the last window: all remaining entities lie after the last word."""
        for entity in self.document.entities[self.next :]:
            if self.misaligned == "error":
                raise ValueError(self._complaint(entity))
            self._tell(entity, "misaligned")
        self.next = len(self.document.entities)

    def _tell(self, entity: Entity, outcome: GoldOutcome, placed: Entity | None = None) -> None:
        if self.record is not None:
            self.record(entity, outcome, placed)

    def _beyond(self, entity: Entity, following: Span | None) -> bool:
        """Whether the entity goes on into words after the window."""
        if following is None:
            return False
        if self.misaligned == "contract":
            return entity.end >= following.end and entity.end > following.start
        return entity.end > following.start

    def _in_words(self, entity: Entity, starts: list[int], ends: list[int]) -> tuple[tuple[Span, ...], bool]:
        """The fragments in words, and whether all borders are borders of words; one without words is left out."""
        fragments: list[Span] = []
        exact = True
        for start, end in entity.spans:
            first, last = bisect_left(starts, start), bisect_right(ends, end) - 1
            on_start = first < len(starts) and starts[first] == start
            on_end = last >= 0 and ends[last] == end
            exact = exact and on_start and on_end and first <= last
            if self.misaligned != "contract":
                first = first if on_start else bisect_right(ends, start)
                last = last if on_end else bisect_left(starts, end) - 1
            if first > last:
                continue
            if fragments and first < fragments[-1].end:  # two fragments in one word have become one
                exact = False
                fragments[-1] = Span(fragments[-1].start, max(last + 1, fragments[-1].end))
            else:
                fragments.append(Span(first, last + 1))
        return tuple(fragments), exact

    def _complaint(self, entity: Entity) -> str:
        return (
            f"document {self.document.id!r}: {entity.label} {self.document.text_of(entity)[:80]!r} at characters"
            f" {entity.start}-{entity.end} does not start and end with a word; correct it, or use misaligned=expand"
        )


# Sentences with the text around them in their document, which is encoded but never predicted. Consecutive rows with the
# same `group` are one document. Context is added to the sentences and windows of `segment`, so that the same entities
# are owned and lost with and without it.
# See: Zhu et al. 2023, whose inputs are documents; there spans across sentences are negatives, here they
# are no spans at all.


def segment_all(
    documents: Iterable[Document], settings: Segmenting, measure: Measure | None = None, gold: bool = True
) -> Iterator[OldSentence]:
    """The sentences of all documents, one after the other, with the context that the settings ask for."""
    return (sentence for sentence in segment_rows(documents, settings, measure, gold) if sentence is not None)


def segment_rows(
    documents: Iterable[Document], settings: Segmenting, measure: Measure | None = None, gold: bool = True
) -> Iterator[OldSentence | None]:
    """Like `segment_all`, with None after the last sentence of each document. Reads ahead no further than a window."""
    if settings.context == "sentence":
        yield from (piece.sentence for row in documents for piece in _pieces([row], settings, measure, gold))
        return
    # a row without a group is a document by itself
    for _, article in groupby(documents, lambda row: object() if row.group is None else (row.dataset, row.group)):
        pieces = _pieces(article, settings, measure, gold)
        yield from _in_context(pieces, settings.max_length, settings.context_words)


class _Sized(NamedTuple):
    """A sentence of a row and the sizes of its words; no sentence where the row ends."""

    row: int
    sentence: OldSentence | None
    sizes: list[int]


def _pieces(article: Iterable[Document], settings: Segmenting, measure: Measure | None, gold: bool) -> Iterator[_Sized]:
    for number, row in enumerate(article):
        for sentence, sizes in segment_sized(row, settings, measure, gold):
            yield _Sized(number, sentence, sizes)
        yield _Sized(number, None, [])


def _in_context(pieces: Iterable[_Sized], limit: int, most: int | None) -> Iterator[OldSentence | None]:
    """Delays sentences until enough of the text after them is read."""
    text = _Text()
    held: deque[tuple[_Sized, int]] = deque()  # with the place of its first word in the text
    for piece in pieces:
        first = text.length
        if piece.sentence is not None:
            first -= piece.sentence.core.start
            text.add(piece)
        held.append((piece, first))
        while held and _ready(*held[0], text, limit):
            yield _widened(*held.popleft(), text, limit, most)
        text.forget(held[0][1] - limit if held else text.length - limit)
    for piece, first in held:
        yield _widened(piece, first, text, limit, most)


def _ready(piece: _Sized, first: int, text: _Text, limit: int) -> bool:
    """Whether the text after the sentence would fill all the remaining room."""
    if piece.sentence is None:
        return True
    end = first + len(piece.sizes)
    return end <= text.length and text.size(end, text.length) >= limit - sum(piece.sizes)


def _widened(piece: _Sized, first: int, text: _Text, limit: int, most: int | None) -> OldSentence | None:
    """The sentence with its context. Each side gets half of the room, and the room that the other has no words for.

    With `most`, each side gets at most half of the words that it leaves, no matter how many the other has.
    """
    if piece.sentence is None:
        return None
    end = first + len(piece.sizes)
    room = max(limit - sum(piece.sizes), 0)
    after = min(text.size(end, text.length), room)
    before = text.back_from(first, max(room // 2, room - after))
    last = text.on_from(end, room - text.size(before, first))
    if most is not None:
        half = max(most - len(piece.sizes), 0) // 2
        before, last = max(before, first - half), min(last, end + half)
    left, right = text.words(before, first, piece.row), text.words(end, last, piece.row)
    sentence, by = piece.sentence, len(left)

    def move(span: Span) -> Span:
        return Span(span.start + by, span.end + by)

    return replace(
        sentence,
        words=(*(word for word, _ in left), *sentence.words, *(word for word, _ in right)),
        offsets=(*(place for _, place in left), *sentence.offsets, *(place for _, place in right)),
        entities=tuple(Entity(e.label, tuple(map(move, e.spans)), e.score, e.meta) for e in sentence.entities),
        core=move(sentence.core),
        reach=move(sentence.reach),
    )


class _Text:
    """The words of an article as far as they are read and still needed. Places count from its first word.

    The cores of windows partition the words, so one core after the other is the text.
    """

    def __init__(self) -> None:
        self.rows: list[tuple[int, str, Span]] = []  # row, word, its characters in the row
        self.sums = [0]  # the size of all words before each place, and at the end that of all
        self.forgotten = 0  # how many words are not kept any more

    @property
    def length(self) -> int:
        """How many words were read."""
        return self.forgotten + len(self.rows)

    def add(self, piece: _Sized) -> None:
        """The words that the sentence owns."""
        assert piece.sentence is not None
        for at in range(*piece.sentence.core):
            self.rows.append((piece.row, piece.sentence.words[at], piece.sentence.offsets[at]))
            self.sums.append(self.sums[-1] + piece.sizes[at])

    def size(self, start: int, end: int) -> int:
        """The size of the words from one place to another."""
        return self.sums[end - self.forgotten] - self.sums[start - self.forgotten]

    def back_from(self, place: int, room: int) -> int:
        """The first place whose words up to this one fit into the room."""
        return bisect_left(self.sums, self.sums[place - self.forgotten] - room) + self.forgotten

    def on_from(self, place: int, room: int) -> int:
        """The last place up to which the words from this one fit into the room."""
        return bisect_right(self.sums, self.sums[place - self.forgotten] + room) - 1 + self.forgotten

    def words(self, start: int, end: int, row: int) -> list[tuple[str, Span]]:
        """Words and their characters; words of another row have no offsets in this one."""
        kept = self.rows[start - self.forgotten : end - self.forgotten]
        return [(word, place if owner == row else Span(0, 0)) for owner, word, place in kept]

    def forget(self, place: int) -> None:
        """Drops the words before a place, when they are many."""
        gone = place - self.forgotten
        if gone > max(len(self.rows) // 2, 1024):
            del self.rows[:gone], self.sums[:gone]
            self.forgotten = place
