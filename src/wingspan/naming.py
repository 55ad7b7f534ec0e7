"""Names of entities as sequences of words: their own and their synonyms, for objectives that write them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from wingspan.batch import Array
from wingspan.corpora.words import split_words
from wingspan.text import Entity, Sentence
from wingspan.vocabulary import END, START, Vocabulary, by_frequency, padded

Names = dict[str, dict[str, list[list[str]]]]
"""Label, then surface, to synonyms as words."""


class Synonyms(Protocol):
    """A lexicon, as far as objectives need one."""

    def synonyms(self, surface: str, label: str | None = None) -> tuple[str, ...]:
        """Other names of what a surface names; none where it is unknown."""


class Sequences(NamedTuple):
    """What a decoder reads and writes for some of a batch's gold spans."""

    rows: Array  # (N,) which gold span, all sentences one after the other
    read: Array  # (N, T) words that are given
    write: Array  # (N, T) words that are wanted
    weight: Array  # (N,) 0 for a row that only fills an empty table


def surface_of(sentence: Sentence, entity: Entity) -> str:
    """How the entity is written, with spaces only where the document has them."""
    words, offsets = sentence.words, sentence.offsets
    text = words[entity.start]
    for at in range(entity.start + 1, entity.end):
        close = bool(offsets) and offsets[at].start == offsets[at - 1].end
        text += words[at] if close else f" {words[at]}"
    return text


def as_words(text: str, lower_case: bool) -> list[str]:
    """A name as words, split as texts are."""
    text = text.lower() if lower_case else text
    return [text[span.start : span.end] for span in split_words(text)]


def study_names(
    sentences: Sequence[Sentence],
    lexicon: Synonyms | None,
    *,
    lower_case: bool,
    most: int,
    longest: int,
    rare_first: bool,
    synonym_words: bool,
) -> dict[str, Any]:
    """Vocabulary and synonyms of the training data as plain data; without a lexicon there are no synonyms.

    Words are those of all sentences and, with `synonym_words`, of the synonyms.
    """
    counts: Counter[str] = Counter()
    for sentence in sentences:
        words = sentence.words[sentence.core.start : sentence.core.end]  # the others are those of another sentence
        counts.update(word.lower() if lower_case else word for word in words)
    names: Names = {}
    entities = covered = 0
    for sentence in sentences:
        for entity in sentence.entities if lexicon is not None else ():
            if entity.discontinuous or not sentence.core.start <= entity.start < sentence.core.end:
                continue
            assert lexicon is not None
            surface = surface_of(sentence, entity)
            known = names.setdefault(entity.label, {})
            if surface not in known:
                found = [as_words(name, lower_case) for name in lexicon.synonyms(surface, entity.label)[:most]]
                known[surface] = [name[:longest] for name in found if name]
                if synonym_words:
                    counts.update(word for name in known[surface] for word in name)
            entities += 1
            covered += bool(known[surface])
    return {
        "words": by_frequency(counts, rare_first),
        "singletons": sum(count == 1 for count in counts.values()),
        "synonyms": {label: {key: found for key, found in known.items() if found} for label, known in names.items()},
        "entities": entities,
        "with_synonyms": covered,
    }


class NameTargets:
    """The CPU face of an objective that writes names: numbers of words for each gold span of a batch."""

    def __init__(self, vocabulary: Vocabulary, synonyms: Mapping[str, Any], lower_case: bool, longest: int) -> None:
        self.vocabulary = vocabulary
        self.lower_case = lower_case
        self.longest = longest
        self.synonyms = {
            label: {surface: [vocabulary.ids(name) for name in names] for surface, names in known.items()}
            for label, known in synonyms.items()
        }

    def own(self, words: Sequence[str]) -> list[int]:
        """A span's own words as numbers."""
        cut = words[: self.longest]
        return self.vocabulary.ids([word.lower() for word in cut] if self.lower_case else cut)


def sequences(rows: Sequence[int], read: Sequence[Sequence[int]], write: Sequence[Sequence[int]]) -> Sequences:
    """Teacher forcing: what is read starts with START, what is written ends with END."""
    wanted = padded([[*row, END] for row in write])
    given = np.zeros_like(wanted)
    for at, row in enumerate(read):
        begun = [START, *row][: given.shape[1]]
        given[at, : len(begun)] = begun
    weight = np.ones(len(wanted), dtype=np.float32) if rows else np.zeros(1, dtype=np.float32)
    return Sequences(np.array(rows or [0], dtype=np.int64), given, wanted, weight)
