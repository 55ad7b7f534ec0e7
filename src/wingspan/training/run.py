"""`wingspan train`: one training from corpora to a scored model folder, and the same over several seeds."""

from __future__ import annotations

import inspect
import json
import platform
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any, Never

import torch
import transformers
from accelerate import Accelerator
from rich.console import Console

import wingspan
from wingspan.box import located
from wingspan.checkpoint import predictor, read_weights, write_json
from wingspan.corpora.formats import keep_apart
from wingspan.corpora.leaks import OnLeak
from wingspan.encoders.hashed import ConvolvedEncoder
from wingspan.encoders.pretrained import PretrainedEncoder
from wingspan.encoders.static import StaticEncoder, StaticPieces
from wingspan.evaluation import scores as scoring
from wingspan.evaluation.calibration import calibration_of
from wingspan.evaluation.scores import Scores, TypingScores, headline
from wingspan.files import stored_object
from wingspan.layers.word_decoder import Synonyms
from wingspan.recipe import Learner, Recipe, must_recognize, with_teachers
from wingspan.recipe_json import as_json, flat, override
from wingspan.recipes import find
from wingspan.recognizer import Recognizer
from wingspan.recognizer.exported import GRAPH
from wingspan.text import Document, corpus_fingerprint
from wingspan.training import finish as finishing
from wingspan.training.choice import line_about_size, settings_by_size, settle
from wingspan.training.corpora import Corpora, Corpus, corpora_of, handle_leaks, lexicon_for
from wingspan.training.fit import Fitted, fit
from wingspan.training.journal import Journal, TrainingBar
from wingspan.training.loop import Progress, TrainingData, TrainingRun, accelerator_for
from wingspan.training.loop import train as train_loop
from wingspan.training.multi_corpus import CorporaPlan
from wingspan.training.state import alone_in, claim, latest_state, load_position
from wingspan.training.teaching import identity_of, leak_lines, open_teachers, teach
from wingspan.training.warm_start import renamed
from wingspan.views.console import counted, refuse_unknown, say
from wingspan.views.tables import print_scores, print_seeds


@dataclass(frozen=True)
class TrainingJob:
    """Everything that one training needs, ready to run."""

    recipe: Recipe
    corpora: Corpora
    folder: Path | None = None
    seed: int = 1
    reason: str | None = None
    """Why `auto` chose this recipe."""
    resume: bool = False
    start: str | Path | None = None
    """A model to go on from; `rename` changes names of its labels first."""
    rename: Mapping[str, str] = field(default_factory=dict)
    parts: Sequence[str] = ()
    """The user's modules with parts of the model to go on from."""
    device: str | None = None
    track: str | None = None
    bar: Console | None = None
    """Where the progress is shown; otherwise on the console of the log."""
    watch: Callable[[Progress], None] | None = None
    """Called with every progress; an exception from it ends the training."""
    lexicon: str | Path | Synonyms | None = None
    """Synonyms, for objectives that learn from them."""
    on_leak: OnLeak = "drop"
    """The treatment of training documents that are, or nearly are, in the held-out parts."""
    teachers: Sequence[str | Path] = ()
    """Models whose chances of spans are learned, too."""
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
    epochs: int | None = None,
    batch_size: int | None = None,
    learning_rate: float | None = None,
    seed: int = 1,
    format: str | None = None,
    corpora: str | Path | CorporaPlan | None = None,
    lexicon: str | Path | Synonyms | None = None,
    resume: bool = False,
    start: str | Path | None = None,
    rename: Mapping[str, str] | None = None,
    teachers: Sequence[str | Path] = (),
    parts: Sequence[str] = (),
    on_leak: OnLeak = "drop",
    device: str | None = None,
    track: str | None = None,
    watch: Callable[[Progress], None] | None = None,
    console: Console | None = None,
    progress: bool = True,
    **unknown: Never,
) -> Recognizer:
    """Trains a recognizer and returns the best one (by dev F1 or accuracy; without dev documents the last).

    `recipe` is a name such as "bundling/bl-span", "auto", the path of a recipe file, or a Recipe; corpora are files in
    any format, documents, or dictionaries as in JSON-lines; `settings` are overrides as in `--set`. The model, the
    journal and the states are kept in `output`. Several corpora come as a `corpora.toml` or a plan in `corpora`,
    instead of the files. All others are as in the shell; the log goes to `console`, a bar to the terminal or notebook.
    """
    refuse_unknown(wingspan.train, unknown)
    chosen = {**(settings or {}), **quick_settings(epochs, batch_size, learning_rate)}
    check_warm_start(start, rename, encoder, chosen)
    data, log = corpora_of(train, dev, test, format, corpora), console or Console(quiet=True)
    decided, reason = decide(recipe, data, encoder, chosen, log, start=start, parts=parts, taught=bool(teachers))
    job = TrainingJob(
        decided,
        data,
        Path(output) if output is not None else None,
        seed,
        reason,
        resume=resume,
        start=start,
        rename=rename or {},
        parts=parts,
        device=device,
        track=track,
        bar=watched_by_a_person() if progress and console is None else None,
        watch=watch,
        lexicon=lexicon,
        on_leak=on_leak,
        teachers=teachers,
    )
    return run(job, log)[0]


def quick_settings(epochs: int | None, batch_size: int | None, learning_rate: float | None) -> dict[str, Any]:
    """The three settings that everyone changes, under their full names."""
    named = {"train.epochs": epochs, "train.batch_size": batch_size, "train.learning_rate": learning_rate}
    return {name: value for name, value in named.items() if value is not None}


def watched_by_a_person() -> Console | None:
    """A console for the bar, where standard error is a terminal or a notebook."""
    console = Console(stderr=True)
    return console if console.is_terminal or console.is_jupyter else None


def check_warm_start(
    start: str | Path | None, rename: object, encoder: str | None, settings: Mapping[str, Any]
) -> None:
    """Rejects options that would have no effect with, or without, a model to start from."""
    if start is not None and (encoder is not None or any(key.startswith("encoder.") for key in settings)):
        raise ValueError("--from brings its own encoder; leave out --encoder and --set encoder...")
    if start is not None and (located(start) / GRAPH).exists():
        raise ValueError(f"--from: {start} is exported and can only predict; give the model that it was exported from")
    if rename and start is None:
        raise ValueError("--rename gives labels of the --from model other names; give --from MODEL too")


def decide(
    recipe: str | Recipe,
    data: Corpora,
    encoder: str | None,
    settings: Mapping[str, Any],
    console: Console,
    *,
    start: str | Path | None = None,
    parts: Sequence[str] = (),
    taught: bool = False,
) -> tuple[Recipe, str | None]:
    """The recipe of a training with all its settings, and why `auto` chose it, which the log says first.

    What the user sets wins over what the corpora file sets, and that over what `auto` brings.
    """
    settled = settle(recipe, data, encoder, start, parts, taught=taught)
    if settled.reason is not None:
        say(console, settled.reason)
    given = {**data.settings, **settings}
    ready = prepare(settled.recipe, settled.encoder, given, start, taught=taught, brought=settled.settings)
    return ready, settled.reason


def prepare(
    recipe: str | Recipe,
    encoder: str | None,
    settings: Mapping[str, Any],
    start: str | Path | None = None,
    *,
    taught: bool = False,
    brought: Mapping[str, str] = MappingProxyType({}),
) -> Recipe:
    """The recipe with the encoder and settings of this run, and those for its encoder's size where none are given.

    Settings that `auto` has `brought` are the recipe's own. One that is `taught` gets a term for that, which leaves the
    other losses in proportion.
    """
    chosen = find(recipe) if isinstance(recipe, str) else recipe
    if encoder is not None:
        chosen = with_encoder(chosen, encoder)
    for key, value in brought.items():
        chosen = override(chosen, key, value)
    if taught and "teachers" not in chosen.terms:
        chosen = with_teachers(chosen)
    for key, value in settings.items():
        chosen = override(chosen, key, str(value))
    given = (*settings, *brought)
    for key, value in settings_by_size(recipe, chosen.encoder, start).items() if isinstance(recipe, str) else ():
        if not any(key == name or key.startswith(f"{name}.") for name in given):  # `train.factors` is all its factors
            chosen = override(chosen, key, value)
    return chosen


def train_seeds(job: TrainingJob, seeds: Sequence[int], console: Console) -> dict[str, Any] | None:
    """Trains one seed into the folder, or several into `seed-N/` with a summary beside them. Returns the figures."""
    scores: list[Scores | TypingScores] = []
    corpora: list[dict[str, Any]] = []
    leaks: dict[str, Any] = {}
    if len(set(seeds)) < len(seeds):
        raise ValueError(f"--seeds {','.join(map(str, seeds))}: each seed once")
    with alone_in(job.folder) if len(seeds) > 1 else nullcontext():
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
    by_corpus = {"corpora": finishing.over_runs(corpora)} if corpora[0] else {}
    summary = {**scoring.over_seeds(scores), "seeds": list(seeds), **by_corpus, **leaks}
    if job.folder is not None:
        write_json(job.folder / "summary.json", summary)
    return summary


def run(job: TrainingJob, console: Console) -> tuple[Recognizer, Scores | TypingScores | None]:
    """One training from one seed. Returns the best model and its test scores, or dev scores where there is no test."""
    with alone_in(job.folder):
        return _run(job, console)


def _run(job: TrainingJob, console: Console) -> tuple[Recognizer, Scores | TypingScores | None]:
    if job.folder is not None and (job.folder / "journal.jsonl").exists() and not job.resume:
        raise ValueError(f"{job.folder}: there is a run already; choose another --output, or go on with --resume")
    start = None
    if job.start is not None:
        if job.folder is not None:
            keep_apart(job.folder, [Path(job.start)])
        how: dict[str, Any] = {"device": job.device, "parts": job.parts, "to_train": True}
        start = renamed(Recognizer.from_pretrained(job.start, **how), job.rename)
    teachers = open_teachers(job.recipe, job.teachers, job.device, job.parts)
    if job.corpora.declared is not None:
        must_recognize(job.recipe, "training on several corpora")
    held_out = {**job.corpora.held_out, **job.held_out}
    handling = handle_leaks(job.corpora.train, held_out, job.on_leak, job.corpora.target)
    for line in (handling.line, *leak_lines(teachers, held_out)):
        say(console, line)
    corpora = replace(job.corpora, train=handling.documents)
    (lexicon, said), labels = lexicon_for(job.recipe, job.lexicon, corpora.train), corpora.declared
    if said:
        say(console, said)
    fitted = fit(job.recipe, corpora.train, corpora.dev, seed=job.seed, start=start, lexicon=lexicon, declared=labels)
    announce(fitted, console)
    if teachers:
        fitted, said = teach(fitted, teachers)
        say(console, said)
    accelerator = accelerator_for(fitted.recipe.train.precision, job.device, job.track, job.folder)
    accelerator.wait_for_everyone()  # all of several processes have seen that there is no run yet
    first = accelerator.is_main_process  # the one that writes
    facts: dict[str, Any] = {
        "seed": job.seed,
        "coverage": fitted.coverage.lines(),
        "words": fitted.agreement.line if fitted.agreement is not None else None,
        "encoder_lines": fitted.learner.model.encoder.lines(),
        "train_fingerprint": corpus_fingerprint(corpora.train),
        "trained_parameters": parameter_counts(fitted.learner)[1],
        "versions": {
            "wingspan": wingspan.__version__,
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "python": platform.python_version(),
        },
        "leaks": handling.to_dict(),
        **({"choice": job.reason} if job.reason is not None else {}),
        **({"teachers": [teacher.fact for teacher in teachers]} if teachers else {}),
    }
    states = job.folder / "state" if job.folder is not None else None
    data = TrainingData(fitted.sentences, corpora.dev, corpora.weights)
    learning = TrainingRun(fitted.recipe, fitted.labels, fitted.learner, data, job.seed, states, job.resume)
    if states is not None and first:
        studied = sha256(json.dumps(fitted.studied, sort_keys=True).encode()).hexdigest()
        identity = {  # everything that decides the steps of a run and its best epoch
            "recipe": fitted.recipe.name,
            "model to start from": identity_of(job.start) if job.start is not None else None,
            "seed": job.seed,
            "training corpus": facts["train_fingerprint"],
            "dev corpus": corpus_fingerprint(corpora.dev),
            **({"corpora": fitted.labels.to_dict(), "weights": data.weights} if data.weights else {}),
            **dict(flat(as_json(fitted.recipe))),
            "lexicon": studied[:16] if fitted.studied else None,  # objectives study the lexicon above all
            **({"teachers": [teacher.identity for teacher in teachers]} if teachers else {}),
            "processes": accelerator.num_processes,
        }
        claim(states, identity, job.resume)
        if job.resume:
            say(console, resumed_from(states, fitted.recipe))
        write_json(states / "studied.json", dict(fitted.studied))
    if job.folder is not None and first:
        write_json(job.folder / "leaks.json", {**handling.to_dict(), **handling.leaks.to_dict()})
    best = Best(learning, job.folder, facts, accelerator.device, saves=first)
    with Journal(job.folder / "journal.jsonl") if job.folder is not None and first else nullcontext() as journal:
        if journal:
            journal.write("resumed" if job.resume else "start", recipe=fitted.recipe.name, **facts)
        follow(
            learning, accelerator, best, journal, console, tracked=job.track is not None, watch=job.watch, bar=job.bar
        )
        accelerator.wait_for_everyone()  # the best model is written
        model = best.model()
        scores = score_and_save(model, replace(job, corpora=corpora), console) if first else None
        if journal:
            journal.write("end", dev=model.facts.get("dev"), test=model.facts.get("test"))
    return model, scores


def resumed_from(states: Path, recipe: Recipe) -> str:
    """Where a resumed run goes on, in one line."""
    state = latest_state(states)
    if state is None:
        return "No state was kept yet: the run starts from its beginning."
    position = load_position(state)
    phase = f"phase {position.phase + 1}, " if len(recipe.phases) > 1 else ""
    best = "" if position.best is None else f"; the best dev score so far is {position.best:.2f}"
    return (
        f"Resumed after step {position.total:,}, in {phase}epoch {position.epoch + 1} of {recipe.train.epochs}{best}."
    )


def follow(
    learning: TrainingRun,
    accelerator: Accelerator,
    best: Best,
    journal: Journal | None,
    console: Console,
    tracked: bool,
    watch: Callable[[Progress], None] | None = None,
    bar: Console | None = None,
) -> None:
    """Runs the loop: shows progress, keeps the best model, writes the journal and the tracker's points."""
    dev_name = f"dev_{scoring.HEADLINES[learning.recipe.protocol].lower()}"
    try:
        with TrainingBar(bar or console) as shown:
            for progress in train_loop(learning, accelerator):
                shown.update(progress)
                best.update(progress)
                position, scores = progress.position, progress.scores
                dev = {dev_name: headline(scores) if scores else None}
                if journal:
                    figures = figures_of(learning.learner)
                    journal.write(
                        "epoch" if position.step == 0 else "progress",
                        phase=position.phase,
                        epoch=position.epoch,
                        step=position.total,
                        steps=progress.steps,
                        losses=dict(progress.losses),
                        best=progress.best,
                        **dev,
                        **({"figures": figures} if figures else {}),
                    )
                if tracked:
                    accelerator.log({**progress.losses, **(dev if scores else {})}, step=position.total)
                if watch is not None:
                    watch(progress)
    except ValueError as error:
        if journal:
            journal.write("error", message=str(error))
        raise
    finally:
        for tracker in accelerator.trackers:
            tracker.finish()


def figures_of(learner: Learner) -> dict[str, dict[str, float]]:
    """The figures of each objective that has some, by its term."""
    objectives: Any = learner.objectives
    return {name: figures for name, objective in objectives.items() if (figures := objective.figures())}


class Best:
    """Keeps the best model so far, in the folder of the run or in memory."""

    def __init__(
        self, run: TrainingRun, folder: Path | None, facts: dict[str, Any], device: torch.device, *, saves: bool = True
    ) -> None:
        self.run = run
        self.folder = folder
        self.facts = facts
        self.device = device
        self.saves = saves  # one of several processes does
        self.weights: dict[str, torch.Tensor] | None = None

    def update(self, progress: Progress) -> None:
        """Saves the model if it is the best so far."""
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
            self.facts |= stored_object(self.folder / "facts.json")
        elif self.weights is not None:
            self.run.learner.load_state_dict(self.weights)
            encoder.settle()
        self.run.learner.eval()
        return self._recognizer()

    def _recognizer(self) -> Recognizer:
        run = self.run
        return Recognizer(run.recipe, run.labels, run.learner, device=self.device, facts=self.facts)


def score_and_save(model: Recognizer, job: TrainingJob, console: Console) -> Scores | TypingScores | None:
    """Settles the best model on dev, scores it on test, or on dev where there is no test, and saves it."""
    finishing.settle_on_dev(model, job.corpora.dev, console)
    part, gold = ("test", job.corpora.test) if job.corpora.test else ("dev", job.corpora.dev)
    scores, predicted = None, []
    if gold:
        predicted = model.predict(gold, batch_size=64)
        scores = scoring.measure(model.recipe.protocol, gold, predicted)
        if isinstance(scores, Scores):
            scores = replace(scores, continuity=scoring.by_continuity(gold, predicted))
        model.facts[part] = scores.to_dict()
        model.facts["calibration_error"] = {part: calibration_of(gold, predicted).overall.error}
        console.print(f"{part.capitalize()} scores of the best epoch's model, seed {job.seed}:")
        print_scores(scores, console)
        if finishing.proposes(model):
            model.facts["proposals"] = finishing.proposal_recall(model, gold, batch_size=64)
            say(console, finishing.proposals_line(model.facts["proposals"]))
    if job.corpora.plan is not None:
        known = {part: predicted} if gold else {}
        model.facts["corpora"] = finishing.scores_by_corpus(model, job.corpora.plan, job.corpora.train, console, known)
    if job.folder is not None:
        model.save_pretrained(job.folder)
    return scores


def announce(fitted: Fitted, console: Console) -> None:
    """Describes the training before its first step: recipe, coverage, corpora, encoder, objectives, sizes."""
    recipe, types = fitted.recipe, sum(len(labels) for labels in fitted.labels.types.values())
    objectives: list[Any] = list(fitted.learner.objectives.values())
    encoder = fitted.learner.model.encoder
    how = f"{recipe.overlap} decoding, entities read from {recipe.read_with}"
    if recipe.protocol == "typing":
        how = "each gets a type; scored by accuracy"
    every, learned = parameter_counts(fitted.learner)
    share = f"{100 * learned / every:.2f}%" if learned < every else "all"
    for line in (
        f"Recipe {recipe.name}: {recipe.paper}",
        *fitted.coverage.lines(),
        *([fitted.agreement.line] if fitted.agreement is not None else []),
        *corpora_lines(fitted),
        *encoder.lines(),
        *line_about_size(recipe, encoder),
        *(line for objective in objectives for line in objective.lines()),
        f"{counted(len(fitted.sentences), 'training sentence')}, {counted(types, 'entity type')}; "
        f"{recipe.scope}, {how}.",
        f"{every:,} parameters, {learned:,} of them trained ({share}).",
    ):
        say(console, line)


def parameter_counts(module: torch.nn.Module) -> tuple[int, int]:
    """The numbers of all parameters and of trained ones; two parameters of four bits share a byte."""
    sizes = [
        (parameter.numel() * (2 if type(parameter).__name__ == "Params4bit" else 1), parameter.requires_grad)
        for parameter in module.parameters()
    ]
    return sum(size for size, _ in sizes), sum(size for size, trained in sizes if trained)


def corpora_lines(fitted: Fitted) -> list[str]:
    """With several corpora, the size of each and the types that it does not annotate."""
    labels = fitted.labels
    if len(labels.types) == 1:
        return []
    counts = Counter(sentence.dataset for sentence in fitted.sentences)
    blocks = "one block for all" if labels.shared else "a block for each"
    lines = [f"{len(labels.types)} corpora, {labels.num_classes} classes, {blocks}:"]
    for name, types, silent in zip(labels.types, labels.types.values(), labels.silent(), strict=True):
        unmarked = [label for label, left in zip(labels.names(), silent, strict=True) if left]
        remark = f"; silence about {', '.join(map(str, unmarked))} teaches nothing" if unmarked else ""
        if unmarked and not labels.shared:
            remark += ', nor does any other corpus, so such answers mean nothing (heads = "shared": others teach it)'
        if not counts[name] and not labels.shared:
            remark = "; nothing teaches these classes, so answers in its own labels mean nothing"
        role = " (target)" if name == labels.target else ""
        lines.append(
            f"  {name}{role}: {counted(counts[name], 'training sentence')}, {counted(len(types), 'type')}{remark}"
        )
    return lines


def with_encoder(recipe: Recipe, name: str) -> Recipe:
    """The recipe on what `--encoder` names: hashed, static:FILE, a short name, a folder, or a hub id.

    Fresh weights need another learning rate than pretrained ones.
    """
    part: Any = recipe.encoder if isinstance(recipe.encoder, partial) else partial(recipe.encoder)
    from_nothing = replace(recipe.train, learning_rate=2e-3, factors={}, clip=5.0)
    if name == "hashed":
        kept = {key: value for key, value in part.keywords.items() if key != "vectors"}
        if part.func is ConvolvedEncoder:
            return replace(recipe, encoder=partial(ConvolvedEncoder, **kept))
        return replace(recipe, encoder=partial(ConvolvedEncoder), train=from_nothing)
    if name.startswith("static:"):
        kind, chosen = static_part(name.removeprefix("static:"))
        if part.func is ConvolvedEncoder and chosen.get("vectors") is not None:
            return replace(recipe, encoder=partial(ConvolvedEncoder, **{**part.keywords, **chosen}))
        if part.func not in (StaticEncoder, StaticPieces):
            if chosen.get("vectors") is not None:
                encoder = partial(ConvolvedEncoder, **chosen)
            else:
                encoder = partial(kind, **chosen, hidden=128, dropout=0.3)
            return replace(recipe, encoder=encoder, train=from_nothing)
        known = inspect.signature(kind).parameters  # a recipe that uses static vectors already keeps its settings
        kept = {key: value for key, value in part.keywords.items() if key in known}
        return replace(recipe, encoder=partial(kind, **{**kept, **chosen}))
    if part.func is PretrainedEncoder:
        return replace(recipe, encoder=partial(PretrainedEncoder, **{**part.keywords, "name": name}))
    # fresh parameters beside a pretrained encoder learn ten times as fast; tiny batches are for fresh ones alone
    fresh = {"model.scorer": 10.0, "objectives": 10.0, "model.encoder.shapes": 10.0}
    train = replace(
        recipe.train, learning_rate=1e-4, factors=fresh, clip=1.0, batch_size=max(recipe.train.batch_size, 16)
    )
    return replace(recipe, encoder=partial(PretrainedEncoder, name=name), train=train)


def static_part(name: str) -> tuple[Any, dict[str, Any]]:
    """The encoder class and its settings: files have words; folders, short names and hub ids are pretrained models."""
    if name == "random":
        return StaticEncoder, {"vectors": None}
    if Path(name).is_file() or Path(name).suffix in (".txt", ".vec", ".bin", ".npz", ".gz"):
        return StaticEncoder, {"vectors": name}
    return StaticPieces, {"name": name}
