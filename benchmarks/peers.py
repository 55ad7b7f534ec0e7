"""Our recipes beside other libraries: the same encoder, sentences, threads, epochs and scorer, one process per run.

    python benchmarks/peers.py --data $WINGSPAN_DATA --encoder-folder $WINGSPAN_ENCODERS/all-MiniLM-L6-v2 \
        --commit $(git rev-parse --short HEAD) --output benchmarks/results/peers.jsonl

Each library has a virtual environment of its own under `build/peers`, made on the first run from the pins below, and is
driven by `peer_systems.py`. Every system trains on the first sentences of a corpus for the same number of epochs with
the same batch size. Ours have the learning rate of their recipes; other libraries have each of a short list on the
first corpus, of which its dev part chooses one for all corpora and seeds. No system stops early or chooses an epoch.
Systems that cannot nest learn the outermost entities; all are scored against all of them.

Steps: `install`, `train` (and score), `time` (one training for its cost, then start-up, memory and
the ratio to the bare encoder: fast tokenizer and forward pass, longest first, by turns in the same process; the faster
of the library's own batch size and 32). One JSON line a run; runs that the output file has are not repeated, so that
`--steps time` can wait for a machine that does nothing else. What cannot be installed or run is a line with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
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
    rate: float | None = None
    """Its one learning rate; None: dev chooses."""


OURS = 1.5e-4  # the default of our recipes
SYSTEMS = (
    System("bundling/span", "spans", True, rate=OURS),
    System("bundling/bl-span", "spans", True, rate=OURS),
    System("deep_span/biaffine", "spans", True, rate=OURS),
    System("bundling/seq", "tags", True, rate=OURS),
    System("SpanMarker", "spans", False, "span_marker", rate=1.5e-4),  # one training takes as long as ten of others
    System("GLiNER", "spans", True, "gliner"),
    System("spaCy spancat", "spans", True, "spacy"),
    System("eznlp", "spans", True, "eznlp"),
    System("spaCy ner", "tags", False, "spacy"),
    System("Hugging Face", "tags", False),
    System("Flair", "tags", False, "flair"),
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
    """Strict precision, recall and F1; on a flat corpus, two other scorers must come to the same F1."""
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


class Race:
    """All runs, and the lines of those that are done."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.rows = (
            [json.loads(line) for line in given.output.read_text().splitlines()] if given.output.exists() else []
        )
        given.folder.mkdir(parents=True, exist_ok=True)
        self.encoder = whole_numbers(given.folder, given.encoder_folder)
        self.corpora = [self.read(name) for name in given.corpora.split(",")]

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

    def ask(self, system: System, job: Row) -> Row:
        """Runs one job in the system's environment."""
        python = python_of(system.environment, self.given.folder)
        command = [str(python), str(HERE / "peer_systems.py")]
        job = {"system": system.name, "encoder": str(self.encoder), "started": time.time(), **job}
        log = self.given.folder / "log.txt"
        with log.open("w") as errors:
            done = subprocess.run(
                command,
                input=json.dumps(job),
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environment_of(self.given.threads),
                timeout=self.given.timeout,
            )
        if done.returncode:
            raise NotHere(f"it fails: {last_line(log.read_text())}")
        return dict(json.loads(done.stdout))

    def training(self, system: System, corpus: Corpus, rate: float, seed: int, limit: int = 0, epochs: int = 0) -> Row:
        """The job of a training."""
        folder = self.given.folder / "models" / f"{system.name}-{corpus.name}-{rate}-{seed}".replace("/", "-")
        if limit == 0:
            shutil.rmtree(folder, ignore_errors=True)
        return {
            "action": "train",
            "train": [sentence_of(document) for document in corpus.train[: limit or None]],
            "labels": corpus.labels,
            "epochs": epochs or self.given.epochs,
            "batch_size": self.given.batch_size,
            "width": self.given.width,
            "learning_rate": rate,
            "seed": seed,
            "folder": str(folder) if limit == 0 else str(self.given.folder / "models" / "timed"),
        }

    def prediction(self, corpus: Corpus, folder: str, documents: Sequence[Document], rounds: int = 0) -> Row:
        """The job of a prediction."""
        sentences = [words_of(document) for document in documents]
        timed = {"rounds": rounds, "timed": self.given.timed}
        return {"action": "predict", "folder": folder, "sentences": sentences, "flat": corpus.flat, **timed}

    def accuracy(self, system: System, corpus: Corpus, rate: float, seed: int) -> None:
        """A training and its scores, unless they are kept."""
        if self.kept("accuracy", system, corpus, rate=rate, seed=seed):
            return
        training = self.training(system, corpus, rate, seed)
        cost = self.ask(system, training)
        documents = [*corpus.dev, *corpus.test]
        answer = self.ask(system, self.prediction(corpus, training["folder"], documents))
        found, half = answer["entities"], len(corpus.dev)
        self.keep(
            {
                **self.facts("accuracy", system, corpus),
                "rate": rate,
                "seed": seed,
                "dev": scored(corpus.dev, found[:half], corpus.flat),
                "test": scored(corpus.test, found[half:], corpus.flat),
                "seconds": round(cost["seconds"], 1),
                "cpu_seconds": round(cost["cpu_seconds"], 1),
                "versions": cost["versions"],
            }
        )

    def cost(self, system: System, corpus: Corpus) -> None:
        """What a short training and a prediction cost, unless it is kept."""
        if self.kept("cost", system, corpus):
            return
        rate = best_rate(self.kept("accuracy", system, corpus))
        limit = min(self.given.timed_training, len(corpus.train))
        trained = self.ask(system, self.training(system, corpus, rate, 1, limit=limit, epochs=1))
        folder = self.training_folder(system, corpus, rate)
        answer = self.ask(system, self.prediction(corpus, folder, corpus.test, self.given.rounds))
        self.keep(
            {
                **self.facts("cost", system, corpus),
                "timed_training": limit,
                "training_cpu_seconds": round(trained["cpu_seconds"] * 1000 / limit, 1),
                "training_peak_mb": round(trained["peak_mb"]),
                "startup_seconds": round(answer["startup_seconds"], 2),
                "peak_mb": round(answer["peak_mb"]),
                "turns": answer["turns"],
                "versions": answer["versions"],
            }
        )

    def training_folder(self, system: System, corpus: Corpus, rate: float) -> str:
        """Where the model of the first seed is."""
        return str(self.given.folder / "models" / f"{system.name}-{corpus.name}-{rate}-1".replace("/", "-"))

    def run(self) -> None:
        """Everything that was asked for and is not kept."""
        steps = self.given.steps.split(",")
        for corpus, system in ((c, s) for c in self.corpora for s in chosen(self.given.systems)):
            if self.kept("failed", system, corpus):
                continue
            began = time.perf_counter()
            try:
                self.step(system, corpus, steps)
            except NotHere as reason:
                self.keep({**self.facts("failed", system, corpus), "reason": str(reason)})
                print(f"{corpus.name} {system.name}: {reason}", flush=True)
            print(f"{corpus.name} {system.name}: {time.perf_counter() - began:.0f} s", flush=True)

    def step(self, system: System, corpus: Corpus, steps: Sequence[str]) -> None:
        """The steps of one system on one corpus."""
        if "install" in steps:
            python_of(system.environment, self.given.folder)
        if "train" in steps:
            for rate in self.rates(system, corpus):
                for seed in seeds_of(self.given.seeds):
                    self.accuracy(system, corpus, rate, seed)
        if "time" in steps and self.kept("accuracy", system, corpus):
            self.cost(system, corpus)

    def rates(self, system: System, corpus: Corpus) -> list[float]:
        """The learning rates to try: the list on the first corpus, on others the one that was best there."""
        if system.rate is not None:
            return [system.rate]
        first = self.corpora[0]
        if corpus is first:
            return [float(rate) for rate in self.given.rates.split(",")]
        return [best_rate(self.kept("accuracy", system, first))]


def seeds_of(text: str) -> list[int]:
    """`1,2,3` as numbers."""
    return [int(seed) for seed in text.split(",")]


def best_rate(rows: Sequence[Row]) -> float:
    """The learning rate with the best mean dev F1."""
    rates = {row["rate"] for row in rows}
    return float(max(rates, key=lambda rate: fmean(row["dev"]["f1"] for row in rows if row["rate"] == rate)))


def summary(rows: Sequence[Row]) -> list[Row]:
    """One line for each system and corpus: test F1 of all seeds at the rate that dev chose, its cost, or why not."""
    lines: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        lines.setdefault((row["corpus"], row["system"]), []).append(row)
    made = []
    for (corpus, system), some in lines.items():
        kinds = {kind: [row for row in some if row["kind"] == kind] for kind in ("accuracy", "cost", "failed")}
        line: Row = {"corpus": corpus, "system": system, "row": some[-1]}
        if kinds["accuracy"]:
            rate = best_rate(kinds["accuracy"])
            line |= {"rate": rate, "f1": [row["test"]["f1"] for row in kinds["accuracy"] if row["rate"] == rate]}
        line["cost"] = kinds["cost"][-1] if kinds["cost"] else None
        line["reason"] = kinds["failed"][-1]["reason"] if kinds["failed"] else None
        made.append(line)
    return made


def caption(lines: Sequence[Row]) -> str:
    """What all lines of a table have in common: encoder, budget, seeds, threads, commits."""
    some = [line["row"] for line in lines]
    row, sizes = some[0], some[0]["sentences"]
    seeds = ", ".join(map(str, sorted({len(line["f1"]) for line in lines if "f1" in line})))
    commits = ", ".join(dict.fromkeys(f"`{one['commit']}`" for one in some))
    return (
        f"{row['encoder']} in float32; the first {sizes['train']} training sentences, {row['epochs']} epochs in "
        f"batches of {row['batch_size']}, spans of up to {row['width']} words, scored on the first {sizes['test']} "
        f"test sentences; {row['threads']} threads; seeds: {seeds}; commit {commits}."
    )


def environment_of(threads: int) -> Mapping[str, str]:
    """As many threads for every library that computes, and no hub."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "BLIS_NUM_THREADS", "RAYON_NUM_THREADS")
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    quiet = {"OMP_WAIT_POLICY": "passive", "TRANSFORMERS_VERBOSITY": "error", "CUDA_VISIBLE_DEVICES": ""}
    return {**os.environ, **dict.fromkeys(names, str(threads)), **offline, **quiet}


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
    parser.add_argument("--folder", type=Path, default=Path("build/peers"), help="environments and models")
    parser.add_argument("--steps", default="install,train,time")
    parser.add_argument("--systems", default="", help="comma separated; otherwise all")
    parser.add_argument("--corpora", default=",".join(CORPORA))
    parser.add_argument("--train", type=int, default=600, help="sentences of the training part")
    parser.add_argument("--dev", type=int, default=200)
    parser.add_argument("--test", type=int, default=400)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=8, help="the default of Hugging Face's trainer and of GLiNER")
    parser.add_argument("--width", type=int, default=8, help="words of the widest span, for all that have spans")
    parser.add_argument("--rates", default="1.5e-4,5e-4", help="learning rates that dev chooses from")
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--timed", type=int, default=160, help="test sentences whose prediction is timed")
    parser.add_argument("--timed-training", type=int, default=100, help="sentences of the epoch that is timed")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=1800, help="seconds after which a run is given up")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    if given.data is None or not given.encoder_folder.is_dir():
        parser.error("give --data and --encoder-folder, or set WINGSPAN_DATA and WINGSPAN_ENCODERS")
    race = Race(given)
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
