"""Processes that train: how they start, where they speak, and that none outlives the one that started it."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

PRELOADED = ["wingspan.runs.experiment_run", "torch._dynamo", "torch.distributed.tensor"]
"""What a training imports, some of it in its first step only."""
LAST_LINES = 8
"""How much of a log is shown when a process dies."""


def starting(kind: str) -> Any:
    """How processes start for a kind of device.

    On the CPU they come from a server that has loaded torch once, so that all start as fast as one; CUDA does not
    survive a fork, so for a GPU they start from nothing.
    """
    if kind != "cpu" or "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


def settle_in(threads: int | None) -> None:
    """The first thing that a process does: it ends with its parent and keeps to its threads."""
    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started us; we end with it
    threading.Thread(target=end_with_parent, daemon=True).start()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if threads:
        torch.set_num_threads(threads)


def end_with_parent() -> None:
    """Waits for the end of the process that started this one, then ends this one at once."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def speak_into(log: Path) -> None:
    """Sends all that this process prints, tracebacks included, to a file."""
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    with log.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    faulthandler.enable()


def last_words(code: int | None, log: Path) -> str:
    """How a process ended, and the last lines of its log."""
    how = f"was killed by {signal.Signals(-code).name}" if code and code < 0 else f"ended with exit code {code}"
    said = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    return "\n".join([f"its process {how}; last lines of {log}:", *said[-LAST_LINES:]])
