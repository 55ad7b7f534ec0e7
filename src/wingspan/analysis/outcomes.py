"""What class chances say about gold spans: right or wrong, how sure, how far off.  See: paper 001, section 3."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from wingspan.analysis.collected import Array, Collected
from wingspan.analysis.projection import PointMap, span_map
from wingspan.evaluation.protocols import HEADLINES
from wingspan.training.journal import read_journal

SMALLEST = 1e-12  # a chance of zero would make a ratio infinite

Tag = Literal["Up", "Stable", "Down"]


def chance_map(rows: Collected, *, limit: int = 2000, seed: int = 0) -> PointMap:
    """Gold spans by the principal components of their chances, right and wrong marked.  See: paper 001, Figure 4."""
    return span_map(rows, "chance", "pca", limit=limit, seed=seed)


@dataclass(frozen=True)
class TrueChances:
    """The chances that one type's gold spans give to that type, where it is the likeliest class and where not."""

    label: str
    right: Array
    wrong: Array

    @property
    def right_median(self) -> float | None:
        """The middle of the right ones."""
        return float(np.median(self.right)) if len(self.right) else None

    @property
    def wrong_median(self) -> float | None:
        """The middle of the wrong ones."""
        return float(np.median(self.wrong)) if len(self.wrong) else None


def true_chances(rows: Collected) -> tuple[TrueChances, ...]:
    """The chance of the true label, type by type, right and wrong apart.  See: paper 001, Figure 5 (violins)."""
    true = rows.chance[np.arange(len(rows.gold)), rows.gold]
    right = rows.guess == rows.gold
    found = []
    for label in dict.fromkeys(name for name in rows.classes if name):
        own = rows.label == label
        if own.any():
            found.append(TrueChances(label, true[own & right], true[own & ~right]))
    return tuple(found)


@dataclass(frozen=True)
class Discrepancy:
    """How far the chance of what was said is from that of the truth, for one gold span."""

    document: str
    text: str
    label: str
    fold: float
    """log2(chance of what was said / chance of the true label)."""
    desire: float
    """The variance of the class chances / the chance of the true label: the paper's D."""
    tag: Tag
    """Up where what was said has the larger chance, Stable where both are equal, Down else."""


def discrepancies(rows: Collected, guess: Array | None = None) -> tuple[Discrepancy, ...]:
    """Each gold span's place in the "volcano".  See: paper 001, section 3.5 and Figure 6.

    `guess` are the classes that were said, the likeliest ones by default; only others can be Down.
    """
    said = rows.guess if guess is None else guess
    at = np.arange(len(rows.gold))
    true, output = rows.chance[at, rows.gold], rows.chance[at, said]
    known = rows.chance.any(axis=0) if len(rows.chance) else slice(None)  # classes that are never said are none
    variance = rows.chance[:, known].var(axis=1)
    ratio = np.maximum(output, SMALLEST) / np.maximum(true, SMALLEST)
    desire = variance / np.maximum(true, SMALLEST)
    return tuple(
        Discrepancy(
            document=str(rows.document[row]),
            text=str(rows.text[row]),
            label=str(rows.label[row]),
            fold=float(np.log2(ratio[row])),
            desire=float(desire[row]),
            tag="Up" if ratio[row] > 1 else "Stable" if ratio[row] == 1 else "Down",
        )
        for row in np.flatnonzero(rows.entities).tolist()
    )


@dataclass(frozen=True)
class EpochLoss:
    """The mean losses of one epoch, by name, and the dev F1 or accuracy where there is one. Epochs count from 1."""

    epoch: int
    losses: dict[str, float]
    dev: float | None
    figure: str = "F1"
    """What `dev` is: models that type given spans have an accuracy."""


def losses_by_epoch(journal: str | Path) -> tuple[EpochLoss, ...]:
    """The losses of a run from its `journal.jsonl`, phase after phase.  See: paper 001, Figure 3.

    An epoch that a resumed run has gone through again counts once.
    """
    found = {
        (event.get("phase", 0), event["epoch"]): (dict(event["losses"]), *_dev(event))
        for event in read_journal(journal)
        if event["event"] == "epoch"
    }
    return tuple(EpochLoss(number, *found[key]) for number, key in enumerate(sorted(found), 1))


def _dev(event: Mapping[str, Any]) -> tuple[float | None, str]:
    """The figure that chose the best epoch, and its name."""
    found = [(event[key], name) for name in HEADLINES.values() if (key := f"dev_{name.lower()}") in event]
    return found[0] if found else (None, HEADLINES["recognition"])
