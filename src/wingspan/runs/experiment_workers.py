"""Processes that train side by side. Each does one run after the other; one that dies takes its run with it, no more.

Workers on the CPU come from a server process that has loaded torch once, so that all start as fast as one; those on a
GPU start from nothing, because CUDA does not survive a fork. They end with the process that started them, even if that
was killed: nobody is left behind.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

from wingspan.experiments.schedule import Schedule, Task
from wingspan.runs.experiment_run import Assignment, Outcome, attempt

PRELOADED = [__name__, "torch._dynamo", "torch.distributed.tensor"]
"""What a training imports, some of it in its first step only."""
LAST_LINES = 8
"""How much of a log is shown when a worker dies."""


class Worker(NamedTuple):
    """A process, the way to talk to it, and what it is at."""

    process: BaseProcess
    connection: Connection
    task: Task


def in_this_process(schedule: Schedule, assignments: Mapping[str, Assignment]) -> Iterator[tuple[Task, Outcome]]:
    """One run after the other, here."""
    pause: float | None = 0.0
    while pause is not None:
        threading.Event().wait(pause)
        while (task := schedule.next()) is not None:
            outcome = attempt(assignments[task.id])
            after(schedule, task, outcome)
            yield task, outcome
        pause = schedule.pause()


def in_workers(
    schedule: Schedule, assignments: Mapping[str, Assignment], number: int, threads: int | None, kind: str
) -> Iterator[tuple[Task, Outcome]]:
    """Up to so many runs at the same time, each in a process of its own; `kind` is that of the device."""
    context = starting(kind)
    idle: list[tuple[BaseProcess, Connection]] = []
    busy: dict[Connection, Worker] = {}
    try:
        while True:
            while len(busy) < number and (task := schedule.next()) is not None:
                process, connection = idle.pop() if idle else start(context, threads)
                connection.send(assignments[task.id])
                busy[connection] = Worker(process, connection, task)
            pause = schedule.pause()
            if not busy and pause is None:
                return
            for ready in wait(list(busy), pause if len(busy) < number else None):
                worker = busy.pop(ready)  # type: ignore[call-overload]
                outcome = received(worker, assignments[worker.task.id].log)
                if worker.process.is_alive():
                    idle.append((worker.process, worker.connection))
                after(schedule, worker.task, outcome)
                yield worker.task, outcome
    finally:
        for process, connection in (*idle, *((worker.process, worker.connection) for worker in busy.values())):
            connection.close()
            process.terminate()
            process.join()


def after(schedule: Schedule, task: Task, outcome: Outcome) -> None:
    """What the schedule has to know of an outcome."""
    if outcome.status == "held":
        schedule.hold(task)
    elif outcome.line is not None:
        schedule.learn(outcome.line)


def starting(kind: str) -> Any:
    """How processes are started for a kind of device."""
    if kind != "cpu" or "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


def start(context: Any, threads: int | None) -> tuple[BaseProcess, Connection]:
    """A worker that waits for its first run."""
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs, threads), daemon=True)
    process.start()
    theirs.close()
    return process, ours


def received(worker: Worker, log: Path) -> Outcome:
    """The answer of a worker; if it died, how, with the last lines of its log."""
    try:
        outcome: Outcome = worker.connection.recv()
        return outcome
    except (EOFError, ConnectionResetError):
        worker.process.join()
        code = worker.process.exitcode or 0
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        said = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
        return Outcome("failed", problem="\n".join([f"its process {how}; last lines of {log}:", *said[-LAST_LINES:]]))


def serve(connection: Connection, threads: int | None) -> None:
    """The life of a worker: runs come in, outcomes go out."""
    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started us; we end with it
    threading.Thread(target=end_with_parent, daemon=True).start()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if threads:
        torch.set_num_threads(threads)
    while True:
        try:
            assignment: Assignment = connection.recv()
        except EOFError:
            return
        speak_into(assignment.log)
        outcome = attempt(assignment)
        if torch.cuda.is_initialized():
            torch.cuda.empty_cache()  # others share the GPU
        connection.send(outcome)


def end_with_parent() -> None:
    """Waits for the end of the process that started this one, then ends this one at once."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def speak_into(log: Path) -> None:
    """Sends all that this process prints, tracebacks included, to the log of the run it is at."""
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    with log.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    faulthandler.enable()
