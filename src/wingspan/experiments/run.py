"""`wingspan experiment`: the runs of a plan that are not done yet, side by side, then the tables."""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, NamedTuple

import torch
from filelock import FileLock, Timeout
from rich.console import Console

from wingspan.corpora.formats import write
from wingspan.corpora.statistics import describe
from wingspan.encoders import Encoder
from wingspan.evaluation.scores import Counts, Scores, recognition
from wingspan.experiments.plan import Plan, PlannedCorpus, PlannedRun, Sources, fraction_of, identity
from wingspan.experiments.results import (
    RENDERINGS,
    ResultTable,
    make_tables,
    p_values,
    provenance,
    read_published,
    write_curves,
)
from wingspan.files import atomic_write
from wingspan.recipe import Recipe, expect, made_by
from wingspan.recipe_json import as_json
from wingspan.recognizer import Recognizer, usable_device
from wingspan.text import Document
from wingspan.training.corpora import Corpora, corpora_of, documents_of, lexicon_of
from wingspan.training.fit import coverage_of
from wingspan.training.journal import Journal, read_journal
from wingspan.training.processes import last_words, settle_in, speak_into, starting
from wingspan.training.run import Job, must_recognize, prepare, run
from wingspan.views.console import say
from wingspan.views.tables import Sheet


@dataclass(frozen=True)
class Summary:
    """What an experiment came to: how many runs are done, which failed and why, the tables."""

    runs: int
    done: int
    failed: Mapping[str, str]
    tables: tuple[ResultTable, ...]

    @property
    def remaining(self) -> int:
        """Runs that did not start in the time budget, or failed."""
        return self.runs - self.done

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        counts = {"runs": self.runs, "done": self.done, "remaining": self.remaining}
        return {**counts, "failed": dict(self.failed), "tables": [table.to_dict() for table in self.tables]}


def run_experiment(
    plan: Plan, console: Console, *, time_budget: float | None = None, tables_only: bool = False
) -> Summary:
    """Does what is missing and writes the tables. Killed at any moment and called again, it goes on."""
    if plan.published is not None:
        read_published(plan.published, plan)  # a mistake in it is said now, not after a night of training
    assignments, ledger = check(plan), Ledger(plan.output)
    before = {name: line for name, line in ledger.lines().items() if name in assignments}
    say(console, f"{plan.title}: {len(assignments):,} runs, {len(before):,} of them done; results in {plan.output}")
    failed: dict[str, str] = {}
    if not tables_only:
        tasks = [Task(name, one.run) for name, one in assignments.items() if name not in before]
        failed = follow(plan, assignments, Schedule(tasks, before.values(), time_budget), len(before), console)
    done = {name: line for name, line in ledger.lines().items() if name in assignments}
    tables = tuple(write_tables(plan, assignments, done))
    for table in tables:
        show(table, console)
    if len(done) == len(assignments):
        shutil.rmtree(ledger.claims, ignore_errors=True)  # whoever comes later finds every run done
    elif not tables_only:
        left = len(assignments) - len(done) - len(failed)
        say(console, f"{len(failed):,} runs failed, {left:,} are still to do: the same command goes on with them.")
    return Summary(len(assignments), len(done), failed, tables)


def follow(
    plan: Plan, assignments: Mapping[str, Assignment], schedule: Schedule, done: int, console: Console
) -> dict[str, str]:
    """Starts runs and says what became of each. Returns the failures by the name of the run."""
    workers = min(plan.workers, len(schedule.waiting))
    threads = plan.threads or (1 if plan.workers > 1 else None)
    outcomes: Iterable[tuple[Task, Outcome]] = (
        in_workers(schedule, assignments, workers, threads, usable_device(plan.device).type)
        if workers
        else in_this_process(schedule, assignments)
    )
    failed: dict[str, str] = {}
    waited = False
    for task, outcome in outcomes:
        if outcome.status == "failed":
            failed[str(task.run)] = outcome.problem
            say(console, f"FAILED {task.run}: {outcome.problem}")
        elif outcome.line is not None:
            done += 1
            scores = ", ".join(f"{part} {outcome.line[part]['micro']['f1']:.2f}" for part in plan.evaluate)
            seconds = f"{outcome.line['seconds']['total']:.0f} s"
            say(console, f"[{done}/{len(assignments)}] {task.run}: {scores} ({seconds})")
        elif not waited:
            waited = True
            say(console, f"Another process is at {task.run}; waiting for it in between.")
    return failed


def write_tables(
    plan: Plan, assignments: Mapping[str, Assignment], done: Mapping[str, Mapping[str, Any]]
) -> list[ResultTable]:
    """Writes table.md, table.tex and table.html beside the results, and learning curves where there are any."""
    results: dict[tuple[str, str, float], list[Mapping[str, Any]]] = defaultdict(list)
    for name, one in assignments.items():
        if name in done:
            results[one.run.system.name, one.run.corpus.name, one.run.fraction].append(done[name])
    ledger = Ledger(plan.output)
    published = read_published(plan.published, plan) if plan.published is not None else None
    tested = p_values(plan, results, lambda line, part: ledger.documents(line["id"], part))
    tables = make_tables(plan, results, tested, provenance(plan, results), published)
    for suffix, render in RENDERINGS.items():
        with atomic_write(plan.output / f"table.{suffix}") as file:
            file.write(render(tables))
    write_curves(plan, results)
    return tables


def show(table: ResultTable, console: Console) -> None:
    """A table on the terminal; the best of a column has a star."""
    rows = [
        (name, *(f"{cell.text}{cell.mark and f' {cell.mark}'}{' *' if cell.best else ''}" for cell in cells))
        for name, cells in table.rows
    ]
    Sheet(table.title, ("recipe", *table.columns), rows).show(console)
    for note in table.notes:
        say(console, note.replace("is bold", "has a *"))


# --- One run of an experiment: claim it, train, score, write its line.


Status = Literal["done", "failed", "held", "found"]


@dataclass(frozen=True)
class Assignment:
    """A run as a worker gets it."""

    id: str
    run: PlannedRun
    plan: Plan
    fingerprints: Mapping[str, str]

    @property
    def log(self) -> Path:
        """Where the training says what it does."""
        return self.plan.output / "logs" / f"{self.id}.log"


@dataclass(frozen=True)
class Outcome:
    """What became of an assignment: done with its line, failed with a reason, held or finished by another process."""

    status: Status
    line: Mapping[str, Any] | None = None
    problem: str = ""


def attempt(assignment: Assignment) -> Outcome:
    """Does a run unless someone else has done it or is at it. Bad data or settings fail this run and no other."""
    ledger = Ledger(assignment.plan.output)
    with ledger.claim(assignment.id) as mine:
        if not mine:
            return Outcome("held")
        if assignment.id in ledger.lines():
            return Outcome("found", ledger.lines()[assignment.id])
        try:
            line, documents = carry_out(assignment)
            ledger.add(assignment.id, line, documents)
        except (ValueError, OSError) as error:
            return Outcome("failed", problem=" ".join(str(error).split()))
    return Outcome("done", ledger.lines()[assignment.id])


def carry_out(assignment: Assignment) -> tuple[dict[str, Any], dict[str, tuple[Counts, ...]]]:
    """Trains and scores. The line of the run, and the counts of every document of what was scored."""
    plan, planned = assignment.plan, assignment.run
    corpora = known_parts(planned.corpus.sources(), tuple(assignment.fingerprints.items()))
    parts = {"dev": corpora.dev, "test": corpora.test}
    train = fraction_of(corpora.train, planned.fraction, planned.seed)
    settings = {**corpora.settings, **planned.settings}
    recipe = prepare(planned.system.recipe, planned.system.encoder, settings)
    torch.set_float32_matmul_precision("high" if plan.tf32 else "highest")
    began = time.perf_counter()
    unseen = {"test": corpora.test} if "test" in plan.evaluate and corpora.plan is None else {}
    model = train_model(assignment, recipe, replace(corpora, train=train, test=()), unseen)
    trained = time.perf_counter()
    found = {part: score(model, part, parts[part], assignment) for part in plan.evaluate}
    if plan.keep_models:
        model.save_pretrained(plan.output / "models" / assignment.id)
    shutil.rmtree(states(assignment), ignore_errors=True)
    scored = time.perf_counter()
    line = {
        "name": planned.system.name,
        **dict(zip(("recipe", "variant"), _system_and_variant(planned.system.recipe), strict=True)),
        "settings": settings,
        "encoder": planned.system.encoder or encoder_name(model.recipe),
        "corpus": {"name": planned.corpus.name, "fingerprints": dict(assignment.fingerprints)},
        "lexicon": planned.corpus.lexicon,
        "seed": planned.seed,
        "fraction": planned.fraction,
        "train_documents": len(train),
        "leaks": model.facts["leaks"],
        "commit": plan.commit,
        "versions": model.facts["versions"],
        "device": device_name(model),
        "max_width": model.recipe.max_width,
        "overlap": model.recipe.overlap,
        "epochs": model.recipe.train.epochs,
        "train_coverage": model.facts["coverage"],
        **{part: scores.to_dict() for part, scores in found.items()},
        **({"corpora": model.facts["corpora"]} if corpora.plan is not None else {}),
        "seconds": {
            "training": round(trained - began, 1),
            "scoring": round(scored - trained, 1),
            "total": round(scored - began, 1),
        },
    }
    return line, {part: scores.documents for part, scores in found.items()}


def train_model(
    assignment: Assignment, recipe: Recipe, corpora: Corpora, unseen: Mapping[str, Sequence[Document]]
) -> Recognizer:
    """Trains, in memory or with states on the disk from which a killed run goes on; not on what shall be unseen."""
    plan, planned = assignment.plan, assignment.run
    folder = states(assignment) if plan.checkpoints else None
    resume = folder is not None and (folder / "state" / "run.json").is_file()
    if folder is not None and not resume:
        shutil.rmtree(folder, ignore_errors=True)
    assignment.log.parent.mkdir(parents=True, exist_ok=True)
    with assignment.log.open("a", encoding="utf-8") as log:
        console = Console(file=log, width=160)
        console.print(f"{planned} ({assignment.id})", highlight=False, markup=False)
        job = Job(
            recipe,
            corpora,
            folder,
            planned.seed,
            resume=resume,
            device=plan.device,
            lexicon=planned.corpus.lexicon,
            on_leak=plan.on_leak,
            held_out=unseen,
        )
        return run(job, console)[0]


def states(assignment: Assignment) -> Path:
    """Where a run with checkpoints keeps what it needs to go on."""
    return assignment.plan.output / "running" / assignment.id


def score(model: Recognizer, part: str, gold: Sequence[Document], assignment: Assignment) -> Scores:
    """Strict scores of a part, with what the model can never find in it; keeps the predictions where asked to."""
    predicted = model.predict(gold, batch_size=64)
    if assignment.plan.keep_predictions:
        write(predicted, assignment.plan.output / "predictions" / f"{assignment.id}.{part}.jsonl")
    scores = recognition(gold, predicted)
    coverage = coverage_of(model.recipe, model.learner.model.encoder, gold)
    return replace(scores, coverage={**scores.coverage, **coverage.to_dict()})


def read_parts(sources: Sources) -> Corpora:
    """The documents of a corpus; of several together, dev and test are those of their target."""
    if sources.several is not None:
        return corpora_of(None, None, None, None, sources.several)
    parts = {
        part: [document for path in paths for document in documents_of(path, sources.format)]
        for part, paths in sources.files
    }
    return Corpora(parts["train"], parts.get("dev", ()), parts.get("test", ()))


@lru_cache(maxsize=2)
def known_parts(sources: Sources, fingerprints: tuple[tuple[str, str], ...]) -> Corpora:
    """The same; a worker that goes on with the same content does not read it again."""
    return read_parts(sources)


def device_name(model: Recognizer) -> str:
    """What the run was on."""
    return torch.cuda.get_device_name(model.device) if model.device.type == "cuda" else model.device.type


def encoder_name(recipe: Recipe) -> str:
    """The encoder of a recipe as people call it."""
    part: Any = recipe.encoder
    return str(getattr(part, "keywords", {}).get("name", made_by(part).__name__))


def _system_and_variant(recipe: str) -> tuple[str, str]:
    """`bundling/span` as its two halves; the file of a user's own recipe as its name."""
    if recipe.endswith(".py"):
        return Path(recipe).name, ""
    system, _, variant = recipe.partition("/")
    return system, variant


# --- Everything about a plan that can go wrong is found before anything is trained.


def check(plan: Plan) -> dict[str, Assignment]:
    """The runs of a plan by identity, in order, after a look at folder, device, recipes, corpora and encoders."""
    Ledger(plan.output).prepare()
    usable_device(plan.device)
    check_recipes(plan)
    fingerprints = {corpus.name: corpus_fingerprints(corpus, plan.evaluate) for corpus in plan.corpora}
    return assignments(plan, fingerprints)


def check_recipes(plan: Plan) -> None:
    """Every recipe takes the settings it gets on every corpus, and every encoder can be loaded."""
    seen: set[str] = set()
    for system in plan.systems:
        for corpus in plan.corpora:
            try:
                recipe = prepare(system.recipe, system.encoder, plan.settings_of(system, corpus))
                must_recognize(recipe, "an experiment")
                encoder = json.dumps(as_json(recipe.encoder))
                if encoder not in seen:
                    expect(recipe.encoder(), Encoder)
                    seen.add(encoder)
            except ValueError as error:
                raise ValueError(f"recipe {system.name!r} on corpus {corpus.name!r}: {error}") from error


def corpus_fingerprints(corpus: PlannedCorpus, evaluate: Sequence[str]) -> dict[str, str]:
    """Reads all parts of a corpus once: what is in them is part of a run's identity."""
    given = read_parts(corpus.sources())
    lexicon_of(corpus.lexicon, given.train)  # read to see that it can be
    parts = {"train": given.train, "dev": given.dev, "test": given.test}
    found = {part: describe(documents) for part, documents in parts.items() if documents}
    missing = [part for part in evaluate if part not in found]
    if missing:
        raise ValueError(f"{corpus.several}: the target has no {missing[0]} documents; give them, or set evaluate")
    if not found["train"].entities:
        where = corpus.several or corpus.train[0]
        raise ValueError(f"corpus {corpus.name!r}: no entity in {where}; there is nothing to learn")
    fingerprints = {part: statistics.fingerprint for part, statistics in found.items()}
    if given.declared is not None:
        said = json.dumps([given.declared.to_dict(), given.weights, given.settings], sort_keys=True)
        fingerprints["corpora"] = hashlib.sha256(said.encode()).hexdigest()[:12]
    return fingerprints


def assignments(plan: Plan, fingerprints: Mapping[str, Mapping[str, str]]) -> dict[str, Assignment]:
    """Each run once; two entries of a plan that are the same training are a slip of the pen."""
    found: dict[str, Assignment] = {}
    for planned in plan.runs():
        of_corpus = fingerprints[planned.corpus.name]
        name = identity(planned, of_corpus, plan.evaluate, plan.on_leak)
        if name in found:
            raise ValueError(f"{planned} is the same training as {found[name].run}; remove one, or change its settings")
        found[name] = Assignment(name, planned, plan, of_corpus)
    return found


# --- Processes that train side by side, one run after the other; one that dies takes its run with it, no more.


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


# --- Which run comes next: in the order of the plan, and with a time budget none that would not end in time.


RETRY = 2.0
"""Seconds after which a run that another process holds is looked at again."""
SPARE = 1.2
"""A run may take so many times what it is expected to take."""


class Task(NamedTuple):
    """A planned run under its identity."""

    id: str
    run: PlannedRun


class Schedule:
    """The runs to do. `finished` lines of earlier runs say how long others may take."""

    def __init__(
        self,
        tasks: Iterable[Task],
        finished: Iterable[Mapping[str, Any]] = (),
        budget: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.waiting = list(tasks)
        self.times = [(_traits(line), float(line["seconds"]["total"])) for line in finished]
        self.clock = clock
        self.end = clock() + budget if budget is not None else None
        self.held: dict[str, float] = {}  # identity -> when it may be looked at again

    def next(self) -> Task | None:
        """The next run that may start now, taken off the list."""
        now = self.clock()
        for place, task in enumerate(self.waiting):
            if self.held.get(task.id, now) <= now and self._fits(task.run, now):
                return self.waiting.pop(place)
        return None

    def hold(self, task: Task) -> None:
        """Another process is at this run: it comes back later, in case that process dies."""
        self.held[task.id] = self.clock() + RETRY
        self.waiting.append(task)

    def pause(self) -> float | None:
        """Seconds until a held run may be looked at; None where there is nothing to wait for."""
        now = self.clock()
        later = [self.held[task.id] for task in self.waiting if task.id in self.held and self._fits(task.run, now)]
        return max(0.0, min(later) - now) if later else None

    def learn(self, line: Mapping[str, Any]) -> None:
        """One more run whose time is known."""
        self.times.append((_traits(line), float(line["seconds"]["total"])))

    def expected(self, run: PlannedRun) -> float | None:
        """Seconds a run should take: the mean of those most like it; None while none has ended."""
        wanted = (run.corpus.name, run.system.name, run.fraction)
        for alike in ((0, 1, 2), (0, 2), (0, 1), (1,), ()):
            near = [seconds for traits, seconds in self.times if all(traits[i] == wanted[i] for i in alike)]
            if near:
                return fmean(near)
        return None

    def _fits(self, run: PlannedRun, now: float) -> bool:
        if self.end is None:
            return True
        return now + SPARE * (self.expected(run) or 0.0) < self.end


def _traits(line: Mapping[str, Any]) -> Sequence[Any]:
    return line["corpus"]["name"], line["name"], line["fraction"]


# --- What an experiment has done: one JSON line per finished run, and who is at which run right now.
#
# A run is claimed with a lock that ends with the process that holds it, however that ends. Its line is the last thing
# it writes; a kill can tear that line only, and whoever writes next cuts it off. So no run is lost, and none is done
# twice.


VERDICTS = ("correct", "incorrect", "partial", "missed", "spurious")


class Ledger:
    """The lines of an output folder, and the counts of every document beside them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "results.jsonl"
        self.claims = folder / ".claims"

    def prepare(self) -> None:
        """Makes the folder and tries to write in it, before anything is trained."""
        self.claims.mkdir(parents=True, exist_ok=True)
        trial = self.claims / "trial"
        trial.write_text("")
        trial.unlink(missing_ok=True)  # of two that begin together, the other may have been faster

    def lines(self) -> dict[str, dict[str, Any]]:
        """The finished runs by their identity; of a run that is there twice the first."""
        if not self.path.exists():
            return {}
        found: dict[str, dict[str, Any]] = {}
        for number, line in enumerate(read_journal(self.path), 1):
            if line["event"] != "run" or not isinstance(line.get("id"), str):
                raise ValueError(f"{self.path}:{number}: not the line of a run; choose another output folder")
            found.setdefault(line["id"], line)
        return found

    @contextmanager
    def claim(self, run: str) -> Iterator[bool]:
        """Whether this process may do the run; nobody else may while it does."""
        lock = FileLock(self.claims / f"{run}.lock")
        try:
            lock.acquire(blocking=False)
        except Timeout:
            yield False
            return
        try:
            yield True
        finally:
            lock.release()

    def add(self, run: str, line: Mapping[str, Any], documents: Mapping[str, tuple[Counts, ...]]) -> None:
        """Writes the documents' counts, then the line that says that the run is done."""
        rows = {
            part: [[getattr(one, name) for name in VERDICTS] for one in counts] for part, counts in documents.items()
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
