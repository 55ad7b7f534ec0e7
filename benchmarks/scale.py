"""Whole corpora with one process, with local processes and on two nodes of Ray, of which some are killed.

    python benchmarks/scale.py prepare --work /tmp/scale-run --sentences 100000
    python benchmarks/scale.py single --work /tmp/scale-run --results benchmarks/results/scale.jsonl
    python benchmarks/scale.py local --workers 2 --work /tmp/scale-run --results benchmarks/results/scale.jsonl
    python benchmarks/scale.py local --workers 2 --kill worker ...   # or --kill all, then once more without it
    python benchmarks/scale.py ray --workers 2 --kill worker,node ...

`prepare` writes sentences of GENIA, again and again with ids of their own, as Parquet files, and a model whose head has
random weights and finds about two entities in a sentence. `single` is a loop in one process over the same batches, and
the answer that the others are compared with: rows lost, doubled or different. `--cores` pins everything to so many
cores, so that engines are compared at equal cores. One JSON line a run.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import subprocess
import time
from collections import Counter
from itertools import cycle, islice
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import pyarrow as pa
import pyarrow.parquet as parquet

Row = dict[str, Any]
MODELS = {"hashed": "baseline", "all-MiniLM-L6-v2": "bundling/bl-span"}


def prepare(given: argparse.Namespace) -> None:
    """Parquet files and a model."""
    from measuring import untrained
    from throughput import documents_of

    documents = documents_of(given.data / "genia", 18_000)
    texts = cycle(document.text for document in documents)
    shutil.rmtree(given.work, ignore_errors=True)
    (given.work / "in").mkdir(parents=True)
    size = given.sentences // given.files
    for number in range(given.files):
        ids = range(number * size, (number + 1) * size)
        table = pa.table({"id": ids, "text": list(islice(texts, size)), "year": [1990 + i % 30 for i in ids]})
        parquet.write_table(table, given.work / "in" / f"part-{number:03}.parquet")
    recipe, encoder = MODELS[given.encoder], given.encoder
    folder = encoder if encoder == "hashed" else str(Path(os.environ["WINGSPAN_ENCODERS"]) / encoder)
    untrained(recipe, folder, documents, 8, "cpu").save_pretrained(given.work / "model")
    (given.work / "facts.json").write_text(json.dumps({"encoder": encoder, "recipe": recipe, "files": given.files}))


def single(given: argparse.Namespace) -> Row:
    """One process, batch after batch, without an engine."""
    from wingspan.scale import Job, Predictor
    from wingspan.scale.run import ON_CPU
    from wingspan.scale.sources import find_sources

    output = fresh(given.work / "single")
    began = time.perf_counter()
    predictor = Predictor(Job(str(given.work / "model"), device="cpu", threads=given.cores))
    loaded = time.perf_counter() - began
    for source in find_sources([str(given.work / "in")], output):
        source.write(predictor(batch, source.rows) for batch in source.batches(ON_CPU))
    return {"engine": "single", "workers": 1, "seconds": time.perf_counter() - began, "loading_seconds": loaded}


class Kills:
    """Kills what `--kill` names, one after the other, each after so many documents or files."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given, self.killed, self.documents, self.files = given, [], 0, []
        self.left = [kind for kind in given.kill.split(",") if kind]
        self.pool: Any = None
        self.cluster: Any = None
        self.began = time.perf_counter()
        self.ready: float | None = None

    def begin(self, files: int) -> None:
        """So many files are to be predicted."""
        self.todo = files

    def progress(self, documents: int) -> None:
        """So many documents more: local engine."""
        self.ready = self.ready or time.perf_counter() - self.began
        self.documents += documents
        if self.left and self.documents > self.given.sentences * (len(self.killed) + 1) / 4:
            self.kill(self.left.pop(0))

    def finished(self, source: Any, tally: Any) -> None:
        """A file more."""
        self.ready = self.ready or time.perf_counter() - self.began
        self.files.append(source.path.name)
        if self.left and self.given.engine == "ray" and len(self.files) > self.todo * (len(self.killed) + 1) / 4:
            self.kill(self.left.pop(0))

    def kill(self, kind: str) -> None:
        """Kills a worker, a node with all its workers, or everything."""
        self.killed.append(kind)
        print(f"killing: {kind}, after {len(self.files)} files", flush=True)
        if kind == "all":
            os.kill(os.getpid(), signal.SIGKILL)
        elif kind == "node":
            self.cluster.remove_node(self.cluster.list_all_nodes()[-1], allow_graceful=False)
        elif self.pool is not None:
            busy = next(worker for worker in self.pool.workers if worker.task is not None)
            os.kill(busy.process.pid, signal.SIGKILL)
        else:
            os.kill(actor_process(), signal.SIGKILL)


def actor_process() -> int:
    """A process of Ray that predicts: actors show the name of their class."""
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout.splitlines()
    return next(int(line.split()[0]) for line in listed if "ray::" in line and "FilePredictor" in line)


def local(given: argparse.Namespace, kills: Kills) -> Row:
    """Processes of this machine."""
    from wingspan.scale.local import Processes

    made = Processes.__init__

    def remembered(pool: Processes, *arguments: Any) -> None:
        made(pool, *arguments)
        kills.pool = pool

    Processes.__init__ = remembered  # type: ignore[method-assign]
    return engine(given, kills)


def on_ray(given: argparse.Namespace, kills: Kills) -> Row:
    """Two nodes on this machine, each with as many cores as there are workers, so that one can do the work of both."""
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0"}
    from ray.cluster_utils import Cluster

    began = time.perf_counter()
    node = {"num_cpus": given.workers, "object_store_memory": 200 * 2**20, "node_ip_address": "127.0.0.1"}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    cluster.add_node(**node)
    cluster.wait_for_nodes()
    kills.cluster = cluster
    cluster_seconds = time.perf_counter() - began
    kills.began = time.perf_counter()
    try:
        return {"cluster_seconds": cluster_seconds, **engine(given, kills, address=cluster.address)}
    finally:
        import ray

        ray.shutdown()
        cluster.shutdown()


def engine(given: argparse.Namespace, kills: Kills, address: str | None = None) -> Row:
    """A run of an engine."""
    from wingspan.scale import Job
    from wingspan.scale.run import predict_files

    output = given.work / f"{given.engine}-{given.workers}"
    if not given.go_on:
        fresh(output)
    began = time.perf_counter()
    summary = predict_files(
        Job(str(given.work / "model"), device="cpu"),
        [str(given.work / "in")],
        output,
        engine=given.engine,
        workers=given.workers,
        address=address,
        watch=kills,
    )
    seconds = time.perf_counter() - began
    facts = {"files_done": summary.files, "files_there": summary.there, "problems": len(summary.unreadable)}
    return {
        "engine": given.engine,
        "workers": given.workers,
        "killed": kills.killed,
        "seconds": seconds,
        "loading_seconds": kills.ready,
        **facts,
        **compared(output, given.work / "single"),
    }


def fresh(folder: Path) -> Path:
    """An empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def compared(output: Path, reference: Path) -> Row:
    """Rows that are lost, doubled, or not those of the single process; the largest difference of a score."""
    lost = doubled = different = entities = rows = 0
    furthest = 0.0
    for path in sorted(reference.glob("*.parquet")):
        theirs = parquet.read_table(path).to_pylist()
        ours = parquet.read_table(output / path.name).to_pylist() if (output / path.name).exists() else []
        counts = Counter(row["id"] for row in ours)
        lost += sum(row["id"] not in counts for row in theirs)
        doubled += sum(count - 1 for count in counts.values())
        rows += len(ours)
        for mine, other in zip(ours, theirs, strict=False):
            entities += len(mine["entities"])
            different += plain(mine) != plain(other)
            pairs = zip(mine["entities"], other["entities"], strict=False)
            furthest = max([furthest, *(abs(a["score"] - b["score"]) for a, b in pairs)])
    others = {path.name for path in output.glob("*.parquet")} - {path.name for path in reference.glob("*.parquet")}
    half = len(list(output.rglob("*.part")))
    facts = {"rows": rows, "entities": entities, "lost": lost, "doubled": doubled, "different": different}
    return {**facts, "largest_score_difference": furthest, "other_files": len(others), "half_files": half}


def plain(row: Row) -> Row:
    """A row without scores."""
    return {**row, "entities": [{**entity, "score": None} for entity in row["entities"]]}


def main() -> None:
    """Runs one piece; adds its row to the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=["prepare", "single", "local", "ray"])
    parser.add_argument("--work", type=Path, required=True, help="a folder for corpus, model and predictions")
    parser.add_argument("--data", type=Path, default=os.environ.get("WINGSPAN_DATA"))
    parser.add_argument("--encoder", default="hashed", choices=MODELS)
    parser.add_argument("--sentences", type=int, default=100_000)
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--cores", type=int, help="pin to so many cores")
    parser.add_argument("--kill", default="", help="worker, node or all, comma separated")
    parser.add_argument("--go-on", action="store_true", help="keep what an earlier run wrote")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--commit", default="unknown")
    given = parser.parse_args()
    if given.engine == "prepare":
        prepare(given)
        return
    given.cores = given.cores or len(os.sched_getaffinity(0))
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[: given.cores]))
    os.environ.setdefault("OMP_NUM_THREADS", str(given.cores if given.engine == "single" else 1))
    kills = Kills(given)
    row = single(given) if given.engine == "single" else ENGINES[given.engine](given, kills)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    facts = json.loads((given.work / "facts.json").read_text())
    row = {
        "name": f"{given.sentences:,} sentences, {facts['encoder']}",
        **facts,
        "sentences": given.sentences,
        "cores": given.cores,
        **row,
        "cpu_seconds": sum(each.ru_utime + each.ru_stime for each in used),
        "commit": given.commit,
    }
    row = {name: round(value, 6) if isinstance(value, float) else value for name, value in row.items()}
    print(json.dumps(row), flush=True)
    if given.results is not None:
        with given.results.open("a") as file:
            file.write(json.dumps(row) + "\n")


ENGINES = {"local": local, "ray": on_ray}

if __name__ == "__main__":
    main()
