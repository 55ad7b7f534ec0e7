"""The chapters on errors, on scores by bucket (Ji et al. and Zhu et al.) and by confidence, and under perturbations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from wingspan.evaluation.buckets import NOT_GIVEN, buckets, error_rate_gaps, gaps
from wingspan.evaluation.calibration import Curve, Reliability, calibration_of, choose, curves
from wingspan.evaluation.errors import ERROR_KINDS, Errors, Mistake, confusion, errors
from wingspan.evaluation.matching import Mode
from wingspan.evaluation.scores import Scores, recognition
from wingspan.evaluation.transfer import CorpusModel
from wingspan.evaluation.worst import label_conflicts, repeated_mistakes, worst_sentences
from wingspan.report import plots
from wingspan.report.blocks import Block, Column, Example, Examples, Prose, Section, Subject, Table, TableRow, numbers
from wingspan.text import Document, Entity, Span, without_gold
from wingspan.views.console import counted
from wingspan.views.entities import label_colors

if TYPE_CHECKING:
    from wingspan.recognizer import Recognizer

T = TypeVar("T")
MATCH_SIGNS = "✓ right, + spurious, ✗ missed"
MOST_PASSAGES = 300  # on the page, for each system
MOST_CURVES = 12  # labels with their own line in the figure; all are in the table
ERROR_LEAD = (
    "A wrong prediction has the boundaries of a gold entity and another label (type), overlaps one (boundary; "
    "both, if the label differs too) or touches none (spurious). Gold that nothing wrong touches is missed."
)
CALIBRATION_LEAD = (
    "A score is worth something if it says how often an entity is right. In the diagram a calibrated system lies on "
    "the diagonal; the expected calibration error (ECE) is its mean distance from it, in points."
)
LABEL, SYSTEM = Column("label", "label"), Column("system", "text")


def error_chapter(subject: Subject) -> Section:
    """Errors of every system by kind, then for each system where they are."""
    by_system = {name: errors(subject.gold, subject.predicted(name)) for name in subject.names}
    kinds: list[TableRow] = [
        (name, each.correct, *(each.wrong.get(kind, each.lost.get(kind, 0)) for kind in ERROR_KINDS))
        for name, each in by_system.items()
    ]
    rates = [
        (name, each.type_errors, each.span_errors, each.span_error_share, each.boundary_rate, each.type_rate)
        for name, each in by_system.items()
    ]
    rate_columns = (
        SYSTEM,
        Column("category errors", about="right boundaries, other label (Nguyen et al. 2023, Table 6)"),
        Column("span errors", about="boundaries of no gold entity (Nguyen et al. 2023, Table 6)"),
        Column("span errors, %", about="per prediction (Nguyen et al. 2023, Table 5)"),
        Column("boundary errors, %", about="per false positive and false negative (Ji et al. 2022, eq. 24a)"),
        Column("type errors, %", about="per false positive and false negative (Ji et al. 2022, eq. 24b)"),
    )
    blocks: list[Block] = [
        Table("error-kinds", "Errors by kind", (SYSTEM, *numbers("correct", *ERROR_KINDS)), kinds),
        Table("error-rates", "Error rates as published work counts them", rate_columns, rates),
    ]
    if len(by_system) > 1:  # Ji et al., Table 7
        standard, *others = by_system
        gap = error_rate_gaps(by_system, standard)
        rows = [(name, gap[name]["boundary_rate"], gap[name]["type_rate"]) for name in others]
        columns = (SYSTEM, Column("boundary errors", "cost"), Column("type errors", "cost"))
        caption = f"Error rates in points, minus those of {standard}"
        blocks.append(Table("error-rate-gaps", caption, columns, rows))
    for name, system_errors in by_system.items():
        blocks += _details(subject, name, system_errors)
    return Section("errors", "Errors", blocks, f"{ERROR_LEAD} {subject.first_runs_only}".strip())


def _details(subject: Subject, name: str, system_errors: Errors) -> Iterator[Block]:
    """Everything about one system's errors."""
    predicted = subject.predicted(name)
    rows: list[TableRow] = [
        (label, *(counts[kind] for kind in ERROR_KINDS)) for label, counts in system_errors.labels.items()
    ]
    columns = (LABEL, *numbers(*ERROR_KINDS))
    yield Table(*subject.named("errors-by-label", "Errors by label", name), columns, rows, shade=True)

    taken = confusion(subject.gold, predicted)
    labels = (*taken.labels, "nothing")
    rows = [(label, *counts) for label, counts in zip(labels, taken.matrix, strict=True)]
    columns = (Column("gold", "label"), *numbers(*labels))
    note = "Rows are gold, columns found; labels meet on equal boundaries."
    yield Table(*subject.named("confusion", "Confusion matrix", name), columns, rows, shade=True, note=note)

    passages = list(passages_with(subject, name, system_errors.mistakes))
    kept = spread_out(passages, MOST_PASSAGES)
    step = -(-len(passages) // MOST_PASSAGES)
    note = f"{MATCH_SIGNS}." if step <= 1 else f"{MATCH_SIGNS}. Every {step}th passage of {len(passages):,}."
    yield Examples(*subject.named("mistakes", "Mistakes in their text", name), kept, len(passages) - len(kept), note)

    worst = []
    for sentence in worst_sentences(subject.gold, predicted):
        note = f"{sentence.correct} right, {sentence.fp} wrong predictions, {sentence.fn} gold entities lost"
        worst.append(passage(subject, name, sentence.document, sentence.span, sentence.mistakes, note))
    yield Examples(*subject.named("worst-sentences", "The worst sentences", name), worst, note=f"{MATCH_SIGNS}.")

    gold_columns = (Column("gold text", "text"), Column("gold label", "label"))
    found_columns = (Column("found text", "text"), Column("found label", "label"))
    columns = (Column("kind", "text"), *gold_columns, *found_columns, Column("times"), Column("in", "text"))
    rows = [
        (
            *(each.kind, each.gold_text, each.gold_label, each.found_text, each.found_label, each.times),
            ", ".join(subject.gold[document].id for document in each.documents[:2]),
        )
        for each in repeated_mistakes(subject.gold, predicted)
    ]
    yield Table(*subject.named("repeated-mistakes", "Mistakes made more than once", name), columns, rows, shown=100)

    if subject.training is not None:
        columns = (Column("text", "text"), LABEL, Column("in training", "text"))
        columns += numbers("gold", "missed", "found", "wrong")
        rows = []
        for each in label_conflicts(subject.gold, predicted, subject.training):
            in_training = ", ".join(f"{label} {count}" for label, count in each.training.items())
            rows.append((each.text, each.label, in_training, each.gold, each.missed, each.found, each.wrong))
        names = subject.named("label-conflicts", "Labels that the training data contradicts", name)
        yield Table(*names, columns, rows, shown=100)


# Passages: the part of a long document that is worth looking at, with its entities at their new places.


SHORT = 500  # characters; texts up to this length are shown whole
MARGIN = 140
REACH = 40  # characters in which white space is looked for
ELLIPSIS = "… "


def passages_with(subject: Subject, name: str, mistakes: Sequence[Mistake]) -> Iterator[Example]:
    """The passages that hold these mistakes, in the order of the documents."""
    in_order = sorted(mistakes, key=lambda mistake: mistake.document)
    for number, group in groupby(in_order, lambda mistake: mistake.document):
        here = []
        for mistake in group:
            hulls = [entity.hull for entity in (mistake.gold, mistake.found) if entity]
            here.append((Span(min(hull.start for hull in hulls), max(hull.end for hull in hulls)), mistake))
        for window in windows(subject.gold[number].text, [place for place, _ in here]):
            inside = [mistake for place, mistake in here if window.overlaps(place)]
            yield passage(subject, name, number, window, inside)


def passage(
    subject: Subject, name: str, document: int, window: Span, mistakes: Sequence[Mistake], note: str = ""
) -> Example:
    """A stretch of one document with the mistakes in it, a system beside the gold."""
    gold = subject.gold[document]
    kinds = tuple(dict.fromkeys(mistake.kind for mistake in mistakes))
    entities = (entity for mistake in mistakes for entity in (mistake.gold, mistake.found) if entity)
    labels = tuple(sorted({entity.label for entity in entities}))
    version = ("", cropped(subject.predicted(name)[document], window))
    return Example([version], cropped(gold, window), f"{gold.id} · {', '.join(kinds)}", kinds, labels, note)


def spread_out(items: Sequence[T], most: int) -> Sequence[T]:
    """Every n-th item, at most `most` of them, from all over the corpus."""
    return items[:: max(1, -(-len(items) // most))]


def windows(text: str, places: Iterable[Span]) -> list[Span]:
    """Ranges of the text around the places, ending between words; windows that touch are joined."""
    if len(text) <= SHORT:
        return [Span(0, len(text))]
    joined: list[Span] = []
    for place in sorted(places):
        window = Span(_border(text, place.start - MARGIN, -1), _border(text, place.end + MARGIN, +1))
        if joined and window.start <= joined[-1].end:
            joined[-1] = Span(joined[-1].start, max(joined[-1].end, window.end))
        else:
            joined.append(window)
    return joined


def _border(text: str, at: int, step: int) -> int:
    """The next white space in a direction, within reach; texts without any are cut where they are."""
    at = max(0, min(len(text), at))
    for moved in range(at, max(0, min(len(text), at + REACH * step)), step):
        if text[moved : moved + 1].isspace():
            return moved + 1 if step < 0 else moved
    return at if REACH <= at <= len(text) - REACH else (0 if step < 0 else len(text))


def cropped(document: Document, window: Span) -> Document:
    """The document within a window, dots where something is left out. Entities are cut at its edges."""
    if window == Span(0, len(document.text)):
        return document
    before = ELLIPSIS if window.start > 0 else ""
    after = ELLIPSIS[::-1] if window.end < len(document.text) else ""
    shift = len(before) - window.start
    entities = []
    for entity in document.entities:
        cut = (Span(max(span.start, window.start), min(span.end, window.end)) for span in entity.spans)
        spans = tuple(Span(start + shift, end + shift) for start, end in cut if start < end)
        if spans:
            entities.append(Entity(entity.label, spans, entity.score))
    text = before + document.text[slice(*window)] + after
    return replace(document, text=text, entities=tuple(entities), words=None, sentences=None)


# Buckets: scores by attributes of the entities, and where systems differ.


def bucket_chapter(
    subject: Subject, figures: Path | None, attributes: Sequence[str] | None = None, quantiles: int | None = None
) -> Section:
    """F1 by every attribute; with several systems also their differences as heat maps (Ji et al. 2022, Table 6)."""
    tables = {
        name: buckets(subject.gold, subject.predicted(name), attributes, training=subject.training, quantiles=quantiles)
        for name in subject.names
    }
    standard, *others = subject.names
    compared = gaps(tables, standard)
    if unknown := [gap.attribute for gap in compared if gap.buckets == (NOT_GIVEN,)]:
        raise ValueError(f"{', '.join(unknown)}: nothing in the corpus has this key; check how it is written")
    blocks: list[Block] = []
    rows: list[TableRow]
    if others:
        rows = []
        for gap in compared:
            for number, bucket in enumerate(gap.buckets):
                values = [gap.values[name][number] for name in others]
                if any(value is not None for value in values):
                    rows.append((gap.title, bucket, *values))
        columns = (Column("attribute", "text"), Column("bucket", "text"), *(Column(name, "change") for name in others))
        blocks.append(Table("bucket-gaps", f"Differences in F1, minus {standard}", columns, rows))
    bucket_tables = []
    for gap in compared:
        anchor = f"buckets-{re.sub(r'[^A-Za-z0-9_]+', '-', gap.attribute)}"  # keys of a corpus may hold anything
        title = gap.title[:1].lower() + gap.title[1:]
        by_bucket = {name: {row.name: row for row in each[gap.attribute].rows} for name, each in tables.items()}
        if plots.available():
            series = {
                name: [row[bucket].f1 if bucket in row else None for bucket in gap.buckets]
                for name, row in by_bucket.items()
            }
            figure = plots.bars(gap.buckets, series, "F1")
            blocks.append(plots.drawn(figure, f"{anchor}-figure", f"F1 by {title}", figures))
        rows = [
            (bucket, name, row.precision, row.recall, row.f1, row.gold, row.found)
            for bucket in gap.buckets
            for name, in_bucket in by_bucket.items()
            if (row := in_bucket.get(bucket))
        ]
        columns = (Column("bucket", "text"), SYSTEM, *numbers("precision", "recall", "F1", "gold", "found"))
        bucket_tables.append(subject.table_by_system(anchor, f"Scores by {title}", columns, rows))
    intervals = "the usual ones" if quantiles is None else f"{quantiles} quantiles of the gold entities"
    lead = (
        "Precision counts predictions by their own attribute, recall counts gold entities by theirs. Intervals are "
        f"{intervals}. {subject.first_runs_only}"
    )
    return Section("buckets", "Buckets", [*blocks, *bucket_tables], lead.strip())


# Calibration: scores as chances.


def calibration_chapter(subject: Subject, figures: Path | None) -> Section:
    """Calibration of every system whose predictions have scores."""
    problems = {name: calibration_problem(subject.predicted(name)) for name in subject.names}
    blocks: list[Block] = []
    for name, problem in problems.items():
        if not problem:
            blocks += _calibration_of(subject, name, figures)
    if remarks := tuple(f"{name}: {problem}." for name, problem in problems.items() if problem):
        blocks.append(Prose(remarks))
    return Section("calibration", "Calibration", blocks, CALIBRATION_LEAD)


def calibration_problem(predicted: Sequence[Document]) -> str:
    """Why these scores cannot be calibrated: formats without scores read as 1, some tools write other numbers."""
    scores = {entity.score for document in predicted for entity in document.entities}
    if not scores:
        return "nothing was predicted, so there are no scores to look at"
    if scores == {1.0}:
        return "the predictions have no scores, so nothing can be said here"
    if min(scores) < 0 or max(scores) > 1:
        return f"scores go from {min(scores):g} to {max(scores):g}; only chances from 0 to 1 can be calibrated"
    return ""


def _calibration_of(subject: Subject, name: str, figures: Path | None) -> Iterator[Block]:
    """Figures and tables on one system's scores."""
    reliable = calibration_of(subject.gold, subject.predicted(name))
    points = curves(subject.gold, subject.predicted(name))
    bins = [each for each in reliable.overall.bins if each.entities]
    if plots.available():
        diagram = {"all": ([each.confidence for each in bins], [each.accuracy for each in bins])}
        figure = plots.lines(diagram, "score, %", "right, %", diagonal=True, whole=True)
        yield plots.drawn(figure, *subject.named("reliability-figure", "Reliability diagram", name), figures)
        by_size = sorted(points.labels.items(), key=lambda item: -item[1].gold)[:MOST_CURVES]
        shown = {"all": points.overall, **(dict(by_size) if len(by_size) > 1 else {})}
        series = {label: (curve.recall, curve.precision) for label, curve in shown.items()}
        colors = {"all": plots.INK, **label_colors(subject.labels)}
        figure = plots.lines(series, "recall, %", "precision, %", whole=True, colors=colors)
        names = subject.named("precision-recall-figure", "Precision and recall at every threshold", name)
        yield plots.drawn(figure, *names, figures)
    rows = [(f"{each.low:.1f}–{each.high:.1f}", each.entities, each.confidence, each.accuracy) for each in bins]
    columns = (Column("scores", "text"), *numbers("entities", "mean score, %", "right, %"))
    note = f"ECE {reliable.overall.error:.2f} points; the worst bin is {reliable.overall.worst:.2f} points off."
    yield Table(*subject.named("reliability", "Reliability", name), columns, rows, note=note)

    def threshold_row(label: str, each: Reliability | None, curve: Curve) -> TableRow:
        best = choose(curve)
        threshold, f1 = (best.threshold, best.f1) if best else (None, None)
        entities, error = (each.entities, each.error) if each else (0, None)
        return label, entities, error, curve.average_precision, threshold, f1

    columns = (LABEL, *numbers("found", "ECE", "average precision"), Column("best threshold", digits=3))
    columns += (Column("F1 there"),)
    by_label = [threshold_row(label, reliable.labels.get(label), curve) for label, curve in points.labels.items()]
    totals = [threshold_row("all", reliable.overall, points.overall)]
    note = "Thresholds are chosen on these very documents, so their F1 is an upper bound; choose them on dev documents."
    names = subject.named("calibration-by-label", "By label", name)
    yield Table(*names, columns, by_label, totals=totals, note=note)


# Robustness: the drop in F1 under each perturbation of the documents.


@dataclass(frozen=True)
class Drop:
    """The scores under one perturbation, beside those without it."""

    perturbation: str
    clean: Scores
    scores: Scores
    changed: int  # documents

    @property
    def drop(self) -> float:
        """The loss in points of micro F1."""
        return self.clean.micro.f1 - self.scores.micro.f1

    @property
    def labels(self) -> dict[str, float]:
        """The loss of each label in points of F1."""
        clean, perturbed = self.clean.labels, self.scores.labels
        return {label: clean[label].f1 - perturbed[label].f1 for label in perturbed if label in clean}


def robustness(
    model: Recognizer | CorpusModel,
    gold: Sequence[Document],
    perturbations: Iterable[str] | None = None,
    *,
    predicted: Sequence[Document] | None = None,
    seed: int = 1,
    mode: Mode = "strict",
) -> list[Drop]:
    """Predicts the documents under the perturbations, all by default, and scores each against its perturbed gold.

    `predicted` are the predictions for the documents as they are, where they are known already.
    """
    from wingspan.corpora.perturb import PERTURBATIONS, perturb

    predict: CorpusModel = model if callable(model) else model.predict

    def scored(documents: Sequence[Document]) -> Scores:
        return recognition(documents, predict([without_gold(document) for document in documents]), mode)

    clean = scored(gold) if predicted is None else recognition(gold, predicted, mode)
    drops = []
    for name in PERTURBATIONS if perturbations is None else perturbations:
        perturbed = perturb(gold, name, seed)
        changed = sum(before.text != after.text for before, after in zip(gold, perturbed, strict=True))
        drops.append(Drop(name, clean, scored(perturbed), changed))
    return drops


def robustness_chapter(drops: Sequence[Drop], documents: int) -> Section:
    """The loss under each perturbation, overall and by label."""
    rows, by_label = [], []
    labels = sorted({label for drop in drops for label in drop.clean.labels})
    for drop in drops:
        name, micro = drop.perturbation.replace("_", " "), drop.scores.micro
        rows.append((name, drop.changed, micro.precision, micro.recall, micro.f1, -drop.drop))
        losses = drop.labels
        by_label.append((name, *(-losses[label] if label in losses else None for label in labels)))
    first = Column("perturbation", "text")
    figures = numbers("changed documents", "precision", "recall", "F1")
    changes = (Column(label, "change") for label in labels)
    blocks = [
        Table("perturbations", "F1 on perturbed documents", (first, *figures, Column("change", "change")), rows),
        Table("robustness-by-label", "Change of F1 by label", (first, *changes), by_label),
    ]
    lead = f"Each perturbation is made on {counted(documents, 'document')}, with entities as exact as in the originals."
    return Section("robustness", "Robustness", blocks, lead)
