"""The last checkpoint of each phase: all weights, also of objectives that prediction does not need, for analyses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from wingspan.checkpoint import read_object, read_weights, rebuild, write_json, write_weights
from wingspan.recognizer import Recognizer


def keep_phase(states: Path, number: int, learner: nn.Module) -> None:
    """Keeps the weights at the end of a phase (counted from 0) in `state/phase-N/`, N from 1."""
    folder = states / f"phase-{number + 1}"
    folder.mkdir(parents=True, exist_ok=True)
    write_weights(folder / "learner.safetensors", learner)


def keep_studied(states: Path, studied: Mapping[str, Any]) -> None:
    """Keeps what objectives knew of the training data, without which they cannot be built again."""
    write_json(states / "studied.json", dict(studied))


def load_phase(
    run: str | Path, number: int, *, device: str | torch.device | None = None, parts: Sequence[str] = ()
) -> Recognizer:
    """The model as it was at the end of a phase (from 1), with all its objectives."""
    states = Path(run) / "state"
    kept = sorted(path.parent.name for path in states.glob("phase-*/learner.safetensors"))
    if f"phase-{number}" not in kept:
        raise ValueError(f"{states}: phase {number} is not kept; there are {', '.join(kept) or 'none'}")
    recipe, labels, learner = rebuild(Path(run), parts, read_object(states / "studied.json"))
    read_weights(states / f"phase-{number}" / "learner.safetensors", learner)
    return Recognizer(recipe, labels, learner, device=device)
