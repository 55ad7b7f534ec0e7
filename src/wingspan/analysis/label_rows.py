"""The rows that a conditional autoencoder has for labels, from the state that training kept.  See: paper 004, Figure 3.

Prediction has no use for them, so that a saved model does not hold them; the run's `state/` folder does.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from safetensors import safe_open

from wingspan.analysis.collected import Array
from wingspan.labels import LabelSet
from wingspan.objectives.conditional import ConditionalReconstruction
from wingspan.recipe import Recipe, made_by


@dataclass(frozen=True)
class LabelRows:
    """One row for each class."""

    values: Array  # (C, K)
    names: tuple[str, ...]
    """Corpus and label."""
    meanings: tuple[str, ...]
    """The target's label; "none" where there is no counterpart."""


def read_label_rows(run: str | Path, recipe: Recipe, labels: LabelSet) -> LabelRows | None:
    """The rows at the end of a run's last phase; None where the recipe has none, or the state was not kept."""
    terms = [name for name, term in recipe.terms.items() if made_by(term.objective) is ConditionalReconstruction]
    kept = sorted((Path(run) / "state").glob("phase-*/learner.safetensors"))
    if not terms or not kept:
        return None
    with safe_open(str(kept[-1]), framework="numpy") as file:
        values: Array = file.get_tensor(f"objectives.{terms[0]}.rows")
    return rows_of(values, labels)


def rows_of(values: Array, labels: LabelSet) -> LabelRows:
    """Rows with the names of their classes."""
    target = ("nothing", *labels.types[labels.target])
    names = tuple(f"{corpus}: {label or 'nothing'}" for corpus, label in labels.meanings())
    return LabelRows(values, names, tuple("none" if at is None else target[at] for at in labels.target_classes()))
