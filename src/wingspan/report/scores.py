"""The chapters on scores: the overview, differences between systems, typing accuracy, and several corpora."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from wingspan.corpora.label_map import NONE, LabelMap
from wingspan.corpora.statistics import describe
from wingspan.evaluation.comparison import Comparison, PairFigures, SystemFigures, figures_of
from wingspan.evaluation.errors import MOVES, Move, confusion
from wingspan.evaluation.matching import Mode
from wingspan.evaluation.scores import MODES, PARTS, Scores, by_continuity, recognition, typing
from wingspan.evaluation.significance import system_intervals, tabulate
from wingspan.evaluation.transfer import Transfer
from wingspan.report.blocks import (
    Block,
    Column,
    Example,
    Examples,
    Facts,
    Figure,
    Prose,
    Section,
    Subject,
    Table,
    TableRow,
    anchored,
    numbers,
)
from wingspan.report.errors import MATCH_SIGNS, cropped, spread_out, windows
from wingspan.text import Document
from wingspan.views.entities import label_colors

FIGURES = numbers("precision", "recall", "F1")
INTERVAL = (
    Column("F1 from", about="the lower end of the interval of F1, by bootstrap over documents"),
    Column("F1 to", about="the upper end of the interval of F1, by bootstrap over documents"),
)
COUNTS = numbers("tp", "fp", "fn", digits=0)
CHANGE = (
    Column("difference", "change"),
    Column("from", about="the lower end of the interval of the difference"),
    Column("to", about="the upper end of the interval of the difference"),
    Column("wins, %", digits=1, about="Share of bootstrap samples in which the second is ahead"),
    *numbers("p", "p, Holm", digits=4),
)
RULES = (
    "Right are, under strict: the boundaries and the label; exact: the boundaries, whatever the label; partial: the "
    "same, and half of every overlap; type: the label of an overlapping entity; lenient: the same, with everything "
    "else missed or spurious; fragments: as strict, each fragment by itself."
)
MOST_BARS, LONGEST_BAR = 24, 18  # rows of the chart, characters of a name
MOST_MOVED = 60  # examples of each way an error can move
SYSTEM = Column("system", "text")


# Overview: how good each system is, how sure that is, and on which corpus.


def single_overview(subject: Subject, samples: int, seed: int) -> Section:
    """The overview of the only system, with bootstrap intervals over documents."""
    ((name, runs),) = subject.systems.items()
    table, places = tabulate(subject.gold, runs), list(range(len(runs)))
    (intervals,), _ = system_intervals(table, [places], samples=samples, seed=seed)
    system = figures_of(table, name, places, intervals)
    f1, micro = system.f1, system.rows.micro
    statement = (
        f"{name} reaches a strict micro F1 of {f1.value:.2f} (95 % interval {f1.low:.2f} to {f1.high:.2f}), "
        f"with a precision of {micro.precision.value:.2f} and a recall of {micro.recall.value:.2f}."
    )
    return overview(subject, [system], statement, [table.coarse] if table.coarse else [])


def overview(
    subject: Subject, figures: Sequence[SystemFigures], statement: str, notes: Sequence[str] = (), mode: Mode = "strict"
) -> Section:
    """Scores of the systems, by label, under every rule for a match; statistics of the corpora."""
    blocks: list[Block] = [Prose((statement,), statement=True, name="verdict"), score_chart(figures)]
    if len(figures) > 1:
        blocks += [systems_table(figures, mode), type_changes(figures)]
    for system in figures:
        rows = [(label, *_figures(row)) for label, row in system.rows.labels.items()]
        totals = [("micro", *_figures(system.rows.micro)), ("macro", *_figures(system.rows.macro))]
        names = subject.named("scores", f"{mode.capitalize()} scores by label", system.name)
        columns = (Column("label", "label"), *FIGURES, *INTERVAL, *COUNTS)
        blocks.append(Table(*names, columns, rows, totals=totals))
    blocks += _other_scores(subject)
    blocks.append(Facts("corpus", "The gold corpus", corpus_facts(subject.gold)))
    if subject.training is not None:
        blocks.append(Facts("training-corpus", "The training corpus", corpus_facts(subject.training)))
    if all_notes := dict.fromkeys([*notes, *subject.notes]):
        blocks.append(Prose(tuple(f"Note: {note}." for note in all_notes), name="notes"))
    return Section("overview", "Overview", blocks)


def score_chart(figures: Sequence[SystemFigures]) -> Figure:
    """F1 as bars with their intervals: of every label of one system, or of every system."""
    rows = [(system.name, system.rows.micro.f1) for system in figures]
    if len(figures) == 1:
        rows = [("micro", rows[0][1]), *((label, row.f1) for label, row in figures[0].rows.labels.items())]
    colors = label_colors(figures[0].rows.labels) if len(figures) == 1 else {}
    left, width, step = 125, 250, 24  # of the names, of 100 points, of a row
    marks = []
    for at, (name, f1) in enumerate(rows[:MOST_BARS]):
        middle, color = at * step + 14, colors.get(name, "#697386")
        shown = escape(name if len(name) <= LONGEST_BAR else name[: LONGEST_BAR - 1] + "…")
        low, value, high = (width * end / 100 for end in (f1.low, f1.value, f1.high))
        marks.append(
            f'<text x="{left - 8}" y="{middle + 4}" text-anchor="end">{shown}</text>'
            f'<g transform="translate({left} {middle})"><rect y="-7" width="{value:.1f}" height="14" fill="{color}"/>'
            f'<path d="M{low:.1f} 0H{high:.1f}M{low:.1f} -4v8M{high:.1f} -4v8"/></g>'
            f'<text x="{left + width + 12}" y="{middle + 4}">{f1.value:.1f}</text>'
        )
    height = step * len(marks) + 6
    return Figure(
        "chart",
        "F1 and its interval" + ("" if len(rows) <= MOST_BARS else f", the first {MOST_BARS} of {len(rows)}"),
        f'<svg viewBox="0 0 {left + width + 50} {height}" role="img" aria-label="F1 and its interval" '
        'font-size="13" fill="currentColor" stroke="none" style="width:100%;height:auto">'
        "<style>path{stroke:currentColor;stroke-width:1.4;fill:none}</style>" + "".join(marks) + "</svg>",
    )


def systems_table(figures: Sequence[SystemFigures], mode: Mode) -> Table:
    """All systems, one below the other."""
    several = any(system.runs > 1 for system in figures)
    columns = (SYSTEM, *FIGURES, *INTERVAL, *numbers("macro F1", *(("runs", "sd of F1") if several else ())))
    rows: list[TableRow] = []
    for system in figures:
        micro = system.rows.micro
        over_runs = (system.runs, micro.over_runs.deviation) if several else ()
        rows.append((system.name, *_figures(micro)[:5], system.rows.macro.f1.value, *over_runs))
    return Table("systems", f"{mode.capitalize()} micro scores with bootstrap intervals", columns, rows)


def type_changes(figures: Sequence[SystemFigures]) -> Table:
    """F1 of each type under the first system, and the changes of the others, such as the effect of added corpora."""
    first, *others = figures
    labels = list(dict.fromkeys(label for system in figures for label in system.rows.labels))

    def f1(system: SystemFigures, label: str) -> float:
        return system.rows.labels[label].f1.value if label in system.rows.labels else 0.0

    rows: list[TableRow] = [
        (label, f1(first, label), *(f1(other, label) - f1(first, label) for other in others)) for label in labels
    ]
    start = first.rows.micro.f1.value
    totals: list[TableRow] = [("micro", start, *(other.rows.micro.f1.value - start for other in others))]
    columns = (Column("label", "label"), Column(first.name), *(Column(other.name, "change") for other in others))
    return Table("type-effects", f"F1 by type, and changes from {first.name}", columns, rows, totals=totals)


def _figures(row: Any) -> tuple[float | None, ...]:
    """Precision, recall, F1 and its interval, then counts."""
    counts = (row.counts.get(name) for name in ("tp", "fp", "fn"))
    return row.precision.value, row.recall.value, row.f1.value, row.f1.low, row.f1.high, *counts


def _other_scores(subject: Subject) -> Iterator[Table]:
    """The same predictions under every rule for a match; discontinuous entities by themselves, where there are any."""
    rows: list[TableRow] = []
    for mode in MODES:
        for name in subject.names:
            micro = recognition(subject.gold, subject.predicted(name), mode).micro
            rows.append((mode, name, micro.precision, micro.recall, micro.f1, micro.missed, micro.spurious))
    columns = (Column("rule", "text"), SYSTEM, *FIGURES, *numbers("missed", "spurious"))
    caption = "Micro scores under other rules of what counts as a match"
    note = f"{RULES} {subject.first_runs_only}".strip()
    yield subject.table_by_system("rules", caption, columns, rows, note)

    rows = [
        (PARTS[part], name, counts.precision, counts.recall, counts.f1, counts.tp, counts.fp, counts.fn)
        for name in subject.names
        for part, counts in by_continuity(subject.gold, subject.predicted(name)).items()
    ]
    if rows:
        columns = (Column("of", "text"), SYSTEM, *FIGURES, *COUNTS)
        caption = "Strict micro scores of discontinuous entities and of the others"
        yield subject.table_by_system("continuity", caption, columns, rows, subject.first_runs_only)


def corpus_facts(documents: Sequence[Document]) -> Mapping[str, Any]:
    """Statistics of a corpus (Nguyen et al., Table 1; Zhu et al., Table 6), and its fingerprint."""
    corpus = describe(documents)
    return {
        "documents": corpus.documents,
        "articles they belong to": corpus.groups,
        "words": corpus.words,
        "entities": corpus.entities,
        "of these nested": corpus.nested,
        "of these discontinuous": corpus.discontinuous,
        "documents without entities": corpus.documents_without_entities,
        "words of a mention": ", ".join(f"{name} {value}" for name, value in corpus.mention_words.items()),
        "words of a document": ", ".join(f"{name} {value}" for name, value in corpus.text_words.items()),
        "labels": ", ".join(f"{label} {count:,}" for label, count in corpus.labels.items()),
        "fingerprint": corpus.fingerprint,
    }


# Significance: whether one system is better than another, where, and which errors moved.


def significance(comparison: Comparison, subject: Subject) -> Section:
    """Every pair of systems: differences with intervals and p-values, McNemar's test, the errors that moved."""
    pairs = [(f"{pair.second} − {pair.first}", *_change(pair.rows.micro), pair.errors.p) for pair in comparison.pairs]
    columns = (Column("pair", "text"), *CHANGE, Column("p, McNemar", digits=4))
    blocks: list[Block] = [Table("pairs", "Differences in micro F1", columns, pairs)]
    for number, pair in enumerate(comparison.pairs):
        rows: list[TableRow] = [(label, *_change(row)) for label, row in pair.rows.items()]
        caption = f"Difference by label: {pair.second} − {pair.first}"
        by_label = (Column("label", "label"), *CHANGE)
        blocks.append(Table(anchored("difference", number), caption, by_label, rows[:-2], totals=rows[-2:]))
        blocks += _moved(pair, number, subject)
    lead = (
        f"Second system minus first, in points of F1. Intervals and shares of wins come from {comparison.samples:,} "
        f"bootstrap samples of {comparison.units:,} {comparison.unit}, p-values from "
        f"{comparison.test(comparison.pairs[0])}; they are corrected after Holm for the number of labels or of pairs."
    )
    return Section("significance", "Significance", blocks, lead)


def _change(row: Any) -> tuple[float, ...]:
    return row.value, row.low, row.high, 100 * row.wins, row.p, row.p_holm


def _moved(pair: PairFigures, number: int, subject: Subject) -> Iterator[Block]:
    """The number of errors that only one of the two makes, and the texts in which they differ, both beside the gold."""
    labels = sorted({error.entity.label for shares in pair.errors.shares.values() for error in shares})
    rows: list[TableRow] = [(label, *(pair.errors.count(move, label) for move in MOVES)) for label in labels]
    totals: list[TableRow] = [("all", *(pair.errors.count(move) for move in MOVES))]
    columns = (
        Column("label", "label"),
        Column("fixed", digits=1, about=f"errors of {pair.first} that {pair.second} does not make"),
        Column("broken", digits=1, about=f"errors of {pair.second} that {pair.first} does not make"),
        Column("both", digits=1),
    )
    caption = f"Errors that moved from {pair.first} to {pair.second}"
    yield Table(anchored("moved", number), caption, columns, rows, totals=totals)

    moves: tuple[Move, ...] = ("fixed", "broken")
    items, total = [], 0
    for move in moves:
        errors = pair.errors.listed(move)
        total += len(errors)
        for error in spread_out(errors, MOST_MOVED):
            gold, label = subject.gold[error.document], error.entity.label
            (window,) = windows(gold.text, [error.entity.hull])
            runs = {name: subject.predicted(name)[error.document] for name in (pair.first, pair.second)}
            versions = [(name, cropped(document, window)) for name, document in runs.items()]
            title = f"{gold.id} · {move}: {label} “{gold.text_of(error.entity)}”, {error.kind}"
            items.append(Example(versions, cropped(gold, window), title, (move, error.kind), (label,)))
    caption = f"What {pair.second} fixes and breaks of {pair.first}"
    yield Examples(anchored("moved-examples", number), caption, items, total - len(items), MATCH_SIGNS)


# Typing: a model that types given spans has an accuracy, and no F1.


def typing_accuracy(subject: Subject, system: str) -> Section:
    """Accuracy by label, and the confusion matrix of the types."""
    scores = typing(subject.gold, subject.predicted(system))
    shares = [*scores.labels.items(), ("all", scores.overall)]
    rows = [(label, share.accuracy, share.correct, share.total) for label, share in shares]
    columns = (Column("label", "label"), *numbers("accuracy", "right", "spans"))
    taken = confusion(subject.gold, subject.predicted(system))
    matrix: list[TableRow] = [  # the last column is nothing, which is never predicted
        (label, *cells[:-1]) for label, cells in zip(taken.labels, taken.matrix[:-1], strict=True)
    ]
    lead = (
        "The spans were given, so nothing could be missed or invented: these are accuracies, not to be compared with "
        "the scores of systems that find their spans."
    )
    blocks = [
        Table("typing", "Typing accuracy, gold spans given", columns, rows[:-1], totals=rows[-1:]),
        Table(
            "taken-for",
            "Which type is taken for which: rows are gold",
            (Column("gold", "label"), *numbers(*taken.labels, digits=0)),
            matrix,
            shade=True,
        ),
    ]
    return Section("typing", "Typing", blocks, lead)


# Corpora: the meaning of their labels, the scores of each, and what one is worth for another.


def corpora_chapter(
    label_map: LabelMap | None,
    own: Mapping[str, Scores],
    mapped: Mapping[str, Scores],
    transfers: Sequence[Transfer] = (),
) -> Section:
    """Scores by corpus: in its own labels, and in the target's."""
    blocks = [by_corpus(own, mapped)]
    if transfers:  # F1 of each model, or block of classes, on each corpus, mapped to labels that both can mean
        tested = list(dict.fromkeys(each.tested for each in transfers))
        cells = {(each.trained, each.tested): each.scores.micro.f1 if each.scores else None for each in transfers}
        trained = dict.fromkeys(each.trained for each in transfers)
        scores: list[TableRow] = [(name, *(cells.get((name, other)) for other in tested)) for name in trained]
        columns = (Column("answers of", "text"), *(Column(name, about=f"F1 on {name}") for name in tested))
        caption = "F1 across corpora: rows answer, columns are scored"
        blocks.append(Table("transfer-matrix", caption, columns, scores, shade=True))
    if label_map is not None:  # Oi and Miwa, Table 7
        rows = [(corpus, label, target or NONE) for corpus, label, target in label_map]
        columns = (Column("corpus", "text"), Column("label", "text"), Column("in the target's labels", "label"))
        blocks.append(Table("label-correspondences", "What the labels of other corpora mean", columns, rows))
    lead = "One model, several corpora. Labels without a counterpart in the target's are no part of mapped scores."
    return Section("corpora", "Corpora", blocks, lead)


def by_corpus(own: Mapping[str, Scores], mapped: Mapping[str, Scores]) -> Table:
    """Strict micro scores of each corpus (Oi and Miwa 2025, Table 8)."""
    rows: list[TableRow] = []
    for corpus in dict.fromkeys([*own, *mapped]):  # a model of one corpus knows no other's labels
        micro = own[corpus].micro if corpus in own else None
        figures = (micro.precision, micro.recall, micro.f1) if micro else (None, None, None)
        rows.append((corpus, *figures, mapped[corpus].micro.f1 if corpus in mapped else None))
    columns = (Column("corpus", "text"), *FIGURES, Column("F1, in the target's labels"))
    return Table("scores-by-corpus", "Strict micro scores of each corpus", columns, rows)
