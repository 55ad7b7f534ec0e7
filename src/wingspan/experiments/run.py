"""`wingspan experiment`: does the runs of a plan that are not done yet, then writes the tables.

Runs are done one after the other in this process, or a few at a time, each in its own process. The command may be
started several times on one output folder: a run is claimed with a lock file, so no run is done twice.
"""

from __future__ import annotations

import faulthandler
import hashlib
import json
import multiprocessing
import os
import shutil
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout
from rich.console import Console

from wingspan.corpora.formats import write_predictions
from wingspan.encoders import Encoder
from wingspan.evaluation.scores import Counts, Scores, recognition
from wingspan.experiments.plan import ExperimentPlan, PlannedCorpus, PlannedRun, fraction_of, identity
from wingspan.experiments.results import ResultTable, make_table, p_values, provenance, read_published, write_curves
from wingspan.files import atomic_write
from wingspan.recipe import expect, made_by, must_recognize
from wingspan.recipe_json import as_json
from wingspan.recognizer.torch_engine import usable_device
from wingspan.text import corpus_fingerprint
from wingspan.training.corpora import Corpora, corpora_of, gather, lexicon_of
from wingspan.training.fit import coverage_of
from wingspan.training.journal import Journal, read_journal
from wingspan.training.run import TrainingJob, prepare, run
from wingspan.views.console import counted, say
from wingspan.views.tables import Sheet


@dataclass(frozen=True)
class Summary:
    """The result of an experiment: how many runs are done, which failed and why, the tables."""

    runs: int
    done: int
    failed: Mapping[str, str]
    tables: tuple[ResultTable, ...]

    @property
    def remaining(self) -> int:
        """Runs that failed or were not started."""
        return self.runs - self.done

    def to_dict(self) -> dict[str, Any]:
        """The summary as plain data, ready for JSON."""
        counts = {"runs": self.runs, "done": self.done, "remaining": self.remaining}
        return {**counts, "failed": dict(self.failed), "tables": [table.to_dict() for table in self.tables]}


@dataclass(frozen=True)
class Assignment:
    """A planned run with everything that a process needs to do it."""

    id: str
    run: PlannedRun
    plan: ExperimentPlan
    fingerprints: Mapping[str, str]

    @property
    def log(self) -> Path:
        """The file for the output of the training."""
        return self.plan.output / "logs" / f"{self.id}.log"


Outcome = Mapping[str, Any] | str | None
"""The line of a run that is done, the reason of a failure, or None where another process holds the run."""


def run_experiment(
    plan: ExperimentPlan, console: Console, *, time_budget: float | None = None, tables_only: bool = False
) -> Summary:
    """Does the missing runs and writes the tables. Killed at any moment and called again, it goes on.

    No run is started after `time_budget` seconds.
    """
    deadline = time.monotonic() + time_budget if time_budget is not None else None
    if plan.published is not None:
        read_published(plan.published, plan)  # report a mistake now, not after a night of training
    assignments, ledger = check(plan), Ledger(plan.output)
    before = {name for name in ledger.lines() if name in assignments}
    say(
        console,
        f"{plan.title}: {counted(len(assignments), 'run')}, {len(before):,} of them done; results in {plan.output}",
    )
    failed: dict[str, str] = {}
    if not tables_only:
        missing = [assignment for name, assignment in assignments.items() if name not in before]
        failed = follow(plan, missing, len(before), deadline, console)
    done = {name: line for name, line in ledger.lines().items() if name in assignments}
    tables = tuple(write_tables(plan, assignments, done))
    for table in tables:
        rows = [
            (name, *(f"{cell.text}{cell.mark and f' {cell.mark}'}{' *' if cell.best else ''}" for cell in cells))
            for name, cells in table.rows
        ]
        Sheet(table.title, ("recipe", *table.columns), rows).show(console)
        for note in table.notes:
            say(console, note.replace("is bold", "has a *"))
    if len(done) == len(assignments):
        shutil.rmtree(ledger.claims, ignore_errors=True)  # every run is done, so nobody claims one any more
    elif not tables_only:
        left = len(assignments) - len(done) - len(failed)
        say(
            console,
            f"{counted(len(failed), 'run')} failed, {left:,} are still to do: the same command goes on with them.",
        )
    return Summary(len(assignments), len(done), failed, tables)


def follow(
    plan: ExperimentPlan, missing: Sequence[Assignment], done: int, deadline: float | None, console: Console
) -> dict[str, str]:
    """Does the runs and reports each. Runs of other processes come last, in case those processes die.

    Returns the failures by the name of the run.
    """
    total, failed = done + len(missing), {}
    for patient in (False, True):
        if patient and missing:
            say(
                console,
                f"Other processes are at {counted(len(missing), 'run')}, such as {missing[0].run}; waiting for them.",
            )
        held = []
        for assignment, outcome in outcomes(plan, missing, patient, deadline):
            if outcome is None:
                held.append(assignment)
            elif isinstance(outcome, str):
                failed[str(assignment.run)] = outcome
                say(console, f"FAILED {assignment.run}: {outcome}")
            else:
                done += 1
                scores = ", ".join(f"{part} {outcome[part]['micro']['f1']:.2f}" for part in plan.evaluate)
                say(console, f"[{done}/{total}] {assignment.run}: {scores} ({outcome['seconds']['total']:.0f} s)")
        missing = held
    return failed


def outcomes(
    plan: ExperimentPlan, todo: Sequence[Assignment], patient: bool, deadline: float | None
) -> Iterator[tuple[Assignment, Outcome]]:
    """Does runs in this process, or up to `plan.workers` at a time in processes that end with this one.

    A process that dies takes only its run with it. Where `patient`, a run that another process holds is waited for.
    """

    def seconds() -> float:
        """How long to wait for a claim; -1 is forever."""
        if not patient:
            return 0
        return -1 if deadline is None else max(0.0, deadline - time.monotonic())

    waiting = iter(todo)

    def next_run() -> Assignment | None:
        return next(waiting, None) if deadline is None or time.monotonic() < deadline else None

    if plan.workers == 0:
        while (assignment := next_run()) is not None:
            yield assignment, attempt(assignment, seconds())
        return
    context = starting(usable_device(plan.device).type)
    threads = plan.threads or (1 if plan.workers > 1 else None)
    running: dict[Any, tuple[Any, Assignment]] = {}
    try:
        while True:
            while len(running) < plan.workers and (assignment := next_run()) is not None:
                if not patient:  # a run that another process has done or is at needs no process here
                    ledger = Ledger(plan.output)
                    if (line := ledger.lines().get(assignment.id)) is not None:
                        yield assignment, line
                        continue
                    with ledger.claim(assignment.id) as free:
                        pass
                    if not free:
                        yield assignment, None
                        continue
                receiver, sender = context.Pipe(duplex=False)
                process = context.Process(target=work, args=(sender, assignment, seconds(), threads), daemon=True)
                process.start()
                sender.close()
                running[receiver] = process, assignment
            if not running:
                return
            ready = wait(list(running))
            for receiver in [receiver for receiver in running if receiver in ready]:
                process, assignment = running.pop(receiver)
                try:
                    outcome: Outcome = receiver.recv()
                    process.join()
                except (EOFError, ConnectionResetError):
                    process.join()
                    outcome = last_words(process.exitcode, assignment.log)
                yield assignment, outcome
    finally:
        for process, _ in running.values():
            process.terminate()
            process.join()


def work(sender: Connection, assignment: Assignment, patience: float, threads: int | None) -> None:
    """The main function of a process that does one run."""

    def end_with_parent() -> None:
        parent = multiprocessing.parent_process()
        assert parent is not None
        parent.join()
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent; this process ends with it
    threading.Thread(target=end_with_parent, daemon=True).start()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if threads:
        torch.set_num_threads(threads)
    speak_into(assignment.log)
    sender.send(attempt(assignment, patience))


def attempt(assignment: Assignment, patience: float = 0) -> Outcome:
    """Does a run unless another process has done it or is at it. Bad data or settings fail this run and no other."""
    ledger = Ledger(assignment.plan.output)
    with ledger.claim(assignment.id, patience) as mine:
        if not mine:
            return None
        if assignment.id not in ledger.lines():
            try:
                ledger.add(assignment.id, *carry_out(assignment))
            except (ValueError, OSError) as error:
                return " ".join(str(error).split())
    return ledger.lines()[assignment.id]


def carry_out(assignment: Assignment) -> tuple[dict[str, Any], dict[str, tuple[Counts, ...]]]:
    """Trains and scores. Returns the line of the run, and the counts of every document of each scored part."""
    plan, planned = assignment.plan, assignment.run
    corpora = read_parts(planned.corpus)
    parts = {"dev": corpora.dev, "test": corpora.test}
    train = fraction_of(corpora.train, planned.fraction, planned.seed)
    settings = {**corpora.settings, **planned.settings}
    torch.set_float32_matmul_precision("high" if plan.tf32 else "highest")
    began = time.perf_counter()
    states = plan.output / "running" / assignment.id  # a killed run with checkpoints goes on from here
    folder = states if plan.checkpoints else None
    resume = folder is not None and (folder / "state" / "run.json").is_file()
    if folder is not None and not resume:
        shutil.rmtree(folder, ignore_errors=True)
    job = TrainingJob(
        prepare(planned.system.recipe, planned.system.encoder, settings),
        replace(corpora, train=train, test=()),
        folder,
        planned.seed,
        resume=resume,
        device=plan.device,
        lexicon=planned.corpus.lexicon,
        on_leak=plan.on_leak,
        held_out={"test": corpora.test} if "test" in plan.evaluate and corpora.plan is None else {},
    )
    assignment.log.parent.mkdir(parents=True, exist_ok=True)
    with assignment.log.open("a", encoding="utf-8") as log:
        console = Console(file=log, width=160)
        say(console, f"{planned} ({assignment.id})")
        model, _ = run(job, console)
    trained = time.perf_counter()
    scores: dict[str, Scores] = {}
    for part in plan.evaluate:
        predicted = model.predict(parts[part], batch_size=64)
        if plan.keep_predictions:
            write_predictions(predicted, plan.output / "predictions" / f"{assignment.id}.{part}.jsonl")
        strict = recognition(parts[part], predicted)
        coverage = coverage_of(model.recipe, model.engine.tokenize, parts[part])
        scores[part] = replace(strict, coverage={**strict.coverage, **coverage.to_dict()})
    if plan.keep_models:
        model.save_pretrained(plan.output / "models" / assignment.id)
    shutil.rmtree(states, ignore_errors=True)
    scored = time.perf_counter()
    own_file = planned.system.recipe.endswith(".py")
    name, _, variant = (Path(planned.system.recipe).name if own_file else planned.system.recipe).partition("/")
    encoder: Any = model.recipe.encoder
    line = {
        "name": planned.system.name,
        "recipe": name,
        "variant": variant,
        "settings": settings,
        "encoder": planned.system.encoder
        or str(getattr(encoder, "keywords", {}).get("name", made_by(encoder).__name__)),
        "corpus": {"name": planned.corpus.name, "fingerprints": dict(assignment.fingerprints)},
        "lexicon": planned.corpus.lexicon,
        "seed": planned.seed,
        "fraction": planned.fraction,
        "train_documents": len(train),
        "leaks": model.facts["leaks"],
        "commit": plan.commit,
        "versions": model.facts["versions"],
        "device": torch.cuda.get_device_name(model.device) if model.device.type == "cuda" else model.device.type,
        "max_width": model.recipe.max_width,
        "overlap": model.recipe.overlap,
        "epochs": model.recipe.train.epochs,
        "train_coverage": model.facts["coverage"],
        **{part: found.to_dict() for part, found in scores.items()},
        **({"corpora": model.facts["corpora"]} if corpora.plan is not None else {}),
        "seconds": {
            "training": round(trained - began, 1),
            "scoring": round(scored - trained, 1),
            "total": round(scored - began, 1),
        },
    }
    return line, {part: found.documents for part, found in scores.items()}


def read_parts(corpus: PlannedCorpus) -> Corpora:
    """The documents of a corpus; of several corpora, dev and test are the target's."""
    if corpus.several is not None:
        return corpora_of(None, None, None, None, corpus.several)
    return gather(corpus.train, corpus.dev, corpus.test, corpus.format)


# Processes that do whole trainings.


def starting(kind: str) -> Any:
    """The way processes start: forked from a server that has imported torch, or spawned, as CUDA survives no fork."""
    if kind != "cpu" or "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    # some of these are imported only in the first step of a training
    context.set_forkserver_preload(["wingspan.experiments.run", "torch._dynamo", "torch.distributed.tensor"])
    return context


def speak_into(log: Path) -> None:
    """Sends everything that this process prints, tracebacks included, to a file."""
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    with log.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    faulthandler.enable()


def last_words(code: int | None, log: Path) -> str:
    """The exit of a process in words, and the last lines of its log."""
    how = f"was killed by {signal.Signals(-code).name}" if code and code < 0 else f"ended with exit code {code}"
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    return "\n".join([f"its process {how}; last lines of {log}:", *lines[-8:]])


# Checks before anything is trained.


def check(plan: ExperimentPlan) -> dict[str, Assignment]:
    """The runs of a plan by identity, in order, after a check of folder, device, recipes, corpora and encoders."""
    Ledger(plan.output).prepare()
    usable_device(plan.device)
    check_recipes(plan)
    fingerprints = {corpus.name: corpus_fingerprints(corpus, plan.evaluate) for corpus in plan.corpora}
    assignments: dict[str, Assignment] = {}
    for planned in plan.runs():
        own = fingerprints[planned.corpus.name]
        name = identity(planned, own, plan.evaluate, plan.on_leak)
        if name in assignments:
            same = assignments[name].run
            raise ValueError(f"{planned} is the same training as {same}; remove one, or change its settings")
        assignments[name] = Assignment(name, planned, plan, own)
    return assignments


def check_recipes(plan: ExperimentPlan) -> None:
    """Checks that every recipe takes its settings on every corpus, and that every encoder can be loaded."""
    loaded: set[str] = set()
    for system in plan.systems:
        for corpus in plan.corpora:
            try:
                recipe = prepare(system.recipe, system.encoder, plan.settings_of(system, corpus))
                must_recognize(recipe, "an experiment")
                encoder = json.dumps(as_json(recipe.encoder))
                if encoder not in loaded:
                    expect(recipe.encoder(), Encoder)
                    loaded.add(encoder)
            except ValueError as error:
                raise ValueError(f"recipe {system.name!r} on corpus {corpus.name!r}: {error}") from error


def corpus_fingerprints(corpus: PlannedCorpus, evaluate: Sequence[str]) -> dict[str, str]:
    """Reads all parts of a corpus once: their content is part of a run's identity."""
    corpora = read_parts(corpus)
    lexicon_of(corpus.lexicon, corpora.train)  # raises if it cannot be read
    parts = {"train": corpora.train, "dev": corpora.dev, "test": corpora.test}
    missing = [part for part in evaluate if not parts[part]]
    if missing:
        raise ValueError(f"{corpus.several}: the target has no {missing[0]} documents; give them, or set evaluate")
    if not any(document.entities for document in corpora.train):
        where = corpus.several or corpus.train[0]
        raise ValueError(f"corpus {corpus.name!r}: no entity in {where}; there is nothing to learn")
    fingerprints = {part: corpus_fingerprint(documents) for part, documents in parts.items() if documents}
    if corpora.declared is not None:
        facts = json.dumps([corpora.declared.to_dict(), corpora.weights, corpora.settings], sort_keys=True)
        fingerprints["corpora"] = hashlib.sha256(facts.encode()).hexdigest()[:12]
    return fingerprints


def write_tables(
    plan: ExperimentPlan, assignments: Mapping[str, Assignment], done: Mapping[str, Mapping[str, Any]]
) -> list[ResultTable]:
    """Writes table.md and table.json beside the results, and learning curves where there are any."""
    results: dict[tuple[str, str, float], list[Mapping[str, Any]]] = defaultdict(list)
    for name, assignment in assignments.items():
        if name in done:
            planned = assignment.run
            results[planned.system.name, planned.corpus.name, planned.fraction].append(done[name])
    ledger = Ledger(plan.output)
    published = read_published(plan.published, plan) if plan.published is not None else None
    tested = p_values(plan, results, lambda line, part: ledger.documents(line["id"], part))
    about = (tested, provenance(plan, results), published)
    tables = [make_table(plan, results, part, figure, *about) for part, figure in product(plan.evaluate, plan.figures)]
    with atomic_write(plan.output / "table.md") as file:
        file.write("\n".join(table.to_markdown() for table in tables))
    with atomic_write(plan.output / "table.json") as file:
        json.dump([table.to_dict() for table in tables], file, indent=2, ensure_ascii=False)
    write_curves(plan, results)
    return tables


# The ledger: one JSON line per finished run, and locks on the runs in progress.

VERDICTS = ("correct", "incorrect", "partial", "missed", "spurious")


class Ledger:
    """The finished runs of an output folder, and the counts of every document beside them.

    A run is claimed with a lock that ends with the process that holds it, however that ends. Its line is written last;
    a kill can tear that line only, and the next writer cuts it off. So no run is lost, and none is done twice.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "results.jsonl"
        self.claims = folder / ".claims"

    def prepare(self) -> None:
        """Makes the folder and tries to write in it."""
        self.claims.mkdir(parents=True, exist_ok=True)
        trial = self.claims / "trial"
        trial.write_text("")
        trial.unlink(missing_ok=True)  # another command that starts now may have removed it

    def lines(self) -> dict[str, dict[str, Any]]:
        """The finished runs by identity; the first line of a run counts."""
        if not self.path.exists():
            return {}
        lines: dict[str, dict[str, Any]] = {}
        for number, line in enumerate(read_journal(self.path), 1):
            if line["event"] != "run" or not isinstance(line.get("id"), str):
                raise ValueError(f"{self.path}:{number}: not the line of a run; choose another output folder")
            lines.setdefault(line["id"], line)
        return lines

    @contextmanager
    def claim(self, run: str, patience: float = 0) -> Iterator[bool]:
        """Whether this process may do the run, which no other may meanwhile; waits up to `patience` seconds for it."""
        lock = FileLock(self.claims / f"{run}.lock", timeout=patience)
        try:
            lock.acquire()
        except (Timeout, FileNotFoundError):  # the latter where a command that has done every run removes the locks
            yield False
            return
        try:
            yield True
        finally:
            lock.release()

    def add(self, run: str, line: Mapping[str, Any], documents: Mapping[str, tuple[Counts, ...]]) -> None:
        """Writes the documents' counts, then the line that makes the run a finished one."""
        rows = {
            part: [[getattr(document, name) for name in VERDICTS] for document in counts]
            for part, counts in documents.items()
        }
        with atomic_write(self._documents(run)) as file:
            file.write(json.dumps({"verdicts": VERDICTS, **rows}) + "\n")
        with FileLock(self.claims / "results.lock"), Journal(self.path) as journal:
            journal.write("run", id=run, **line)

    def documents(self, run: str, part: str) -> tuple[Counts, ...]:
        """The counts of every document of a part, in the order of the corpus."""
        path = self._documents(run)
        try:
            rows = json.loads(path.read_text(encoding="utf-8"))[part]
            return tuple(Counts(*row) for row in rows)
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path}: damaged; delete it and the run's line in {self.path.name}") from error

    def _documents(self, run: str) -> Path:
        return self.folder / "documents" / f"{run}.json"
