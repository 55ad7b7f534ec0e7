"""Rows about spans, collected once from a model; every table and figure about representations is made of them.

One `.npz` file, read without unpickling. No torch here: what a table needs is in the arrays.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
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
    corpora: tuple[str, ...] = ()
    """The corpus of each class, where a model has several."""
    meanings: tuple[str, ...] = ()
    """What each class is called in the target's labels, where a model has several corpora; empty for none of them."""

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

    @property
    def meaning(self) -> Array:
        """The gold label of each row in the target's labels, where there are several corpora; else the label.  (N,)"""
        if not self.meanings:
            return self.label
        names = [meaning or name for meaning, name in zip(self.meanings, self.classes, strict=True)]
        found: Array = np.array(names, dtype=str)[self.gold]
        return found

    @property
    def class_names(self) -> list[str]:
        """What a figure calls each class: with its corpus where there are several."""
        names = [name or "nothing" for name in self.classes]
        if not self.corpora:
            return names
        return [f"{corpus}: {name}" if corpus else name for corpus, name in zip(self.corpora, names, strict=True)]

    def of(self, what: What) -> Array:
        """One of the arrays of vectors.  (N, .)"""
        values: Array = getattr(self, what)
        if not values.shape[1]:
            raise ValueError(f"these rows have no {what}; collect them with one, or look at the feature")
        return values

    def save(self, path: str | Path) -> None:
        """Writes one compressed `.npz`."""
        arrays: dict[str, Any] = {field.name: as_array(getattr(self, field.name)) for field in fields(self)}
        with Path(path).open("wb") as file:
            np.savez_compressed(file, **arrays)


def as_array(value: Any) -> Array:
    """A value as it is kept; names are text even where there are none."""
    return np.array(value, dtype=str) if isinstance(value, tuple) else np.asarray(value)


def load_collected(path: str | Path) -> Collected:
    """What `Collected.save` wrote."""
    try:
        with np.load(path, allow_pickle=False) as file:
            needed = {field.name for field in fields(Collected) if field.default is MISSING}
            missing = sorted(needed - set(file.files))
            if missing:
                raise ValueError(f"{path}: no {missing[0]!r} in it; collect the rows again with this version")
            known = (field.name for field in fields(Collected) if field.name in file.files)
            arrays: dict[str, Any] = {name: file[name] for name in known}
    except (BadZipFile, EOFError) as error:
        raise ValueError(f"{path}: not a file of collected rows, or damaged; collect them again") from error
    arrays["system"] = str(arrays["system"])
    for name in ("classes", "corpora", "meanings"):
        arrays[name] = tuple(str(value) for value in arrays.get(name, ()))
    arrays["left_out"] = int(arrays["left_out"])
    return Collected(**arrays)
