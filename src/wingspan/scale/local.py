"""Processes of this machine, each with its own model. One that dies is replaced, and its batch is done again."""

from __future__ import annotations

import io
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any, Self

import pyarrow as pa

from wingspan.scale import Batch, Failure, Job, Predictor, RowKind

AHEAD = 4  # batches per worker that may be done before one that comes first
DEATHS_OF_A_BATCH = 2  # after as many, its rows are predicted one by one
DEATHS_OF_NEW, DEATHS_OF_READY = 3, 8  # after as many without an answer, it is not the documents
MakePredictor = Callable[[Job], Callable[[Batch, RowKind], Batch]]


@dataclass
class Task:
    """A batch in its place, with the answers so far: those of its first rows, if they are predicted one by one."""

    number: int
    rows: RowKind
    batch: Batch
    deaths: int = 0
    answers: list[Batch] = field(default_factory=list)

    @property
    def one_by_one(self) -> bool:
        """Whether a row of it may have killed its workers."""
        return self.deaths >= DEATHS_OF_A_BATCH

    @property
    def answered(self) -> int:
        """How many of its rows have their answer."""
        return sum(map(len, self.answers))

    @property
    def finished(self) -> bool:
        """Whether all rows have their answer."""
        return bool(self.answers) and self.answered == len(self.batch)

    def lose_worker(self) -> None:
        """Its worker died; a row that was alone with one is not tried again."""
        if self.one_by_one:
            row = self.batch.slice(self.answered, 1)
            self.answers.append(self.rows.answered(row, [Failure("the process that predicted it died")]))
        self.deaths += 1


class Processes:
    """Workers as processes. `map` predicts batches with all of them and keeps their order."""

    def __init__(self, job: Job, workers: int, make: MakePredictor = Predictor) -> None:
        self.start = partial(WorkerProcess, job, make)
        self.workers = [self.start(number) for number in range(workers)]
        self.deaths = 0  # since an answer was heard

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            worker.stop()

    def map(self, batches: Iterable[tuple[RowKind, Batch]]) -> Iterator[Batch]:
        """The batches with their predictions, in order, each exactly once."""
        source = (Task(number, *batch) for number, batch in enumerate(batches))
        waiting: deque[Task] = deque()  # one that was just read, or those whose workers died
        done: dict[int, Batch] = {}
        due, exhausted = 0, False
        while True:
            for worker in self.workers:
                if not worker.ready or worker.task is not None:
                    continue
                if not waiting and not exhausted and self._busy + len(done) < AHEAD * len(self.workers):
                    waiting.extend(islice(source, 1))
                    exhausted = not waiting
                if waiting:
                    worker.give(waiting.popleft())
            if exhausted and not waiting and not self._busy:
                return
            for worker in self._speaking():
                task = worker.task
                if worker.hear():
                    self.deaths = 0
                if worker.dead:
                    self.deaths += 1
                    self._replace(worker)
                    if task is not None:
                        task.lose_worker()
                if task is not None and task.finished:
                    done[task.number] = pa.concat_tables(task.answers)
                elif task is not None and worker.dead:
                    waiting.append(task)
            while due in done:
                yield done.pop(due)
                due += 1

    @property
    def _busy(self) -> int:
        return sum(worker.task is not None for worker in self.workers)

    def _speaking(self) -> list[WorkerProcess]:
        """The workers that have something to say, or are dead; waits for one."""
        pipes = set(wait([worker.pipe for worker in self.workers]))
        return [worker for worker in self.workers if worker.pipe in pipes]

    def _replace(self, worker: WorkerProcess) -> None:
        """Starts another process, unless they only die."""
        if self.deaths >= (DEATHS_OF_READY if worker.ready else DEATHS_OF_NEW):
            doing = "predicted" if worker.ready else "loaded the model"
            raise ValueError(
                f"processes died again and again while they {doing}; there may be too little memory for "
                f"{len(self.workers)} of them: give fewer --workers"
            )
        worker.stop()
        self.workers[self.workers.index(worker)] = self.start(worker.number)


class WorkerProcess:
    """A process with a model, seen from the one that gives it work."""

    def __init__(self, job: Job, make: MakePredictor, number: int) -> None:
        self.number = number
        self.task: Task | None = None
        self.ready = self.dead = False
        context = get_context("spawn")  # a fork would take over locks of threads that it does not have
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs, job, make, number), daemon=True)
        self.process.start()
        theirs.close()  # so that the end of the process closes the pipe

    def give(self, task: Task) -> None:
        """Sends what is left of a batch. That the worker is dead is heard later."""
        self.task = task
        with suppress(OSError):
            self.pipe.send((task.rows, packed(task.batch.slice(task.answered)), task.one_by_one))

    def hear(self) -> bool:
        """Takes what the worker says: an answer, that it is ready, or nothing because it is dead."""
        try:
            said = self.pipe.recv()
        except (EOFError, OSError):
            self.dead = True
            return False
        if isinstance(said, ValueError):
            raise said
        if said is None:
            self.ready = True
            return False
        assert self.task is not None
        self.task.answers.append(unpacked(said))
        if self.task.finished:
            self.task = None
        return True

    def stop(self) -> None:
        """Ends the process."""
        self.pipe.close()
        self.process.kill()
        self.process.join()


def work(pipe: Connection, job: Job, make: MakePredictor, number: int) -> None:
    """What a worker does until nobody is there any more: it loads the model, then answers batches."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that reads the keyboard ends the others
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        try:
            predictor = make(replace(job, device=job.device or own_gpu(number)))
            pipe.send(None)
            while True:
                rows, content, one_by_one = pipe.recv()
                batch = unpacked(content)
                for part in [batch.slice(at, 1) for at in range(len(batch))] if one_by_one else [batch]:
                    pipe.send(packed(predictor(part, rows)))
        except ValueError as error:  # a sentence for the user; other errors are traces, and this process dies of them
            pipe.send(error)


def own_gpu(number: int) -> str | None:
    """Of several GPUs the one of this worker."""
    import torch

    count = torch.cuda.device_count()
    return f"cuda:{number % count}" if count > 1 else None


def packed(batch: Batch) -> bytes:
    """A batch as bytes: only its own rows, if it is a slice."""
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, batch.schema) as writer:
        writer.write_table(batch)
    return stream.getvalue()


def unpacked(content: bytes) -> Any:
    """The batch again."""
    with pa.ipc.open_stream(content) as reader:
        return reader.read_all()
