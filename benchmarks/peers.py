"""Our recipes beside other libraries: the same encoder, sentences, threads, epochs and scorer, one process per run.

    python benchmarks/peers.py --data $WINGSPAN_DATA --encoder-folder $WINGSPAN_ENCODERS/all-MiniLM-L6-v2 \
        --commit $(git rev-parse --short HEAD) --output benchmarks/results/peers.jsonl

Each library has a virtual environment of its own under `build/peers`, made on the first run from the pins below, and is
driven by `peer_systems.py`. Every system trains on the first sentences of a corpus for the same number of epochs with
the same batch size. Ours have the learning rate of their recipes; other libraries have each of a short list with the
first seed, of which dev of that corpus chooses one for all seeds. No system stops early or chooses an epoch. Systems
that cannot nest learn the outermost entities; all are scored against all of them.

Steps: `install`, `train` (and score), `time`: a short training less one of a single epoch, for what an epoch costs
without what comes before it; with its model start-up, memory and the ratio to the bare encoder (fast tokenizer and
forward pass, longest first, by turns in the same process; the faster of the library's own batch size and 32). One JSON
line a run; runs that the output file has are not repeated, so that `--steps time` can wait for a machine that does
nothing else; it times what has been trained, or what `--systems` names.
What cannot be installed or run is a line with the reason.

A machine with a GPU and without a network trains many at once; `--packages` has a folder of unpacked packages for each
library, which its process finds before those of the running Python; `peer_packages.py` makes it. `--check` tries each
system on a few sentences:

    python benchmarks/peers.py --steps train --device cuda --workers 14 --threads 1 --packages FOLDER --check ...
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from training_runs import gold
from wingspan.evaluation.scores import recognition
from wingspan.text import Document, Entity

Row = dict[str, Any]
HERE = Path(__file__).parent
TORCH = "torch==2.13.0"
PINS: dict[str, tuple[str, ...]] = {
    "span_marker": ("span_marker==1.8.1", "transformers==4.57.6", "datasets==5.0.1", "accelerate==1.15.0"),
    "gliner": ("gliner==0.2.29", "transformers==5.16.1", "accelerate==1.15.0"),
    "spacy": ("spacy==3.8.18", "spacy-transformers==1.4.0", "transformers==4.53.2"),
    "flair": ("flair==0.15.1", "transformers==4.57.6", "accelerate==1.15.0"),
    "eznlp": ("eznlp==0.4.0", "transformers==4.57.6"),
}


@dataclass(frozen=True)
class System:
    """A row of the table: where it runs, and what it is."""

    name: str
    kind: str
    """`spans` or `tags`: what it classifies."""
    nested: bool
    environment: str | None = None
    """A key of PINS; None is the environment of this script."""
    rates: tuple[float, ...] = (5e-5, 1.5e-4, 5e-4)
    """Learning rates that dev chooses from."""
    optional: bool = False
    """Whether it runs after all others."""
    seconds: float = 30
    """What a training of 3,000 sentences and six epochs may take on a GPU that many share: the longest start first."""


OURS = (1.5e-4,)  # the default of our recipes
SYSTEMS = (
    System("bundling/span", "spans", True, rates=OURS),
    System("bundling/bl-span", "spans", True, rates=OURS),
    System("deep_span/biaffine", "spans", True, rates=OURS),
    System("deep_span/biaffine-cnn", "spans", True, rates=OURS, optional=True),
    System("deep_span/biaffine-pooled-cnn", "spans", True, rates=OURS, optional=True),
    System("bundling/seq", "tags", True, rates=OURS),
    System("SpanMarker", "spans", False, "span_marker", seconds=90),
    System("GLiNER", "spans", True, "gliner", rates=(2e-5, 5e-5, 1.5e-4), seconds=60),  # of its encoder
    System("spaCy spancat", "spans", True, "spacy", seconds=60),
    System("eznlp", "spans", True, "eznlp", optional=True, seconds=60),
    System("spaCy ner", "tags", False, "spacy", optional=True, seconds=60),
    System("Hugging Face", "tags", False),
    System("Flair", "tags", False, "flair", optional=True, seconds=60),
)
CORPORA = {"ncbi-disease": "flat", "genia": "nested"}


class NotHere(Exception):
    """A library that cannot be installed or run, with the reason in one sentence."""


# Environments


def python_of(environment: str | None, folder: Path) -> Path:
    """The interpreter of an environment, which is made where it is missing or has other pins."""
    if environment is None:
        return Path(sys.executable)
    place, pins = folder / environment, (TORCH, *PINS[environment])
    python, made = place / "bin" / "python", place / "pins.json"
    if made.exists() and json.loads(made.read_text()) == list(pins):
        return python
    shutil.rmtree(place, ignore_errors=True)
    subprocess.run([base_python(), "-m", "venv", str(place)], check=True)
    constraint = folder / "constraint.txt"
    constraint.write_text(TORCH + "\n")
    for wanted in ((TORCH,), PINS[environment]):  # torch first: otherwise a library's own wish brings gigabytes
        command = [str(python), "-m", "pip", "install", "-q", "--constraint", str(constraint), *wanted]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise NotHere(f"pip cannot install it: {last_line(done.stderr)}")
    made.write_text(json.dumps(pins))
    return python


def base_python() -> str:
    """Python 3.11, which all of the libraries have packages for, or this one."""
    return shutil.which("python3.11") or sys.executable


def last_line(text: str) -> str:
    """The last line that says something."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "no message"


def whole_numbers(folder: Path, source: Path) -> Path:
    """A copy of the encoder in float32: what the libraries do with a file in half precision differs."""
    place = folder / f"{source.name}-float32"
    if not (place / "model.safetensors").exists():
        import torch
        from safetensors.torch import load_file, save_file

        shutil.copytree(source, place, dirs_exist_ok=True)
        for path in place.iterdir():
            path.chmod(0o644)
        weights = {name: tensor.to(torch.float32) for name, tensor in load_file(source / "model.safetensors").items()}
        save_file(weights, place / "model.safetensors", metadata={"format": "pt"})
        config = json.loads((place / "config.json").read_text())
        config.pop("dtype", None)
        (place / "config.json").write_text(json.dumps({**config, "torch_dtype": "float32"}))
    return place


# Sentences, and the answers as documents


@dataclass(frozen=True)
class Corpus:
    """The parts of a corpus that are used."""

    name: str
    train: list[Document]
    dev: list[Document]
    test: list[Document]

    @property
    def flat(self) -> bool:
        """Whether entities never overlap."""
        return CORPORA[self.name] == "flat"

    @property
    def labels(self) -> list[str]:
        """All labels, sorted."""
        return sorted({entity.label for document in self.train for entity in document.entities})


def words_of(document: Document) -> list[str]:
    """Its words."""
    return [document.text[start:end] for start, end in document.words or ()]


def sentence_of(document: Document) -> tuple[list[str], list[tuple[int, int, str]]]:
    """Words, and entities as the protocol has them."""
    words = document.words or ()
    starts = {word.start: at for at, word in enumerate(words)}
    ends = {word.end: at + 1 for at, word in enumerate(words)}
    return words_of(document), [(starts[e.start], ends[e.end], e.label) for e in document.entities]


def answered(documents: Sequence[Document], found: Sequence[Sequence[Sequence[Any]]]) -> list[Document]:
    """The documents with the entities that a system has found in their words."""
    answers = []
    for document, entities in zip(documents, found, strict=True):
        words = document.words or ()
        made = {Entity.at(label, words[start].start, words[end - 1].end) for start, end, label in entities}
        answers.append(replace(document, entities=tuple(sorted(made, key=lambda e: (e.start, e.end, e.label)))))
    return answers


def scored(documents: Sequence[Document], found: Sequence[Sequence[Sequence[Any]]], flat: bool) -> Row:
    """Strict precision, recall and F1; on a flat corpus, other scorers that are installed must come to the same F1."""
    micro = recognition(documents, answered(documents, found)).micro
    row = {name: round(getattr(micro, name), 3) for name in ("precision", "recall", "f1")}
    if flat:
        others = other_scorers(documents, found)
        if any(abs(f1 - micro.f1) > 0.01 for f1 in others.values()):
            raise RuntimeError(f"scorers disagree: ours {micro.f1:.3f}, {others}")
        row["checked_with"] = sorted(others)
    return row


def other_scorers(documents: Sequence[Document], found: Sequence[Sequence[Sequence[Any]]]) -> dict[str, float]:
    """F1 of flat answers by seqeval and nervaluate, where they are installed."""
    from peer_systems import tags_of

    sentences = [sentence_of(document) for document in documents]
    expected = [tags_of(sentence) for sentence in sentences]
    given = [tags_of((words, [tuple(e) for e in es])) for (words, _), es in zip(sentences, found, strict=True)]  # type: ignore[misc]
    scores: dict[str, float] = {}
    try:
        from seqeval.metrics import f1_score

        scores["seqeval"] = 100 * float(f1_score(expected, given))
    except ImportError:
        pass
    try:
        from nervaluate import Evaluator

        tags = sorted({e.label for document in documents for e in document.entities})
        results = Evaluator(expected, given, tags=tags, loader="list").evaluate()
        scores["nervaluate"] = 100 * float(results["overall"]["strict"].f1)
    except ImportError:
        pass
    return scores


# Runs


@dataclass(frozen=True)
class Run:
    """One training of a system."""

    system: System
    corpus: str
    rate: float
    seed: int

    @property
    def name(self) -> str:
        """As a file may be called."""
        return f"{self.system.name}-{self.corpus}-{self.rate:g}-{self.seed}".replace("/", "-").replace(" ", "-")


class Race:
    """All runs, and the lines of those that are done."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        lines = given.output.read_text().splitlines() if given.output.exists() else []
        rows = map(json.loads, lines)
        self.rows = [row for row in rows if row["kind"] != "failed" or "rate" not in row]  # single runs are tried again
        (given.folder / "logs").mkdir(parents=True, exist_ok=True)
        self.encoder = whole_numbers(given.folder, given.encoder_folder)
        self.corpora = {name: self.read(name) for name in given.corpora.split(",")}
        self.systems = [system for system in chosen(given.systems) if self.here(system)]
        budget = (given.epochs, given.batch_size, given.width, given.encoder_folder.name)
        names = ("epochs", "batch_size", "width", "encoder")
        sizes = {name: len(corpus.train) for name, corpus in self.corpora.items()}
        if any(
            tuple(map(row.get, names)) != budget or row["sentences"]["train"] != sizes.get(row["corpus"], -1)
            for row in self.rows
            if row["corpus"] in sizes
        ):
            raise SystemExit(f"{given.output}: has runs of another budget; give the same one or another file")

    def here(self, system: System) -> bool:
        """Whether its packages are, where they are given."""
        found = not (self.given.packages and system.environment) or (self.given.packages / system.environment).is_dir()
        if not found:
            print(f"{system.name}: left out, no {self.given.packages / system.environment}", flush=True)
        return found

    def read(self, name: str) -> Corpus:
        """The first sentences of each part."""
        sizes = {"train": self.given.train, "dev": self.given.dev, "test": self.given.test}
        parts = {part: gold(self.given.data / name, part, limit=size) for part, size in sizes.items()}
        return Corpus(name, **parts)

    def kept(self, kind: str, system: System, corpus: Corpus, **more: Any) -> list[Row]:
        """Lines of this kind."""
        wanted = {"kind": kind, "system": system.name, "corpus": corpus.name, **more}
        return [row for row in self.rows if all(row.get(name) == value for name, value in wanted.items())]

    def keep(self, row: Row) -> None:
        """One line more."""
        self.rows.append(row)
        self.given.output.parent.mkdir(parents=True, exist_ok=True)
        with self.given.output.open("a") as out:
            out.write(json.dumps(row) + "\n")

    def facts(self, kind: str, system: System, corpus: Corpus) -> Row:
        """What every line begins with."""
        sizes = {"train": len(corpus.train), "dev": len(corpus.dev), "test": len(corpus.test)}
        budget = {"epochs": self.given.epochs, "batch_size": self.given.batch_size, "width": self.given.width}
        names = {"kind": kind, "system": system.name, "classifies": system.kind, "nested": system.nested}
        where = {"corpus": corpus.name, "sentences": sizes, "encoder": self.given.encoder_folder.name}
        return {**names, **where, **budget, "threads": self.given.threads, "commit": self.given.commit}

    def ask(self, system: System, job: Row, name: str) -> Row:
        """Runs one job in the system's environment."""
        python, packages = Path(sys.executable), None
        if self.given.packages is None:
            python = python_of(system.environment, self.given.folder)
        elif system.environment is not None:
            packages = self.given.packages / system.environment
        command = [str(python), str(HERE / "peer_systems.py")]
        job = {"system": system.name, "encoder": str(self.encoder), "started": time.time(), **job}
        log = self.given.folder / "logs" / f"{name}.txt"
        with log.open("w") as errors:
            try:
                done = subprocess.run(
                    command,
                    input=json.dumps(job),
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                    env=environment_of(self.given.threads, self.given.device, packages),
                    timeout=self.given.timeout,
                )
            except subprocess.TimeoutExpired:
                raise NotHere(f"it takes more than {self.given.timeout:.0f} s") from None
        if done.returncode:
            raise NotHere(f"it fails: {last_line(log.read_text())}")
        try:
            return dict(json.loads(done.stdout))
        except ValueError:
            raise NotHere(f"it answers {last_line(done.stdout)!r}") from None

    def training(self, run: Run, limit: int = 0, epochs: int = 0) -> Row:
        """The job of a training."""
        corpus, folder = self.corpora[run.corpus], self.given.folder / "models" / run.name
        shutil.rmtree(folder, ignore_errors=True)
        return {
            "action": "train",
            "train": [sentence_of(document) for document in corpus.train[: limit or None]],
            "labels": corpus.labels,
            "epochs": epochs or self.given.epochs,
            "batch_size": self.given.batch_size,
            "width": self.given.width,
            "learning_rate": run.rate,
            "seed": run.seed,
            "folder": str(folder),
        }

    def prediction(self, corpus: Corpus, documents: Sequence[Document], rounds: int = 0) -> Row:
        """The job of a prediction, but for the model's folder."""
        sentences = [words_of(document) for document in documents]
        return {"action": "predict", "sentences": sentences, "flat": corpus.flat, "rounds": rounds}

    def accuracy(self, run: Run) -> Row:
        """A training and its scores."""
        corpus, began = self.corpora[run.corpus], time.perf_counter()
        job = self.training(run)
        cost = self.ask(run.system, {**job, "then": self.prediction(corpus, [*corpus.dev, *corpus.test])}, run.name)
        shutil.rmtree(job["folder"], ignore_errors=True)
        found, half = cost["then"]["entities"], len(corpus.dev)
        try:
            dev, test = (
                scored(*part, corpus.flat) for part in ((corpus.dev, found[:half]), (corpus.test, found[half:]))
            )
        except (RuntimeError, KeyError, IndexError, ValueError) as error:  # of another library's answers
            raise NotHere(f"its answers cannot be scored: {error!r}") from error
        return {
            **self.facts("accuracy", run.system, corpus),
            "rate": run.rate,
            "seed": run.seed,
            "dev": dev,
            "test": test,
            "seconds": round(cost["seconds"], 1),
            "cpu_seconds": round(cost["cpu_seconds"], 1),
            "process_seconds": round(time.perf_counter() - began, 1),
            "device": cost["device"],
            "versions": cost["versions"],
        }

    def cost(self, system: System, corpus: Corpus) -> Row:
        """What a short training and a prediction with its model cost; models of another machine are not needed."""
        trained = self.kept("accuracy", system, corpus)
        rate = best_rate(trained) if trained else system.rates[len(system.rates) // 2]
        run = Run(system, corpus.name, rate, 1)
        limit, epochs = min(self.given.timed_training, len(corpus.train)), self.given.timed_epochs
        first = self.ask(system, self.training(run, limit, 1), run.name)
        job = self.training(run, limit, epochs)
        training = self.ask(system, job, run.name)
        further = training["cpu_seconds"] - first["cpu_seconds"]  # without imports, loading and warming up
        sentences = corpus.test[: self.given.timed]
        predicting = {**self.prediction(corpus, sentences, self.given.rounds), "folder": job["folder"]}
        answer = self.ask(system, predicting, run.name)
        return {
            **self.facts("cost", system, corpus),
            "timed_training": limit,
            "timed_epochs": epochs,
            "training_cpu_seconds": round(further * 1000 / (limit * (epochs - 1)), 1),
            "training_peak_mb": round(training["peak_mb"]),
            "startup_seconds": round(answer["startup_seconds"], 2),
            "peak_mb": round(answer["peak_mb"]),
            "found": sum(map(len, answer["entities"])),
            "turns": answer["turns"],
            "versions": answer["versions"],
        }

    def run(self) -> None:
        """Everything that was asked for and is not kept."""
        steps = self.given.steps.split(",")
        if "time" in steps and self.given.device != "cpu":
            raise SystemExit("--steps time compares with a bare encoder on the CPU; leave out --device")
        if "install" in steps and self.given.packages is None:
            for system in self.systems:
                self.tried(system, lambda system=system: python_of(system.environment, self.given.folder))
        if "train" in steps:
            self.train()
        if "time" in steps:
            for corpus, system in ((c, s) for c in self.corpora.values() for s in self.systems):
                wanted = self.given.systems or self.kept("accuracy", system, corpus)
                if wanted and not self.kept("cost", system, corpus):
                    began = time.perf_counter()
                    if row := self.tried(system, lambda s=system, c=corpus: self.cost(s, c), corpus.name, step="time"):
                        self.keep(row)
                    print(f"{corpus.name} {system.name}: {time.perf_counter() - began:.0f} s", flush=True)

    def tried(self, system: System, work: Callable[[], Any], *corpora: str, **run: Any) -> Any:
        """What the work gives; if it cannot be done, a line with the reason for each of the corpora, or for all.

        `run` has the rate and seed of a training, or the step that failed: only that, and the next call tries it again.
        """
        try:
            return work()
        except NotHere as reason:
            for name in corpora or self.corpora:
                self.keep({**self.facts("failed", system, self.corpora[name]), **run, "reason": str(reason)})
                print(f"{name} {system.name}: {reason}", flush=True)
            return None

    def train(self) -> None:
        """Trainings and their scores, several at once."""
        began, running, waiting = time.perf_counter(), dict[Future[Row], Run](), self.waiting(())
        print(f"{len(waiting)} runs now, about {self.estimate():.0f} process-seconds in all", flush=True)
        with ThreadPoolExecutor(self.given.workers) as pool:
            while waiting or running:
                late = self.given.time_budget and time.perf_counter() - began > self.given.time_budget
                while waiting and not late and len(running) < self.given.workers:
                    run = waiting.pop(0)
                    running[pool.submit(self.accuracy, run)] = run
                if not running:
                    print(f"out of time: {len(waiting)} runs are left", flush=True)
                    return
                for done in wait(running, return_when=FIRST_COMPLETED).done:
                    run = running.pop(done)
                    row = self.tried(run.system, done.result, run.corpus, rate=run.rate, seed=run.seed)
                    if row:
                        self.keep(row)
                        figures = f"dev {row['dev']['f1']:.2f} test {row['test']['f1']:.2f}"
                        seconds = f"({row['seconds']:.0f} s of {row['process_seconds']:.0f})"
                        print(f"{time.perf_counter() - began:5.0f}s {run.name} {figures} {seconds}", flush=True)
                waiting = self.waiting(running.values())

    def waiting(self, running: Collection[Run]) -> list[Run]:
        """The runs that can start: each rate with the first seed, then other seeds with the rate that dev chose."""
        first, *others = seeds_of(self.given.seeds)
        runs = []
        for corpus, system in ((c, s) for c in self.corpora.values() for s in self.systems):
            if self.kept("failed", system, corpus, rate=None, step=None):
                continue  # it cannot be installed
            tried = [Run(system, corpus.name, rate, first) for rate in system.rates]
            if len(tried) == 1:
                runs += tried + [replace(tried[0], seed=seed) for seed in others]
            elif all(self.ended(run) for run in tried):
                if known := self.kept("accuracy", system, corpus, seed=first):
                    runs += [Run(system, corpus.name, best_rate(known), seed) for seed in others]
            else:
                runs += tried
        runs = [run for run in runs if run not in running and not self.ended(run)]
        return sorted(runs, key=lambda run: (run.system.optional, -run.system.seconds, run.seed))

    def ended(self, run: Run) -> bool:
        """Whether a run has its scores, or has failed in this call."""
        where = run.system, self.corpora[run.corpus]
        return any(self.kept(kind, *where, rate=run.rate, seed=run.seed) for kind in ("accuracy", "failed"))

    def estimate(self) -> float:
        """Process-seconds that the runs of these systems and corpora may take which are not kept."""
        others = len(seeds_of(self.given.seeds)) - 1
        seconds = 0.0
        for corpus, system in ((c, s) for c in self.corpora.values() for s in self.systems):
            left = len(system.rates) + others - len(self.kept("accuracy", system, corpus))
            seconds += max(0, left) * system.seconds * len(corpus.train) * self.given.epochs / (3000 * 6)
        return seconds

    def check(self) -> bool:
        """Whether every system trains and predicts here; says of each how long it took, or why not."""
        (corpus,) = list(self.corpora.values())[:1]
        runs = [Run(system, corpus.name, system.rates[0], 1) for system in self.systems]
        with ThreadPoolExecutor(self.given.workers) as pool:
            answers = {run: pool.submit(self.accuracy, run) for run in runs}
        for run, answer in answers.items():
            error = answer.exception()
            if error is None:
                row = answer.result()
                print(f"ok     {run.system.name}: {row['process_seconds']} s on {row['device']}, {row['versions']}")
                continue
            print(f"FAILED {run.system.name}: {error}")
            log = (self.given.folder / "logs" / f"{run.name}.txt").read_text().splitlines()
            print("\n".join(f"    {line[:200]}" for line in log[-12:]), flush=True)
        return all(answer.exception() is None for answer in answers.values())


def seeds_of(text: str) -> list[int]:
    """`1,2,3` as numbers."""
    return [int(seed) for seed in text.split(",")]


def best_rate(rows: Sequence[Row]) -> float:
    """The learning rate with the best dev F1 of the first seed, the only one that all rates have."""
    first = min(row["seed"] for row in rows)
    return float(max((row for row in rows if row["seed"] == first), key=lambda row: row["dev"]["f1"])["rate"])


def summary(rows: Sequence[Row]) -> list[Row]:
    """One line for each system and corpus: test F1 of all seeds at the rate that dev chose, its cost, or why not."""
    lines: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        lines.setdefault((row["corpus"], row["system"]), []).append(row)
    made = []
    for (corpus, system), some in lines.items():
        kinds = {kind: [row for row in some if row["kind"] == kind] for kind in ("accuracy", "cost", "failed")}
        line: Row = {"corpus": corpus, "system": system, "row": (kinds["accuracy"] or some)[-1]}
        if kinds["accuracy"]:
            rate = best_rate(kinds["accuracy"])
            line |= {"rate": rate, "f1": [row["test"]["f1"] for row in kinds["accuracy"] if row["rate"] == rate]}
        line["cost"] = kinds["cost"][-1] if kinds["cost"] else None
        line["reason"] = kinds["failed"][-1]["reason"] if kinds["failed"] and not kinds["accuracy"] else None
        made.append(line)
    return made


def caption(lines: Sequence[Row]) -> str:
    """What all lines of a table have in common: encoder, budget, seeds, devices, threads, commits."""
    some = [line["row"] for line in lines]
    row, sizes = some[0], [one["sentences"] for one in some]
    train, test = (
        ", ".join(f"{size:,}" for size in dict.fromkeys(one[part] for one in sizes)) for part in ("train", "test")
    )
    seeds = ", ".join(map(str, sorted({len(line["f1"]) for line in lines if "f1" in line})))
    costs = [line["cost"] for line in lines if line["cost"]]
    commits = ", ".join(dict.fromkeys(f"`{one['commit']}`" for one in [*some, *costs]))
    devices = ", ".join(dict.fromkeys(one["device"] for one in some if "device" in one))
    how = "{threads} threads: {timed_training} sentences trained, {timed_epochs} epochs less one, {texts} predicted"
    cost = ", or ".join(dict.fromkeys(how.format(**cost, texts=cost["turns"]["texts"]) for cost in costs))
    return (
        f"{row['encoder']} in float32; the first {train} training sentences, {row['epochs']} epochs in "
        f"batches of {row['batch_size']}, spans of up to {row['width']} words, scored on {test} test sentences; "
        f"seeds: {seeds}{f'; F1 with {devices}' if devices else ''}"
        f"{f'; cost with {cost}' if costs else ''}; commit {commits}."
    )


def environment_of(threads: int, device: str, packages: Path | None) -> Mapping[str, str]:
    """As many threads for every library that computes, no hub, no GPU unless asked for, given packages first."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "BLIS_NUM_THREADS", "RAYON_NUM_THREADS")
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    quiet = {"OMP_WAIT_POLICY": "passive", "TRANSFORMERS_VERBOSITY": "error", "USE_TORCH": "1"}
    made = {**os.environ, **dict.fromkeys(names, str(threads)), **offline, **quiet}
    if device == "cpu":
        made["CUDA_VISIBLE_DEVICES"] = ""
    if packages is not None:
        made["PYTHONPATH"] = os.pathsep.join([str(packages.resolve()), *filter(None, [os.environ.get("PYTHONPATH")])])
    return made


def chosen(names: str) -> list[System]:
    """The systems of these names, or all."""
    wanted = names.split(",") if names else [system.name for system in SYSTEMS]
    unknown = set(wanted) - {system.name for system in SYSTEMS}
    if unknown:
        raise SystemExit(f"--systems {', '.join(sorted(unknown))}: there are {', '.join(s.name for s in SYSTEMS)}")
    return [system for system in SYSTEMS if system.name in wanted]


def main() -> None:
    """Runs what the output file does not have yet, and prints what it has."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("WINGSPAN_DATA"))
    encoders = Path(os.environ.get("WINGSPAN_ENCODERS", "."))
    parser.add_argument("--encoder-folder", type=Path, default=encoders / "all-MiniLM-L6-v2")
    parser.add_argument("--folder", type=Path, default=Path("build/peers"), help="environments, models and logs")
    parser.add_argument("--packages", type=Path, help="a folder of packages per library, instead of environments")
    parser.add_argument("--check", action="store_true", help="only try whether each system runs, on a few sentences")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--workers", type=int, default=1, help="trainings at once")
    parser.add_argument("--time-budget", type=float, default=0, help="seconds after which no training is started")
    parser.add_argument("--steps", default="install,train,time")
    parser.add_argument("--systems", default="", help="comma separated; otherwise all")
    parser.add_argument("--corpora", default=",".join(CORPORA))
    parser.add_argument("--train", type=int, default=3000, help="sentences of the training part")
    parser.add_argument("--dev", type=int, default=500)
    parser.add_argument("--test", type=int, default=0, help="0: all")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--width", type=int, default=8, help="words of the widest span, for all that have spans")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--timed", type=int, default=100, help="test sentences whose prediction is timed")
    parser.add_argument("--timed-training", type=int, default=200, help="sentences of the training that is timed")
    parser.add_argument("--timed-epochs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=1800, help="seconds after which a run is given up")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/peers.jsonl"))
    given = parser.parse_args()
    if given.timed_epochs < 2:
        parser.error("--timed-epochs: the first epoch is taken off, so give 2 or more")
    if given.data is None or not given.encoder_folder.is_dir():
        parser.error("give --data and --encoder-folder, or set WINGSPAN_DATA and WINGSPAN_ENCODERS")
    if given.check:
        given.train, given.dev, given.test, given.epochs, given.output = 32, 8, 8, 1, Path(os.devnull)
    race = Race(given)
    if given.check:
        raise SystemExit(0 if race.check() else 1)
    race.run()
    for line in summary(race.rows):
        print(text_of(line))


def text_of(line: Row) -> str:
    """A line for people."""
    name = f"{line['corpus']:13} {line['system']:20}"
    if line["reason"]:
        return f"{name} {line['reason']}"
    parts = [f"F1 {fmean(line['f1']):5.1f} ({len(line['f1'])} seeds, rate {line['rate']:g})"] if "f1" in line else []
    if line["cost"]:
        cost = line["cost"]
        parts.append(f"x{cost['turns']['ratio']:.2f}, {cost['training_cpu_seconds']:.0f} s / 1,000 and epoch")
        parts.append(f"{cost['peak_mb']} MB, {cost['training_peak_mb']} MB trained, start {cost['startup_seconds']} s")
    return f"{name} {'; '.join(parts)}"


if __name__ == "__main__":
    main()
