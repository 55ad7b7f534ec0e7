"""Spans, entities, documents, sentences. Ranges are half-open everywhere.

Documents count in code points of their text; sentences count in words. The two meet in `corpora.segment` only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import Any, NamedTuple, overload

import numpy as np
import regex
from numpy.typing import NDArray

Offsets = NDArray[np.int64]  # (N, 2) ranges as an array: where each starts, and where it ends


class Span(NamedTuple):
    """A half-open range of characters or words."""

    start: int
    end: int

    @property
    def width(self) -> int:
        """The number of characters or words in the span."""
        return self.end - self.start

    def overlaps(self, other: Span) -> bool:
        """Whether the two share at least one position."""
        return self.start < other.end and other.start < self.end

    def contains(self, other: Span) -> bool:
        """Whether the other lies inside this one (equal spans contain each other)."""
        return self.start <= other.start and other.end <= self.end

    def crosses(self, other: Span) -> bool:
        """Whether the two overlap and neither contains the other."""
        return self.overlaps(other) and not self.contains(other) and not other.contains(self)


class SpanArray(Sequence[Span]):
    """Behaves as a tuple of spans, but they are made when someone asks: an array takes a tenth of the memory."""

    __slots__ = ("offsets",)

    def __init__(self, offsets: Offsets) -> None:
        """Takes over the array.  (N, 2)"""
        self.offsets = offsets
        self.offsets.flags.writeable = False

    def __len__(self) -> int:
        return len(self.offsets)

    @overload
    def __getitem__(self, at: int) -> Span: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Span, ...]: ...
    def __getitem__(self, at: int | slice) -> Span | tuple[Span, ...]:
        return spans_of(self.offsets[at]) if isinstance(at, slice) else Span(*self.offsets[at].tolist())

    def __iter__(self) -> Iterator[Span]:
        return map(Span._make, self.offsets.tolist())

    def __add__(self, others: tuple[Span, ...]) -> tuple[Span, ...]:
        return (*self, *others)

    def __radd__(self, others: tuple[Span, ...]) -> tuple[Span, ...]:
        return (*others, *self)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, SpanArray):
            return np.array_equal(self.offsets, other.offsets)
        return tuple(self) == other

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


def offsets_of(spans: Sequence[Span]) -> Offsets:
    """Spans as an array.  (N, 2)"""
    if isinstance(spans, SpanArray):
        return spans.offsets
    return np.fromiter(chain.from_iterable(spans), np.int64, 2 * len(spans)).reshape(-1, 2)


def spans_of(offsets: Offsets) -> tuple[Span, ...]:
    """An array of ranges as spans.  (N, 2)"""
    return tuple(map(Span._make, offsets.tolist()))


@dataclass(frozen=True, slots=True)
class Entity:
    """A labeled mention of one or several fragments. Score and meta do not affect equality."""

    label: str
    spans: tuple[Span, ...]
    score: float = field(default=1.0, compare=False)
    meta: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Sorts the fragments, so that equal mentions are equal objects."""
        if type(self.spans) is tuple and len(self.spans) == 1 and type(self.spans[0]) is Span:
            start, end = self.spans[0]
            if type(start) is int and type(end) is int:
                return  # most are like this
        if not self.spans:
            raise ValueError(f"entity {self.label!r} has no fragment; give at least one (start, end)")
        object.__setattr__(self, "spans", tuple(sorted(Span(int(s), int(e)) for s, e in self.spans)))

    @classmethod
    def at(cls, label: str, start: int, end: int, score: float = 1.0) -> Entity:
        """A contiguous entity."""
        return cls(label, (Span(start, end),), score)

    @property
    def start(self) -> int:
        """Where the first fragment starts."""
        return self.spans[0].start

    @property
    def end(self) -> int:
        """Where the last fragment ends."""
        return max(span.end for span in self.spans)

    @property
    def hull(self) -> Span:
        """The smallest span that holds every fragment."""
        return Span(self.start, self.end)

    @property
    def discontinuous(self) -> bool:
        """Whether the mention has more than one fragment."""
        return len(self.spans) > 1


def reading_order(entity: Entity) -> tuple[tuple[Span, ...], str]:
    """Sort key: by position, then by label. Documents keep their entities in this order."""
    return entity.spans, entity.label


@dataclass(frozen=True, slots=True)
class Document:
    """One row of a file: a text and its entities in code points.

    `words` and `sentences` are character ranges, if the source fixes them; `group` is shared by rows of one article.
    """

    id: str
    text: str
    entities: tuple[Entity, ...] = ()
    dataset: str = "main"
    words: Sequence[Span] | None = None
    sentences: tuple[Span, ...] | None = None
    group: str | None = None
    meta: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Sorts the entities, so that their order in a file does not affect equality."""
        if self.entities != ():
            object.__setattr__(self, "entities", tuple(sorted(self.entities, key=reading_order)))

    @classmethod
    def from_words(cls, id: str, words: tuple[str, ...], entities: tuple[Entity, ...] = (), **others: Any) -> Document:
        """A document from words and entities in words; the text is the words as `join_words` joins them."""
        text = " ".join(words)
        lengths = np.array(list(map(len, words)), dtype=np.int64)
        offsets = np.empty((len(words), 2), dtype=np.int64)
        ends = offsets[:, 1]
        np.cumsum(lengths + 1, out=ends)
        ends -= 1
        if not text.isascii() and "" in (gaps := gaps_between(words)):
            text = _joined(words, gaps)
            ends[1:] -= np.cumsum([not gap for gap in gaps])
        np.subtract(ends, lengths, out=offsets[:, 0])
        moved = tuple(
            Entity(e.label, tuple(Span(offsets[s, 0], offsets[t - 1, 1]) for s, t in e.spans), e.score, e.meta)
            for e in entities
        )
        return cls(id, text, moved, words=SpanArray(offsets), **others)

    def text_of(self, entity: Entity) -> str:
        """The entity's surface; fragments are joined by one space."""
        return " ".join(self.text[span.start : span.end] for span in entity.spans)

    def to_dict(self) -> dict[str, Any]:
        """The document as plain data: entities with start, end, text, label, score and fragments."""
        return {
            "id": self.id,
            "text": self.text,
            "entities": [
                {
                    "start": entity.start,
                    "end": entity.end,
                    "text": self.text_of(entity),
                    "label": entity.label,
                    "score": entity.score,
                    "fragments": [[span.start, span.end] for span in entity.spans],
                }
                for entity in self.entities
            ],
        }

    def _repr_html_(self) -> str:
        """The text with its entities, for notebooks."""
        from wingspan.views.html import cell

        return cell(self)


# Words to text. A blank stands between two words, except in scripts that are written without blanks.

# Chinese and Japanese with their signs: no blank on either side. Thai and the like: blanks beside other scripts.
_EAST = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\u3000-\u303f\u30fb\u30fc\ufe30-\ufe4f\uff01-\uff9f\uffe0-\uffee]"
_SOUTH = r"[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}]"
_SPACELESS = regex.compile(rf"{_EAST}|{_SOUTH}")
_ONE_CHARACTER = regex.compile(r"\X")
_TOUCHING = regex.compile(rf"{_EAST}{_EAST}|{_SOUTH}{_SOUTH}")
_TOUCHING_ANY = regex.compile(rf"{_EAST}.|.{_EAST}|{_SOUTH}{_SOUTH}", regex.DOTALL)


def join_words(words: Sequence[str]) -> str:
    """Words as text, by their script: one blank between them, none in Chinese, Japanese, Thai and the like.

    Chinese words touch those of other scripts too, unless the text is mostly in the other one. Where every word is one
    character, as in corpora that cut Chinese into characters, Latin letters and digits are joined again as well.
    """
    return _joined(words, gaps_between(words))


def gaps_between(words: Sequence[str]) -> list[str]:
    """What stands between each word and the next: a blank or nothing."""
    whole = "".join(words)
    if whole.isascii() or not _SPACELESS.search(whole):
        return [" "] * (len(words) - 1)
    if all(map(_ONE_CHARACTER.fullmatch, words)):
        return [""] * (len(words) - 1)
    spaceless = sum(_SPACELESS.search(word) is not None for word in words)
    spaced = sum(word.isalpha() and not _SPACELESS.search(word) for word in words)
    touching = _TOUCHING_ANY if spaceless >= spaced else _TOUCHING
    return ["" if touching.fullmatch(left[-1:] + right[:1]) else " " for left, right in pairwise(words)]


def _joined(words: Sequence[str], gaps: Sequence[str]) -> str:
    if "" not in gaps:
        return " ".join(words)
    return "".join(word + gap for word, gap in zip(words, [*gaps, ""], strict=True))


@dataclass(frozen=True, slots=True)
class Sentence:
    """The input of a model: words, and entities in words.

    A span counts if it starts in `core` and ends in `reach`; the other words are context, encoded but never predicted.
    `offsets` are the words' character ranges in the document, so that a predicted span has its place in the text.
    `numbers` are the words in a `corpora.word_table`, where segmentation had one; `taught` is what teachers say of it.
    """

    words: tuple[str, ...]
    entities: tuple[Entity, ...]
    core: Span
    reach: Span
    offsets: Offsets = field(compare=False, repr=False)  # (L, 2)
    dataset: str = "main"
    numbers: NDArray[np.int32] | None = field(default=None, compare=False, repr=False)  # (L,)
    table: object | None = field(default=None, compare=False, repr=False)
    taught: tuple[Any, ...] = field(default=(), compare=False, repr=False)

    def characters(self, span: Span) -> Span:
        """A span of words as a span of characters of the document."""
        return Span(int(self.offsets[span.start, 0]), int(self.offsets[span.end - 1, 1]))


ABOUT_ENTITIES = frozenset({"brat", "relations", "events", "coreferences", "label_studio_results"})
"""Keys of `Document.meta` that refer to its entities."""
LAYOUTS = frozenset({"bioc", "pubtator"})  # keys of `Document.meta` with passages, which may contain relations


def without_gold(document: Document) -> Document:
    """The document as a system may see it: without entities, and without the notes and relations that refer to them."""
    if not document.entities and not document.meta:
        return document
    kept = {key: value for key, value in document.meta.items() if key not in ABOUT_ENTITIES}
    meta = {key: _without_relations(value) if key in LAYOUTS else value for key, value in kept.items()}
    return replace(document, entities=(), meta=meta)


def _without_relations(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_relations(part) for key, part in value.items() if key not in ABOUT_ENTITIES}
    return [_without_relations(part) for part in value] if isinstance(value, list) else value


def content_digest(document: Document) -> bytes:
    """The sha256 of text and entities; ids, scores, words and meta do not count, so formats do not matter."""
    entities = [[entity.label, [list(span) for span in entity.spans]] for entity in document.entities]
    return hashlib.sha256(json.dumps([document.text, entities]).encode()).digest()


def fingerprint(digests: Sequence[bytes], entities: int) -> str:
    """One name for the content: the sha256 over all documents in any order, and how many documents and entities."""
    whole = hashlib.sha256(b"".join(sorted(digests))).hexdigest()
    return f"sha256:{whole}-{len(digests)}-{entities}"


def corpus_fingerprint(documents: Iterable[Document]) -> str:
    """The fingerprint of documents."""
    digests, entities = [], 0
    for document in documents:
        digests.append(content_digest(document))
        entities += len(document.entities)
    return fingerprint(digests, entities)
