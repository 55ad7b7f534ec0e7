"""What speaks for labels of two corpora meaning the same: shared names, what a model calls them, their own names.

Each kind of evidence is a `Witness`: for a label of one corpus the chance of each label of the target, and of none.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from math import sqrt

from wingspan.corpora.mention_classifier import MentionClassifier, plain
from wingspan.corpora.word_level import WordRanges
from wingspan.corpora.words import split_words
from wingspan.text import Document, Entity, Span

Chances = Mapping[str | None, float]
"""The chance of each target label, and of None, "no counterpart". They sum to one."""

FEW = 3.0
"""With so many different names a witness is trusted by half; it takes a few to say anything."""
ALIKE = 0.6
"""From this similarity on, labels' own names are evidence; below it they say nothing, for or against."""


@dataclass(frozen=True)
class Witness:
    """One kind of evidence about a label: the chances, and how far they are to be trusted, from 0 to 1."""

    chances: Chances
    trust: float
    names: int = 0
    """How many different names of mentions it rests on."""


def names_of(documents: Iterable[Document]) -> dict[str, Counter[str]]:
    """How often each name occurs with each label; names are one if they differ in case and spacing only."""
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for document in documents:
        for entity in document.entities:
            found[entity.label][plain(document.text_of(entity))] += 1
    return dict(found)


class Usage:
    """How some names are used in a corpus: with which labels, and how often without any."""

    def __init__(self, documents: Iterable[Document], names: Iterable[str]) -> None:
        self.counts: defaultdict[str, Counter[str | None]] = defaultdict(Counter)
        wanted = {tuple(name.split(" ")) for name in names if name}
        begins = {words[:n] for words in wanted for n in range(1, len(words) + 1)}
        for document in documents:
            spans = split_words(document.text)
            words = [plain(document.text[start:end]) for start, end in spans]
            gold, taken = _annotated(document, WordRanges(spans))
            for start in range(len(words)):
                end = start + 1
                while end <= len(words) and tuple(words[start:end]) in begins:
                    if tuple(words[start:end]) in wanted:
                        self._count(" ".join(words[start:end]), Span(start, end), gold, taken)
                    end += 1

    def _count(self, name: str, place: Span, gold: Mapping[Span, set[str]], taken: set[int]) -> None:
        for label in gold.get(place, ()):
            self.counts[name][label] += 1
        # a part of an entity, or more than one, is neither that entity nor nothing
        if place not in gold and taken.isdisjoint(range(*place)):
            self.counts[name][None] += 1

    def witness(self, names: Counter[str]) -> Witness:
        """What the names of a label are called here. Frequent ones count more, those that are rare here less."""
        total: defaultdict[str | None, float] = defaultdict(float)
        shared = 0
        for name, count in names.items():
            uses = self.counts.get(name)
            if uses:
                shared += 1
                seen = uses.total()
                weight = sqrt(count) * seen / (seen + 1)
                for label, times in uses.items():
                    total[label] += weight * times / seen
        return Witness(_shares(total), shared / (shared + FEW), shared)


def _annotated(document: Document, ranges: WordRanges) -> tuple[dict[Span, set[str]], set[int]]:
    """The words of each entity with its labels, and all words of entities."""
    gold: defaultdict[Span, set[str]] = defaultdict(set)
    taken: set[int] = set()
    for entity in document.entities:
        touched = ranges.touched(entity.hull)
        gold[touched].add(entity.label)
        taken.update(range(*touched))
    return dict(gold), taken


def spelled_like(classifier: MentionClassifier, names: Counter[str]) -> Witness:
    """What a classifier that was trained on the target calls the names of a label, by their spelling."""
    chances = classifier.chances(list(names))
    weight = [sqrt(count) for count in names.values()]
    total = {
        label: sum(w * float(chance) for w, chance in zip(weight, column, strict=True))
        for label, column in zip(classifier.labels, chances.T, strict=True)
    }
    return Witness(_shares(total), len(names) / (len(names) + FEW), len(names))


def predicted(gold: Sequence[Document], found: Sequence[Document]) -> dict[str, Witness]:
    """What a model found in place of the mentions of each label: the same span, else what shares most characters."""
    uses: defaultdict[str, Counter[str | None]] = defaultdict(Counter)
    names: defaultdict[str, set[str]] = defaultdict(set)
    for document, guess in zip(gold, found, strict=True):
        for entity in document.entities:
            uses[entity.label][_in_place(entity, guess.entities)] += 1
            names[entity.label].add(plain(document.text_of(entity)))
    return {
        label: Witness(_shares(count), len(names[label]) / (len(names[label]) + FEW), len(names[label]))
        for label, count in uses.items()
    }


def _in_place(entity: Entity, found: Iterable[Entity]) -> str | None:
    shared = {other: min(entity.end, other.end) - max(entity.start, other.start) for other in found}
    touching = [other for other, characters in shared.items() if characters > 0]
    if not touching:
        return None
    return max(touching, key=lambda other: (other.spans == entity.spans, shared[other], -other.hull.width)).label


def named_like(label: str, targets: Sequence[str]) -> Witness:
    """What the label's own name says: the most similar one, if any is similar at all."""
    alike = {target: similarity(label, target) for target in targets}
    best = max(alike, key=lambda target: alike[target], default=None)
    if best is None or alike[best] < ALIKE:
        return Witness({}, 0.0)
    return Witness({best: 1.0}, alike[best])


def similarity(one: str, other: str) -> float:
    """How alike two labels are, from 0 to 1: by the words they share, or by their letters."""
    first, second = set(_words(one)), set(_words(other))
    both = len(first & second)
    if not first or not second:
        return 0.0
    by_words = (both / min(len(first), len(second)) + both / len(first | second)) / 2
    by_letters = SequenceMatcher(None, "".join(_words(one)), "".join(_words(other)), autojunk=False).ratio()
    return max(by_words, by_letters)


def _words(label: str) -> list[str]:
    """`CellLine`, `cell_line` and `Cell line` are two words each."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+", label)]


def _shares(counts: Mapping[str | None, float]) -> dict[str | None, float]:
    total = sum(counts.values())
    return {label: count / total for label, count in counts.items()} if total else {}
