"""Which label of each corpus means which label of the target corpus: a small table, written by hand or suggested.

Columns divided by tabs: `corpus`, `label`, `target`, where `-` or nothing is "no counterpart". More columns, such as
the evidence of a suggestion, may follow the first line's names; they are not read here. A line that starts with `#` is
a comment. The target corpus' own labels need no lines: they mean themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path

from wingspan.files import CorpusError, atomic_write, read_lines
from wingspan.text import Document

COLUMNS = ("corpus", "label", "target")
NONE = "-"

Pair = tuple[str, str]  # corpus, label


@dataclass(frozen=True)
class LabelMap:
    """The target label of every (corpus, label); None where there is no counterpart."""

    targets: Mapping[Pair, str | None]
    path: Path | None = field(default=None, compare=False)
    lines: Mapping[Pair, int] = field(default_factory=dict, compare=False, repr=False)

    def __contains__(self, pair: object) -> bool:
        return pair in self.targets

    def __iter__(self) -> Iterator[tuple[str, str, str | None]]:
        """The rows: corpus, label, target label."""
        for (corpus, label), target in self.targets.items():
            yield corpus, label, target

    def target(self, corpus: str, label: str) -> str | None:
        """The target label of a label. Corpora that the map has no line about, so the target, keep their labels."""
        if (corpus, label) in self.targets:
            return self.targets[corpus, label]
        if any(name == corpus for name, _ in self.targets):
            raise self._missing(corpus, label)
        return label

    def about(self, corpora: Collection[str]) -> LabelMap:
        """The lines about some corpora: one map may serve trainings on fewer of them."""
        kept = {pair: target for pair, target in self.targets.items() if pair[0] in corpora}
        return replace(self, targets=kept)

    def mapped(self, document: Document) -> Document:
        """The document in target labels; what has no counterpart is left out, and equal mentions are merged."""
        named = ((entity, self.target(document.dataset, entity.label)) for entity in document.entities)
        kept = dict.fromkeys(replace(entity, label=target) for entity, target in named if target is not None)
        return replace(document, entities=tuple(kept))

    def check(self, labels: Mapping[str, Collection[str]], target: str) -> None:
        """Against the labels of each corpus: nothing unknown or missing, every target label one of the target's."""
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
            missing = [label for label in own if corpus != target and (corpus, label) not in self.targets]
            if missing:
                raise self._missing(corpus, missing[0])

    def _missing(self, corpus: str, label: str) -> CorpusError:
        """A label that the map should have a line about."""
        place = self._place()
        return CorpusError(f"{place}no line for {label!r} of {corpus!r}; add one, with {NONE} if it has no counterpart")

    def _place(self, *pair: str) -> str:
        """File and line, as every message starts with."""
        if self.path is None:
            return "label map: "
        line = self.lines.get((pair[0], pair[1])) if pair else None
        return f"{self.path}: " if line is None else f"{self.path}:{line}: "


def read_label_map(path: str | Path) -> LabelMap:
    """A label map from its table."""
    path = Path(path)
    if not path.is_file():
        raise CorpusError(f"{path}: there is no such label map; check the path, or make one with wingspan label-map")
    targets: dict[Pair, str | None] = {}
    lines: dict[Pair, int] = {}
    columns: list[str] = []
    for number, line in read_lines(path):
        if not line.strip() or line.startswith("#"):
            continue
        cells = [cell.strip() for cell in line.split("\t")]
        if not columns:
            columns = cells
            if tuple(columns[:3]) != COLUMNS:
                raise CorpusError(f"{path}:{number}: the first line names the columns; start it with {_titles()}")
            continue
        if len(cells) == 2:
            cells.append("")  # editors drop the tab in front of an empty last cell
        if not 3 <= len(cells) <= len(columns) or not cells[0] or not cells[1]:
            raise CorpusError(f"{path}:{number}: a line holds {_titles()}; {len(cells)} of them are here")
        pair = (cells[0], cells[1])
        if pair in targets:
            raise CorpusError(f"{path}:{number}: {pair[1]!r} of {pair[0]!r} is in line {lines[pair]} already; keep one")
        targets[pair] = None if cells[2] in ("", NONE) else cells[2]
        lines[pair] = number
    if not targets:
        raise CorpusError(f"{path}: there is no line in it; give one for each label, {_titles()}")
    return LabelMap(targets, path, lines)


def write_label_map(label_map: LabelMap, path: str | Path) -> None:
    """Writes the table; evidence columns are not part of it."""
    with atomic_write(path) as file:
        file.write("\t".join(COLUMNS) + "\n")
        for corpus, label, target in label_map:
            file.write("\t".join((corpus, label, NONE if target is None else target)) + "\n")


def _titles() -> str:
    return ", ".join(COLUMNS) + " divided by tabs"


def _known(name: str, known: Collection[str]) -> str:
    near = get_close_matches(name, known, 1)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known) or 'none'}"
