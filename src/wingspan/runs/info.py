"""`wingspan info`: what is in a model folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wingspan.recognizer import Recognizer
from wingspan.record import to_record


def info(model: str | Path, parts: Sequence[str] = ()) -> dict[str, Any]:
    """The model's recipe, labels, size and what is known about its training, as plain data."""
    recognizer = Recognizer.from_pretrained(model, device="cpu", parts=parts)
    recipe = recognizer.recipe
    return {
        "recipe": recipe.name,
        "system": recipe.paper,
        "labels": recognizer.labels.to_dict(),
        "max_width": recipe.max_width,
        "overlap": recipe.overlap,
        "read_with": recipe.read_with,
        "encoder": to_record(recipe.encoder),
        "max_length": recipe.segments.max_length,
        "parameters": sum(parameter.numel() for parameter in recognizer.learner.parameters()),
        "calibration": recognizer.calibration.to_dict() if recognizer.calibration else None,
        **recognizer.facts,
    }
