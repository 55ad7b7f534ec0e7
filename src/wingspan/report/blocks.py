"""The parts of a report, all plain data: sections of texts, facts, tables, figures, points, examples; its subject."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from wingspan.evaluation.comparison import score_notes
from wingspan.evaluation.matching import pair, realign
from wingspan.text import Document

TableCell = str | int | float | None
TableRow = Sequence[TableCell]


class Column(NamedTuple):
    """A column. Cells of a `label` have its color; a `change` is tinted as better if positive, a `cost` as worse."""

    name: str
    kind: Literal["text", "label", "number", "change", "cost"] = "number"
    digits: int = 2
    about: str = ""


class Table(NamedTuple):
    """Rows under columns. `rows` is read once for the page and once for the CSV file, so it may be streamed."""

    name: str
    caption: str
    columns: tuple[Column, ...]
    rows: Iterable[TableRow]
    shade: bool = False  # a heat map: numbers are tinted by their size
    totals: Sequence[TableRow] = ()
    shown: int = 500
    note: str = ""


class Figure(NamedTuple):
    """A drawing as SVG; PNG and SVG files of the same name lie beside the report."""

    name: str
    caption: str
    svg: str


class Points(NamedTuple):
    """A cloud of points to zoom into; pointing at one shows its words."""

    name: str
    caption: str
    x: Sequence[float]
    y: Sequence[float]
    groups: Sequence[str]  # each has its color
    words: Sequence[str]
    right: Sequence[bool] | None = None  # wrong ones are drawn as crosses
    axes: tuple[str, str] = ("", "")


class Example(NamedTuple):
    """A passage with the entities of each system beside the gold; readers filter by kinds and labels."""

    versions: Sequence[tuple[str, Document]]  # the name of a system (empty if there is only one) and its document
    gold: Document | None
    title: str
    kinds: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    note: str = ""


class Examples(NamedTuple):
    """Passages with highlighted entities, and how many more there would have been."""

    name: str
    caption: str
    items: Iterable[Example]
    left_out: int = 0
    note: str = ""


class Prose(NamedTuple):
    """Paragraphs, set large if they are a statement."""

    paragraphs: tuple[str, ...]
    statement: bool = False
    name: str = ""


class Facts(NamedTuple):
    """Names and values, such as the statistics of a corpus; nested values fold open."""

    name: str
    caption: str
    values: Mapping[str, Any]


Block = Table | Figure | Points | Examples | Prose | Facts


class Section(NamedTuple):
    """A chapter of the report."""

    name: str
    title: str
    blocks: Sequence[Block]
    lead: str = ""


@dataclass(frozen=True)
class Report:
    """Everything on the page. `labels` are all labels there are, so that each has one color throughout."""

    title: str
    sections: Sequence[Section]
    labels: Sequence[str] = ()
    lead: str = ""
    made: Mapping[str, str] = field(default_factory=dict)  # versions, date and source files
    folder: bool = True  # whether tables and figures lie beside the page as files

    def blocks(self) -> Iterable[Block]:
        """All blocks in order."""
        return (block for section in self.sections for block in section.blocks)


Runs = Sequence[Sequence[Document]]


@dataclass(frozen=True)
class Subject:
    """Gold documents and systems with one run or several each, every run in the order of the gold.

    Other systems are compared with the first one; details are about the first run of a system.
    """

    gold: Sequence[Document]
    systems: Mapping[str, Runs]
    training: Sequence[Document] | None = None
    notes: tuple[str, ...] = ()  # how predictions were put onto the gold, and what they lack

    @classmethod
    def of(
        cls,
        gold: Sequence[Document],
        systems: Mapping[str, Runs],
        training: Sequence[Document] | None = None,
        *,
        allow_missing: bool = False,
    ) -> Subject:
        """Puts every run onto the texts and into the order of the gold; missing documents are empty if allowed."""
        if not gold:
            raise ValueError("the gold has no documents; give a corpus with at least one")
        ordered: dict[str, Runs] = {}
        notes: list[str] = []
        for name, runs in systems.items():
            placed = [realign(gold, run) for run in runs]
            ordered[name] = [[document for _, document in pair(gold, run.documents, allow_missing)] for run in placed]
            notes += [f"{name}: {note}" for run in placed for note in run.notes]
            notes += score_notes(gold, {name: [run.documents for run in placed]}, allow_missing)
        return cls(gold, ordered, training, tuple(notes))

    @property
    def names(self) -> list[str]:
        """The systems."""
        return list(self.systems)

    def predicted(self, name: str) -> Sequence[Document]:
        """The documents of a system's first run."""
        return self.systems[name][0]

    @property
    def labels(self) -> list[str]:
        """All labels on either side."""
        runs = [self.gold, *(run for runs in self.systems.values() for run in runs)]
        return sorted({entity.label for run in runs for document in run for entity in document.entities})

    @property
    def first_runs_only(self) -> str:
        """A remark where a system has several runs and only the first is looked at."""
        several = [name for name, runs in self.systems.items() if len(runs) > 1]
        return f"Of {' and '.join(several)} the first run is shown." if several else ""

    def named(self, name: str, caption: str, system: str) -> tuple[str, str]:
        """Name and caption of a block that exists once for each system, where there are several."""
        several = len(self.systems) > 1
        return anchored(name, self.names.index(system)), f"{caption}: {system}" if several else caption

    def table_by_system(
        self, name: str, caption: str, columns: Sequence[Column], rows: Iterable[TableRow], note: str = ""
    ) -> Table:
        """A table whose second column is the system; it is left out where there is only one."""
        if len(self.systems) == 1:
            columns, rows = [columns[0], *columns[2:]], [(row[0], *row[2:]) for row in rows]
        return Table(name, caption, tuple(columns), list(rows), note=note)


def numbers(*names: str, digits: int = 2) -> tuple[Column, ...]:
    """Columns of numbers."""
    return tuple(Column(name, digits=digits) for name in names)


def anchored(name: str, number: int) -> str:
    """The name of a block that exists several times: plain for the first one."""
    return name if number == 0 else f"{name}-{number + 1}"
