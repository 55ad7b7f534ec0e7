"""`wingspan train`: read, check, fit, train, save, score."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from rich.console import Console

from wingspan.adapters import counted
from wingspan.checkpoint import write_json
from wingspan.corpora.leak_report import OnLeak
from wingspan.corpora.several import CorporaPlan
from wingspan.corpora.statistics import describe
from wingspan.evaluation.calibration import calibration_of
from wingspan.evaluation.continuity import by_continuity
from wingspan.evaluation.given_spans import TypingScores
from wingspan.evaluation.protocols import HEADLINES, Protocol, headline, measure
from wingspan.evaluation.scores import Scores
from wingspan.naming import Synonyms
from wingspan.recipe import Recipe
from wingspan.recipes import find
from wingspan.recognizer import Recognizer
from wingspan.record import override, settings_of, to_record
from wingspan.runs.by_corpus import scores_by_corpus
from wingspan.runs.calibrate import calibrate_on
from wingspan.runs.encoders import with_encoder
from wingspan.runs.facts import announce, versions
from wingspan.runs.joining import fit_joining
from wingspan.runs.leak_handling import handle_leaks
from wingspan.runs.progress import TrainingBar
from wingspan.runs.proposals import proposal_recall, proposes, said
from wingspan.runs.reading import Corpora, Corpus, corpora_of
from wingspan.runs.recognizers_only import must_recognize
from wingspan.runs.speaking import say
from wingspan.runs.synonyms import fingerprint, lexicon_of
from wingspan.runs.tables import print_scores
from wingspan.text import Document
from wingspan.training.adopting import must_go_together, renamed
from wingspan.training.best import Best
from wingspan.training.fitting import fit
from wingspan.training.hardware import accelerator_for
from wingspan.training.journal import Journal
from wingspan.training.loop import Data, Progress, Run
from wingspan.training.loop import train as train_loop
from wingspan.training.phases import keep_studied
from wingspan.training.state import claim


@dataclass(frozen=True)
class Job:
    """One training, ready to run."""

    recipe: Recipe
    corpora: Corpora
    folder: Path | None = None
    seed: int = 1
    resume: bool = False
    start: str | Path | None = None
    """A model to go on from; `rename` gives its labels other names first."""
    rename: Mapping[str, str] = field(default_factory=dict)
    parts: Sequence[str] = ()
    """Modules of the user's own that hold parts of the model to go on from."""
    device: str | None = None
    track: str | None = None
    watch: Callable[[Progress], None] | None = None
    """Sees every progress; what it raises ends the training."""
    lexicon: str | Path | Synonyms | None = None
    """Synonyms, for objectives that learn from them."""
    on_leak: OnLeak = "drop"
    """What becomes of training documents that are, or nearly are, among those that are scored."""
    held_out: Mapping[str, Sequence[Document]] = field(default_factory=dict)
    """Documents besides dev and test that will be scored, by the name of their part."""


def train(
    recipe: str | Recipe,
    *,
    train: Corpus | Sequence[str | Path] | None = None,
    dev: Corpus | None = None,
    test: Corpus | None = None,
    output: str | Path | None = None,
    encoder: str | None = None,
    settings: Mapping[str, Any] | None = None,
    seed: int = 1,
    format: str | None = None,
    console: Console | None = None,
    corpora: str | Path | CorporaPlan | None = None,
    **others: Any,
) -> Recognizer:
    """Trains a recognizer and returns the best one (by dev F1 or accuracy; without dev documents the last).

    `recipe` is a name such as "bundling/bl-span", the path of a recipe file, or a Recipe; corpora are files in any
    format, or documents; `settings` are overrides as of `--set`. With `output` the model, the journal and the states
    are kept there. Several corpora come as a `corpora.toml` or a plan in `corpora`, in the place of the files.
    `resume`, `start`, `rename`, `parts`, `device`, `track` and `on_leak` are as in the shell.
    """
    must_go_together(others.get("start"), others.get("rename"), encoder, settings or {})
    given = corpora_of(train, dev, test, format, corpora)
    folder = Path(output) if output is not None else None
    job = Job(prepare(recipe, encoder, {**given.settings, **(settings or {})}), given, folder, seed, **others)
    return run(job, console or Console(quiet=True))[0]


def prepare(recipe: str | Recipe, encoder: str | None, settings: Mapping[str, Any]) -> Recipe:
    """The recipe with the encoder and settings of this run."""
    chosen = find(recipe) if isinstance(recipe, str) else recipe
    if encoder is not None:
        chosen = with_encoder(chosen, encoder)
    for key, value in settings.items():
        chosen = override(chosen, key, str(value))
    return chosen


def run(job: Job, console: Console) -> tuple[Recognizer, Scores | TypingScores | None]:
    """One training from one seed. Returns the best model and its test scores, or dev scores where there is no test."""
    if job.folder is not None and (job.folder / "journal.jsonl").exists() and not job.resume:
        raise ValueError(f"{job.folder}: there is a run already; choose another --output, or go on with --resume")
    start = None
    if job.start is not None:
        start = renamed(Recognizer.from_pretrained(job.start, device=job.device, parts=job.parts), job.rename)
    if job.corpora.declared is not None:
        must_recognize(job.recipe, "training on several corpora")
    scored = {**job.corpora.held_out, **job.held_out}
    handled = handle_leaks(job.corpora.train, scored, job.on_leak, job.corpora.target)
    say(console, handled.line)
    job = replace(job, corpora=replace(job.corpora, train=handled.documents))
    lexicon = lexicon_of(job.lexicon, job.corpora.train)
    fitted = fit(
        job.recipe,
        job.corpora.train,
        job.corpora.dev,
        seed=job.seed,
        start=start,
        lexicon=lexicon,
        declared=job.corpora.declared,
    )
    announce(fitted, console)
    accelerator = accelerator_for(fitted.recipe.train.precision, job.device, job.track, job.folder)
    accelerator.wait_for_everyone()  # of several processes all have seen that there is no run yet
    first = accelerator.is_main_process  # the one that writes
    facts: dict[str, Any] = {
        "seed": job.seed,
        "coverage": fitted.coverage.lines(),
        "encoder_lines": fitted.learner.model.encoder.lines(),
        "train_fingerprint": describe(job.corpora.train).fingerprint,
        "trained_parameters": counted(fitted.learner)[1],
        "versions": versions(),
        "leaks": handled.to_dict(),
    }
    states = job.folder / "state" if job.folder is not None else None
    data = Data(fitted.sentences, job.corpora.dev, job.corpora.weights)
    learning = Run(fitted.recipe, fitted.labels, fitted.learner, data, job.seed, states, job.resume)
    if states is not None and first:
        others = {"lexicon": fingerprint(fitted.studied), "processes": accelerator.num_processes}
        claim(states, {**order_of(learning, facts), **others}, job.resume)
        keep_studied(states, fitted.studied)
    if job.folder is not None and first:
        write_json(job.folder / "leaks.json", {**handled.to_dict(), **handled.leaks.to_dict()})
    best = Best(learning, job.folder, facts, accelerator.device, saves=first)
    with ExitStack() as stack:
        written = job.folder if first else None
        journal = stack.enter_context(Journal(written / "journal.jsonl")) if written is not None else None
        if journal:
            journal.write("resumed" if job.resume else "start", recipe=fitted.recipe.name, **facts)
        follow(learning, accelerator, best, journal, console, tracked=job.track is not None, watch=job.watch)
        accelerator.wait_for_everyone()  # the best model is written
        model = best.model()
        scores = finish(model, job, console) if first else None
        if journal:
            journal.write("end", dev=model.facts.get("dev"), test=model.facts.get("test"))
    return model, scores


def order_of(learning: Run, facts: Mapping[str, Any]) -> dict[str, Any]:
    """What decides every step of a run and which epoch is best: the same for a run that is resumed."""
    return {
        "seed": learning.seed,
        "training corpus": facts["train_fingerprint"],
        "dev corpus": describe(learning.data.dev).fingerprint,
        **({"corpora": learning.labels.to_dict(), "weights": weights} if (weights := learning.data.weights) else {}),
        **dict(settings_of(to_record(learning.recipe))),
    }


def follow(
    learning: Run,
    accelerator: Accelerator,
    best: Best,
    journal: Journal | None,
    console: Console,
    tracked: bool,
    watch: Callable[[Progress], None] | None = None,
) -> None:
    """Goes through the training: shows it, keeps the best model, writes it down."""
    try:
        with TrainingBar(console, enabled=console.is_terminal) as bar:
            for progress in train_loop(learning, accelerator):
                bar.update(progress)
                best.look_at(progress)
                log(progress, learning.recipe.protocol, journal, accelerator if tracked else None)
                if watch is not None:
                    watch(progress)
    except ValueError as error:
        if journal:
            journal.write("error", message=str(error))
        raise
    finally:
        for tracker in accelerator.trackers:
            tracker.finish()


def finish(model: Recognizer, job: Job, console: Console) -> Scores | TypingScores | None:
    """Calibrates the best model on dev, scores it on test, or on dev where there is none, and saves it with both."""
    fit_joining(model, job.corpora.dev, console, batch_size=64)
    if job.corpora.dev:
        calibrate_on(model, job.corpora.dev, console, batch_size=64)
    part, gold = ("test", job.corpora.test) if job.corpora.test else ("dev", job.corpora.dev)
    scores = None
    if gold:
        found = model.predict(gold, batch_size=64)
        scores = measure(model.recipe.protocol, gold, found)
        if isinstance(scores, Scores):
            scores = replace(scores, continuity=by_continuity(gold, found))
        model.facts[part] = scores.to_dict()
        model.facts["calibration_error"] = {part: calibration_of(gold, found).overall.error}
        console.print(f"{part.capitalize()} scores of the best epoch's model, seed {job.seed}:")
        print_scores(scores, console)
        if proposes(model):
            model.facts["proposals"] = proposal_recall(model, gold, batch_size=64)
            console.print(said(model.facts["proposals"]), highlight=False, soft_wrap=True)
    if job.corpora.plan is not None:
        model.facts["corpora"] = scores_by_corpus(model, job.corpora.plan, job.corpora.train, console)
    if job.folder is not None:
        model.save_pretrained(job.folder)
    return scores


def log(progress: Progress, protocol: Protocol, journal: Journal | None, tracker: Accelerator | None) -> None:
    """One line per event in the journal, one point per event in the tracker."""
    place = progress.place
    dev = {f"dev_{HEADLINES[protocol].lower()}": headline(progress.scores) if progress.scores else None}
    if journal:
        journal.write(
            "epoch" if place.step == 0 else "progress",
            phase=place.phase,
            epoch=place.epoch,
            step=place.total,
            steps=progress.steps,
            losses=dict(progress.losses),
            best=progress.best,
            **dev,
        )
    if tracker is not None:
        tracker.log({**progress.losses, **(dev if progress.scores else {})}, step=place.total)
