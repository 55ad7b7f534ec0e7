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
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
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


NODES = """
import sys
from ray.cluster_utils import Cluster
node = {"num_cpus": int(sys.argv[1]), "object_store_memory": 200 * 2**20}
cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
other = cluster.add_node(**node)
cluster.wait_for_nodes()
print(cluster.address, flush=True)
sys.stdin.readline()
cluster.remove_node(other, allow_graceful=False)
print("killed", flush=True)
sys.stdin.readline()
"""


class Cluster:
    """Two nodes of Ray, each with as many places as there are workers: one can do the work of both."""

    def __init__(self, places: int) -> None:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process: Any = started([sys.executable, "-c", NODES, str(places)], **pipes)
        self.address = self.process.stdout.readline().strip()

    def kill_node(self) -> None:
        """Kills the second node with everything on it."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline().strip() == "killed"

    def stop(self) -> None:
        """Ends what is left of the nodes."""
        end(self.process)


class Kills:
    """Kills what `--kill` names, one after the other, each when another quarter of the files is predicted."""

    def __init__(self, given: argparse.Namespace, command: subprocess.Popen[str], cluster: Cluster | None) -> None:
        self.files, self.command, self.cluster = given.files, command, cluster
        self.left = [kind for kind in given.kill.split(",") if kind]
        self.killed: list[str] = []

    def look(self, done: int) -> None:
        """Kills if it is time."""
        if self.left and done >= self.files * (len(self.killed) + 1) / 4:
            kind = self.left.pop(0)
            self.killed.append(kind)
            print(f"killing: {kind}, after {done} files", flush=True)
            if kind == "all":
                end(self.command)
            elif kind == "node":
                assert self.cluster is not None
                self.cluster.kill_node()
            else:
                os.kill(self.worker(), signal.SIGKILL)

    def worker(self) -> int:
        """A process that predicts: an actor of Ray, which shows the name of its class, or a child of the command."""
        listed = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
        for line in listed.splitlines()[1:]:
            process, parent, arguments = line.split(maxsplit=2)
            actor = arguments.startswith("ray::") and "FilePredictor" in arguments
            child = int(parent) == self.command.pid and "spawn_main" in arguments
            if actor if self.cluster else child:
                return int(process)
        raise RuntimeError("no process that predicts")


def environment() -> dict[str, str]:
    """That of commands: one thread each."""
    source = str(Path(__file__).parents[1] / "src")
    return {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"}


def started(arguments: Sequence[str], **options: Any) -> subprocess.Popen[str]:
    """A command in a session of its own, so that all of it can be killed."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(arguments, env=environment(), text=True, start_new_session=True, **(options or quiet))


def end(process: subprocess.Popen[str]) -> None:
    """Kills a session."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def engine(given: argparse.Namespace) -> Row:
    """The command that users run, from its start to its end."""
    output = given.work / f"{given.engine}-{given.workers}"
    if not given.go_on:
        fresh(output)
    before = {path.name: path.stat().st_mtime_ns for path in output.glob("*.parquet")}
    command = [sys.executable, "-m", "wingspan", "predict", str(given.work / "in"), "--device", "cpu"]
    command += ["--model", str(given.work / "model"), "--output", str(output)]
    command += ["--engine", given.engine, "--workers", str(given.workers)]
    cluster = Cluster(given.workers) if given.engine == "ray" else None
    try:
        began = time.perf_counter()
        first = None
        running = started([*command, *(["--address", cluster.address] if cluster else [])], stdin=subprocess.DEVNULL)
        kills = Kills(given, running, cluster)
        while running.poll() is None:
            done = len(list(output.glob("*.parquet")))
            first = first or (time.perf_counter() - began if done > len(before) else None)
            kills.look(done)
            time.sleep(0.1)
        seconds = time.perf_counter() - began
    finally:
        if cluster is not None:
            cluster.stop()
    written = {path.name: path.stat().st_mtime_ns for path in output.glob("*.parquet")}
    return {
        "engine": given.engine,
        "workers": given.workers,
        "killed": kills.killed,
        "exit_code": running.returncode,
        "seconds": seconds,
        "first_file_seconds": first,
        "files_done": sum(before.get(name) != changed for name, changed in written.items()),
        "files_there": sum(before.get(name) == changed for name, changed in written.items()),
        **compared(output, given.work / "single"),
    }


def fresh(folder: Path) -> Path:
    """An empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def compared(output: Path, reference: Path) -> Row:
    """Rows that are lost, doubled, or not those of the single process; the largest difference of a score."""
    if not reference.is_dir():
        sys.exit(f"{reference}: missing; run `single` first")
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
    row = single(given) if given.engine == "single" else engine(given)
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


if __name__ == "__main__":
    main()
