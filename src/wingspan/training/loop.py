"""The loop, a generator of Progress: it trains and scores; whoever consumes it saves, logs and shows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from accelerate import Accelerator

from wingspan.batch import Collate
from wingspan.evaluation.scores import Scores, TypingScores, headline, measure
from wingspan.labels import LabelSet
from wingspan.layers.distributed import idle, mean_of_all
from wingspan.layers.schedules import Moment
from wingspan.model import tensors
from wingspan.recipe import Learner, Phase, Recipe
from wingspan.recognizer import Recognizer
from wingspan.text import Document, Sentence
from wingspan.training.batches import epoch_batches, kept
from wingspan.training.optimizer import build_optimizer, leave_uncorrected, rate_factor, set_rates
from wingspan.training.processes import part_of, predict_together
from wingspan.training.state import Place, keep_phase, latest_state, load_place, load_state, save_state

CHECK_EVERY = 20  # steps between looks at the loss: each look waits for the device


class Progress(NamedTuple):
    """What happened up to here."""

    place: Place
    steps: int  # optimizer steps of the whole run
    losses: Mapping[str, float]  # means since the last progress
    scores: Scores | TypingScores | None  # of the dev documents, at the end of an epoch
    best: bool  # the model is the best so far: save it


@dataclass(frozen=True)
class Data:
    """What is trained on, and what decides which epoch is best."""

    sentences: Sequence[Sentence]
    dev: Sequence[Document] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    """How much more often than others a corpus is drawn from, by its name."""


@dataclass(frozen=True)
class Run:
    """One training: the resolved recipe, its learner, the data, a seed, a folder for states."""

    recipe: Recipe
    labels: LabelSet
    learner: Learner
    data: Data
    seed: int = 0
    states: Path | None = None
    resume: bool = False


def train(run: Run, accelerator: Accelerator) -> Iterator[Progress]:
    """Trains phase by phase. Every random draw of a step follows from (seed, phase, epoch, step)."""
    plans = [plan(run, number) for number in range(len(run.recipe.phases))]
    steps = sum(optimizer_steps(epochs, run.recipe.train.together) for epochs in plans)
    state = latest_state(run.states) if run.resume and run.states else None
    place = load_place(state) if state else Place()
    learner = accelerator.prepare(run.learner)
    for number, phase in enumerate(run.recipe.phases):
        if number < place.phase:
            continue
        optimizer = accelerator.prepare(build_optimizer(run.learner, run.recipe.train))
        if state is not None:
            load_state(state, run.learner, optimizer if number == place.phase else None, accelerator.scaler)
            state = None
        before = sum(map(len, plans[:number]))
        for progress in train_phase(run, accelerator, learner, optimizer, phase, plans[number], place, steps, before):
            place = progress.place
            yield progress
        if run.states and accelerator.is_main_process:
            keep_phase(run.states, number, run.learner)
        place = replace(place, phase=number + 1, epoch=0, step=0, stale=0)


def plan(run: Run, number: int) -> list[list[list[int]]]:
    """The batches of every epoch of a phase, in order."""
    settings, phase = run.recipe.train, run.recipe.phases[number]
    epochs = settings.epochs if phase.epochs is None else phase.epochs
    lengths = [len(sentence.words) for sentence in run.data.sentences]
    corpora = [sentence.dataset for sentence in run.data.sentences]
    return [
        kept(epoch_batches(lengths, corpora, settings, run.data.weights, (run.seed, number), epoch), settings)
        for epoch in range(epochs)
    ]


def optimizer_steps(epochs: list[list[list[int]]], accumulate: int) -> int:
    """How often the weights change: once for every `accumulate` batches, and once for a rest at an epoch's end."""
    return sum(math.ceil(len(epoch) / accumulate) for epoch in epochs)


def train_phase(
    run: Run,
    accelerator: Accelerator,
    learner: Any,
    optimizer: Any,
    phase: Phase,
    epochs: list[list[list[int]]],
    place: Place,
    steps: int,
    before: int,
) -> Iterator[Progress]:
    """One phase, from the given place on; `before` are the epochs of the phases before it."""
    settings = run.recipe.train
    terms = phase.terms or tuple(run.recipe.terms)
    collate = collator(run.recipe, run.labels, run.learner)
    total = optimizer_steps(epochs, settings.together)
    done = optimizer_steps(epochs[: place.epoch], settings.together) + math.ceil(place.step / settings.together)
    for epoch in range(place.epoch, len(epochs)):
        if settings.patience is not None and place.stale >= settings.patience:
            return
        learner.train()
        losses = Losses(terms)
        for step in range(place.step, len(epochs[epoch])):
            torch.manual_seed(step_seed(run.seed, place.phase, epoch, step, accelerator.process_index))
            whole = epochs[epoch][step]
            mine = part_of(whole, accelerator.process_index, accelerator.num_processes)
            batch = collate([run.data.sentences[i] for i in mine or whole[:1]])
            inputs, gold, targets = (
                tensors(part, accelerator.device) for part in (batch.inputs, batch.gold, dict(batch.targets))
            )
            moment = Moment(place.phase, before + epoch, place.total, steps, step)
            first = step - step % settings.together
            together = min(settings.together, len(epochs[epoch]) - first)  # batches that share this optimizer step
            goes_on = step + 1 - first < together
            with accelerator.no_sync(learner) if goes_on else nullcontext():
                with accelerator.autocast(), idle(not mine):
                    found = learner(inputs, gold, targets, terms, moment)
                accelerator.backward(found["loss"] * settings.share(together))
            losses.add(found)
            if goes_on:
                continue
            if settings.clip:
                accelerator.clip_grad_norm_(learner.parameters(), settings.clip)
            where = (place.total, steps) if settings.schedule_over == "run" else (done, total)
            set_rates(optimizer, rate_factor(*where, settings))
            if not settings.correct_bias:
                leave_uncorrected(optimizer, done)
            optimizer.step()
            optimizer.zero_grad()
            done += 1
            place = replace(place, epoch=epoch, step=step + 1, total=place.total + 1)
            if place.total % CHECK_EVERY == 0:
                yield Progress(place, steps, losses.means(place), None, False)
            if settings.checkpoint_steps and place.total % settings.checkpoint_steps == 0 and run.states:
                losses.means(place)  # a state with broken weights is never kept
                check_weights(run.learner, place)
                if accelerator.is_main_process:
                    save_state(run.states, place, run.learner, optimizer, accelerator.scaler)
        means = losses.means(place)
        check_weights(run.learner, place)
        learned = run.recipe.read_with in terms  # else there is nothing new to score
        scores = score(run, accelerator) if run.data.dev and learned else None
        better = scores is None or place.best is None or headline(scores) > place.best
        best = place.best if scores is None or not better else headline(scores)
        place = replace(place, epoch=epoch + 1, step=0, best=best, stale=0 if better else place.stale + 1)
        yield Progress(place, steps, means, scores, better)
        # after the consumer has saved the best model: a resumed run relies on it
        if run.states and accelerator.is_main_process:
            save_state(run.states, place, run.learner, optimizer, accelerator.scaler)


def collator(recipe: Recipe, labels: LabelSet, learner: Learner) -> Collate:
    """The CPU face of all parts."""
    targets: dict[str, Any] = {name: objective.targets for name, objective in learner.objectives.items()}
    return Collate(learner.model.encoder.tokenize, labels, targets)


def score(run: Run, accelerator: Accelerator) -> Scores | TypingScores:
    """Scores of the dev documents, strict or of given spans, read as prediction reads them."""
    run.learner.eval()
    recognizer = Recognizer(run.recipe, run.labels, run.learner, device=accelerator.device)
    with accelerator.autocast():
        found = predict_together(recognizer, run.data.dev, accelerator, batch_size=64)
    run.learner.train()
    return measure(run.recipe.protocol, run.data.dev, found)


def step_seed(seed: int, phase: int, epoch: int, step: int, process: int = 0) -> int:
    """One number for each step and process, far from its neighbors'."""
    mixed = (seed * 1_000_003 + phase) * 1_000_003 + epoch
    return (mixed * 1_000_003 + step + process * 2**40) % (2**63 - 1)


class Losses:
    """Running means by name, on the device until someone looks."""

    def __init__(self, terms: Sequence[str]) -> None:
        self.names = ("loss", *terms)
        self.sums: dict[str, Any] = {}
        self.count = 0

    def add(self, losses: Mapping[str, Any]) -> None:
        """One batch more."""
        for name in self.names:
            self.sums[name] = self.sums.get(name, 0.0) + losses[name].detach()
        self.count += 1

    def means(self, place: Place) -> dict[str, float]:
        """The means of this epoch so far; a loss that is no number ends the run here, before anything is saved."""
        means = {name: float(mean_of_all(value)) / max(1, self.count) for name, value in self.sums.items()}
        broken = [name for name, value in means.items() if not math.isfinite(value)]
        if broken:
            raise ValueError(f"the loss {broken[-1]!r} is {means[broken[-1]]} {advice(place)}")
        return means


def check_weights(learner: Learner, place: Place) -> None:
    """The last step may have broken weights although its loss, computed before it, was a number."""
    for name, value in learner.named_parameters():
        if not bool(torch.isfinite(value).all()):
            raise ValueError(f"the weights {name!r} are no numbers any more {advice(place)}")


def advice(place: Place) -> str:
    """Where it happened and what helps."""
    return (
        f"in epoch {place.epoch + 1} near step {place.total}; the last good checkpoint is kept: "
        "lower train.learning_rate, or use train.precision=no"
    )
