"""Where the seconds of a small training go, beside a plain Hugging Face token-classification loop.

    python benchmarks/training_speed.py --data $WINGSPAN_DATA --encoder-folder $WINGSPAN_ENCODERS/all-MiniLM-L6-v2 \
        --output benchmarks/results/training_speed.jsonl --commit $(git rev-parse --short HEAD)

Each recipe trains alone on the device, by turns with the plain loop, on the same sentences, in the same batches and
the same precision, and predicts the same dev sentences after each epoch. The plain loop has its pieces made once, as
ours has; its tags are the outermost entities. Nothing synchronizes with the device for the sake of the clock: a stage
has the seconds that the loop spends in it, and where the device is slower than the loop, the stage that waits for it
has the waiting. A last round runs under torch's profiler, which counts launches and adds up what the device computes.
One JSON line for each system and precision.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch
from torch.utils.data import DataLoader
from transformers import AutoModelForTokenClassification, AutoTokenizer, DataCollatorForTokenClassification
from transformers.utils import logging as transformers_logging

from measuring import versions
from training_runs import gold
from wingspan.batch import batches
from wingspan.training import loop
from wingspan.training.fit import Fitted, fit
from wingspan.training.run import prepare

Row = dict[str, Any]
PLAIN = "Hugging Face token classification"
STAGES = ("batches", "copy", "forward", "backward", "optimizer", "dev")
PROFILED = 20
"""Steps under the profiler."""


class Stages:
    """Seconds by stage; a stage inside another counts for the outer one."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self._inside = False

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Adds the seconds of a block."""
        if self._inside:
            yield
            return
        self._inside, began = True, time.perf_counter()
        try:
            yield
        finally:
            self._inside = False
            self.seconds[name] += time.perf_counter() - began

    def timed(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """A function whose calls are a stage."""

        def call(*given: Any, **named: Any) -> Any:
            with self.stage(name):
                return work(*given, **named)

        return call

    def each(self, name: str, items: Iterator[Any]) -> Iterator[Any]:
        """An iterator whose steps are a stage."""
        while True:
            with self.stage(name):
                item = next(items, None)
            if item is None:
                return
            yield item


class Round:
    """One training: its seconds, those of its stages, and the steps it took."""

    def __init__(self, seconds: float, stages: Counter[str], steps: int) -> None:
        self.seconds, self.stages, self.steps = seconds, stages, steps


# Ours: the loop of `wingspan train`, from the fitted recipe to the last dev score


class Ours:
    """A recipe, trained from its start in each round."""

    def __init__(self, given: argparse.Namespace, recipe: str, precision: str) -> None:
        self.name, self.precision, self.dev, self.device = recipe, precision, given.dev_documents, given.device
        settings = {
            "train.epochs": given.epochs,
            "train.batch_size": given.batch_size,
            "train.precision": precision,
        }
        encoder = given.encoder_folder if recipe != "baseline" else None
        self.recipe = prepare(recipe, encoder, settings)
        self.documents = given.documents
        self.prepared: list[float] = []

    def fitted(self) -> Fitted:
        """The recipe with its data, everything before the loop: the seconds are kept."""
        began = time.perf_counter()
        made = fit(self.recipe, self.documents, self.dev, seed=1)
        self.prepared.append(time.perf_counter() - began)
        return made

    def epochs(self) -> list[list[list[int]]]:
        """The batches of each epoch, for the plain loop too."""
        made = self.fitted()
        return loop.plan(loop.TrainingRun(made.recipe, made.labels, made.learner, self.data(made), 1), 0)

    def data(self, made: Fitted) -> loop.TrainingData:
        """Sentences and dev documents."""
        return loop.TrainingData(made.sentences, self.dev)

    def train(self) -> Round:
        """One training."""
        made, stages, steps = self.fitted(), Stages(), 0
        accelerator = loop.accelerator_for(self.precision, self.device)
        run = loop.TrainingRun(made.recipe, made.labels, made.learner, self.data(made), 1)
        with watched(stages, made.learner, accelerator):
            wait(self.device)
            began = time.perf_counter()
            for progress in loop.train(run, accelerator):
                steps = progress.position.total
            wait(self.device)
            return Round(time.perf_counter() - began, stages.seconds, steps)


@contextmanager
def watched(stages: Stages, learner: Any, accelerator: Any) -> Iterator[None]:
    """Lets the functions that the loop calls add their seconds to the stages."""
    places = [
        ("copy", loop, "tensors"),
        ("forward", learner, "forward"),
        ("backward", accelerator, "backward"),
        ("optimizer", accelerator, "clip_grad_norm_"),
        ("optimizer", torch.optim.AdamW, "step"),
        ("optimizer", torch.optim.AdamW, "zero_grad"),
        ("dev", loop, "score"),
    ]
    before = [(owner, name, vars(owner).get(name)) for _, owner, name in places]
    for stage, owner, name in places:
        setattr(owner, name, stages.timed(stage, getattr(owner, name)))
    collator = loop.collator
    if hasattr(loop, "ahead"):
        ahead = loop.ahead
        loop.ahead = lambda *given: stages.each("batches", ahead(*given))
    else:
        loop.collator = lambda *given: stages.timed("batches", collator(*given))  # type: ignore[assignment,return-value]
    try:
        yield
    finally:
        loop.collator = collator
        if hasattr(loop, "ahead"):
            loop.ahead = ahead
        for owner, name, own in before:
            if own is None:
                delattr(owner, name)
            else:
                setattr(owner, name, own)


# The plain loop, as a tutorial has it


class Plain:
    """AutoModelForTokenClassification, AdamW, a linear schedule, clipped gradients."""

    name = PLAIN

    def __init__(self, given: argparse.Namespace, epochs: list[list[list[int]]], precision: str) -> None:
        self.precision, self.device, self.epochs = precision, given.device, epochs
        self.folder, self.batch_size = given.encoder_folder, given.batch_size
        labels = sorted({entity.label for document in given.documents for entity in document.entities})
        self.tags = ["O", *(f"{mark}-{label}" for label in labels for mark in "BI")]
        self.documents, self.dev_documents = given.documents, given.dev_documents
        self.prepared: list[float] = []

    def train(self) -> Round:
        """One training."""
        stages, steps, on_gpu = Stages(), 0, self.device != "cpu"
        began = time.perf_counter()
        torch.manual_seed(1)
        tokenizer = AutoTokenizer.from_pretrained(self.folder)
        model = AutoModelForTokenClassification.from_pretrained(self.folder, num_labels=len(self.tags))
        pieces, dev = (self.pieces(tokenizer, some) for some in (self.documents, self.dev_documents))
        model.to(self.device).train()
        self.prepared.append(time.perf_counter() - began)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1.5e-4, weight_decay=0.01, fused=True)
        total = sum(map(len, self.epochs))
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / total)
        collate = DataCollatorForTokenClassification(tokenizer)
        half = torch.autocast(torch.device(self.device).type, torch.bfloat16, enabled=self.precision == "bf16")
        wait(self.device)
        began = time.perf_counter()
        for epoch in self.epochs:
            loader = DataLoader(pieces, batch_sampler=epoch, collate_fn=collate, pin_memory=on_gpu)  # type: ignore[arg-type]
            for batch in stages.each("batches", iter(loader)):
                with stages.stage("copy"):
                    batch = {name: part.to(self.device, non_blocking=True) for name, part in batch.items()}
                with stages.stage("forward"), half:
                    loss = model(**batch).loss
                with stages.stage("backward"):
                    loss.backward()
                with stages.stage("optimizer"):
                    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                    optimizer.step()
                    schedule.step()
                    optimizer.zero_grad()
                steps += 1
            with stages.stage("dev"), half:
                self.predict(model, collate, dev)
        wait(self.device)
        return Round(time.perf_counter() - began, stages.seconds, steps)

    def pieces(self, tokenizer: Any, documents: Sequence[Any]) -> list[Row]:
        """The pieces of each sentence, and the tag of each word on its first one."""
        words = [[document.text[span.start : span.end] for span in document.words] for document in documents]
        encoded = tokenizer(words, is_split_into_words=True, truncation=True)
        rows = []
        for at, document in enumerate(documents):
            tags = [0] * len(words[at])
            starts = {span.start: number for number, span in enumerate(document.words)}
            ends = {span.end: number + 1 for number, span in enumerate(document.words)}
            for entity in sorted(document.entities, key=lambda entity: (entity.start, -entity.end)):
                first, past = starts[entity.start], ends[entity.end]
                if not any(tags[first:past]):
                    begin = self.tags.index(f"B-{entity.label}")
                    tags[first:past] = [begin, *[begin + 1] * (past - first - 1)]
            owners = encoded.word_ids(at)
            new = [owner is not None and owner != before for owner, before in zip(owners, [None, *owners], strict=False)]
            labels = [tags[owner] if first else -100 for owner, first in zip(owners, new, strict=True)]
            rows.append({"input_ids": encoded["input_ids"][at], "labels": labels})
        return rows

    @torch.inference_mode()
    def predict(self, model: Any, collate: Any, rows: list[Row]) -> list[list[list[int]]]:
        """The tags of the dev sentences, longest first; entities are not made of them."""
        model.eval()
        found = []
        for batch in batches([len(row["input_ids"]) for row in rows], 64):
            inputs = collate([rows[at] for at in batch]).to(self.device)
            found.append(model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"]).logits.argmax(-1))
        model.train()
        return [tags.tolist() for tags in found]


def wait(device: str) -> None:
    """Lets the device finish."""
    if device != "cpu":
        torch.cuda.synchronize()


# Rows


def measured(system: Ours | Plain, rounds: list[Round], given: argparse.Namespace) -> Row:
    """The median of the rounds, by stage, in seconds of a whole training."""
    seconds = [round_.seconds for round_ in rounds]
    stages = {name: median(round_.stages[name] for round_ in rounds) for name in STAGES}
    total = median(seconds)
    return {
        "system": system.name,
        "precision": system.precision,
        "sentences": len(given.documents),
        "dev_sentences": len(given.dev_documents),
        "epochs": given.epochs,
        "batch_size": given.batch_size,
        "steps": rounds[0].steps,
        "seconds": round(total, 3),
        "spread": [round(min(seconds), 3), round(max(seconds), 3)],
        "prepare": round(median(system.prepared[-len(rounds) :]), 3),
        "stages": {name: round(value, 3) for name, value in stages.items()},
        "other": round(total - sum(stages.values()), 3),
        "step_ms": round(1000 * (total - stages["dev"]) / rounds[0].steps, 2),
        "rounds": len(rounds),
    }


def profile(system: Ours | Plain) -> Row:
    """Launches and computing of the device in one step: a training under the profiler, without its dev sentences."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as profiler

    if isinstance(system, Ours):
        made = system.fitted()
        run = loop.TrainingRun(made.recipe, made.labels, made.learner, loop.TrainingData(made.sentences), 1)
        progress = loop.train(run, loop.accelerator_for(system.precision, system.device))
        next(progress)  # the first steps are slower; the loop yields after 20 steps
        with profiler(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as found:
            next(progress)
            torch.cuda.synchronize()
        progress.close()  # type: ignore[attr-defined]
        steps = loop.CHECK_EVERY
    else:
        epochs, dev = system.epochs, system.dev_documents
        system.epochs, system.dev_documents, steps = [epochs[0][:PROFILED]], [], PROFILED
        system.train()
        with profiler(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as found:
            system.train()
            torch.cuda.synchronize()
        system.epochs, system.dev_documents = epochs, dev
    events = [event for event in found.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    host = Counter(event.name for event in found.events() if event.device_type == torch.autograd.DeviceType.CPU)
    return {
        "launches": round(sum(count for name, count in host.items() if "LaunchKernel" in name) / steps),
        "copies": round(sum(count for name, count in host.items() if "cudaMemcpyAsync" in name) / steps),
        "waits": round(sum(count for name, count in host.items() if "Synchronize" in name) / steps, 1),
        "device_ms": round(sum(event.device_time for event in events) / 1000 / steps, 2),
    }


def rows(given: argparse.Namespace) -> Iterator[Row]:
    """Everything that was asked for."""
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    for precision in given.precisions.split(","):
        systems: list[Ours | Plain] = [Ours(given, recipe, precision) for recipe in given.recipes.split(",")]
        if not given.no_plain:
            systems.append(Plain(given, systems[0].epochs(), precision))  # type: ignore[union-attr]
        for system in systems:  # the first of each is slower
            system.train()
        turns = [[system.train() for system in systems] for _ in range(given.rounds)]
        for at, system in enumerate(systems):
            row = measured(system, [turn[at] for turn in turns], given)
            if given.device != "cpu":
                row |= profile(system)
            yield row


def main() -> None:
    """Runs, writes one JSON line per row, prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("WINGSPAN_DATA"))
    folder = Path(os.environ.get("WINGSPAN_ENCODERS", ".")) / "all-MiniLM-L6-v2"
    parser.add_argument("--encoder-folder", default=str(folder))
    parser.add_argument("--corpus", default="genia")
    parser.add_argument("--recipes", default="bundling/bl-span,baseline,deep_span")
    parser.add_argument("--precisions", default="no,bf16")
    parser.add_argument("--sentences", type=int, default=3000)
    parser.add_argument("--dev", type=int, default=500)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-plain", action="store_true", help="without the plain loop")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--when", default="after", help="the name of this version of the code")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--output", type=Path, help="JSON lines are added to this file")
    given = parser.parse_args()
    given.documents = gold(given.data / given.corpus, "train", limit=given.sentences)
    given.dev_documents = gold(given.data / given.corpus, "dev", limit=given.dev)
    device = torch.cuda.get_device_name() if given.device != "cpu" else "cpu"
    facts = {"when": given.when, "device": device, "versions": versions(), "commit": given.commit}
    for row in rows(given):
        if given.output is not None:
            with given.output.open("a") as out:
                out.write(json.dumps({**row, **facts}) + "\n")
        print(json.dumps({"when": given.when, **row}), flush=True)


if __name__ == "__main__":
    main()
