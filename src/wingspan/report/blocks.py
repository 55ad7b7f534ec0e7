"""What a report is made of: sections of texts, facts, tables, figures, points and examples, all plain data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from wingspan.evaluation.comparison import score_notes
from wingspan.evaluation.matching import pair, realign
from wingspan.text import Document

Cell = str | int | float | None
Row = Sequence[Cell]
Kind = Literal["text", "label", "number", "change", "cost"]


@dataclass(frozen=True)
class Column:
    """A column: `label` cells have the label's color, `change` cells a tint: more is better; of a `cost` less is."""

    name: str
    kind: Kind = "number"
    digits: int = 2
    about: str = ""


@dataclass(frozen=True)
class Table:
    """Rows under columns. `rows` is gone through once for the page and once for the CSV file, so it may be streamed."""

    name: str
    caption: str
    columns: tuple[Column, ...]
    rows: Iterable[Row]
    shade: bool = False  # numbers of the table are tinted by their size: a heat map
    totals: Sequence[Row] = ()
    shown: int = 500
    note: str = ""


@dataclass(frozen=True)
class Figure:
    """A drawing as SVG; PNG and SVG files of the same name lie beside the report."""

    name: str
    caption: str
    svg: str


@dataclass(frozen=True)
class Points:
    """A cloud of points to zoom into; pointing at one shows its words."""

    name: str
    caption: str
    x: Sequence[float]
    y: Sequence[float]
    groups: Sequence[str]  # what gives the color
    words: Sequence[str]  # what is shown of a point
    right: Sequence[bool] | None = None  # wrong ones are drawn as crosses
    axes: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class Example:
    """A document to look at: what each system found beside the gold; kinds and labels are what it is filtered by."""

    versions: Sequence[tuple[str, Document]]  # the name of a system (none if there is only one) and its document
    gold: Document | None
    title: str
    kinds: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Examples:
    """Documents with highlighted entities, and how many more there would have been."""

    name: str
    caption: str
    items: Iterable[Example]
    left_out: int = 0
    note: str = ""


@dataclass(frozen=True)
class Prose:
    """Paragraphs; the first may be set large, as a statement."""

    paragraphs: tuple[str, ...]
    statement: bool = False
    name: str = ""


@dataclass(frozen=True)
class Facts:
    """Names and their values, such as what a corpus holds; nested values fold open."""

    name: str
    caption: str
    values: Mapping[str, Any]


Block = Table | Figure | Points | Examples | Prose | Facts


@dataclass(frozen=True)
class Section:
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
    made: Mapping[str, str] = field(default_factory=dict)  # who made it from what: versions, date, files
    folder: bool = True  # whether tables and figures lie beside the page as files

    def blocks(self) -> Iterable[Block]:
        """All blocks in order."""
        return (block for section in self.sections for block in section.blocks)


# --- What a report is about: gold documents, what systems found in them, and what they were trained on.


Runs = Sequence[Sequence[Document]]


@dataclass(frozen=True)
class Subject:
    """Systems with one run or several each, every run in the order of the gold. The first system is the standard."""

    gold: Sequence[Document]
    systems: Mapping[str, Runs]
    training: Sequence[Document] | None = None
    notes: tuple[str, ...] = ()  # what happened to predictions on their way onto the gold, and what they lack

    @classmethod
    def of(
        cls,
        gold: Sequence[Document],
        systems: Mapping[str, Runs],
        training: Sequence[Document] | None = None,
        *,
        allow_missing: bool = False,
    ) -> Subject:
        """Puts every run onto the texts and into the order of the gold.

        A document without prediction is one without entities.
        """
        if not gold:
            raise ValueError("the gold has no documents; give a corpus with at least one")
        ordered: dict[str, Runs] = {}
        notes: list[str] = []
        for name, runs in systems.items():
            placed = [realign(gold, run) for run in runs]
            ordered[name] = [[found for _, found in pair(gold, one.documents, allow_missing)] for one in placed]
            notes += [f"{name}: {note}" for one in placed for note in one.notes]
            notes += score_notes(gold, {name: [one.documents for one in placed]}, allow_missing)
        return cls(gold, ordered, training, tuple(notes))

    @property
    def names(self) -> list[str]:
        """The systems."""
        return list(self.systems)

    def found(self, name: str) -> Sequence[Document]:
        """What is looked at in detail: the first run of a system."""
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


def anchored(name: str, number: int) -> str:
    """The name of a block that exists once for each system: plain for the first one."""
    return name if number == 0 else f"{name}-{number + 1}"


def titled(caption: str, system: str, subject: Subject) -> str:
    """A caption that says of which system it is, where there are several."""
    return f"{caption}: {system}" if len(subject.systems) > 1 else caption
