"""How corpora cut text into words, and which way agrees best with words that are given.

A model that was trained on given words meets raw text in use. `best_agreement` finds the splitter that makes most of
these words out of the text again, so that training can store it. Where only words are known, the text is guessed:
signs are put back to the words that they belong to.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import regex

from wingspan.text import Document, Offsets, Span, gaps_between, spans_of

# Letters of scripts with blanks between words. In other scripts a character is a word, as in `corpora.words`.
_LETTER = r"[[\p{L}\p{M}]--[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]]"
_SHORT = r"Mr|Mrs|Ms|Dr|St|Jr|Sr|Prof|Gen|Sen|Rep|Gov|Lt|Col|Capt|Sgt|Rev|Hon|No|vs|etc|Inc|Corp|Co|Ltd|Bros|\p{Lu}"
_ENDING = r"['’](?:s|d|m|re|ve|ll)\b"
_NOT = r"n['’]t\b"
_PLAIN = rf"(?:(?!{_NOT})[{_LETTER}\p{{Nd}}])"
_NUMBER = r"\p{Nd}++(?:[.,:]\p{Nd}++)*+"
_ADDRESS = r"(?:https?://|www\.)\S*[\p{L}\p{N}/]"
_FLAGS = regex.VERSION1 | regex.VERBOSE | regex.IGNORECASE

_ALPHANUMERIC = regex.compile(rf"[{_LETTER}\p{{Nd}}]++ | (?!\s)\X", _FLAGS)
_CHARACTER = regex.compile(r"(?!\s)\X", _FLAGS)
_NEWSWIRE = regex.compile(
    rf"""
      {_ADDRESS} | [@\#][\p{{L}}\p{{N}}_]++
    | (?:{_LETTER}\.){{2,}}+ | (?-i:{_SHORT})\.(?=\s)                            # U.S., Dr.
    | {_ENDING} | {_NOT}                                                         # 's, n't
    | (?: {_NUMBER} {_PLAIN}*+ | {_PLAIN}++ )
      (?: [-/&] {_PLAIN}++ | ['’](?!(?:s|d|m|re|ve|ll|t)\b) {_LETTER}++ )*+      # 1,000.50, IL-2, O'Hara
    | \.{{2,}}+ | -{{2,}}+ | (?!\s)\X
    """,
    _FLAGS,
)
_TWEETS = regex.compile(
    rf"""
      {_ADDRESS} | [@\#][\p{{L}}\p{{N}}_]++ | &\w++;
    | [:;=8x][-'o^]?[()\[\]DPO3/\\|*]++(?!{_LETTER}) | <3                        # :-)
    | (?:{_LETTER}\.){{2,}}+ | ['’]s\b
    | (?: {_NUMBER} [{_LETTER}\p{{Nd}}%]*+ | [{_LETTER}\p{{Nd}}_]++ )
      (?: [-/&] [{_LETTER}\p{{Nd}}]++ | ['’](?!s\b) {_LETTER}++ )*+              # 100%, don't
    | ([!?.*~-])\1*+ | (?!\s)\X
    """,
    _FLAGS,
)


def find_alphanumeric(text: str) -> Offsets:
    """Letters and digits together, every sign alone, as biomedical corpora and BERT have it.  (W, 2)"""
    return _found(_ALPHANUMERIC, text)


def find_newswire(text: str) -> Offsets:
    """As treebanks have it: hyphens, abbreviations and numbers stay whole; `'s` and `n't` are words.  (W, 2)"""
    return _found(_NEWSWIRE, text)


def find_tweets(text: str) -> Offsets:
    """As corpora of messages have it: names, tags, addresses and faces stay whole; so do `don't` and `!!!`.  (W, 2)"""
    return _found(_TWEETS, text)


def _found(pattern: "regex.Pattern[str]", text: str) -> Offsets:
    return np.array([match.span() for match in pattern.finditer(text)], dtype=np.int64).reshape(-1, 2)


def find_characters(text: str) -> Offsets:
    """Every visible character alone, digits and Latin letters too, as most Chinese corpora have it.  (W, 2)"""
    return _found(_CHARACTER, text)


CONVENTIONS: dict[str, Callable[[str], Offsets]] = {
    "alphanumeric": find_alphanumeric,
    "newswire": find_newswire,
    "tweets": find_tweets,
    "characters": find_characters,
}


# Agreement with given words

SAMPLE = 1000  # documents that are looked at, spread over all that have words
HARDLY_ALIKE = 0.5  # a share of equal words below which a model does not work on raw text, as with words of Chinese


class Agreement(NamedTuple):
    """How well a splitter makes the given words out of the text again."""

    splitter: str
    words: int
    same: int
    found: int
    """The words that the splitter makes of the same text."""

    @property
    def share(self) -> float:
        """The share of words that are the same, given or made (F1)."""
        return 2 * self.same / max(1, self.words + self.found)

    @property
    def line(self) -> str:
        """What to expect of raw text, in a sentence."""
        differ = 100 * (1 - self.share)
        if differ < 0.005:
            return f"Words: raw text is cut as the given words are ({self.splitter})."
        follows = "so expect scores on raw text to be lower where they do."
        if self.share < HARDLY_ALIKE:
            follows = (
                "so little will be found in raw text: give predict words that are cut like these, or train on text "
                "without words (`wingspan convert IN OUT.doccano.jsonl` leaves them out)."
            )
        return (
            f"Words: raw text is cut by the splitter {self.splitter!r}; {differ:.2f}% of the words differ from the "
            f"given ones, {follows}"
        )


def best_agreement(
    documents: Sequence[Document], splitters: Mapping[str, Callable[[str], Offsets]]
) -> Agreement | None:
    """The best of the splitters, the first of equals; None where no document gives words."""
    given = [document for document in documents if document.words]
    sample = given[:: max(1, len(given) // SAMPLE)]
    alone = Counter(word for document in sample for word in _words(document))
    inside = Counter(sign for word in alone.elements() for sign in "-/" if sign in word[1:-1])
    glued = frozenset(sign for sign in "-/" if alone[sign] > inside[sign])
    texts = [_as_written(document, glued) for document in sample]
    found = [_measured(name, splitter, texts) for name, splitter in splitters.items()] if texts else []
    return max(found, key=lambda one: one.share, default=None)


def _measured(name: str, splitter: Callable[[str], Offsets], texts: Sequence[tuple[str, set[Span]]]) -> Agreement:
    words = same = found = 0
    for text, given in texts:
        made = set(spans_of(splitter(text)))
        words, same, found = words + len(given), same + len(made & given), found + len(made)
    return Agreement(name, words, same, found)


def _words(document: Document) -> list[str]:
    return [document.text[word.start : word.end] for word in document.words or ()]


_CLOSING = regex.compile(rf"[\p{{Pe}}\p{{Pf}},.;:!?%…]++ | {_ENDING} | {_NOT} | ['’] | -{_LETTER}.*+", _FLAGS)
_OPENING = regex.compile(r"[\p{Ps}\p{Pi}$£€¿¡]++")


def _as_written(document: Document, glued: frozenset[str]) -> tuple[str, set[Span]]:
    """The text and its words. A text that is only the words, joined, is guessed as people would write it."""
    words = _words(document)
    gaps = gaps_between(words)
    joined = Document.from_words("", tuple(words))
    if document.text != joined.text:
        return document.text, set(document.words or ())
    quoted = False
    parts, spans, at, touches = list[str](), set[Span](), 0, True
    for word, gap in zip(words, ["", *gaps], strict=True):
        quoted ^= word == '"'
        closes = _CLOSING.fullmatch(word) or word in glued or (word == '"' and not quoted)
        blank = "" if touches or closes else gap
        spans.add(Span(at + len(blank), at + len(blank) + len(word)))
        parts += [blank, word]
        at += len(blank) + len(word)
        touches = bool(_OPENING.fullmatch(word)) or word in glued or (word == '"' and quoted)
    return "".join(parts), spans
