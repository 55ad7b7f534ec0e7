"""The chapter on errors: of which kinds, between which labels, which again and again, and each one in its text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TypeVar

from wingspan.evaluation.buckets import error_rate_gaps
from wingspan.evaluation.errors import ERROR_KINDS, Errors, Mistake, confusion, errors
from wingspan.evaluation.worst import label_conflicts, repeated_mistakes, worst_sentences
from wingspan.report.blocks import (
    AnyBlock,
    Column,
    Example,
    Examples,
    Section,
    Subject,
    Table,
    TableRow,
    anchored,
    numbers,
)
from wingspan.text import Document, Entity, Span

T = TypeVar("T")

MATCH_SIGNS = "✓ right, + spurious, ✗ missed"
MOST_PASSAGES = 300  # on the page, for each system
LEAD = (
    "A wrong prediction has the boundaries of a gold entity and another label (type), overlaps one (boundary; "
    "both, if the label differs too) or touches none (spurious). Gold that nothing wrong touches is missed."
)


def error_chapter(subject: Subject) -> Section:
    """Errors of every system by kind, then for each system where they are."""
    by_system = {name: errors(subject.gold, subject.predicted(name)) for name in subject.names}
    blocks: list[AnyBlock] = [kinds_table(by_system), rates_table(by_system)]
    blocks += [gaps_table(by_system)] if len(by_system) > 1 else []
    for number, name in enumerate(subject.names):
        blocks += details(subject, name, number, by_system[name])
    return Section("errors", "Errors", blocks, f"{LEAD} {subject.first_runs_only}".strip())


def details(subject: Subject, name: str, number: int, system_errors: Errors) -> Iterator[AnyBlock]:
    """Everything about one system's errors."""
    predicted = subject.predicted(name)
    rows: list[TableRow] = [
        (label, *(counts[kind] for kind in ERROR_KINDS)) for label, counts in system_errors.labels.items()
    ]
    columns = (Column("label", "label"), *numbers(*ERROR_KINDS))
    caption = subject.titled("Errors by label", name)
    yield Table(anchored("errors-by-label", number), caption, columns, rows, shade=True)

    taken = confusion(subject.gold, predicted)
    labels = (*taken.labels, "nothing")
    rows = [(label, *counts) for label, counts in zip(labels, taken.matrix, strict=True)]
    columns = (Column("gold", "label"), *numbers(*labels))
    caption = subject.titled("Confusion matrix", name)
    note = "Rows are gold, columns found; labels meet on equal boundaries."
    yield Table(anchored("confusion", number), caption, columns, rows, shade=True, note=note)

    passages = list(passages_with(subject, name, system_errors.mistakes))
    kept = spread_out(passages, MOST_PASSAGES)
    step = -(-len(passages) // MOST_PASSAGES)
    note = f"{MATCH_SIGNS}." if step <= 1 else f"{MATCH_SIGNS}. Every {step}th passage of {len(passages):,}."
    caption = subject.titled("Mistakes in their text", name)
    yield Examples(anchored("mistakes", number), caption, kept, len(passages) - len(kept), note)

    worst = [
        passage(
            subject,
            name,
            sentence.document,
            sentence.span,
            sentence.mistakes,
            f"{sentence.correct} right, {sentence.fp} wrong predictions, {sentence.fn} gold entities lost",
        )
        for sentence in worst_sentences(subject.gold, predicted)
    ]
    caption = subject.titled("The worst sentences", name)
    yield Examples(anchored("worst-sentences", number), caption, worst, note=f"{MATCH_SIGNS}.")

    yield repeated_table(subject, name, anchored("repeated-mistakes", number))
    if subject.training is not None:
        yield conflicts_table(subject, name, subject.training, anchored("label-conflicts", number))


def kinds_table(by_system: Mapping[str, Errors]) -> Table:
    """Wrong predictions and lost gold entities by kind."""
    columns = (Column("system", "text"), *numbers("correct", *ERROR_KINDS))
    rows: list[TableRow] = [
        (name, each.correct, *(each.wrong.get(kind, each.lost.get(kind, 0)) for kind in ERROR_KINDS))
        for name, each in by_system.items()
    ]
    return Table("error-kinds", "Errors by kind", columns, rows)


def rates_table(by_system: Mapping[str, Errors]) -> Table:
    """The counts and rates of the papers (000, Tables 5 and 6; 002, eq. 24)."""
    columns = (
        Column("system", "text"),
        Column("category errors", about="right boundaries, other label (paper 000, Table 6)"),
        Column("span errors", about="boundaries of no gold entity (paper 000, Table 6)"),
        Column("span errors, %", about="per prediction (paper 000, Table 5)"),
        Column("B.E. rate", about="boundary errors per false positive and false negative, % (paper 002, eq. 24a)"),
        Column("T.E. rate", about="type errors per false positive and false negative, % (paper 002, eq. 24b)"),
    )
    rows = [
        (name, each.type_errors, each.span_errors, each.span_error_share, each.boundary_rate, each.type_rate)
        for name, each in by_system.items()
    ]
    return Table("error-rates", "Error rates of the papers", columns, rows)


def gaps_table(by_system: Mapping[str, Errors]) -> Table:
    """Error rates minus those of the first system (002, Table 7)."""
    standard = next(iter(by_system))
    gaps = error_rate_gaps(by_system, standard)
    rows = [(name, gap["boundary_rate"], gap["type_rate"]) for name, gap in gaps.items() if name != standard]
    columns = (Column("system", "text"), Column("boundary errors", "cost"), Column("type errors", "cost"))
    return Table("error-rate-gaps", f"Error rates in points, minus those of {standard}", columns, rows)


def repeated_table(subject: Subject, name: str, anchor: str) -> Table:
    """The same mistake on the same words, the most frequent first."""
    columns = (
        Column("kind", "text"),
        Column("gold text", "text"),
        Column("gold label", "label"),
        Column("found text", "text"),
        Column("found label", "label"),
        Column("times"),
        Column("in", "text"),
    )
    rows = [
        (
            *(each.kind, each.gold_text, each.gold_label, each.found_text, each.found_label, each.times),
            ", ".join(subject.gold[number].id for number in each.documents[:2]),
        )
        for each in repeated_mistakes(subject.gold, subject.predicted(name))
    ]
    return Table(anchor, subject.titled("Mistakes made more than once", name), columns, rows, shown=100)


def conflicts_table(subject: Subject, name: str, training: Sequence[Document], anchor: str) -> Table:
    """Mentions whose words have another label in training."""
    columns = (Column("text", "text"), Column("label", "label"), Column("in training", "text"))
    rows = []
    for each in label_conflicts(subject.gold, subject.predicted(name), training):
        in_training = ", ".join(f"{label} {count}" for label, count in each.training.items())
        rows.append((each.text, each.label, in_training, each.gold, each.missed, each.found, each.wrong))
    caption = subject.titled("Labels that the training data contradicts", name)
    return Table(anchor, caption, (*columns, *numbers("gold", "missed", "found", "wrong")), rows, shown=100)


# Passages: the part of a long document that is worth looking at, with its entities at their new places.


SHORT = 500  # characters; texts up to this length are shown whole
MARGIN = 140
REACH = 40  # characters in which white space is looked for
ELLIPSIS = "… "


def passages_with(subject: Subject, name: str, mistakes: Sequence[Mistake]) -> Iterator[Example]:
    """The passages that hold these mistakes, in the order of the documents."""
    in_order = sorted(mistakes, key=lambda mistake: mistake.document)
    for number, group in groupby(in_order, lambda mistake: mistake.document):
        here = [(_place(mistake), mistake) for mistake in group]
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


def _place(mistake: Mistake) -> Span:
    """The characters of both sides of a mistake."""
    hulls = [entity.hull for entity in (mistake.gold, mistake.found) if entity]
    return Span(min(hull.start for hull in hulls), max(hull.end for hull in hulls))


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
