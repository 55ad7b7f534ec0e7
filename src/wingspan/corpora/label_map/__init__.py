"""A label map translates the labels of several corpora to those of one of them, the target.

It is a small table, written by hand or suggested, with columns divided by tabs: `corpus`, `label`, `target`, where `-`
or nothing is "no counterpart". More columns, such as the evidence of a suggestion, are ignored, and so are lines that
start with `#`. Labels of the target corpus need no lines.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path

from wingspan.files import CorpusError, read_lines
from wingspan.text import Document

COLUMNS = ("corpus", "label", "target")
TITLES = "corpus, label, target divided by tabs"
NONE = "-"

CorpusLabel = tuple[str, str]  # corpus, label


@dataclass(frozen=True)
class LabelMap:
    """The target label of every (corpus, label); None where there is no counterpart."""

    targets: Mapping[CorpusLabel, str | None]
    path: Path | None = field(default=None, compare=False)
    lines: Mapping[CorpusLabel, int] = field(default_factory=dict, compare=False, repr=False)

    def __iter__(self) -> Iterator[tuple[str, str, str | None]]:
        """The rows: corpus, label, target label."""
        for (corpus, label), target in self.targets.items():
            yield corpus, label, target

    def target(self, corpus: str, label: str) -> str | None:
        """The target label of a label. Corpora without a line, such as the target, keep their labels."""
        if (corpus, label) in self.targets:
            return self.targets[corpus, label]
        if any(name == corpus for name, _ in self.targets):
            raise self._missing(corpus, label)
        return label

    def about(self, corpora: Collection[str]) -> LabelMap:
        """The lines about some corpora; one map can serve trainings on fewer of them."""
        return replace(self, targets={pair: target for pair, target in self.targets.items() if pair[0] in corpora})

    def mapped(self, document: Document) -> Document:
        """The document in target labels; entities without a counterpart are dropped, equal mentions merged."""
        targets = ((entity, self.target(document.dataset, entity.label)) for entity in document.entities)
        kept = dict.fromkeys(replace(entity, label=target) for entity, target in targets if target is not None)
        return replace(document, entities=tuple(kept))

    def check(self, labels: Mapping[str, Collection[str]], target: str) -> None:
        """Checks the map against the labels of each corpus: none unknown or missing, every target known."""
        if target not in labels:
            raise CorpusError(f"{self._place()}the target corpus {target!r} is unknown; {_known(target, labels)}")
        for (corpus, label), meaning in self.targets.items():
            where = self._place(corpus, label)
            if corpus not in labels:
                raise CorpusError(f"{where}no corpus {corpus!r}; {_known(corpus, labels)}")
            if label not in labels[corpus]:
                raise CorpusError(f"{where}{corpus!r} has no label {label!r}; {_known(label, labels[corpus])}")
            if meaning is not None and meaning not in labels[target]:
                raise CorpusError(
                    f"{where}the target {target!r} has no label {meaning!r}; {_known(meaning, labels[target])} "
                    f"({NONE} is no counterpart)"
                )
            if corpus == target and meaning != label:
                raise CorpusError(f"{where}{label!r} is of the target corpus and means itself; leave the line out")
        for corpus, own in labels.items():
            for label in own:
                if corpus != target and (corpus, label) not in self.targets:
                    raise self._missing(corpus, label)

    def _missing(self, corpus: str, label: str) -> CorpusError:
        line = f"no line for {label!r} of {corpus!r}"
        return CorpusError(f"{self._place()}{line}; add one, with {NONE} if it has no counterpart")

    def _place(self, *pair: str) -> str:
        """File and line, with which every message starts."""
        if self.path is None:
            return "label map: "
        line = self.lines.get((pair[0], pair[1])) if pair else None
        return f"{self.path}: " if line is None else f"{self.path}:{line}: "


def read_label_map(path: str | Path) -> LabelMap:
    """Reads a label map from its table."""
    path = Path(path)
    if not path.is_file():
        raise CorpusError(f"{path}: there is no such label map; check the path, or make one with wingspan label-map")
    targets: dict[CorpusLabel, str | None] = {}
    lines: dict[CorpusLabel, int] = {}
    columns: list[str] = []
    for number, line in read_lines(path):
        if not line.strip() or line.startswith("#"):
            continue
        cells = [cell.strip() for cell in line.split("\t")]
        if not columns:
            columns = cells
            if tuple(columns[:3]) != COLUMNS:
                raise CorpusError(f"{path}:{number}: the first line names the columns; start it with {TITLES}")
            continue
        if len(cells) == 2:
            cells.append("")  # editors drop the tab in front of an empty last cell
        if not 3 <= len(cells) <= len(columns) or not cells[0] or not cells[1]:
            raise CorpusError(f"{path}:{number}: a line holds {TITLES}; {len(cells)} of them are here")
        pair = (cells[0], cells[1])
        if pair in targets:
            raise CorpusError(f"{path}:{number}: {pair[1]!r} of {pair[0]!r} is in line {lines[pair]} already; keep one")
        targets[pair] = None if cells[2] in ("", NONE) else cells[2]
        lines[pair] = number
    if not targets:
        raise CorpusError(f"{path}: there is no line in it; give one for each label, {TITLES}")
    return LabelMap(targets, path, lines)


def _known(name: str, known: Collection[str]) -> str:
    near = get_close_matches(name, known, 1)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known) or 'none'}"
