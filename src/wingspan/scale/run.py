"""Files predicted by an engine, one after the other, so that a run can be killed and started again."""

from __future__ import annotations

import json
import os
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Literal, Protocol

from filelock import FileLock, Timeout

from wingspan.box import located
from wingspan.files import CorpusError, atomic_write, check_model_folder, read_json
from wingspan.scale import Batch, Job, RowKind
from wingspan.scale.sources import Source, Tally, find_sources, is_corpus

Engine = Literal["local", "ray"]
RECORD, LOCK = "prediction.json", ".prediction.lock"
ON_CPU, ON_GPU = 2**18, 2**21  # bytes of text in a batch: some 1,600 sentences, or enough to keep a GPU busy
SAMPLE = 2**20  # bytes at both ends of a file that tell it from another
NOT_THE_MODEL = ("facts.json", "README.md", "journal.jsonl")


@dataclass
class FilesDone:
    """What a run did."""

    files: int = 0
    there: int = 0
    """Files that were predicted before."""
    tally: Tally = field(default_factory=Tally)
    unreadable: list[str] = field(default_factory=list)
    """A sentence for each file that could not be predicted."""


class Watch(Protocol):
    """Somebody who wants to know how far it is."""

    def begin(self, files: int) -> None:
        """So many files are to be predicted."""

    def progress(self, documents: int) -> None:
        """So many documents more."""

    def finished(self, source: Source, tally: Tally) -> None:
        """The predictions of a file are there."""


class Unreadable(Exception):
    """Ends the writing of a file that could not be read to its end."""


def predict_files(
    job: Job,
    inputs: Sequence[str],
    output: Path,
    *,
    engine: Engine = "local",
    workers: int | None = None,
    address: str | None = None,
    text: str = "text",
    watch: Watch | None = None,
) -> FilesDone:
    """Predicts the files that have no predictions below `output` yet. A file that cannot be read stops no other."""
    sources = find_sources(inputs, output, text)
    rest = [source for source in sources if not source.done]
    if rest:
        rest[0].check()  # a wrong name of the column is said before a model is loaded
    with alone_in(output):
        keep_record(job, text, output)
        summary = FilesDone(there=len(sources) - len(rest))
        if watch is not None:
            watch.begin(len(rest))
        if not rest:
            return summary
        if engine == "ray":
            from wingspan.scale.ray_data import predicted_files

            rows = predicted_files(job, rest, workers, address)
        else:
            rows = locally(job, rest, workers, watch)
        for source, outcome in rows:
            if isinstance(outcome, str):
                summary.unreadable.append(outcome)
                continue
            summary.files += 1
            summary.tally.add(outcome)
            if watch is not None:
                watch.finished(source, outcome)
        for left_by_a_kill in output.rglob(".*.part"):
            left_by_a_kill.unlink(missing_ok=True)
    return summary


def locally(
    job: Job, sources: Sequence[Source], workers: int | None, watch: Watch | None
) -> Iterator[tuple[Source, Tally | str]]:
    """Predicts files with processes of this machine; a batch of the next file may begin before one is finished."""
    from wingspan.scale.local import Processes

    size, usual = pace(job)
    problems: dict[int, str] = {}
    origins: deque[int] = deque()  # the files of the batches that are in work

    def batches() -> Iterator[tuple[RowKind, Batch]]:
        for number, source in enumerate(sources):
            try:
                for batch in source.batches(size):
                    origins.append(number)
                    yield source.rows, batch
            except (CorpusError, OSError) as error:
                problems[number] = str(error)

    def of_file(number: int, group: Iterator[tuple[int, Batch]]) -> Iterator[Batch]:
        for _, batch in group:
            if watch is not None:
                watch.progress(len(batch))
            yield batch
        if number in problems:
            raise Unreadable

    with Processes(job, workers or usual) as processes:
        predicted = ((origins.popleft(), batch) for batch in processes.map(batches()))
        for number, group in groupby(predicted, key=itemgetter(0)):
            with suppress(Unreadable):
                yield sources[number], sources[number].write(of_file(number, group))
    yield from ((sources[number], problem) for number, problem in sorted(problems.items()))


def pace(job: Job) -> tuple[int, int]:
    """Bytes of text in a batch, and how many workers there are unless somebody says otherwise."""
    gpus = gpu_count() if job.device in (None, "cuda") else int(job.device.startswith("cuda"))
    if gpus:
        return ON_GPU, gpus
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return ON_CPU, max(1, cores // (job.threads or 1))


def gpu_count() -> int:
    """How many GPUs torch can use; it is asked only where there may be some, since its import takes seconds."""
    if sys.platform == "linux" and not any(map(os.path.exists, ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg"))):
        return 0
    import torch

    return torch.cuda.device_count()


# The folder of predictions


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Keeps other runs out of a folder. The lock ends with this process, also if that is killed."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / LOCK, timeout=0):
            yield
    except Timeout:
        raise ValueError(
            f"{folder}: another run is writing to it; wait for its end, or choose another --output"
        ) from None


def keep_record(job: Job, text: str, folder: Path) -> None:
    """Writes down what predicts here; refuses another model or other options, which would be mixed with the first."""
    path = folder / RECORD
    asked = {"model": job.model, "fingerprint": fingerprint(job.model), "text": text} | {
        name: value for name, value in asdict(job).items() if name in ("threshold", "overlap", "dataset", "precision")
    }
    if path.is_file() and any(map(is_corpus, folder.rglob("*"))):
        known = read_json(path)
        others = [name for name, value in asked.items() if name != "model" and known.get(name) != value]
        if others:
            what = "those of another model" if "fingerprint" in others else f"made with another {', '.join(others)}"
            raise CorpusError(f"{folder}: the predictions there are {what}; choose another --output")
        return
    with atomic_write(path) as file:
        file.write(json.dumps(asked, indent=2) + "\n")


def fingerprint(model: str) -> str:
    """A name for the content of a model folder; a hub id stands for itself."""
    folder = located(model)
    if not folder.is_dir():
        return model
    check_model_folder(folder)
    digest = sha256()
    for file in sorted([*folder.glob("*"), *folder.glob("encoder/*")]):
        if file.is_file() and file.name not in NOT_THE_MODEL:
            size = file.stat().st_size
            digest.update(f"{file.relative_to(folder)} {size} ".encode())
            with file.open("rb") as opened:
                digest.update(opened.read(SAMPLE))
                opened.seek(max(0, size - SAMPLE))
                digest.update(opened.read(SAMPLE))
    return digest.hexdigest()
