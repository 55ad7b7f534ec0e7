"""The state from which a killed run goes on: weights, optimizer, and its position.

States are in `state/step-N/`; `state/latest` names the newest complete one and is replaced last, so a kill at any
moment leaves a state that can be read. Random draws follow from (seed, phase, epoch, step), so no generator is kept.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from filelock import FileLock, Timeout
from torch import nn

from wingspan.checkpoint import load, read_weights, write_json, write_text, write_weights
from wingspan.files import brief, check_model_folder, stored_object
from wingspan.recognizer import Recognizer
from wingspan.views.console import first_process

EPOCHS = "train.epochs"  # the one setting that may grow when a run is resumed


@dataclass(frozen=True)
class Position:
    """The position of a run: the next batch to train on, and the best dev F1 or accuracy so far."""

    phase: int = 0
    epoch: int = 0
    step: int = 0
    total: int = 0
    """Optimizer steps of all phases so far."""
    best: float | None = None
    stale: int = 0
    """Epochs since the best one."""


@contextmanager
def alone_in(folder: Path | None) -> Iterator[None]:
    """Keeps other trainings out of a run folder. The lock ends with this process, also if that is killed."""
    if folder is None or not first_process():
        yield
        return
    existed, states = folder.exists(), folder / "state"
    states.mkdir(parents=True, exist_ok=True)
    lock, owner = FileLock(states / ".lock"), states / ".owner"
    try:
        lock.acquire(timeout=0)
    except Timeout:
        who = f" ({owner.read_text(encoding='utf-8')})" if owner.is_file() else ""
        raise ValueError(
            f"{folder}: another training is writing to it{who}; wait for its end, or choose another --output"
        ) from None
    try:
        since = datetime.now().strftime("%Y-%m-%d %H:%M")
        owner.write_text(f"process {os.getpid()} on {platform.node()}, since {since}", encoding="utf-8")
        yield
    finally:
        owner.unlink(missing_ok=True)
        Path(lock.lock_file).unlink(missing_ok=True)  # while it is held: who waits for it will see that it is gone
        lock.release()
        for empty in (states, *(() if existed else (folder,))):
            with suppress(OSError):  # a training that has written nothing leaves nothing
                empty.rmdir()


def claim(folder: Path, facts: Mapping[str, Any], resume: bool) -> None:
    """Writes down what decides the run, and refuses to resume a run of something else; epochs may be added."""
    path = folder / "run.json"
    if resume and path.is_file():
        # older runs do not say what they are called, nor where they came from
        before = {**{name: facts.get(name) for name in ("recipe", "model to start from")}, **stored_object(path)}
        longer = before.get(EPOCHS, 0) < facts.get(EPOCHS, 0)
        for name, now in facts.items():
            if now != before.get(name) and not (name == EPOCHS and longer):
                now, was = ("not there" if value is None else repr(value) for value in (now, before.get(name)))
                raise ValueError(f"--resume: {name} is {now} now and was {was}; give the same, or another --output")
        for name, was in before.items():
            if was is not None and name not in facts:
                raise ValueError(
                    f"--resume: {name} was {was!r} and this run has none; give it, or another "
                    "--output if there is no such setting any more"
                )
    write_json(path, dict(facts))


def save_state(folder: Path, position: Position, learner: nn.Module, optimizer: Any, scaler: Any = None) -> None:
    """Writes a state beside the last one, then points to it, then removes the old one."""
    name = f"step-{position.total:08d}-{position.phase}-{position.epoch}-{position.step}"
    if (folder / "latest").is_file() and (folder / "latest").read_text(encoding="utf-8").strip() == name:
        name += "-again"  # the state that `latest` names is never touched
    target = folder / name
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    try:
        write_weights(target / "learner.safetensors", learner)
        scaling = scaler.state_dict() if scaler is not None else None
        torch.save({"optimizer": optimizer.state_dict(), "scaler": scaling}, target / "optimizer.pt")
        write_json(target / "place.json", asdict(position))
        write_text(folder / "latest", name)
    except (OSError, RuntimeError) as error:  # torch.save raises the latter when the disk is full
        shutil.rmtree(target, ignore_errors=True)
        raise OSError(
            f"{target}: the state could not be written ({brief(error)}); the last one is unchanged"
        ) from error
    for old in folder.glob("step-*"):
        if old.name != name:
            shutil.rmtree(old)


def latest_state(folder: Path) -> Path | None:
    """The newest complete state, if there is one."""
    pointer = folder / "latest"
    if not pointer.is_file():
        return None
    state = folder / pointer.read_text(encoding="utf-8").strip()
    if not state.is_dir():
        raise ValueError(f"{pointer}: points to {state.name!r}, which is gone; start again in another folder")
    check_model_folder(state)
    return state


def load_position(state: Path) -> Position:
    """The position of the run in a state."""
    try:
        return Position(**stored_object(state / "place.json"))
    except TypeError as error:
        raise ValueError(f"{state / 'place.json'}: damaged ({brief(error)}); start again in another folder") from error


def load_state(state: Path, learner: nn.Module, optimizer: Any | None, scaler: Any = None) -> None:
    """Fills weights and, in the same phase, the optimizer. Only tensors and numbers are unpickled."""
    read_weights(state / "learner.safetensors", learner)
    if optimizer is None:
        return
    try:
        kept = torch.load(state / "optimizer.pt", weights_only=True, map_location="cpu")
        optimizer.load_state_dict(kept["optimizer"])
    except (OSError, RuntimeError, UnpicklingError, KeyError, EOFError, ValueError) as error:
        raise ValueError(f"{state}: the optimizer's state is damaged ({brief(error)}); start again") from error
    if scaler is not None and kept["scaler"] is not None:
        scaler.load_state_dict(kept["scaler"])


def load_phase(
    run: str | Path, number: int, *, device: str | torch.device | None = None, parts: Sequence[str] = ()
) -> Recognizer:
    """The model as it was at the end of a phase (from 1), with all its objectives."""
    states = Path(run) / "state"
    kept = sorted(path.parent.name for path in states.glob("phase-*/learner.safetensors"))
    if f"phase-{number}" not in kept:
        raise ValueError(f"{states}: phase {number} is not kept; there are {', '.join(kept) or 'none'}")
    weights = f"state/phase-{number}/learner.safetensors"
    recipe, labels, learner = load(Path(run), parts, weights, stored_object(states / "studied.json"), to_train=True)
    return Recognizer(recipe, labels, learner, device=device)
