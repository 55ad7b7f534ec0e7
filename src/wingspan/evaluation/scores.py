"""Scores in percent: recognition (precision, recall, F1), typing (accuracy), their spread over seeds, and continuity.

Where nothing can be counted (no gold, nothing found) precision, recall and F1 are 0.0, as in conlleval and the n2c2
script. Figures are not rounded; tables round when they print.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, stdev
from typing import Any, Literal, NamedTuple, get_args

from wingspan.evaluation.matching import Match, Mode, SentenceIndex, Verdict, match, pair
from wingspan.text import Document, Entity, Span

MODES: tuple[Mode, ...] = get_args(Mode)
FIGURES = ("precision", "recall", "f1")


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of verdicts, and the figures that follow. Precision, recall and F1 are percentages."""

    correct: int = 0
    incorrect: int = 0
    partial: int = 0
    missed: int = 0
    spurious: int = 0

    @property
    def gold(self) -> int:
        """The number of gold entities (POS in SemEval-2013)."""
        return self.correct + self.incorrect + self.partial + self.missed

    @property
    def found(self) -> int:
        """The number of found entities (ACT in SemEval-2013)."""
        return self.correct + self.incorrect + self.partial + self.spurious

    @property
    def tp(self) -> float:
        """True positives; a partial match counts half."""
        return self.correct + self.partial / 2 if self.partial else self.correct

    @property
    def fp(self) -> float:
        """Found entities without credit."""
        return self.found - self.tp

    @property
    def fn(self) -> float:
        """Gold entities without credit."""
        return self.gold - self.tp

    @property
    def precision(self) -> float:
        """Credit per found entity."""
        return 100 * self.tp / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        """Credit per gold entity."""
        return 100 * self.tp / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return 200 * self.tp / (self.found + self.gold) if self.tp else 0.0

    def to_dict(self) -> dict[str, float]:
        """The figures, then the counts; `gold` is the support."""
        names = (*FIGURES, "tp", "fp", "fn", "gold", "found", *get_args(Verdict))
        return {name: getattr(self, name) for name in names}


class Average(NamedTuple):
    """Plain means over labels or documents; F1 is the mean of the F1s."""

    precision: float
    recall: float
    f1: float
    over: int

    @classmethod
    def of(cls, parts: Iterable[Counts]) -> Average:
        """The mean of each figure; zeros if there is nothing to average."""
        rows = list(parts)
        precision, recall, f1 = (sum(getattr(row, name) for row in rows) / max(len(rows), 1) for name in FIGURES)
        return cls(precision, recall, f1, len(rows))


@dataclass(frozen=True)
class Scores:
    """The result of `recognition`. `labels` and `documents` hold the counts of each label and each document."""

    mode: Mode
    micro: Counts
    labels: Mapping[str, Counts]
    documents: tuple[Counts, ...]
    coverage: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    continuity: Mapping[str, Counts] = field(default_factory=dict)
    """Strict counts of discontinuous and continuous entities, from `by_continuity`."""

    @property
    def macro(self) -> Average:
        """The mean over the labels that occur on either side (as in seqeval)."""
        return Average.of(self.labels.values())

    @property
    def document_macro(self) -> Average:
        """The mean over documents (the "macro" of the n2c2 script); documents without any entity count as zero."""
        return Average.of(self.documents)

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data, ready for JSON."""
        macro, by_document = self.macro._asdict(), self.document_macro._asdict()
        labels, documents = macro.pop("over"), by_document.pop("over")
        parts = {name: counts.to_dict() for name, counts in self.continuity.items()}
        return {
            "protocol": "recognition",
            "mode": self.mode,
            "micro": self.micro.to_dict(),
            "macro": {**macro, "labels": labels},
            "document_macro": {**by_document, "documents": documents},
            "labels": {label: counts.to_dict() for label, counts in self.labels.items()},
            "coverage": dict(self.coverage),
            **({"continuity": parts} if parts else {}),
            "notes": list(self.notes),
        }


def recognition(
    gold: Sequence[Document], found: Sequence[Document], mode: Mode = "strict", *, allow_missing: bool = False
) -> Scores:
    """Scores found entities against gold ones, document by document.

    strict: all fragments and the label are right. exact: all fragments are right. partial: any overlap, half credit
    unless exact. type: any overlap, same label. lenient: as type, wrong labels are no pair. fragments: strict, every
    fragment by itself. A label's row is the score of that label's entities alone on both sides. Rows of one `group` are
    one document.
    """
    if mode not in MODES:
        raise ValueError(f"unknown mode {mode!r}; use one of {', '.join(MODES)}")
    total: Counter[str] = Counter()
    labels: dict[str, Counter[str]] = {}
    documents: dict[str | int, Counter[str]] = {}
    pairs = pair(gold, found, allow_missing)
    for number, (reference, prediction) in enumerate(pairs):
        verdicts = tally(match(reference.entities, prediction.entities, mode))
        total.update(verdicts)
        documents.setdefault(number if reference.group is None else reference.group, Counter()).update(verdicts)
        present = {entity.label for entity in (*reference.entities, *prediction.entities)}
        for label in present:
            if len(present) > 1:
                verdicts = tally(match(of(label, reference.entities), of(label, prediction.entities), mode))
            labels.setdefault(label, Counter()).update(verdicts)
    return Scores(
        mode,
        Counts(**total),
        {label: Counts(**labels[label]) for label in sorted(labels)},
        tuple(Counts(**counts) for counts in documents.values()),
        *remarks_on(pairs, len(pairs) - len(found)),
    )


def tally(matches: Iterable[Match]) -> Counter[str]:
    """Counts of verdicts."""
    return Counter(verdict for verdict, _, _ in matches)


def of(label: str, entities: Iterable[Entity]) -> list[Entity]:
    """The entities of one label."""
    return [entity for entity in entities if entity.label == label]


def remarks_on(pairs: Sequence[tuple[Document, Document]], missing: int) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What was scored, in numbers, and notes that a reader of the figures should know."""
    sides = [[document.entities for document in side] for side in zip(*pairs, strict=True)] or [[], []]
    known, guessed = ({entity.label for entities in side for entity in entities} for side in sides)
    twice = {
        name: sum(len(entities) - len(set(entities)) for entities in side)
        for name, side in zip(("gold", "found"), sides, strict=True)
    }
    coverage = {"documents": len(pairs), "without_prediction": missing, "repeated": twice}
    notes = []
    if any(prediction.id != reference.id for reference, prediction in pairs):
        notes.append("no id occurs on both sides, so documents were paired by position")
    if missing:
        notes.append(f"{missing} of {len(pairs)} documents have no prediction and count as predicted empty")
    if not known:
        notes.append("the gold has no entities, so recall and F1 are 0.0 by convention")
    if guessed - known:
        notes.append(f"the predictions have labels unknown to the gold: {', '.join(sorted(guessed - known))}")
    if known - guessed:
        notes.append(f"the gold has labels that were never predicted: {', '.join(sorted(known - guessed))}")
    if any(twice.values()):
        notes.append(f"repeated entities count once: {twice['gold']} in the gold, {twice['found']} in the predictions")
    return coverage, tuple(notes)


# Typing: an accuracy, never an F1, because the spans are given


class TypingCounts(NamedTuple):
    """The number of right labels, and of all labels."""

    correct: int
    total: int

    @property
    def accuracy(self) -> float:
        """The share in percent; 0.0 if there is nothing to guess."""
        return 100 * self.correct / self.total if self.total else 0.0

    def to_dict(self) -> dict[str, float]:
        """Accuracy and counts as plain data."""
        return {"accuracy": self.accuracy, "correct": self.correct, "total": self.total}


@dataclass(frozen=True)
class TypingScores:
    """The result of `typing`; `labels` is by gold label."""

    overall: TypingCounts
    labels: Mapping[str, TypingCounts]
    coverage: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def accuracy(self) -> float:
        """The share of gold labels that were guessed, in percent."""
        return self.overall.accuracy

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data, ready for JSON."""
        return {
            "protocol": "typing",
            **self.overall.to_dict(),
            "labels": {label: share.to_dict() for label, share in self.labels.items()},
            "coverage": dict(self.coverage),
            "notes": list(self.notes),
        }


def typing(gold: Sequence[Document], guessed: Sequence[Document], *, allow_missing: bool = False) -> TypingScores:
    """Compares labels on the gold spans. A span with two gold labels takes two guesses; one without a guess is wrong.

    Guessing where the gold has no span, or more labels than the gold has, would be recognition and is an error.
    """
    correct: Counter[str] = Counter()
    total: Counter[str] = Counter()
    unanswered = 0
    pairs = pair(gold, guessed, allow_missing)
    for reference, prediction in pairs:
        right, guesses = _by_spans(reference.entities), _by_spans(prediction.entities)
        for spans, labels in guesses.items():
            if len(labels) > len(right.get(spans, ())):
                where = ";".join(f"{span.start}-{span.end}" for span in spans)
                raise ValueError(
                    f"document {reference.id!r}: {len(labels)} guessed labels at {where} ({', '.join(sorted(labels))}),"
                    f" where the gold has {len(right.get(spans, ()))}; typing takes one guess per gold label of a given"
                    " span, use recognition for found spans"
                )
        for spans, labels in right.items():
            answers = guesses.get(spans, set())
            total.update(labels)
            correct.update(labels & answers)
            unanswered += len(labels) - len(answers)
    notes = [f"{unanswered} gold labels have no guess and count as wrong"] if unanswered else []
    return TypingScores(
        TypingCounts(correct.total(), total.total()),
        {label: TypingCounts(correct[label], total[label]) for label in sorted(total)},
        {"documents": len(pairs), "unanswered": unanswered},
        tuple(notes),
    )


def _by_spans(entities: Iterable[Entity]) -> dict[tuple[Span, ...], set[str]]:
    """The labels of each span."""
    labels: dict[tuple[Span, ...], set[str]] = {}
    for entity in entities:
        labels.setdefault(entity.spans, set()).add(entity.label)
    return labels


# The two protocols


Protocol = Literal["recognition", "typing"]

HEADLINES: dict[Protocol, str] = {"recognition": "F1", "typing": "accuracy"}
"""The name of the one figure that decides which of two models is better; micro, strict, in percent."""


def measure(protocol: Protocol, gold: Sequence[Document], found: Sequence[Document]) -> Scores | TypingScores:
    """The scores of a model's entities, or of its labels for given spans."""
    return typing(gold, found) if protocol == "typing" else recognition(gold, found)


def headline(scores: Scores | TypingScores) -> float:
    """The figure of `HEADLINES`."""
    return scores.accuracy if isinstance(scores, TypingScores) else scores.micro.f1


def protocol_of(scores: Scores | TypingScores) -> Protocol:
    """Which protocol made the scores."""
    return "typing" if isinstance(scores, TypingScores) else "recognition"


# Several runs of one system: mean and standard deviation over seeds


class Spread(NamedTuple):
    """Mean and sample standard deviation (n - 1); one value has no deviation."""

    mean: float
    deviation: float | None
    values: tuple[float, ...]

    def __str__(self) -> str:
        """As tables print it."""
        return f"{self.mean:.2f}" if self.deviation is None else f"{self.mean:.2f} ± {self.deviation:.2f}"

    def to_dict(self) -> dict[str, Any]:
        """Mean, deviation and the values behind them."""
        return {"mean": self.mean, "deviation": self.deviation, "values": list(self.values)}


class ScoreRow(NamedTuple):
    """One label, or `micro`, `macro` or `document_macro`, over all runs."""

    name: str
    precision: Spread
    recall: Spread
    f1: Spread

    def to_dict(self) -> dict[str, Any]:
        """The three figures as plain data."""
        return {name: getattr(self, name).to_dict() for name in FIGURES}


def spread(values: Iterable[float]) -> Spread:
    """Mean and deviation of one figure."""
    kept = tuple(values)
    if not kept:
        raise ValueError("no run to average; give the scores of at least one")
    return Spread(fmean(kept), stdev(kept) if len(kept) > 1 else None, kept)


def over_seeds(runs: Sequence[Scores | TypingScores]) -> dict[str, Any]:
    """The runs of one system as plain data, shaped like one run's figures, each a mean with its deviation."""
    typed = [run for run in runs if isinstance(run, TypingScores)]
    if typed:
        rows = accuracy_rows(typed)
        figures = {name: {"accuracy": accuracy.to_dict()} for name, accuracy in rows[:-1]}
        return {"protocol": "typing", "runs": len(runs), "accuracy": rows[-1][1].to_dict(), "labels": figures}
    found = [run for run in runs if isinstance(run, Scores)]
    labels, averages = score_rows(found)
    return {
        "protocol": "recognition",
        "mode": found[0].mode,
        "runs": len(runs),
        **{row.name: row.to_dict() for row in averages},
        "labels": {row.name: row.to_dict() for row in labels},
    }


def accuracy_rows(runs: Sequence[TypingScores]) -> list[tuple[str, Spread]]:
    """The accuracy of each label, and of all labels together in the last row."""
    names = sorted({label for run in runs for label in run.labels})
    rows = [(name, spread(run.labels.get(name, TypingCounts(0, 0)).accuracy for run in runs)) for name in names]
    return [*rows, ("all", spread(run.accuracy for run in runs))]


def score_rows(runs: Sequence[Scores]) -> tuple[list[ScoreRow], list[ScoreRow]]:
    """A row for each label, and the rows `micro`, `macro` and `document_macro`.

    A label on neither side of a run counts as zero there. Runs that were scored in different modes have no mean.
    """
    modes = sorted({run.mode for run in runs})
    if len(modes) > 1:
        raise ValueError(f"these runs were scored in different modes ({', '.join(modes)}); score them in one")

    def row(name: str, parts: Sequence[Counts | Average]) -> ScoreRow:
        return ScoreRow(name, *(spread(getattr(part, figure) for part in parts) for figure in FIGURES))

    labels = sorted({label for run in runs for label in run.labels})
    return (
        [row(label, [run.labels.get(label, Counts()) for run in runs]) for label in labels],
        [row(name, [getattr(run, name) for run in runs]) for name in ("micro", "macro", "document_macro")],
    )


# Subsets of discontinuous entities, as the literature reports them beside the scores of all entities
#
# See: Dai et al. 2020, An Effective Transition-based Model for Discontinuous NER (ACL), section 4.


PARTS = {
    "discontinuous": "discontinuous entities, whole",
    "continuous": "continuous entities",
    "sentences": "sentences with a discontinuous entity",
    "fragments": "fragments, each by itself",
}
"""Names of subsets, and their titles in tables."""


def by_continuity(
    gold: Sequence[Document], found: Sequence[Document], *, allow_missing: bool = False
) -> dict[str, Counts]:
    """Strict counts by the names of `PARTS`; empty if neither side has a discontinuous entity.

    discontinuous and continuous: only such entities on both sides. sentences: all entities of the sentences whose gold
    has a discontinuous one. fragments: all entities, every fragment as an entity.
    """
    if not any(entity.discontinuous for side in (gold, found) for document in side for entity in document.entities):
        return {}
    sides = {
        "discontinuous": (discontinuous_entities(gold), discontinuous_entities(found)),
        "continuous": (continuous_entities(gold), continuous_entities(found)),
        "sentences": discontinuous_sentences(gold, found, allow_missing),
        "fragments": (gold, found),
    }
    modes: dict[str, Mode] = {"fragments": "fragments"}
    return {
        name: recognition(*both, modes.get(name, "strict"), allow_missing=allow_missing).micro
        for name, both in sides.items()
    }


def discontinuous_entities(documents: Iterable[Document]) -> list[Document]:
    """All documents, with only their discontinuous entities; use it on both sides."""
    return [replace(d, entities=tuple(e for e in d.entities if e.discontinuous)) for d in documents]


def continuous_entities(documents: Iterable[Document]) -> list[Document]:
    """All documents, without their discontinuous entities; use it on both sides."""
    return [replace(d, entities=tuple(e for e in d.entities if not e.discontinuous)) for d in documents]


def discontinuous_documents(
    gold: Sequence[Document], found: Sequence[Document], allow_missing: bool = False
) -> tuple[list[Document], list[Document]]:
    """The documents whose gold has a discontinuous entity, with all their entities."""
    pairs = pair(gold, found, allow_missing)
    kept = [both for both in pairs if any(entity.discontinuous for entity in both[0].entities)]
    return [reference for reference, _ in kept], [prediction for _, prediction in kept]


def discontinuous_sentences(
    gold: Sequence[Document], found: Sequence[Document], allow_missing: bool = False
) -> tuple[list[Document], list[Document]]:
    """The documents whose gold has a discontinuous entity, with only the entities of the sentences that have one.

    Sentences are those of the gold document, or found by rules; an entity belongs to the sentence in which it starts.
    """
    sides: tuple[list[Document], list[Document]] = ([], [])
    for documents in zip(*discontinuous_documents(gold, found, allow_missing), strict=True):
        index = SentenceIndex(documents[0])
        chosen = {index.sentence_of(entity) for entity in documents[0].entities if entity.discontinuous}
        for document, side in zip(documents, sides, strict=True):
            kept = tuple(entity for entity in document.entities if index.sentence_of(entity) in chosen)
            side.append(replace(document, entities=kept))
    return sides
