"""A label map, suggested: for each label of each corpus the likeliest label of the target, or none, with evidence."""

from __future__ import annotations

import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from math import sqrt
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from wingspan.corpora.label_map import COLUMNS, NONE, LabelMap
from wingspan.corpora.words import WordRanges, kind, split_words, word_strings
from wingspan.files import atomic_write
from wingspan.text import Document, Entity, Span

Predict = Callable[[Sequence[Document]], Sequence[Document]]
"""A model that was trained on the target: documents to documents with what it finds."""

CONFIDENT = 0.5
"""From this chance on a suggestion is called confident: more likely than everything else together. Checked on corpora
that have no part in the results, see benchmarks/label_map.py."""


@dataclass(frozen=True)
class Suggestion:
    """What a label means in the target's labels, and why."""

    corpus: str
    label: str
    target: str | None
    confidence: float
    """The chance of the target label when all witnesses were heard."""
    runner_up: str | None
    """The second likeliest."""
    witnesses: Mapping[str, Witness]
    """`names`: mentions of both corpora; `model`: what one trained on the target says; `label`: its own name."""

    @property
    def confident(self) -> bool:
        """Whether it may be taken without a look."""
        return self.confidence >= CONFIDENT

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "corpus": self.corpus,
            "label": self.label,
            "target": self.target,
            "confidence": self.confidence,
            "confident": self.confident,
            "runner_up": self.runner_up,
            "evidence": {
                kind: {
                    "trust": witness.trust,
                    "names": witness.names,
                    "chances": {target or NONE: chance for target, chance in witness.chances.items()},
                }
                for kind, witness in self.witnesses.items()
            },
        }


def suggest(
    target: Sequence[Document],
    corpora: Mapping[str, Sequence[Document]],
    *,
    predict: Predict | None = None,
    kinds: Sequence[str] = ("names", "model", "label"),
    seed: int = 0,
) -> list[Suggestion]:
    """What each label of each corpus means in the target's. Without `predict` a small classifier of names stands in.

    `kinds` says which witnesses are heard.
    """
    labels = sorted({entity.label for document in target for entity in document.entities})
    if not labels:
        raise ValueError("the target corpus has no entities, so there is nothing that other labels could mean")
    classifier = MentionClassifier.of(target, seed) if predict is None and "model" in kinds else None
    found = []
    for corpus, documents in corpora.items():
        names = names_of(documents)
        if not names:
            raise ValueError(f"corpus {corpus!r} has no entities, so there is no label to map; leave it out")
        heard = witnesses_of(names, documents, target, labels, classifier, predict, kinds)
        found += [judged(corpus, label, heard[label], labels) for label in sorted(names)]
    return found


def witnesses_of(
    names: Mapping[str, Counter[str]],
    documents: Sequence[Document],
    target: Sequence[Document],
    labels: Sequence[str],
    classifier: MentionClassifier | None,
    predict: Predict | None,
    kinds: Sequence[str],
) -> dict[str, dict[str, Witness]]:
    """Everything that is known about the labels of one corpus, by label and kind."""
    heard: dict[str, dict[str, Witness]] = {label: {} for label in names}
    if "names" in kinds:
        usage = Usage(target, (name for count in names.values() for name in count))
        for label, count in names.items():
            heard[label]["names"] = usage.witness(count)
    if "model" in kinds:
        said = predicted(documents, predict(documents)) if predict is not None else {}
        for label, count in names.items():
            heard[label]["model"] = said[label] if classifier is None else spelled_like(classifier, count)
    if "label" in kinds:
        for label in names:
            heard[label]["label"] = named_like(label, labels)
    return heard


def judged(corpus: str, label: str, witnesses: Mapping[str, Witness], targets: Sequence[str]) -> Suggestion:
    """The mean of what the witnesses say, each as far as it is to be trusted. Where all are silent: no counterpart."""
    trust = sum(witness.trust for witness in witnesses.values())
    chances: dict[str | None, float] = {
        target: sum(witness.trust * witness.chances.get(target, 0.0) for witness in witnesses.values()) / (trust or 1.0)
        for target in (None, *targets)
    }
    first, second, *_ = sorted(chances, key=lambda target: -chances[target])
    return Suggestion(corpus, label, first, chances[first], second, dict(witnesses))


def map_of(suggestions: Sequence[Suggestion]) -> LabelMap:
    """The label map that the suggestions make."""
    return LabelMap({(one.corpus, one.label): one.target for one in suggestions})


def write_suggestions(suggestions: Sequence[Suggestion], path: str | Path) -> None:
    """The table of a label map with the evidence in further columns, to be looked at and corrected."""
    kinds = list(dict.fromkeys(kind for one in suggestions for kind in one.witnesses))
    with atomic_write(path) as file:
        file.write("\t".join((*COLUMNS, "confidence", "runner_up", *kinds)) + "\n")
        for one in suggestions:
            evidence = [in_words(one.witnesses[kind]) if kind in one.witnesses else "" for kind in kinds]
            row = (one.corpus, one.label, one.target or NONE, f"{one.confidence:.2f}", one.runner_up or NONE, *evidence)
            file.write("\t".join(row) + "\n")


def in_words(witness: Witness) -> str:
    """What a witness says, the likeliest first: `Gene 92%, - 4% (224 names)`."""
    likely = sorted(witness.chances.items(), key=lambda item: -item[1])[:2]
    said = ", ".join(f"{target or NONE} {100 * chance:.0f}%" for target, chance in likely)
    return f"{said} ({witness.names} names)" if witness.names else said


# --- What speaks for labels of two corpora meaning the same: shared names, what a model calls them, their own
# names.
#
# Each kind of evidence is a `Witness`: for a label of one corpus the chance of each label of the target, and of none.


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


# --- What a mention would be called, by its spelling alone: logistic regression over hashed parts of names, in
# numpy.
#
# It learns in seconds on one core from the mentions of a corpus and from other words of its texts, and so can say
# which label of one corpus the mentions of another would get, or that they would be none of them.


Array = np.ndarray[Any, np.dtype[Any]]

BUCKETS = 1 << 17
"""Places for parts of names; parts that share one are rare, and their words differ in others."""
LONGEST = 80  # characters of a name that are looked at
SIZES = (2, 3, 4)  # of the runs of characters
BATCH, EPOCHS, RATE = 64, 6, 0.3


@dataclass(frozen=True)
class MentionClassifier:
    """Weights of the parts of names, for "nothing" and each label."""

    labels: tuple[str | None, ...]
    weights: Array  # (BUCKETS, labels)

    @classmethod
    def of(cls, documents: Iterable[Document], seed: int = 0) -> MentionClassifier:
        """Learns from a corpus: its mentions, and as many spans that touch none of them, drawn at random."""
        named, other = mentions_and_others(documents, seed)
        labels: tuple[str | None, ...] = (None, *sorted({label for _, label in named}))
        examples = [(name, labels.index(label), count) for (name, label), count in named.items()]
        examples += [(name, 0, count) for name, count in other.items()]
        parts, real = padded([name for name, _, _ in examples])
        answer = np.array([at for _, at, _ in examples], dtype=np.int64)
        # a name that occurs often says more than one that occurs once, but not in proportion
        weight = np.sqrt([count for _, _, count in examples])
        return cls(labels, learned(parts, real, answer, weight, len(labels), seed))

    def chances(self, names: Sequence[str]) -> Array:
        """The chance of "nothing" and of each label, for each name.  (N, labels)"""
        found = [softmax(scores(self.weights, *padded(names[at : at + 1024]))) for at in range(0, len(names), 1024)]
        return np.concatenate(found) if found else np.zeros((0, len(self.labels)))


def mentions_and_others(documents: Iterable[Document], seed: int) -> tuple[Counter[tuple[str, str]], Counter[str]]:
    """How often names have each label, and how often spans occur that touch no entity: as many, of the same widths."""
    named: Counter[tuple[str, str]] = Counter()
    widths: list[int] = []
    free: list[tuple[Document, Sequence[Span], int]] = []  # where a span of words outside of entities may start
    for document in documents:
        ranges = WordRanges(split_words(document.text))
        taken = np.zeros(len(ranges.words) + 1, dtype=bool)
        for entity in document.entities:
            named[document.text_of(entity), entity.label] += 1
            touched = ranges.touched(entity.hull)
            taken[touched.start : touched.end] = True
            widths.append(max(touched.width, 1))
        taken[-1] = True
        free += [(document, ranges.words, int(at)) for at in np.flatnonzero(~taken)]
    random = Random(seed)
    others: Counter[str] = Counter()
    for width in widths if free else ():
        document, words, start = free[random.randrange(len(free))]
        inside = document.entities
        end = min(start + width, len(words))
        span = Span(words[start].start, words[end - 1].end)
        if not any(span.overlaps(entity.hull) for entity in inside):
            others[document.text[span.start : span.end]] += 1
    return named, others


def plain(name: str) -> str:
    """What two spellings of a name share: words in small letters, cut as one cuts all texts, whatever a corpus does."""
    return " ".join(word_strings(name)).casefold()


def parts_of(name: str) -> list[int]:
    """The hashed parts of a name: its words, runs of their characters, shapes, first and last word, length."""
    cut = " ".join(word_strings(name))[:LONGEST]
    words = plain(cut).split() or [""]
    inside = f"^{plain(cut)}$"
    shape = "".join(key for key, _ in groupby(map(kind, cut)))
    found = {f"w{word}" for word in words} | {inside[at : at + n] for n in SIZES for at in range(len(inside) - n + 1)}
    found |= {f"first {words[0]}", f"last {words[-1]}", f"shape {shape}", f"length {min(len(words), 6)}"}
    return sorted({zlib.crc32(part.encode("utf-8", "surrogatepass")) % BUCKETS for part in found})


def padded(names: Sequence[str]) -> tuple[Array, Array]:
    """The parts of names side by side, and which of them are real.  (N, P), (N, P)"""
    rows = [parts_of(name) for name in names]
    parts = np.zeros((len(rows), max(map(len, rows), default=0)), dtype=np.int64)
    real = np.zeros(parts.shape, dtype=np.float32)
    for at, row in enumerate(rows):
        parts[at, : len(row)] = row
        real[at, : len(row)] = 1.0 / np.sqrt(len(row))  # long names have many parts, and must not shout
    return parts, real


def scores(weights: Array, parts: Array, real: Array) -> Array:
    """Sums of weights.  (N, P) -> (N, labels)"""
    found: Array = np.einsum("np,npc->nc", real, weights[parts])
    return found


def softmax(scores: Array) -> Array:
    """Chances of scores."""
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    chances: Array = powers / powers.sum(-1, keepdims=True)
    return chances


def learned(parts: Array, real: Array, answer: Array, weight: Array, classes: int, seed: int) -> Array:
    """Weights by gradient steps whose size falls with what a weight has moved so far (AdaGrad)."""
    weights = np.zeros((BUCKETS, classes), dtype=np.float32)
    moved = np.full_like(weights, 1e-6)
    random = np.random.default_rng(seed)
    target = np.eye(classes, dtype=np.float32)[answer]
    for _ in range(EPOCHS):
        order = random.permutation(len(answer))
        for at in range(0, len(order), BATCH):
            rows = order[at : at + BATCH]
            used = parts[rows][:, : max(1, int((real[rows] > 0).sum(1).max(initial=1)))]
            scale = real[rows][:, : used.shape[1]]
            off = (softmax(scores(weights, used, scale)) - target[rows]) * weight[rows, None]
            places, inverse = np.unique(used, return_inverse=True)
            gradient = np.zeros((len(places), classes), dtype=np.float32)
            np.add.at(gradient, inverse.reshape(used.shape), scale[:, :, None] * off[:, None])
            moved[places] += gradient**2
            weights[places] -= RATE * gradient / np.sqrt(moved[places])
    return weights
