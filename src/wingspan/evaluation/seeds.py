"""Several runs of one system as one row: mean and standard deviation over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean, stdev
from typing import Any, NamedTuple

from wingspan.evaluation.scores import Average, Counts, Scores


class Spread(NamedTuple):
    """Mean and sample standard deviation (n - 1); one value has no deviation."""

    mean: float
    deviation: float | None
    values: tuple[float, ...]

    def __str__(self) -> str:
        """As tables print it."""
        return f"{self.mean:.2f}" if self.deviation is None else f"{self.mean:.2f} ± {self.deviation:.2f}"

    def to_dict(self) -> dict[str, Any]:
        """Mean, deviation and the values they are of."""
        return {"mean": self.mean, "deviation": self.deviation, "values": list(self.values)}


class Row(NamedTuple):
    """One label, or `micro`, `macro` or `document_macro`, over all runs."""

    name: str
    precision: Spread
    recall: Spread
    f1: Spread

    def to_dict(self) -> dict[str, Any]:
        """The three figures as plain data."""
        return {name: getattr(self, name).to_dict() for name in ("precision", "recall", "f1")}


def spread(values: Iterable[float]) -> Spread:
    """Mean and deviation of one figure."""
    kept = tuple(values)
    if not kept:
        raise ValueError("no run to average; give the scores of at least one")
    return Spread(fmean(kept), stdev(kept) if len(kept) > 1 else None, kept)


def over_seeds(runs: Sequence[Scores]) -> dict[str, Any]:
    """The runs of one system as plain data, in the shape of one run's figures, each a mean with its deviation."""
    labels, averages = label_rows(runs), average_rows(runs)
    return {
        "protocol": "recognition",
        "mode": runs[0].mode,
        "runs": len(runs),
        **{row.name: row.to_dict() for row in averages},
        "labels": {row.name: row.to_dict() for row in labels},
    }


def label_rows(runs: Sequence[Scores]) -> list[Row]:
    """One row for each label. A label that a run has not seen on either side counts as zero there."""
    _check(runs)
    names = sorted({label for run in runs for label in run.labels})
    return [_row(name, [run.labels.get(name, Counts()) for run in runs]) for name in names]


def average_rows(runs: Sequence[Scores]) -> list[Row]:
    """The rows `micro`, `macro` and `document_macro`."""
    _check(runs)
    return [_row(name, [getattr(run, name) for run in runs]) for name in ("micro", "macro", "document_macro")]


def _row(name: str, parts: Sequence[Counts | Average]) -> Row:
    return Row(name, spread(p.precision for p in parts), spread(p.recall for p in parts), spread(p.f1 for p in parts))


def _check(runs: Sequence[Scores]) -> None:
    """Runs under different rules have no mean."""
    modes = sorted({run.mode for run in runs})
    if len(modes) > 1:
        raise ValueError(f"these runs were scored in different modes ({', '.join(modes)}); score them in one")
