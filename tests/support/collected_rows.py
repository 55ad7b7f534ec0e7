"""Collected rows written by hand, for tests of tables and figures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wingspan.report.geometry import Collected


def rows_of(
    feature: Sequence[Sequence[float]],
    gold: Sequence[int],
    classes: Sequence[str] = ("", "Drug", "Gene"),
    spans: Sequence[tuple[int, int]] | None = None,
    chance: Sequence[Sequence[float]] | None = None,
    pairs: Sequence[tuple[int, int]] = (),
    templates: Sequence[Sequence[float]] | None = None,
    **others,
) -> Collected:
    """Rows with these features and classes; whatever is no entity counts as sampled."""
    number = len(gold)
    words = np.array(spans if spans is not None else [(at, at + 1) for at in range(number)]).reshape(number, 2)
    likely = np.eye(len(classes))[list(gold)] if chance is None else np.array(chance, dtype=float)
    values = np.asarray(feature, dtype=np.float32)
    return Collected(
        **{
            "system": "baseline",
            "classes": tuple(classes),
            "left_out": 0,
            "document": np.array([f"d{at}" for at in range(number)], dtype=str),
            "dataset": np.array(["main"] * number, dtype=str),
            "sentence": np.zeros(number, dtype=np.int64),
            "start": words[:, 0] * 5,
            "end": words[:, 1] * 5 - 1,
            "word_start": words[:, 0],
            "word_end": words[:, 1],
            "text": np.array([f"span {at}" for at in range(number)], dtype=str),
            "gold": np.array(gold, dtype=np.int64),
            "sampled": np.array([not classes[at] for at in gold], dtype=bool),
            "chance": likely.reshape(number, len(classes)),
            "vector": values[:, :1],
            "feature": values,
            "latent": values[:, :0],
            "templates": np.array(templates if templates is not None else np.zeros((0, 0)), dtype=np.float32),
            "pairs": np.array(pairs, dtype=np.int64).reshape(-1, 2),
            **others,
        }
    )
