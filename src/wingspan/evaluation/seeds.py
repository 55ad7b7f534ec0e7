"""Several runs of one system as one row: mean and standard deviation over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean, stdev
from typing import Any, NamedTuple

from wingspan.evaluation.given_spans import Share, TypingScores
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


def over_seeds(runs: Sequence[Scores | TypingScores]) -> dict[str, Any]:
    """The runs of one system as plain data, in the shape of one run's figures, each a mean with its deviation."""
    typed = [run for run in runs if isinstance(run, TypingScores)]
    if typed:
        return typing_over_seeds(typed)
    found = [run for run in runs if isinstance(run, Scores)]
    labels, averages = label_rows(found), average_rows(found)
    return {
        "protocol": "recognition",
        "mode": found[0].mode,
        "runs": len(runs),
        **{row.name: row.to_dict() for row in averages},
        "labels": {row.name: row.to_dict() for row in labels},
    }


def typing_over_seeds(runs: Sequence[TypingScores]) -> dict[str, Any]:
    """The same for runs that typed given spans."""
    rows = accuracy_rows(runs)
    figures = {name: {"accuracy": accuracy.to_dict()} for name, accuracy in rows[:-1]}
    return {"protocol": "typing", "runs": len(runs), "accuracy": rows[-1][1].to_dict(), "labels": figures}


def accuracy_rows(runs: Sequence[TypingScores]) -> list[tuple[str, Spread]]:
    """The accuracy of each label, and of all together as the last row."""
    names = sorted({label for run in runs for label in run.labels})
    rows = [(name, spread(run.labels.get(name, Share(0, 0)).accuracy for run in runs)) for name in names]
    return [*rows, ("all", spread(run.accuracy for run in runs))]


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
