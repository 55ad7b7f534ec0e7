"""Two or more systems on one gold corpus: figures with intervals, differences with p-values, errors that moved."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, NamedTuple

from wingspan.corpora.groups import FEW
from wingspan.evaluation import significance
from wingspan.evaluation.errors import Moved, errors_of, moved
from wingspan.evaluation.matching import Mode
from wingspan.evaluation.matching import pair as in_pairs
from wingspan.evaluation.scores import FIGURES, Spread, remarks_on, spread
from wingspan.evaluation.significance import F1, ROUNDING, ConfidenceInterval, CountTable, Difference, Rows
from wingspan.text import Document


class SystemRow(NamedTuple):
    """One row of one system. `over_runs` is mean and deviation of F1 over its runs; `counts` are means over runs."""

    precision: ConfidenceInterval
    recall: ConfidenceInterval
    f1: ConfidenceInterval
    over_runs: Spread
    counts: Mapping[str, float]
    """tp, fp and fn; none for macro."""

    def to_dict(self) -> dict[str, Any]:
        """Figures, their intervals and counts as plain data."""
        return {
            **{name: figure.value for name, figure in zip(FIGURES, self[:3], strict=True)},
            "intervals": {name: [figure.low, figure.high] for name, figure in zip(FIGURES, self[:3], strict=True)},
            "f1_over_runs": self.over_runs.to_dict(),
            **self.counts,
        }


@dataclass(frozen=True)
class SystemFigures:
    """The figures of one system."""

    name: str
    runs: int
    rows: Rows[SystemRow]

    @property
    def f1(self) -> ConfidenceInterval:
        """The figure that decides: micro F1."""
        return self.rows.micro.f1


@dataclass(frozen=True)
class PairFigures:
    """Second system minus first: F1 in every row, and the errors that moved."""

    first: str
    second: str
    rows: Rows[Difference]
    errors: Moved


@dataclass(frozen=True)
class Comparison:
    """Everything `wingspan compare` prints and its report shows. Pairs are in the order of the systems."""

    mode: Mode
    documents: int
    units: int
    """The number of units that are drawn: documents, or groups of rows that are one document."""
    unit: str
    """`documents`, or `rows` where their groups are too coarse."""
    samples: int
    seed: int
    confidence: float
    systems: tuple[SystemFigures, ...]
    pairs: tuple[PairFigures, ...]
    notes: tuple[str, ...]
    gold: Sequence[Document] = field(repr=False, compare=False)

    @property
    def verdict(self) -> str:
        """Which system wins and how certain that is, in one sentence."""
        best, next_best = sorted(self.systems, key=lambda system: -system.f1.value)[:2]
        pair = next(pair for pair in self.pairs if {pair.first, pair.second} == {best.name, next_best.name})
        gap = pair.rows.micro
        low, high, wins = (
            (gap.low, gap.high, gap.wins) if pair.second == best.name else (-gap.high, -gap.low, 1 - gap.wins)
        )
        if abs(gap.value) <= ROUNDING:
            return f"No winner: {best.name} and {next_best.name} have the same micro F1, {best.f1.value:.2f}."
        ahead = (
            f"{abs(gap.value):.2f} points of micro F1 ({best.f1.value:.2f} against {next_best.f1.value:.2f}, "
            f"{100 * self.confidence:g} % interval of the difference {low:+.2f} to {high:+.2f})"
        )
        sure = f"p = {gap.p_holm:.2g} by {self.test(pair)}, ahead in {100 * wins:.1f} % of {self.samples:,} samples"
        if gap.p_holm <= 1 - self.confidence:
            return f"{best.name} wins over {next_best.name} by {ahead}: {sure}."
        return f"No clear winner: {best.name} is ahead of {next_best.name} by {ahead}, but that may be chance: {sure}."

    def test(self, pair: PairFigures) -> str:
        """The test behind a pair's p-values, in words."""
        if pair.rows.micro.p_randomization is None:
            return f"a bootstrap over runs and {self.units:,} {self.unit}"
        return f"approximate randomization of {self.units:,} {self.unit}"

    def to_dict(self, examples: int = 20) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        return {
            "protocol": "recognition",
            "mode": self.mode,
            "verdict": self.verdict,
            **{name: getattr(self, name) for name in ("documents", "units", "unit", "samples", "seed", "confidence")},
            "systems": [
                {"name": system.name, "runs": system.runs, **system.rows.to_dict(SystemRow.to_dict)}
                for system in self.systems
            ],
            "pairs": [
                {
                    "first": pair.first,
                    "second": pair.second,
                    "test": self.test(pair),
                    "f1": pair.rows.to_dict(Difference.to_dict),
                    "errors": pair.errors.to_dict(self.gold, examples),
                }
                for pair in self.pairs
            ],
            "notes": list(self.notes),
        }


def compare(
    gold: Sequence[Document],
    systems: Mapping[str, Sequence[Sequence[Document]]],
    *,
    mode: Mode = "strict",
    samples: int = 1000,
    seed: int = 1,
    confidence: float = 0.95,
    allow_missing: bool = False,
) -> Comparison:
    """Compares all pairs of systems; each system is the documents of one or several runs.

    p-values of labels are corrected for the number of labels (Holm), those of micro and macro for the number of pairs.
    """
    if len(systems) < 2:
        raise ValueError("there is nothing to compare; give at least two systems")
    empty = next((name for name, runs in systems.items() if not runs), None)
    if empty is not None or not gold:
        raise ValueError(f"{'the gold' if empty is None else repr(empty)} has no documents to compare")
    table = significance.tabulate(
        gold, [run for runs in systems.values() for run in runs], mode, allow_missing=allow_missing
    )
    places: dict[str, list[int]] = {}  # of each system's runs in the table
    for name, runs in systems.items():
        start = sum(map(len, places.values()))
        places[name] = list(range(start, start + len(runs)))
    rows, drawn = significance.system_intervals(
        table, list(places.values()), samples=samples, seed=seed, confidence=confidence
    )
    wrong = {name: errors_of(gold, runs, mode, allow_missing=allow_missing) for name, runs in systems.items()}
    pairs = []
    for (a, first), (b, second) in combinations(enumerate(systems), 2):
        found = significance.differences(
            table, (places[first], places[second]), drawn[:, [a, b]], seed=(seed, a, b), confidence=confidence
        )
        pairs.append(PairFigures(first, second, found, moved(wrong[first], wrong[second])))
    micro, macro = (significance.holm([getattr(pair.rows, name).p for pair in pairs]) for name in ("micro", "macro"))
    for at, pair in enumerate(pairs):  # micro and macro are tested once for each pair
        by_micro, by_macro = pair.rows.micro._replace(p_holm=micro[at]), pair.rows.macro._replace(p_holm=macro[at])
        pairs[at] = replace(pair, rows=replace(pair.rows, micro=by_micro, macro=by_macro))
    notes = score_notes(gold, systems, allow_missing)
    if table.coarse:
        notes.append(table.coarse)
    if len(table.units) < FEW:
        few = f"{len(table.units)} document{'' if len(table.units) == 1 else 's'}"
        notes.append(f"with {few} intervals and p-values are rough; {FEW} or more are better")
    several = [name for name, runs in systems.items() if len(runs) > 1]
    single = [name for name, runs in systems.items() if len(runs) == 1]
    if several and single:
        notes.append(f"{', '.join(single)}: one run only, so what another seed would do is not known")
    if any(len(systems[name]) < 5 for name in several):
        notes.append("intervals from fewer than 5 runs are too narrow where seeds differ more than documents")
    return Comparison(
        mode,
        len(gold),
        len(table.units),
        "rows" if table.coarse else "documents",
        samples,
        seed,
        confidence,
        tuple(figures_of(table, name, places[name], found) for name, found in zip(systems, rows, strict=True)),
        tuple(pairs),
        tuple(notes),
        gold,
    )


def figures_of(
    table: CountTable,
    name: str,
    runs: Sequence[int],
    found: Sequence[tuple[ConfidenceInterval, ConfidenceInterval, ConfidenceInterval]],
) -> SystemFigures:
    """One system's figures beside their spread over runs and the counts behind them."""
    f1 = table.figures()[list(runs)][..., F1]  # (runs, rows)
    sums = table.counts[:, list(runs)].sum(0, dtype=float).mean(0).tolist()  # (1 + labels, 3)
    counts: list[dict[str, float]] = [{"tp": tp, "fp": found - tp, "fn": gold - tp} for tp, found, gold in sums]
    counts.insert(1, {})  # macro
    columns = zip(found, map(spread, f1.T.tolist()), counts, strict=True)
    return SystemFigures(name, len(runs), table.named([SystemRow(*row, over, sums) for row, over, sums in columns]))


def score_notes(
    gold: Sequence[Document], systems: Mapping[str, Sequence[Sequence[Document]]], allow_missing: bool = False
) -> list[str]:
    """The notes of `wingspan score` on each system: missing documents, labels that one side lacks."""
    return list(
        dict.fromkeys(
            f"{name}: {note}"
            for name, runs in systems.items()
            for run in runs
            for note in remarks_on(in_pairs(gold, run, allow_missing), len(gold) - len(run))[1]
        )
    )
