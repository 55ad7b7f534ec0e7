"""Ray Data: `map_batches` with actors, each with its own model. Needs the extra `ray`.

`predict_dataset` adds entities to a dataset. `predicted_files` predicts files: an actor reads and writes one at a time,
so nothing passes through the process that asked, and a file whose actor or node died is done again by another.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from wingspan.box import NAME
from wingspan.files import CorpusError, brief
from wingspan.scale import Batch, Columns, Job, Predictor
from wingspan.scale.run import ON_CPU, ON_GPU
from wingspan.scale.sources import Source, Tally

TRIES = 4  # of a file whose actors die; Ray itself would start one after the other for ever


def connected(address: str | None) -> Any:
    """Ray, connected to a cluster, or to a new one on this machine that nobody else can reach."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is told to anybody
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    try:
        import ray
        import ray.data
    except ImportError:
        raise CorpusError(
            "Ray is needed for --engine ray and is not installed; pip install 'wingspan-ner[ray]'"
        ) from None
    if not ray.is_initialized():
        local: dict[str, Any] = {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
        try:
            ray.init(
                address=address or "local",
                log_to_driver=False,
                logging_level=logging.ERROR,
                **({} if address else local),
            )
        except ConnectionError as error:
            raise CorpusError(f"--address {address}: no Ray cluster answers there ({error})") from None
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    return ray


def predict_dataset(
    dataset: Any, job: Job, *, text: str = "text", workers: int | None = None, batch_size: int = 1024
) -> Any:
    """The dataset with the columns `entities` and `failure`; as many actors as there is room for, or `workers`."""
    ray = connected(None)
    return dataset.map_batches(
        Predictor,
        fn_constructor_args=(job,),
        fn_kwargs={"rows": Columns(text)},
        batch_format="pyarrow",
        batch_size=batch_size,
        **actors(ray, job, workers),
    )


def actors(ray: Any, job: Job, workers: int | None) -> dict[str, Any]:
    """How many actors there are, and what each of them needs."""
    resources = ray.cluster_resources()
    gpus = int(resources.get("GPU", 0)) if job.device != "cpu" else 0
    cores = max(1, int(resources.get("CPU", 1)) // (job.threads or 1))
    size = workers or gpus or cores
    return {
        **({"num_gpus": 1} if gpus else {"num_cpus": job.threads or 1}),
        "compute": ray.data.ActorPoolStrategy(size=size, max_tasks_in_flight_per_actor=2),
    }


def predicted_files(
    job: Job, sources: Sequence[Source], workers: int | None, address: str | None
) -> Iterator[tuple[Source, Tally | str]]:
    """Predicts files with actors; all nodes have to see them under the same names."""
    ray = connected(address)
    if job.model != NAME and Path(job.model).is_dir():
        job = replace(job, model=str(Path(job.model).resolve()))
    rows = [{"number": number, **asdict(absolute(source))} for number, source in enumerate(sources)]
    files = ray.data.from_items(
        [{name: str(value) for name, value in row.items()} for row in rows], override_num_blocks=len(rows)
    )
    done = files.map_batches(
        FilePredictor,
        fn_constructor_args=(job, ON_GPU if actors(ray, job, workers).get("num_gpus") else ON_CPU),
        batch_size=1,
        batch_format="pyarrow",
        **actors(ray, job, min(workers or len(rows), len(rows))),
    )
    for source in sources:
        tries_of(source).unlink(missing_ok=True)
    try:
        for row in done.iter_rows():
            source, problem = sources[row["number"]], row["problem"]
            yield source, problem or Tally(**{name: row[name] for name in asdict(Tally())})
    except ray.exceptions.RayError as error:
        Predictor(replace(job, device="cpu", precision="auto"))  # one sentence, if it is the model or the options
        raise ValueError(f"Ray stopped ({brief(error)}); what is complete stays: run the command again") from error


def tries_of(source: Source) -> Path:
    """A file with a byte for each actor that began with the source: it outlives them."""
    return source.target.with_name(f".{source.target.name}.tries")


def absolute(source: Source) -> Source:
    """The same file for a process in another folder."""
    return replace(source, path=source.path.resolve(), target=source.target.resolve())


class FilePredictor:
    """An actor that predicts files from their beginning to their end."""

    def __init__(self, job: Job, size: int) -> None:
        self.predictor, self.size = Predictor(job), size

    def __call__(self, batch: Batch) -> Batch:
        """Files in, what became of them out."""
        import pyarrow as pa

        return pa.Table.from_pylist([self.predict(**row) for row in batch.to_pylist()])

    def predict(self, number: str, path: str, target: str, text: str) -> dict[str, Any]:
        """Predicts one file, unless too many actors died of it."""
        source = Source(Path(path), Path(target), text)
        tries = tries_of(source)
        tries.parent.mkdir(parents=True, exist_ok=True)
        with tries.open("ab") as counted:
            counted.write(b".")
        tally, problem = Tally(), ""
        try:
            if tries.stat().st_size > TRIES:
                raise CorpusError(
                    f"{path}: {TRIES} actors that predicted it died; look for a text that fills the memory"
                )
            tally = source.write(self.predictor(batch, source.rows) for batch in source.batches(self.size))
        except CorpusError as error:
            problem = str(error)
        tries.unlink(missing_ok=True)
        return {"number": int(number), "problem": problem, **asdict(tally)}
