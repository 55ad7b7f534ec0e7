"""Processes that train side by side, one run after the other; one that dies takes its run with it, no more."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

import torch

from wingspan.experiments.schedule import Schedule, Task
from wingspan.runs.experiment_run import Assignment, Outcome, attempt
from wingspan.runs.processes import last_words, settle_in, speak_into, starting


class Worker(NamedTuple):
    """A process and the way to talk to it."""

    process: BaseProcess
    connection: Connection


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
    idle: list[Worker] = []
    busy: dict[Worker, Task] = {}
    try:
        while True:
            while len(busy) < number and (task := schedule.next()) is not None:
                worker = idle.pop() if idle else start(context, threads)
                worker.connection.send(assignments[task.id])
                busy[worker] = task
            pause = schedule.pause()
            if not busy and pause is None:
                return
            ready = wait([worker.connection for worker in busy], pause if len(busy) < number else None)
            for worker in [worker for worker in busy if worker.connection in ready]:
                task = busy.pop(worker)
                outcome = received(worker, assignments[task.id].log)
                if worker.process.is_alive():
                    idle.append(worker)
                after(schedule, task, outcome)
                yield task, outcome
    finally:
        for worker in (*idle, *busy):
            worker.connection.close()
            worker.process.terminate()
            worker.process.join()


def after(schedule: Schedule, task: Task, outcome: Outcome) -> None:
    """What the schedule has to know of an outcome."""
    if outcome.status == "held":
        schedule.hold(task)
    elif outcome.line is not None:
        schedule.learn(outcome.line)


def start(context: Any, threads: int | None) -> Worker:
    """A worker that waits for its first run."""
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs, threads), daemon=True)
    process.start()
    theirs.close()
    return Worker(process, ours)


def received(worker: Worker, log: Path) -> Outcome:
    """The answer of a worker; if it died, how, with the last lines of its log."""
    try:
        outcome: Outcome = worker.connection.recv()
        return outcome
    except (EOFError, ConnectionResetError):
        worker.process.join()
        return Outcome("failed", problem=last_words(worker.process.exitcode, log))


def serve(connection: Connection, threads: int | None) -> None:
    """The life of a worker: runs come in, outcomes go out."""
    settle_in(threads)
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
