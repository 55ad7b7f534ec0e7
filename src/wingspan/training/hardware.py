"""What a training runs on: device, precision, trackers, all through Accelerate."""

from __future__ import annotations

import os
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from accelerate.tracking import get_available_trackers
from accelerate.utils import DistributedDataParallelKwargs

from wingspan.recognizer import usable_device


def accelerator_for(
    precision: str, device: str | None = None, track: str | None = None, folder: Path | None = None
) -> Accelerator:
    """An accelerator for one training; an earlier one in this process may have had another precision or device."""
    chosen = usable_device(device)
    if chosen.type == "cuda" and chosen.index is not None:
        torch.cuda.set_device(chosen)
    if precision != "no" and chosen.type == "cpu":  # bf16 has no kernel for some parts there and ends the process
        raise ValueError(f"train.precision={precision} needs a GPU; use train.precision=no")
    if track is not None:
        check_tracker(track, folder)
    together = os.environ.get("WORLD_SIZE", "1") != "1"
    if together and chosen.type == "cuda" and chosen.index is not None:
        raise ValueError(f"--device {device}: each of several processes takes a GPU of its own; give cuda, or cpu")
    AcceleratorState._reset_state(reset_partial_state="WORLD_SIZE" not in os.environ)
    accelerator = Accelerator(
        mixed_precision=precision,
        cpu=chosen.type == "cpu",
        log_with=track,
        project_dir=str(folder) if folder is not None else None,
        # which parameters a phase does not train is found in each step
        kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)],
    )
    if track is not None:
        accelerator.init_trackers("wingspan")
    return accelerator


def check_tracker(name: str, folder: Path | None) -> None:
    """A tracker that is not there would be left out with a warning; the user asked for it."""
    known = [str(tracker) for tracker in get_available_trackers()]
    if name not in known:
        install = f"pip install {name}"
        raise ValueError(
            f"--track {name}: not installed or unknown ({install}); there are {', '.join(known) or 'none here'}"
        )
    if folder is None:
        raise ValueError(f"--track {name}: needs an output folder to write to")
