"""The chapter on errors: of which kinds, between which labels, which again and again, and each one in its text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from wingspan.evaluation.buckets import error_rate_gaps
from wingspan.evaluation.errors import ERROR_KINDS, Errors, Mistake, confusion, errors
from wingspan.evaluation.worst import Repeated, WorstPassage, label_conflicts, repeated_mistakes, worst_sentences
from wingspan.report.blocks import Block, Column, Example, Examples, Row, Section, Subject, Table, anchored, titled
from wingspan.text import Document, Entity, Span

SIGNS = "✓ right, + spurious, ✗ missed."
MOST = 300
"""How many passages with mistakes are on the page, for each system."""


def mistakes(subject: Subject) -> Section:
    """Errors of every system by kind, then for each system where they are."""
    found = {name: errors(subject.gold, subject.found(name)) for name in subject.names}
    blocks: list[Block] = [kinds_table(found), rates_table(found)]
    blocks += [gaps_table(found)] if len(found) > 1 else []
    for number, name in enumerate(subject.names):
        blocks += details(subject, name, number, found[name])
    lead = (
        "A wrong prediction has the boundaries of a gold entity and another label (type), overlaps one (boundary; "
        "both, if the label differs too) or touches none (spurious). Gold that nothing wrong touches is missed."
    )
    return Section("errors", "Errors", blocks, " ".join([lead, subject.first_runs_only]).strip())


def details(subject: Subject, name: str, number: int, found: Errors) -> Iterator[Block]:
    """What can be said of one system's errors."""
    yield labels_table(found, anchored("errors-by-label", number), titled("Errors by label", name, subject))
    yield confusion_table(subject, name, anchored("confusion", number))
    yield passages(subject, name, anchored("mistakes", number), found.mistakes)
    yield worst(subject, name, anchored("worst-sentences", number))
    yield repeated_table(subject, name, anchored("repeated-mistakes", number))
    if subject.training is not None:
        yield conflicts_table(subject, name, anchored("label-conflicts", number))


def kinds_table(found: Mapping[str, Errors]) -> Table:
    """Wrong predictions and lost gold entities by kind."""
    columns = (Column("system", "text"), Column("correct"), *(Column(kind) for kind in ERROR_KINDS))
    rows: list[Row] = [
        (name, each.correct, *(each.wrong.get(kind, each.lost.get(kind, 0)) for kind in ERROR_KINDS))
        for name, each in found.items()
    ]
    return Table("error-kinds", "Errors by kind", columns, rows)


def rates_table(found: Mapping[str, Errors]) -> Table:
    """The counts and rates of the papers (000, Tables 5 and 6; 002, eq. 24)."""
    columns = (
        Column("system", "text"),
        Column("category errors", about="right boundaries, other label (paper 000, Table 6)"),
        Column("span errors", about="boundaries of no gold entity (paper 000, Table 6)"),
        Column("span errors, %", about="per prediction (paper 000, Table 5)"),
        Column("B.E. rate", about="boundary errors per false positive and false negative, % (paper 002, eq. 24a)"),
        Column("T.E. rate", about="type errors per false positive and false negative, % (paper 002, eq. 24b)"),
    )
    rows: list[Row] = [
        (
            name,
            each.type_errors,
            each.span_errors,
            each.span_error_share,
            each.boundary_rate,
            each.type_rate,
        )
        for name, each in found.items()
    ]
    return Table("error-rates", "Error rates of the papers", columns, rows)


def gaps_table(found: Mapping[str, Errors]) -> Table:
    """How far error rates are from those of the first system (002, Table 7)."""
    standard = next(iter(found))
    rows: list[Row] = [
        (name, gap["boundary_rate"], gap["type_rate"])
        for name, gap in error_rate_gaps(found, standard).items()
        if name != standard
    ]
    columns = (Column("system", "text"), Column("boundary errors", "cost"), Column("type errors", "cost"))
    return Table("error-rate-gaps", f"Error rates in points, minus those of {standard}", columns, rows)


def labels_table(found: Errors, name: str, caption: str) -> Table:
    """Errors of each label."""
    rows: list[Row] = [(label, *(counts[kind] for kind in ERROR_KINDS)) for label, counts in found.labels.items()]
    columns = (Column("label", "label"), *(Column(kind) for kind in ERROR_KINDS))
    return Table(name, caption, columns, rows, shade=True)


def confusion_table(subject: Subject, name: str, anchor: str) -> Table:
    """Which label was taken for which, where boundaries agree."""
    found = confusion(subject.gold, subject.found(name))
    names = (*found.labels, "nothing")
    rows: list[Row] = [(label, *counts) for label, counts in zip(names, found.matrix, strict=True)]
    columns = (Column("gold", "label"), *(Column(label) for label in names))
    caption = titled("Confusion matrix", name, subject)
    return Table(
        anchor,
        caption,
        columns,
        rows,
        shade=True,
        note="Rows are gold, columns found; labels meet on equal boundaries.",
    )


def passages(subject: Subject, name: str, anchor: str, found: Sequence[Mistake]) -> Examples:
    """Passages with mistakes, from all over the corpus, to be filtered by kind and label."""
    everything = list(_passages(subject, found))
    step = max(1, -(-len(everything) // MOST))
    kept = [passage.example(subject, name) for passage in everything[::step]]
    return Examples(
        anchor,
        titled("Mistakes in their text", name, subject),
        kept,
        len(everything) - len(kept),
        SIGNS if step == 1 else f"{SIGNS} Every {step}th passage of {len(everything):,}.",
    )


@dataclass(frozen=True)
class _Passage:
    """A stretch of one document with the mistakes in it."""

    document: int
    window: Span
    mistakes: Sequence[Mistake]

    def example(self, subject: Subject, name: str, note: str = "") -> Example:
        """The passage to look at."""
        gold, found = subject.gold[self.document], subject.found(name)[self.document]
        sides = [entity for mistake in self.mistakes for entity in (mistake.gold, mistake.found) if entity]
        kinds = tuple(dict.fromkeys(mistake.kind for mistake in self.mistakes))
        labels = tuple(sorted({entity.label for entity in sides}))
        title = f"{gold.id} · {', '.join(kinds)}"
        version = ("", cropped(found, self.window))
        return Example([version], cropped(gold, self.window), title, kinds, labels, note)


def _passages(subject: Subject, found: Sequence[Mistake]) -> Iterator[_Passage]:
    for number, group in groupby(sorted(found, key=lambda mistake: mistake.document), lambda mistake: mistake.document):
        here = [(_place(mistake), mistake) for mistake in group]
        for window in windows(subject.gold[number].text, [place for place, _ in here]):
            yield _Passage(number, window, [mistake for place, mistake in here if window.overlaps(place)])


def _place(mistake: Mistake) -> Span:
    """The characters that a mistake is about."""
    hulls = [entity.hull for entity in (mistake.gold, mistake.found) if entity]
    return Span(min(hull.start for hull in hulls), max(hull.end for hull in hulls))


def worst(subject: Subject, name: str, anchor: str) -> Examples:
    """The sentences with the most errors."""
    found = worst_sentences(subject.gold, subject.found(name))
    items = [_Passage(one.document, one.span, one.mistakes).example(subject, name, _tally(one)) for one in found]
    return Examples(anchor, titled("The worst sentences", name, subject), items, note=SIGNS)


def _tally(trouble: WorstPassage) -> str:
    return f"{trouble.correct} right, {trouble.fp} wrong predictions, {trouble.fn} gold entities lost"


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
    rows: list[Row] = [_again(one, subject) for one in repeated_mistakes(subject.gold, subject.found(name))]
    return Table(anchor, titled("Mistakes made more than once", name, subject), columns, rows, shown=100)


def _again(one: Repeated, subject: Subject) -> Row:
    where = ", ".join(subject.gold[number].id for number in one.documents[:2])
    return one.kind, one.gold_text, one.gold_label, one.found_text, one.found_label, one.times, where


def conflicts_table(subject: Subject, name: str, anchor: str) -> Table:
    """Mentions whose words have another label in training."""
    assert subject.training is not None
    found = label_conflicts(subject.gold, subject.found(name), subject.training)
    columns = (
        Column("text", "text"),
        Column("label", "label"),
        Column("in training", "text"),
        Column("gold"),
        Column("missed"),
        Column("found"),
        Column("wrong"),
    )
    rows: list[Row] = [
        (
            one.text,
            one.label,
            ", ".join(f"{label} {count}" for label, count in one.training.items()),
            one.gold,
            one.missed,
            one.found,
            one.wrong,
        )
        for one in found
    ]
    caption = titled("Labels that the training data contradicts", name, subject)
    return Table(anchor, caption, columns, rows, shown=100)


# --- The part of a long document that is worth looking at, with its entities at their new places.


SHORT = 500
"""A text of so many characters is shown as a whole."""
MARGIN = 140
ELLIPSIS = "… "


def windows(text: str, places: Iterable[Span]) -> list[Span]:
    """Ranges of the text around the places, ending between words; those that touch are one."""
    if len(text) <= SHORT:
        return [Span(0, len(text))]
    found: list[Span] = []
    for place in sorted(places):
        window = Span(_border(text, place.start - MARGIN, -1), _border(text, place.end + MARGIN, +1))
        if found and window.start <= found[-1].end:
            found[-1] = Span(found[-1].start, max(found[-1].end, window.end))
        else:
            found.append(window)
    return found


def _border(text: str, at: int, step: int) -> int:
    """The next white space in a direction, within reach; texts without any are cut where they are."""
    at = max(0, min(len(text), at))
    for moved in range(at, max(0, min(len(text), at + 40 * step)), step):
        if text[moved : moved + 1].isspace():
            return moved + 1 if step < 0 else moved
    return at if 40 <= at <= len(text) - 40 else (0 if step < 0 else len(text))


def cropped(document: Document, window: Span) -> Document:
    """The document within a window, dots where something is left out. Entities are cut at its edges."""
    if window == Span(0, len(document.text)):
        return document
    before = ELLIPSIS if window.start > 0 else ""
    after = ELLIPSIS[::-1] if window.end < len(document.text) else ""
    moved = len(before) - window.start
    entities = []
    for entity in document.entities:
        cut = (Span(max(span.start, window.start), min(span.end, window.end)) for span in entity.spans)
        spans = tuple(Span(start + moved, end + moved) for start, end in cut if start < end)
        if spans:
            entities.append(Entity(entity.label, spans, entity.score))
    text = before + document.text[window.start : window.end] + after
    return replace(document, text=text, entities=tuple(entities), words=None, sentences=None)
