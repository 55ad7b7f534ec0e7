"""What a report is about: gold documents, what systems found in them, and what they were trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wingspan.evaluation import pair, place_on_gold
from wingspan.evaluation.comparison import noticed
from wingspan.text import Document

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
            placed = [place_on_gold(gold, run) for run in runs]
            ordered[name] = [[found for _, found in pair(gold, one.documents, allow_missing)] for one in placed]
            notes += [f"{name}: {note}" for one in placed for note in one.notes]
            notes += noticed(gold, {name: [one.documents for one in placed]}, allow_missing)
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
