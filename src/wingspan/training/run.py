"""`wingspan train`: read, check, fit, train, save, score."""

from __future__ import annotations

import inspect
import platform
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import torch
import transformers
from accelerate import Accelerator
from rich.console import Console

import wingspan
from wingspan.checkpoint import predictor, read_json, read_weights, write_json
from wingspan.corpora.leaks import OnLeak
from wingspan.corpora.statistics import describe
from wingspan.encoders.hashed import HashedEncoder
from wingspan.encoders.lora import counted
from wingspan.encoders.pretrained import PretrainedEncoder
from wingspan.encoders.static import StaticEncoder, StaticPieces
from wingspan.evaluation.calibration import calibration_of
from wingspan.evaluation.scores import (
    HEADLINES,
    Protocol,
    Scores,
    TypingScores,
    by_continuity,
    headline,
    measure,
    over_seeds,
)
from wingspan.layers.word_decoder import Synonyms
from wingspan.recipe import Recipe
from wingspan.recipe_json import as_json, flat, override
from wingspan.recipes import find
from wingspan.recognizer import Recognizer
from wingspan.text import Document
from wingspan.training.corpora import Corpora, Corpus, corpora_of, fingerprint, handle_leaks, lexicon_of
from wingspan.training.finish import (
    calibrate_on,
    fit_joining,
    over_runs,
    proposal_recall,
    proposes,
    said,
    scores_by_corpus,
)
from wingspan.training.fit import Fitted, fit
from wingspan.training.journal import Journal
from wingspan.training.loop import Data, Progress, Run
from wingspan.training.loop import train as train_loop
from wingspan.training.multi_corpus import CorporaPlan
from wingspan.training.processes import accelerator_for
from wingspan.training.progress import TrainingBar
from wingspan.training.state import claim, keep_studied
from wingspan.training.warm_start import must_go_together, renamed
from wingspan.views.console import say
from wingspan.views.tables import print_scores, print_seeds


class Best:
    """Looks at every progress and saves when it is the best so far."""

    def __init__(
        self, run: Run, folder: Path | None, facts: dict[str, Any], device: torch.device, *, saves: bool = True
    ) -> None:
        self.run = run
        self.folder = folder
        self.facts = facts
        self.device = device
        self.saves = saves  # of several processes one
        self.weights: dict[str, torch.Tensor] | None = None

    def look_at(self, progress: Progress) -> None:
        """Saves the model when it is the best so far."""
        if not progress.best:
            return
        if progress.scores is not None:
            self.facts["dev"] = progress.scores.to_dict()
        if self.folder is not None:
            if self.saves:
                self._recognizer().save_pretrained(self.folder)
        else:
            self.weights = {name: value.detach().cpu().clone() for name, value in self.run.learner.state_dict().items()}

    def model(self) -> Recognizer:
        """The best model, ready to predict."""
        encoder = self.run.learner.model.encoder
        if self.folder is not None:  # also where an earlier process saved it, before a kill
            encoder.settle()
            read_weights(self.folder / "model.safetensors", predictor(self.run.learner))
            self.facts |= read_json(self.folder / "facts.json")
        elif self.weights is not None:
            self.run.learner.load_state_dict(self.weights)
            encoder.settle()
        self.run.learner.eval()
        return self._recognizer()

    def _recognizer(self) -> Recognizer:
        run = self.run
        return Recognizer(run.recipe, run.labels, run.learner, device=self.device, facts=self.facts)


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
        **dict(flat(as_json(learning.recipe))),
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


# --- `wingspan train` with one seed or several.


def train_seeds(job: Job, seeds: Sequence[int], console: Console) -> dict[str, Any] | None:
    """One seed straight into the folder, several into `seed-N/` with a summary beside them. Returns the figures."""
    scores: list[Scores | TypingScores] = []
    corpora: list[dict[str, Any]] = []
    leaks: dict[str, Any] = {}
    if len(set(seeds)) < len(seeds):
        raise ValueError(f"--seeds {','.join(map(str, seeds))}: each seed once")
    for seed in seeds:
        folder = job.folder / f"seed-{seed}" if job.folder is not None and len(seeds) > 1 else job.folder
        model, last = run(replace(job, seed=seed, folder=folder), console)
        leaks = {"leaks": model.facts["leaks"]}
        if last is not None:
            scores.append(last)
            corpora.append(model.facts.get("corpora", {}))
    if not scores:
        console.print("No dev or test documents were given, so there are no scores; the last epoch's model is kept.")
        return None
    if len(scores) == 1:
        return {**scores[0].to_dict(), **({"corpora": corpora[0]} if corpora[0] else {}), **leaks}
    console.print(f"{'Test' if job.corpora.test else 'Dev'} scores over {len(scores)} seeds:")
    print_seeds(scores, console)
    by_corpus = {"corpora": over_runs(corpora)} if corpora[0] else {}
    summary = {**over_seeds(scores), "seeds": list(seeds), **by_corpus, **leaks}
    if job.folder is not None:
        write_json(job.folder / "summary.json", summary)
    return summary


# --- What is known of a training before it starts: what the run log says, what the model card keeps.


def announce(fitted: Fitted, console: Console) -> None:
    """What is about to be trained, and what can never be found, before the first step."""
    recipe, types = fitted.recipe, sum(len(labels) for labels in fitted.labels.types.values())
    console.print(f"Recipe {recipe.name}: {recipe.paper}", highlight=False, markup=False, soft_wrap=True)
    objectives: list[Any] = list(fitted.learner.objectives.values())
    encoder = fitted.learner.model.encoder
    parts = [fitted.coverage.lines(), corpora_lines(fitted), encoder.lines(), *(part.lines() for part in objectives)]
    for line in chain.from_iterable(parts):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    how = f"{recipe.overlap} decoding, entities read from {recipe.read_with}"
    if recipe.protocol == "typing":
        how = "each gets a type; scored by accuracy"
    console.print(
        f"{len(fitted.sentences):,} training sentences, {types} entity types; {recipe.scope}, {how}.",
        highlight=False,
        soft_wrap=True,
    )
    every, learned = counted(fitted.learner)
    share = f"{100 * learned / every:.2f}%" if learned < every else "all"
    console.print(f"{every:,} parameters, {learned:,} of them trained ({share}).", highlight=False, soft_wrap=True)


def corpora_lines(fitted: Fitted) -> list[str]:
    """Where there are several corpora: how large each of them is, and about which types it is silent."""
    labels = fitted.labels
    if len(labels.types) == 1:
        return []
    counts = Counter(sentence.dataset for sentence in fitted.sentences)
    blocks = "one block for all" if labels.shared else "a block for each"
    lines = [f"{len(labels.types)} corpora, {labels.num_classes} classes, {blocks}:"]
    for name, types, silent in zip(labels.types, labels.types.values(), labels.silent(), strict=True):
        unmarked = [label for label, left in zip(labels.names(), silent, strict=True) if left]
        said = f"; silence about {', '.join(map(str, unmarked))} teaches nothing" if unmarked else ""
        if unmarked and not labels.shared:
            said += ', nor does any other corpus, so such answers mean nothing (heads = "shared": others teach it)'
        if not counts[name] and not labels.shared:
            said = "; nothing teaches these classes, so answers in its own labels mean nothing"
        role = " (target)" if name == labels.target else ""
        lines.append(f"  {name}{role}: {counts[name]:,} training sentences, {len(types)} types{said}")
    return lines


def versions() -> dict[str, str]:
    """What the model was trained with."""
    return {
        "wingspan": wingspan.__version__,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "python": platform.python_version(),
    }


# --- What `--encoder` takes: hashed, static:FILE, a short name, a folder, or a hub id.


STATIC = "static:"
VECTOR_FILES = (".txt", ".vec", ".bin", ".npz", ".gz")


def with_encoder(recipe: Recipe, name: str) -> Recipe:
    """The recipe on another encoder. Weights from nothing need another learning rate than pretrained ones."""
    part: Any = recipe.encoder if isinstance(recipe.encoder, partial) else partial(recipe.encoder)
    if name == "hashed":
        return recipe if part.func is HashedEncoder else from_nothing(recipe, partial(HashedEncoder))
    if name.startswith(STATIC):
        return with_vectors(recipe, part, name.removeprefix(STATIC))
    if part.func is PretrainedEncoder:
        return replace(recipe, encoder=partial(PretrainedEncoder, **{**part.keywords, "name": name}))
    train = replace(recipe.train, learning_rate=1e-4, factors=FRESH, clip=1.0)
    return replace(recipe, encoder=partial(PretrainedEncoder, name=name), train=train)


def with_vectors(recipe: Recipe, part: Any, name: str) -> Recipe:
    """The recipe on static vectors: a file of words, `random`, or a pretrained model, whose input embeddings they are.

    A recipe that is on static vectors keeps what it can be set to.
    """
    kind, chosen = static_part(name)
    if part.func not in (StaticEncoder, StaticPieces):
        return from_nothing(recipe, partial(kind, **chosen, hidden=128, dropout=0.3))
    known = inspect.signature(kind).parameters
    kept = {key: value for key, value in part.keywords.items() if key in known}
    return replace(recipe, encoder=partial(kind, **{**kept, **chosen}))


def static_part(name: str) -> tuple[Any, dict[str, Any]]:
    """Files are of words; folders, short names and ids of the hub are of pretrained models."""
    if name == "random":
        return StaticEncoder, {"vectors": None}
    if Path(name).is_file() or Path(name).suffix in VECTOR_FILES:
        return StaticEncoder, {"vectors": name}
    return StaticPieces, {"name": name}


def from_nothing(recipe: Recipe, encoder: Any) -> Recipe:
    """The recipe on an encoder none of whose trained weights are pretrained."""
    return replace(recipe, encoder=encoder, train=replace(recipe.train, learning_rate=2e-3, factors={}, clip=5.0))


FRESH = {"model.scorer": 10.0, "objectives": 10.0, "model.encoder.shapes": 10.0}
"""Parameters that are trained from nothing beside a pretrained encoder learn ten times as fast."""


# --- Verbs about strict F1 refuse recipes that type given spans: those have an accuracy, and no report mixes the
# two.


def must_recognize(recipe: Recipe, verb: str) -> Recipe:
    """The recipe, if its models find their spans."""
    if recipe.protocol == "typing":
        raise ValueError(
            f"{recipe.name} types given spans and has no F1, which {verb} is about; "
            "use wingspan train and evaluate, or a variant that recognizes"
        )
    return recipe
