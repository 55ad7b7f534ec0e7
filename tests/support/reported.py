"""A report on few documents that holds every kind of block, and things that a page must not believe."""

from __future__ import annotations

from dataclasses import replace

from wingspan.corpora.demo import corpus
from wingspan.report.blocks import Column, Example, Examples, Facts, Figure, Points, Prose, Report, Section, Table
from wingspan.text import Document, Entity

EVIL = "<script>document.title='hacked'</script>"
LABELS = ("Anatomy", "Chemical", "Disease", "Gene", "Organism", EVIL)


def gold() -> list[Document]:
    """Ten documents of the built-in corpus, and one that tries to run a script."""
    return [*corpus()[2][:10], Document(EVIL, f"{EVIL} & more", (Entity.at(EVIL, 0, 8),))]


def damaged(documents: list[Document], every: int = 3) -> list[Document]:
    """Predictions with one mistake in so many: missed, another label, longer by a character in turn."""
    found = []
    for number, document in enumerate(documents):
        entities = []
        for at, entity in enumerate(document.entities):
            score = 0.5 + ((7 * number + at) % 50) / 100
            if (number + at) % every:
                entities.append(replace(entity, score=score))
            elif at % 3 == 1:
                entities.append(Entity("Gene" if entity.label != "Gene" else "Disease", entity.spans, score / 2))
            elif at % 3 == 2 and entity.end < len(document.text) and not entity.discontinuous:
                entities.append(Entity.at(entity.label, entity.start, entity.end + 1, score))
        found.append(replace(document, entities=tuple(set(entities))))
    return found


def every_block() -> Report:
    """One block of each kind, with text that must be escaped everywhere."""
    documents = gold()
    found = damaged(documents)
    table = Table(
        "scores",
        f"Scores {EVIL}",
        (Column("label", "label"), Column("F1"), Column("change", "change"), Column("note, quoted", "text")),
        [(EVIL, 12.345, -1.5, 'say "hi", twice'), ("Gene", 99, 2.25, EVIL), ("Disease", None, 0.0, "=1+1")],
        totals=[("micro", 50.0, None, "")],
    )
    wide = Table(
        "wide", "A wide heat map", tuple(Column(f"column {n}") for n in range(30)), [tuple(range(30))] * 40, shade=True
    )
    number = 200
    points = Points(
        "cloud",
        "A cloud of points",
        [n % 20 for n in range(number)],
        [n // 20 for n in range(number)],
        [LABELS[n % 6] for n in range(number)],
        [f"{EVIL} {n}" for n in range(number)],
        [n % 7 > 0 for n in range(number)],
        ("first", "second"),
    )
    examples = Examples(
        "mistakes",
        "Mistakes",
        [
            Example([("", theirs)], ours, ours.id, (("missed", "type")[n % 2],), (LABELS[n % 3],))
            for n, (ours, theirs) in enumerate(zip(documents * 3, found * 3, strict=True))
        ],
        left_out=1234,
    )
    figure = Figure("drawn", "A drawing", '<svg viewBox="0 0 40 20"><rect width="40" height="20"/></svg>')
    facts = Facts(
        "facts", "Facts", {"documents": 12345, EVIL: EVIL, "recipe": {"train": {"epochs": 3}}, "lines": "a\nb"}
    )
    sections = [
        Section("overview", "Overview", [Prose((EVIL,), statement=True), table, wide, facts], "What was measured."),
        Section("figures", "Figures", [figure, figure._replace(name="drawn-2"), points]),
        Section("errors", "Errors", [examples]),
    ]
    return Report(f"A report {EVIL}", sections, LABELS, "Eleven documents.", {"Wingspan": "0"})
