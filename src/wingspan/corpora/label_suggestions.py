"""A label map, suggested: for each label of each corpus the likeliest label of the target, or none, with evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wingspan.corpora.files import atomic_write
from wingspan.corpora.label_evidence import Usage, Witness, named_like, names_of, predicted, spelled_like
from wingspan.corpora.label_map import COLUMNS, NONE, LabelMap
from wingspan.corpora.mention_classifier import MentionClassifier
from wingspan.text import Document

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
