"""Processes: one training shared by several, the hardware it runs on, and processes that do whole trainings."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from accelerate.tracking import get_available_trackers
from accelerate.utils import DistributedDataParallelKwargs, gather_object

from wingspan.recognizer import Recognizer, usable_device
from wingspan.text import Document


def part_of(batch: Sequence[int], number: int, processes: int) -> list[int]:
    """The sentences of a batch that a process takes: every n-th, so that all get long and short ones."""
    return list(batch[number::processes])


def predict_together(
    recognizer: Recognizer, documents: Sequence[Document], accelerator: Accelerator, batch_size: int
) -> list[Document]:
    """All documents with their entities, on every process; each predicts a part of them."""
    parts = shared_out(documents, accelerator.num_processes)
    predicted = recognizer.predict(parts[accelerator.process_index], batch_size=batch_size)
    gathered: list[Document] = gather_object(predicted) if accelerator.num_processes > 1 else predicted
    return gathered


def shared_out(documents: Sequence[Document], processes: int) -> list[list[Document]]:
    """Parts of about equal length, in order; rows of one document stay together, as each other's context."""
    total = sum(len(document.text) for document in documents)
    parts: list[list[Document]] = [[] for _ in range(processes)]
    part, passed = 0, 0
    for at, document in enumerate(documents):
        alone = at == 0 or document.group is None or document.group != documents[at - 1].group
        if alone:
            part = min(passed * processes // max(total, 1), processes - 1)
        parts[part].append(document)
        passed += len(document.text)
    return parts


# The hardware of a training: device, precision, trackers, all through Accelerate.


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
        raise ValueError(f"--device {device}: each of several processes takes its own GPU; give cuda, or cpu")
    AcceleratorState._reset_state(reset_partial_state="WORLD_SIZE" not in os.environ)
    accelerator = Accelerator(
        mixed_precision=precision,
        cpu=chosen.type == "cpu",
        log_with=track,
        project_dir=str(folder) if folder is not None else None,
        # phases train different parameters, so the unused ones are found in each step
        kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)],
    )
    if track is not None:
        accelerator.init_trackers("wingspan")
    return accelerator


def check_tracker(name: str, folder: Path | None) -> None:
    """Raises an error for a missing tracker, which Accelerate would leave out with a warning."""
    known = [str(tracker) for tracker in get_available_trackers()]
    if name not in known:
        install = f"pip install {name}"
        raise ValueError(
            f"--track {name}: not installed or unknown ({install}); there are {', '.join(known) or 'none here'}"
        )
    if folder is None:
        raise ValueError(f"--track {name}: needs an output folder to write to")


# Processes that do whole trainings, for experiments.

PRELOADED = ["wingspan.experiments.run", "torch._dynamo", "torch.distributed.tensor"]
"""Modules that a training imports, some of them only in its first step."""
LAST_LINES = 8
"""Lines of the log that are shown when a process dies."""


def starting(kind: str) -> Any:
    """The way processes start for a kind of device.

    On the CPU they are forked from a server that has imported torch, which is fast; CUDA does not survive a fork, so
    for a GPU they are spawned.
    """
    if kind != "cpu" or "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


def settle_in(threads: int | None) -> None:
    """Prepares a new process: it ends with its parent and keeps to its threads."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent; this process ends with it
    threading.Thread(target=end_with_parent, daemon=True).start()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if threads:
        torch.set_num_threads(threads)


def end_with_parent() -> None:
    """Waits for the end of the parent process, then ends this one at once."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def speak_into(log: Path) -> None:
    """Sends everything that this process prints, tracebacks included, to a file."""
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    with log.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    faulthandler.enable()


def last_words(code: int | None, log: Path) -> str:
    """The exit of a process in words, and the last lines of its log."""
    how = f"was killed by {signal.Signals(-code).name}" if code and code < 0 else f"ended with exit code {code}"
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    return "\n".join([f"its process {how}; last lines of {log}:", *lines[-LAST_LINES:]])
