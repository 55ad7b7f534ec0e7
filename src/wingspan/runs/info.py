"""`wingspan info`: what is in a model folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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


def lines(facts: Mapping[str, Any]) -> Iterator[str]:
    """What `info` found, for people: one line for each fact, what belongs to it indented below."""
    for name, value in facts.items():
        yield from told(name, value["said"].removeprefix("Leaks: ") if name == "leaks" else value)


def told(name: str, value: Any, indent: str = "") -> Iterator[str]:
    """One fact, and what it is made of; scores in one line, wherever they stand."""
    if isinstance(value, Mapping) and "micro" in value:
        yield f"{indent}{name}: {figures(value['micro'])}"
    elif isinstance(value, Mapping) and value:
        yield f"{indent}{name}:"
        for key, inner in value.items():
            yield from told(str(key), inner, f"{indent}  ")
    else:
        yield f"{indent}{name}: {plain(value)}"


def plain(value: Any) -> str:
    """A value without the marks of Python."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(plain, value)) or "none"
    return "none" if value is None or value == {} else str(value)


def figures(micro: Mapping[str, Any]) -> str:
    """Strict scores in one line."""
    shares = ", ".join(f"{name} {micro[name]:.2f}" for name in ("precision", "recall", "f1"))
    return f"{shares} ({micro['tp']} right, {micro['fp']} spurious, {micro['fn']} missed)"
