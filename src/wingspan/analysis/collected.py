"""Rows about spans, collected once from a model; every table and figure about representations is made of them.

One `.npz` file, read without unpickling. No torch here: what a table needs is in the arrays.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal
from zipfile import BadZipFile

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
What = Literal["vector", "feature", "latent", "chance"]
"""What can be looked at: the span's vector, the features that scores are linear in, a latent, the class chances."""


@dataclass(frozen=True)
class Collected:
    """Gold spans, their neighbors that are no entities, and sampled spans that are none. N rows, C classes.

    Neighbors overlap an entity or touch it; `pairs` ties them to it. A span with two gold labels has two rows.
    """

    system: str
    """The recipe's name."""
    classes: tuple[str, ...]
    """The label of each class; empty for "nothing"."""
    left_out: int
    """Gold entities of the same sentences without a row: discontinuous, wider than the model looks at, or of a label
    it does not know."""
    document: Array  # (N,) ids
    dataset: Array  # (N,) names
    sentence: Array  # (N,) which input of the model a span is in
    start: Array  # (N,) in characters of the document, half-open
    end: Array  # (N,)
    word_start: Array  # (N,) in words of the input, half-open
    word_end: Array  # (N,)
    text: Array  # (N,) the span, long ones cut
    gold: Array  # (N,) class ids
    sampled: Array  # (N,) drawn at random from all spans that are no entity
    chance: Array  # (N, C)
    vector: Array  # (N, S) the span representation
    feature: Array  # (N, F) what scores are linear in: paper 003's pre-logit z; the mean of a bottleneck's Gaussian
    latent: Array  # (N, Z) what else was asked for; Z = 0 without
    templates: Array  # (C, F) the last layer's weights; (0, 0) where there is no such layer
    pairs: Array  # (P, 2) rows of an entity and of a neighbor

    @property
    def entities(self) -> Array:
        """Which rows are gold entities.  (N,)"""
        named = np.array([bool(name) for name in self.classes], dtype=bool)
        found: Array = named[self.gold]
        return found

    @property
    def guess(self) -> Array:
        """The likeliest class of each row.  (N,)"""
        best: Array = self.chance.argmax(1) if len(self.chance) else np.zeros(0, dtype=np.int64)
        return best

    @property
    def label(self) -> Array:
        """The gold label of each row; empty for spans that are no entity.  (N,)"""
        names: Array = np.array(self.classes, dtype=str)[self.gold]
        return names

    def of(self, what: What) -> Array:
        """One of the arrays of vectors.  (N, .)"""
        values: Array = getattr(self, what)
        if not values.shape[1]:
            raise ValueError(f"these rows have no {what}; collect them with one, or look at the feature")
        return values

    def save(self, path: str | Path) -> None:
        """Writes one compressed `.npz`."""
        arrays: dict[str, Any] = {field.name: np.asarray(getattr(self, field.name)) for field in fields(self)}
        with Path(path).open("wb") as file:
            np.savez_compressed(file, **arrays)


def load_collected(path: str | Path) -> Collected:
    """What `Collected.save` wrote."""
    try:
        with np.load(path, allow_pickle=False) as file:
            missing = sorted({field.name for field in fields(Collected)} - set(file.files))
            if missing:
                raise ValueError(f"{path}: no {missing[0]!r} in it; collect the rows again with this version")
            arrays: dict[str, Any] = {field.name: file[field.name] for field in fields(Collected)}
    except (BadZipFile, EOFError) as error:
        raise ValueError(f"{path}: not a file of collected rows, or damaged; collect them again") from error
    arrays["system"] = str(arrays["system"])
    arrays["classes"] = tuple(str(name) for name in arrays["classes"])
    arrays["left_out"] = int(arrays["left_out"])
    return Collected(**arrays)
