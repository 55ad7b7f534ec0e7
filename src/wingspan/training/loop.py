"""The training loop, a generator of Progress, with its optimizer and its hardware.

It trains and scores; its consumer saves and shows.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from accelerate.tracking import get_available_trackers
from accelerate.utils import DistributedDataParallelKwargs, gather_object
from torch import Tensor, nn
from torch.nn.attention import sdpa_kernel

from wingspan.batch import Collate, batches
from wingspan.checkpoint import write_weights
from wingspan.evaluation.scores import Scores, TypingScores, headline, measure
from wingspan.labels import LabelSet
from wingspan.layers.autocast import ATTENTION
from wingspan.layers.distributed import idle, mean_of_all
from wingspan.layers.schedules import Moment
from wingspan.model import Packed, tensors
from wingspan.recipe import Learner, Phase, Recipe, TrainSettings
from wingspan.recognizer import Recognizer
from wingspan.recognizer.torch_engine import usable_device
from wingspan.text import Document, Sentence
from wingspan.training.multi_corpus import epoch_batches
from wingspan.training.state import Position, latest_state, load_position, load_state, save_state

CHECK_EVERY = 20  # steps between looks at the loss: each look waits for the device


class Progress(NamedTuple):
    """The state of a training at a report."""

    position: Position
    steps: int  # optimizer steps of the whole run
    losses: Mapping[str, float]  # means since the last progress
    scores: Scores | TypingScores | None  # of the dev documents, at the end of an epoch
    best: bool  # the model is the best so far: save it


@dataclass(frozen=True)
class TrainingData:
    """The training sentences, and the dev documents that decide which epoch is best."""

    sentences: Sequence[Sentence]
    dev: Sequence[Document] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    """Sampling weights of corpora by name; 1 where none is given."""


@dataclass(frozen=True)
class TrainingRun:
    """One training: the resolved recipe, its learner, the data, a seed, a folder for states."""

    recipe: Recipe
    labels: LabelSet
    learner: Learner
    data: TrainingData
    seed: int = 0
    states: Path | None = None
    resume: bool = False


def train(run: TrainingRun, accelerator: Accelerator) -> Iterator[Progress]:
    """Trains phase by phase. Every random draw of a step follows from (seed, phase, epoch, step)."""
    plans = [plan(run, number) for number in range(len(run.recipe.phases))]
    steps = sum(optimizer_steps(epochs, run.recipe.train.together) for epochs in plans)
    state = latest_state(run.states) if run.resume and run.states else None
    position = load_position(state) if state else Position()
    learner = accelerator.prepare(run.learner)
    for number, phase in enumerate(run.recipe.phases):
        if number < position.phase:
            continue
        with held_still(run.learner, (*run.recipe.train.frozen, *phase.frozen)):
            optimizer = build_optimizer(run.learner, run.recipe.train)
            if state is not None:
                load_state(state, run.learner, optimizer if number == position.phase else None, accelerator.scaler)
                state = None
            before = sum(map(len, plans[:number]))
            for progress in train_phase(
                run, accelerator, learner, optimizer, phase, plans[number], position, steps, before
            ):
                position = progress.position
                yield progress
        if run.states and accelerator.is_main_process:
            folder = run.states / f"phase-{number + 1}"  # for analyses, with objectives that prediction does not need
            folder.mkdir(parents=True, exist_ok=True)
            write_weights(folder / "learner.safetensors", run.learner)
        position = replace(position, phase=number + 1, epoch=0, step=0, stale=0)


@contextmanager
def held_still(learner: nn.Module, parts: Sequence[str]) -> Iterator[None]:
    """Parameters with one of these parts in their name get no gradient: they neither change nor count in clipping."""
    held = [
        parameter
        for name, parameter in learner.named_parameters()
        if parameter.requires_grad and any(part in name for part in parts)
    ]
    for parameter in held:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in held:
            parameter.requires_grad_(True)


def plan(run: TrainingRun, number: int) -> list[list[list[int]]]:
    """The batches of every epoch of a phase, in order."""
    settings, phase = run.recipe.train, run.recipe.phases[number]
    lengths = [len(sentence.words) for sentence in run.data.sentences]
    corpora = [sentence.dataset for sentence in run.data.sentences]

    def batches_of(epoch: int) -> list[list[int]]:
        if len(set(corpora)) > 1:
            return epoch_batches(lengths, corpora, settings, run.data.weights, (run.seed, number), epoch)
        return batches(lengths, settings.batch_size, budget=settings.budget, seed=(run.seed, number, epoch))

    epochs = settings.epochs if phase.epochs is None else phase.epochs
    return [kept(batches_of(epoch), settings) for epoch in range(epochs)]


def kept(epoch: list[list[int]], settings: TrainSettings) -> list[list[int]]:
    """All batches of an epoch, or only the full ones with `whole_batches`."""
    if not settings.whole_batches:
        return epoch
    whole = [batch for batch in epoch if len(batch) == settings.batch_size]
    if not whole:
        raise ValueError(
            f"train.whole_batches: no batch of {settings.batch_size} sentences can be filled; "
            "lower train.batch_size, or raise train.budget"
        )
    return whole


def optimizer_steps(epochs: list[list[list[int]]], accumulate: int) -> int:
    """How often the weights change: once for every `accumulate` batches, and once for a rest at an epoch's end."""
    return sum(math.ceil(len(epoch) / accumulate) for epoch in epochs)


def train_phase(
    run: TrainingRun,
    accelerator: Accelerator,
    learner: Any,
    optimizer: torch.optim.AdamW,
    phase: Phase,
    epochs: list[list[list[int]]],
    position: Position,
    steps: int,
    before: int,
) -> Iterator[Progress]:
    """One phase from the given position on; `before` counts the epochs of earlier phases."""
    settings, device = run.recipe.train, accelerator.device
    terms = phase.terms or tuple(run.recipe.terms)
    collate = collator(run.recipe, run.labels, run.learner)
    update = Update(run.learner, optimizer, settings.clip, accelerator.scaler)
    total = optimizer_steps(epochs, settings.together)
    done = optimizer_steps(epochs[: position.epoch], settings.together) + math.ceil(position.step / settings.together)
    for epoch in range(position.epoch, len(epochs)):
        if settings.patience is not None and position.stale >= settings.patience:
            return
        learner.train()
        losses = Losses(terms)
        for step in range(position.step, len(epochs[epoch])):
            seed_draws(step_seed(run.seed, position.phase, epoch, step, accelerator.process_index), device)
            whole = epochs[epoch][step]
            mine = part_of(whole, accelerator.process_index, accelerator.num_processes)
            batch = collate([run.data.sentences[i] for i in mine or whole[:1]])._replace(sentences=())
            batch = tensors(Packed(batch) if device.type == "cuda" else batch, device)
            moment = Moment(position.phase, before + epoch, position.total, steps, step)
            first = step - step % settings.together
            together = min(settings.together, len(epochs[epoch]) - first)  # batches that share this optimizer step
            goes_on = step + 1 - first < together
            with accelerator.no_sync(learner) if goes_on else nullcontext():
                with accelerator.autocast(), sdpa_kernel(ATTENTION), idle(not mine):
                    parts = learner(batch.inputs, batch.gold, batch.targets, terms, moment)
                update.backward(parts["loss"], settings.share(together))
            losses.add(parts)
            if goes_on:
                continue
            where = (position.total, steps) if settings.schedule_over == "run" else (done, total)
            set_rates(optimizer, rate_factor(*where, settings))
            if not settings.correct_bias:
                leave_uncorrected(optimizer, done)
            update.step()
            done += 1
            position = replace(position, epoch=epoch, step=step + 1, total=position.total + 1)
            if position.total % CHECK_EVERY == 0:
                yield Progress(position, steps, losses.means(position), None, False)
            if settings.checkpoint_steps and position.total % settings.checkpoint_steps == 0 and run.states:
                losses.means(position)  # a state with broken weights is never kept
                check_weights(run.learner, position)
                if accelerator.is_main_process:
                    save_state(run.states, position, run.learner, optimizer, accelerator.scaler)
        means = losses.means(position)
        check_weights(run.learner, position)
        learned = run.recipe.read_with in terms  # else there is nothing new to score
        scores = score(run, accelerator) if run.data.dev and learned else None
        rises = scores is None or position.best is None or headline(scores) > position.best
        keep = rises or (scores is not None and headline(scores) == position.best)  # of equals the longer trained
        best = position.best if scores is None or not rises else headline(scores)
        position = replace(position, epoch=epoch + 1, step=0, best=best, stale=0 if rises else position.stale + 1)
        yield Progress(position, steps, means, scores, keep)
        # after the consumer has saved the best model: a resumed run relies on it
        if run.states and accelerator.is_main_process:
            save_state(run.states, position, run.learner, optimizer, accelerator.scaler)


def collator(recipe: Recipe, labels: LabelSet, learner: Learner) -> Collate:
    """The collation of sentences into arrays for the model and all objectives."""
    targets: dict[str, Any] = {name: objective.targets for name, objective in learner.objectives.items()}
    return Collate(learner.model.encoder.tokenize, labels, targets)


def score(run: TrainingRun, accelerator: Accelerator) -> Scores | TypingScores:
    """Scores of the dev documents, predicted as users will predict; each process predicts a part of them."""
    run.learner.eval()
    recognizer = Recognizer(run.recipe, run.labels, run.learner, device=accelerator.device)
    part = shared_out(run.data.dev, accelerator.num_processes)[accelerator.process_index]
    with accelerator.autocast(), sdpa_kernel(ATTENTION):
        predicted = recognizer.predict(part, batch_size=64 if accelerator.device.type == "cpu" else None)
    if accelerator.num_processes > 1:
        predicted = gather_object(predicted)
    run.learner.train()
    return measure(run.recipe.protocol, run.data.dev, predicted)


def part_of(batch: Sequence[int], number: int, processes: int) -> list[int]:
    """The sentences of a batch that a process takes: every n-th, so that all get long and short ones."""
    return list(batch[number::processes])


def shared_out(documents: Sequence[Document], processes: int) -> list[list[Document]]:
    """Parts of about equal length, in order; rows of one document stay together, as each other's context."""
    total = sum(len(document.text) for document in documents)
    parts: list[list[Document]] = [[] for _ in range(processes)]
    part, passed = 0, 0
    for at, document in enumerate(documents):
        alone = at == 0 or document.group is None or document.group != documents[at - 1].group
        if alone:
            part = min(passed * processes // max(total, 1), processes - 1)
        parts[part].append(document)
        passed += len(document.text)
    return parts


def seed_draws(seed: int, device: torch.device) -> None:
    """Seeds what a step draws, on the CPU and on its device; `torch.manual_seed` looks at all kinds of devices."""
    if device.type not in ("cpu", "cuda"):
        torch.manual_seed(seed)
        return
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed(seed)


def step_seed(seed: int, phase: int, epoch: int, step: int, process: int = 0) -> int:
    """One number for each step and process, far from its neighbors'."""
    mixed = (seed * 1_000_003 + phase) * 1_000_003 + epoch
    return (mixed * 1_000_003 + step + process * 2**40) % (2**63 - 1)


class Losses:
    """Running means by name, kept on the device until they are read."""

    def __init__(self, terms: Sequence[str]) -> None:
        self.names = ("loss", *terms)
        self.sums: list[Tensor] = []
        self.count = 0

    def add(self, losses: Mapping[str, Tensor]) -> None:
        """Adds the losses of a batch."""
        values = [losses[name].detach() for name in self.names]
        self.sums = list(torch._foreach_add(self.sums, values)) if self.sums else values  # in one launch
        self.count += 1

    def means(self, position: Position) -> dict[str, float]:
        """The means of this epoch so far; a loss that is not finite ends the run here, before anything is saved."""
        sums = mean_of_all(torch.stack(self.sums)).tolist() if self.sums else []
        means = {name: value / max(1, self.count) for name, value in zip(self.names, sums, strict=False)}
        broken = [name for name, value in means.items() if not math.isfinite(value)]
        if broken:
            raise ValueError(f"the loss {broken[-1]!r} is {means[broken[-1]]} {advice(position)}")
        return means


def check_weights(learner: Learner, position: Position) -> None:
    """Ends the run if weights are not finite: the last step may have broken them after a finite loss."""
    names, values = zip(*learner.named_parameters(), strict=True)
    finite = torch.stack([value.isfinite().all() for value in values]).tolist()  # one look at the device
    if not all(finite):
        raise ValueError(f"the weights {names[finite.index(False)]!r} are no longer finite {advice(position)}")


def advice(position: Position) -> str:
    """The position of a failure, and the fix."""
    return (
        f"in epoch {position.epoch + 1} near step {position.total}; the last good checkpoint is kept: "
        "lower train.learning_rate, or use train.precision=no"
    )


# The optimizer: parameter groups by name prefix, and the learning rate of a step.


def build_optimizer(module: nn.Module, settings: TrainSettings) -> torch.optim.AdamW:
    """AdamW with one group for each learning rate and weight decay. The longest matching prefix of a name counts."""
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in module.named_parameters():
        if not parameter.requires_grad:
            continue
        # biases and layer norms are vectors and do not decay
        decay = settings.weight_decay if settings.decay_bias or parameter.dim() > 1 else 0.0
        rate = settings.learning_rate * by_prefix(name, settings.factors)
        groups.setdefault((rate, decay * by_prefix(name, settings.decays)), []).append(parameter)
    prepared: list[dict[str, Any]] = [
        {"params": parameters, "lr": rate, "base_rate": rate, "weight_decay": decay, "base_decay": decay}
        for (rate, decay), parameters in groups.items()
    ]
    return torch.optim.AdamW(prepared, eps=settings.adam_eps, fused=True)


class Update:
    """From a loss to changed weights: gradients, clipped, and a step of the optimizer; `scaler` for float16.

    Accelerate would wrap the optimizer, and look for other packages in every step.
    """

    def __init__(self, learner: nn.Module, optimizer: torch.optim.AdamW, clip: float, scaler: Any = None) -> None:
        trained = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
        self.parameters = [parameter for parameter in learner.parameters() if id(parameter) in trained]
        self.optimizer = optimizer
        self.clip = clip
        self.scaler = scaler

    def backward(self, loss: Tensor, share: float) -> None:
        """Adds the gradients of a batch that has this share of a step."""
        loss = loss if share == 1 else loss * share
        (loss if self.scaler is None else self.scaler.scale(loss)).backward()

    def step(self) -> None:
        """Changes the weights."""
        if self.scaler is not None:
            self.scaler.unscale_(self.optimizer)
        if self.clip:
            nn.utils.clip_grad_norm_(self.parameters, self.clip)
        if self.scaler is not None:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            self.optimizer.step()
        self.optimizer.zero_grad()


def by_prefix(name: str, factors: Mapping[str, float]) -> float:
    """The factor of the longest prefix of a name; 1 where there is none."""
    matching = [prefix for prefix in factors if name.startswith(prefix)]
    return factors[max(matching, key=len)] if matching else 1.0


def rate_factor(step: int, steps: int, settings: TrainSettings) -> float:
    """The factor of the learning rate at a step: it rises over the warm-up, then falls to zero, or stays."""
    steps = round(settings.stretch * steps)
    warmup = max(1, round(settings.warmup * steps))
    if settings.warmup > 0 and step < warmup:
        return (step + 1) / warmup
    if settings.schedule == "constant":
        return 1.0
    done = (step - warmup) / max(1, steps - warmup) if settings.warmup > 0 else step / max(1, steps)
    return 1.0 - done if settings.schedule == "linear" else 0.5 * (1.0 + math.cos(math.pi * done))


def set_rates(optimizer: Any, factor: float) -> None:
    """Sets the learning rates by a factor of the step alone, so that a resumed run needs no scheduler state."""
    for group in optimizer.param_groups:
        group["lr"] = group["base_rate"] * factor


def leave_uncorrected(optimizer: Any, step: int) -> None:
    """Undoes Adam's bias correction at a step (from 0) by the rate, epsilon and decay that amount to none.

    torch divides the first mean by 1 - b1^t and the second by 1 - b2^t; both are taken out again here.
    """
    for group in optimizer.param_groups:
        first, second = (1.0 - beta ** (step + 1) for beta in group["betas"])
        scale = first / math.sqrt(second)
        group.setdefault("base_eps", group["eps"])
        group["lr"] *= scale
        group["eps"] = group["base_eps"] / math.sqrt(second)
        group["weight_decay"] = group["base_decay"] / scale


# The hardware of a training: device, precision, trackers, all through Accelerate.


def accelerator_for(
    precision: str, device: str | None = None, track: str | None = None, folder: Path | None = None
) -> Accelerator:
    """An accelerator for one training; an earlier one in this process may have had another precision or device."""
    chosen = usable_device(device)
    if chosen.type == "cuda" and chosen.index is not None:
        torch.cuda.set_device(chosen)
    if precision != "no" and chosen.type == "cpu":  # bf16 has no kernel for some parts there and ends the process
        raise ValueError(f"train.precision={precision} needs a GPU; use train.precision=no")
    if track is not None:
        known = [str(tracker) for tracker in get_available_trackers()]
        if track not in known:  # Accelerate would leave it out with a warning
            install = f"pip install {track}"
            raise ValueError(
                f"--track {track}: not installed or unknown ({install}); there are {', '.join(known) or 'none here'}"
            )
        if folder is None:
            raise ValueError(f"--track {track}: needs an output folder to write to")
    together = os.environ.get("WORLD_SIZE", "1") != "1"
    if together and chosen.type == "cuda" and chosen.index is not None:
        raise ValueError(f"--device {device}: each of several processes takes its own GPU; give cuda, or cpu")
    AcceleratorState._reset_state(reset_partial_state="WORLD_SIZE" not in os.environ)
    accelerator = Accelerator(
        mixed_precision=precision,
        cpu=chosen.type == "cpu",
        log_with=track,
        project_dir=str(folder) if folder is not None else None,
        # phases train different parameters, so the unused ones are found in each step
        kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)],
    )
    if track is not None:
        accelerator.init_trackers("wingspan")
    return accelerator
