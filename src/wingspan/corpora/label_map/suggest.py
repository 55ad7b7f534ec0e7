"""Suggests a label map: for each label of each corpus the likeliest label of the target, or none, with evidence.

The evidence: names of mentions that both corpora share, what a model of the target calls the mentions, and the name of
the label. Without a model, logistic regression on the spelling of names stands in.
"""

from __future__ import annotations

import re
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
from numpy.typing import NDArray

from wingspan.corpora.label_map import COLUMNS, NONE
from wingspan.corpora.words import WordRanges, kind, split_words, word_strings
from wingspan.files import atomic_write
from wingspan.text import Document, Span

Predict = Callable[[Sequence[Document]], Sequence[Document]]
"""A model that was trained on the target: documents to documents with predicted entities."""

CONFIDENT = 0.5
"""The chance from which on a suggestion is called confident: likelier than everything else together. Checked on corpora
that have no part in the results, see benchmarks/label_map.py."""
FEW = 3.0  # evidence from this many different names is trusted by half
ALIKE = 0.6
"""The similarity from which on the names of two labels are evidence; below it they say nothing, for or against."""


@dataclass(frozen=True)
class Evidence:
    """The chance of each target label, and of None ("no counterpart"), and how far to trust it, from 0 to 1."""

    chances: Mapping[str | None, float]
    trust: float
    names: int = 0  # how many different names of mentions it rests on

    @classmethod
    def of(cls, counts: Mapping[str | None, float], names: int) -> Evidence:
        """Chances in proportion to counts."""
        total = sum(counts.values())
        chances = {label: count / total for label, count in counts.items()} if total else {}
        return cls(chances, names / (names + FEW), names)

    def __str__(self) -> str:
        """The likeliest first: `Gene 92%, - 4% (224 names)`."""
        likeliest = sorted(self.chances.items(), key=lambda item: -item[1])[:2]
        text = ", ".join(f"{target or NONE} {100 * chance:.0f}%" for target, chance in likeliest)
        return f"{text} ({self.names} names)" if self.names else text


@dataclass(frozen=True)
class Suggestion:
    """The target label of a label, and why."""

    corpus: str
    label: str
    target: str | None
    confidence: float  # the chance of the target label by all evidence
    runner_up: str | None  # the second likeliest
    evidence: Mapping[str, Evidence]  # by kind: `names`, `model` and `label`

    @property
    def confident(self) -> bool:
        """Whether it can be taken without a look."""
        return self.confidence >= CONFIDENT

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        evidence = {
            kind: {**vars(each), "chances": {target or NONE: chance for target, chance in each.chances.items()}}
            for kind, each in self.evidence.items()
        }
        return {**vars(self), "confident": self.confident, "evidence": evidence}


def suggest(
    target: Sequence[Document],
    corpora: Mapping[str, Sequence[Document]],
    *,
    predict: Predict | None = None,
    kinds: Sequence[str] = ("names", "model", "label"),
) -> list[Suggestion]:
    """A suggestion for each label of each corpus, from these kinds of evidence."""
    labels = sorted({entity.label for document in target for entity in document.entities})
    if not labels:
        raise ValueError("the target corpus has no entities, so there is nothing that other labels could mean")
    classifier = MentionClassifier(target) if predict is None and "model" in kinds else None
    suggestions = []
    for corpus, documents in corpora.items():
        names = names_of(documents)
        if not names:
            raise ValueError(f"corpus {corpus!r} has no entities, so there is no label to map; leave it out")
        evidence: dict[str, Mapping[str, Evidence]] = {}
        if "names" in kinds:
            evidence["names"] = shared_names(target, names)
        if classifier is not None:
            evidence["model"] = {label: classifier.evidence(counts) for label, counts in names.items()}
        elif predict is not None and "model" in kinds:
            evidence["model"] = predicted_labels(documents, predict(documents))
        if "label" in kinds:
            evidence["label"] = {label: similar_label(label, labels) for label in names}
        suggestions += [
            combine(corpus, label, {kind: by_label[label] for kind, by_label in evidence.items()}, labels)
            for label in sorted(names)
        ]
    return suggestions


def combine(corpus: str, label: str, evidence: Mapping[str, Evidence], targets: Sequence[str]) -> Suggestion:
    """The mean of all chances, weighted by trust. Without any evidence: no counterpart."""
    trust = sum(each.trust for each in evidence.values()) or 1.0
    chances: dict[str | None, float] = {
        target: sum(each.trust * each.chances.get(target, 0.0) for each in evidence.values()) / trust
        for target in (None, *targets)
    }
    first, second, *_ = sorted(chances, key=lambda target: -chances[target])
    return Suggestion(corpus, label, first, chances[first], second, dict(evidence))


def write_suggestions(suggestions: Sequence[Suggestion], path: str | Path) -> None:
    """Writes the table of a label map with the evidence in further columns, to be reviewed and corrected."""
    kinds = list(dict.fromkeys(kind for suggestion in suggestions for kind in suggestion.evidence))
    with atomic_write(path) as file:
        file.write("\t".join((*COLUMNS, "confidence", "runner_up", *kinds)) + "\n")
        for row in suggestions:
            evidence = [str(row.evidence.get(kind, "")) for kind in kinds]
            target, second = row.target or NONE, row.runner_up or NONE
            file.write("\t".join((row.corpus, row.label, target, f"{row.confidence:.2f}", second, *evidence)) + "\n")


def plain(name: str) -> str:
    """The form that spellings of a name share: words in lower case, split the same way in every corpus."""
    return " ".join(word_strings(name)).casefold()


def names_of(documents: Iterable[Document]) -> dict[str, Counter[str]]:
    """How often each name occurs with each label, whatever its case and spacing."""
    names: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for document in documents:
        for entity in document.entities:
            names[entity.label][plain(document.text_of(entity))] += 1
    return dict(names)


def shared_names(target: Iterable[Document], names: Mapping[str, Counter[str]]) -> dict[str, Evidence]:
    """The labels that the names of each label have in the target. Frequent names count more, names rare there less."""
    uses = name_uses(target, (name for counts in names.values() for name in counts))
    evidence = {}
    for label, counts in names.items():
        total: defaultdict[str | None, float] = defaultdict(float)
        shared = [name for name in counts if name in uses]
        for name in shared:
            seen = uses[name].total()
            weight = sqrt(counts[name]) * seen / (seen + 1)
            for other, times in uses[name].items():
                total[other] += weight * times / seen
        evidence[label] = Evidence.of(total, len(shared))
    return evidence


def name_uses(documents: Iterable[Document], names: Iterable[str]) -> dict[str, Counter[str | None]]:
    """How often these names occur in a corpus with each label, and outside of entities (None)."""
    uses: defaultdict[str, Counter[str | None]] = defaultdict(Counter)
    known = {tuple(name.split(" ")) for name in names if name}
    prefixes = {words[:n] for words in known for n in range(1, len(words) + 1)}
    for document in documents:
        ranges = WordRanges(split_words(document.text))
        words = [plain(document.text[start:end]) for start, end in ranges.words]
        gold: defaultdict[Span, set[str]] = defaultdict(set)
        taken: set[int] = set()
        for entity in document.entities:
            touched = ranges.touched(entity.hull)
            gold[touched].add(entity.label)
            taken.update(range(*touched))
        for start in range(len(words)):
            for end in range(start + 1, len(words) + 1):
                name = tuple(words[start:end])
                if name not in prefixes:
                    break
                if name not in known:
                    continue
                if (start, end) in gold:
                    uses[" ".join(name)].update(gold[Span(start, end)])
                elif taken.isdisjoint(range(start, end)):  # a part of an entity is neither that entity nor nothing
                    uses[" ".join(name)][None] += 1
    return uses


def predicted_labels(gold: Sequence[Document], predicted: Sequence[Document]) -> dict[str, Evidence]:
    """The labels that a model gives to the mentions of each label."""
    labels: defaultdict[str, Counter[str | None]] = defaultdict(Counter)
    for document, guess in zip(gold, predicted, strict=True):
        for entity in document.entities:
            shared = {other: min(entity.end, other.end) - max(entity.start, other.start) for other in guess.entities}
            best = max(  # the same span, else the one that shares most characters
                (other for other, characters in shared.items() if characters > 0),
                key=lambda other: (other.spans == entity.spans, shared[other], -other.hull.width),
                default=None,
            )
            labels[entity.label][best.label if best else None] += 1
    return {label: Evidence.of(labels[label], len(names)) for label, names in names_of(gold).items()}


def similar_label(label: str, targets: Sequence[str]) -> Evidence:
    """The target label with the most similar name, if any is similar at all."""
    best = max(targets, key=lambda target: similarity(label, target), default="")
    similar = similarity(label, best)
    return Evidence({best: 1.0}, similar) if similar >= ALIKE else Evidence({}, 0.0)


def similarity(one: str, other: str) -> float:
    """The similarity of two labels, from 0 to 1: by the words they share, or by their letters."""
    # `CellLine`, `cell_line` and `Cell line` are two words each
    words = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")
    first, second = ([word.lower() for word in words.findall(label)] for label in (one, other))
    if not first or not second:
        return 0.0
    both = len({*first} & {*second})
    by_words = (both / min(len({*first}), len({*second})) + both / len({*first, *second})) / 2
    by_letters = SequenceMatcher(None, "".join(first), "".join(second), autojunk=False).ratio()
    return max(by_words, by_letters)


class MentionClassifier:
    """The chance that a name would be annotated with each label of a corpus, or not at all, by its spelling alone."""

    def __init__(self, documents: Iterable[Document]) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression

        mentions, others = mentions_and_others(documents)
        names = [name for name, _ in mentions] + (list(others) or [""])
        labels = [label for _, label in mentions] + [""] * (len(names) - len(mentions))
        counts = [*mentions.values(), *(others.values() or [1])]
        self._vectorizer = TfidfVectorizer(analyzer=name_features, binary=True, use_idf=False)
        # C was chosen on BioRED, see benchmarks/label_map.py; frequent names count more, but not in proportion
        self._regression = LogisticRegression(C=30, max_iter=1000)
        self._regression.fit(self._vectorizer.fit_transform(names), labels, sample_weight=np.sqrt(counts))
        self.labels: tuple[str | None, ...] = tuple(label or None for label in self._regression.classes_)

    def chances(self, names: Sequence[str]) -> NDArray[np.float64]:
        """The chance of no label and of each label, for each name.  (names, labels)"""
        return np.asarray(self._regression.predict_proba(self._vectorizer.transform(names)))

    def evidence(self, names: Counter[str]) -> Evidence:
        """The labels of a label's names, by their spelling."""
        totals = np.sqrt(list(names.values())) @ self.chances(list(names))
        return Evidence.of(dict(zip(self.labels, totals.tolist(), strict=True)), len(names))


def name_features(name: str) -> list[str]:
    """Words of a name, runs of two to four characters, its shape, first and last word, length."""
    start = " ".join(word_strings(name))[:80]
    words = start.casefold().split() or [""]
    text = f"^{start.casefold()}$"
    shape = "".join(key for key, _ in groupby(map(kind, start)))
    features = [f"word {word}" for word in words]
    features += [text[at : at + size] for size in (2, 3, 4) for at in range(len(text) - size + 1)]
    return [*features, f"first {words[0]}", f"last {words[-1]}", f"shape {shape}", f"length {min(len(words), 6)}"]


def mentions_and_others(documents: Iterable[Document]) -> tuple[Counter[tuple[str, str]], Counter[str]]:
    """Counts of (name, label), and of random spans that touch no entity: as many, of the same widths in words."""
    mentions: Counter[tuple[str, str]] = Counter()
    widths: list[int] = []
    free: list[tuple[Document, Sequence[Span], int]] = []  # words outside of entities, where a span may start
    for document in documents:
        ranges = WordRanges(split_words(document.text))
        taken: set[int] = set()
        for entity in document.entities:
            mentions[document.text_of(entity), entity.label] += 1
            touched = ranges.touched(entity.hull)
            taken.update(range(*touched))
            widths.append(max(touched.width, 1))
        free += [(document, ranges.words, at) for at in range(len(ranges.words)) if at not in taken]
    random = Random(0)
    others: Counter[str] = Counter()
    for width in widths if free else ():
        document, words, start = random.choice(free)
        span = Span(words[start].start, words[min(start + width, len(words)) - 1].end)
        if not any(span.overlaps(entity.hull) for entity in document.entities):
            others[document.text[span.start : span.end]] += 1
    return mentions, others
