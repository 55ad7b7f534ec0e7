"""What a run needs to go on after a kill: weights, optimizer, and where it was.

States lie in `state/step-N/`; `state/latest` names the newest whole one and is replaced last, so a kill at any moment
leaves a state that can be read. Random draws follow from (seed, phase, epoch, step), so no generator has to be kept.
"""

from __future__ import annotations

import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from wingspan.checkpoint import read_json, read_weights, write_json, write_text, write_weights


@dataclass(frozen=True)
class Place:
    """Where a run is: the next batch to train on, and the best dev F1 so far."""

    phase: int = 0
    epoch: int = 0
    step: int = 0
    total: int = 0
    """Optimizer steps of all phases so far."""
    best: float | None = None
    stale: int = 0
    """Epochs since the best one."""


def save_state(folder: Path, place: Place, learner: nn.Module, optimizer: Any, scaler: Any = None) -> None:
    """Writes a state beside the last one, then points to it, then removes the old one."""
    name = f"step-{place.total:08d}-{place.phase}-{place.epoch}-{place.step}"
    target = folder / name
    if target.exists():
        shutil.rmtree(target)
    target.mkdir(parents=True)
    write_weights(target / "learner.safetensors", learner)
    torch.save(
        {"optimizer": optimizer.state_dict(), "scaler": scaler.state_dict() if scaler is not None else None},
        target / "optimizer.pt",
    )
    write_json(target / "place.json", asdict(place))
    write_text(folder / "latest", name)
    for old in folder.glob("step-*"):
        if old.name != name:
            shutil.rmtree(old)


def latest_state(folder: Path) -> Path | None:
    """The newest whole state, if there is one."""
    pointer = folder / "latest"
    if not pointer.is_file():
        return None
    found = folder / pointer.read_text(encoding="utf-8").strip()
    return found if found.is_dir() else None


def load_place(state: Path) -> Place:
    """Where the run was."""
    return Place(**read_json(state / "place.json"))


def load_state(state: Path, learner: nn.Module, optimizer: Any | None, scaler: Any = None) -> None:
    """Fills weights and, in the same phase, the optimizer. Nothing but tensors and numbers is unpickled."""
    read_weights(state / "learner.safetensors", learner)
    if optimizer is None:
        return
    kept = torch.load(state / "optimizer.pt", weights_only=True, map_location="cpu")
    optimizer.load_state_dict(kept["optimizer"])
    if scaler is not None and kept["scaler"] is not None:
        scaler.load_state_dict(kept["scaler"])
