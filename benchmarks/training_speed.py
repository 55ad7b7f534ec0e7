"""Where the seconds of a small training go, beside a plain Hugging Face token-classification loop.

    python benchmarks/training_speed.py --data $WINGSPAN_DATA --encoder-folder $WINGSPAN_ENCODERS/all-MiniLM-L6-v2 \
        --before ../older/src --output benchmarks/results/training_speed.jsonl --commit $(git rev-parse --short HEAD)

Each recipe trains alone on the device, by turns with the plain loop, on the same sentences, in the same batches and
the same precision, and predicts the same dev sentences after each epoch. `first` are the seconds of the first turn, in
which kernels may have to be prepared for every new length of a batch; the others are medians of the later ones. The
plain loop has its pieces made once, as ours has; its tags are the outermost entities. Nothing synchronizes with the
device for the sake of the clock: a stage has the seconds that the loop spends in it, and where the device is slower
than the loop, the stage that waits for it has the waiting. A last training runs under torch's profiler, which counts
launches and adds up what the device computes. `--before` names the source folder of an older version: it trains the
same recipes in processes of its own, by turns with the others, which wait meanwhile.
One JSON line for each system, version and precision.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from unittest.mock import patch

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch
from accelerate import Accelerator
from accelerate.optimizer import AcceleratedOptimizer
from torch.autograd import DeviceType  # type: ignore[attr-defined]
from torch.profiler import ProfilerActivity
from torch.profiler import profile as Profiler  # noqa: N812  a class
from torch.utils.data import DataLoader
from transformers import AutoModelForTokenClassification, AutoTokenizer, DataCollatorForTokenClassification
from transformers.utils import logging as transformers_logging

from measuring import versions
from training_runs import gold
from wingspan.batch import Collate, batches
from wingspan.corpora.segment import segment_all
from wingspan.text import Document, Sentence
from wingspan.training import loop
from wingspan.training.fit import Fitted, fit
from wingspan.training.run import prepare

Row = dict[str, Any]
PLAIN = "Hugging Face token classification"
STAGES = ("batches", "copy", "forward", "backward", "optimizer", "dev")


class Stages:
    """Seconds by stage; a stage inside another counts for the outer one."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
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


class Round(NamedTuple):
    """One training: its seconds, those of its stages, and the steps it took."""

    seconds: float
    stages: Mapping[str, float]
    steps: int


# Ours: the loop of `wingspan train`, from the fitted recipe to the last dev score


class Ours:
    """A recipe, trained from its start in each round."""

    when = "after"

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

    def run(self, made: Fitted, dev: Sequence[Document]) -> loop.TrainingRun:
        """The training of a fitted recipe."""
        return loop.TrainingRun(made.recipe, made.labels, made.learner, loop.TrainingData(made.sentences, dev), 1)

    def train(self) -> Round:
        """One training."""
        made, stages, steps = self.fitted(), Stages(), 0
        accelerator, run = loop.accelerator_for(self.precision, self.device), self.run(made, self.dev)
        with watched(stages, made.learner):
            wait(self.device)
            began = time.perf_counter()
            for progress in loop.train(run, accelerator):
                steps = progress.position.total
            wait(self.device)
            return Round(time.perf_counter() - began, stages.seconds, steps)


@contextmanager
def watched(stages: Stages, learner: Any) -> Iterator[None]:
    """Lets the functions that the loop calls add their seconds to the stages, in older versions too."""
    update = getattr(loop, "Update", None)
    places: list[tuple[str, Any, str]] = [
        ("batches", Collate, "__call__"),
        ("copy", loop, "Packed"),
        ("copy", loop, "tensors"),
        ("forward", learner, "forward"),
        ("backward", update or Accelerator, "backward"),
        ("optimizer", update or AcceleratedOptimizer, "step"),
        ("optimizer", AcceleratedOptimizer, "zero_grad"),
        ("optimizer", Accelerator, "clip_grad_norm_"),
        ("dev", loop, "score"),
    ]
    with ExitStack() as stack:
        for stage, owner, name in places:
            if hasattr(owner, name):
                stack.enter_context(patch.object(owner, name, stages.timed(stage, getattr(owner, name))))
        yield


class Before:
    """A recipe as an older version trains it: in a process with its source folder, which is asked round by round."""

    when = "before"

    def __init__(self, given: argparse.Namespace, recipe: str, precision: str) -> None:
        self.name, self.precision = recipe, precision
        self.prepared: list[float] = []
        options = {name: str(getattr(given, name)) for name in PASSED_ON}
        flags = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
        one = [f"--recipes={recipe}", f"--precisions={precision}", "--answers"]
        environment = {**os.environ, "PYTHONPATH": str(given.before)}
        command = [sys.executable, __file__, *flags, *one]
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, env=environment, **pipes)

    def asked(self, what: str) -> Any:
        """The answer to `train`, or `profile`."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(what, file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def train(self) -> Round:
        """One training."""
        prepared, *round_ = self.asked("train")
        self.prepared.append(prepared)
        return Round(*round_)


PASSED_ON = ("data", "encoder_folder", "corpus", "sentences", "dev", "epochs", "batch_size", "device")


def answer(given: argparse.Namespace) -> None:
    """Trains and profiles one recipe whenever a line on standard input says so; JSON lines on standard output."""
    system = Ours(given, given.recipes, given.precisions)
    answers = sys.stdout
    sys.stdout = sys.stderr
    for line in sys.stdin:
        if line.strip() == "train":
            round_ = system.train()
            found: Any = (system.prepared[-1], *round_)
        else:
            found = profile(system)
        print(json.dumps(found), file=answers, flush=True)


# The plain loop, as a tutorial has it


class Plain:
    """AutoModelForTokenClassification, AdamW, a linear schedule, clipped gradients."""

    name, when = PLAIN, "plain"

    def __init__(self, given: argparse.Namespace, like: Ours) -> None:
        made = like.fitted()
        self.precision, self.device, self.folder = like.precision, given.device, given.encoder_folder
        self.epochs = loop.plan(like.run(made, ()), 0)
        self.sentences, self.labels = made.sentences, made.labels.types["main"]
        self.dev = list(segment_all(given.dev_documents, made.recipe.segments))
        self.prepared: list[float] = []

    def train(self, watch: Callable[[int], None] = lambda step: None) -> Round:
        """One training; `watch` is called after each step."""
        stages, steps = Stages(), 0
        began = time.perf_counter()
        torch.manual_seed(1)
        tokenizer = AutoTokenizer.from_pretrained(self.folder)
        kind = {"num_labels": 1 + 2 * len(self.labels), "dtype": torch.float32}  # the file may hold half of them
        model = AutoModelForTokenClassification.from_pretrained(self.folder, **kind)
        pieces, dev = (self.pieces(tokenizer, some) for some in (self.sentences, self.dev))
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
            options: Row = {"batch_sampler": epoch, "collate_fn": collate, "pin_memory": self.device != "cpu"}
            loader: Any = DataLoader(pieces, **options)  # type: ignore[arg-type]
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
                watch(steps)
            with stages.stage("dev"), half:
                self.predict(model, collate, dev)
        wait(self.device)
        return Round(time.perf_counter() - began, stages.seconds, steps)

    def pieces(self, tokenizer: Any, sentences: Sequence[Sentence]) -> list[Row]:
        """The pieces of each sentence, and the tag of each word on its first one."""
        encoded = tokenizer([list(sentence.words) for sentence in sentences], is_split_into_words=True, truncation=True)
        rows = []
        for at, sentence in enumerate(sentences):
            tags = [0] * len(sentence.words)
            for entity in sorted(sentence.entities, key=lambda entity: (entity.start, -entity.end)):
                if not any(tags[entity.start : entity.end]):
                    begin = 1 + 2 * self.labels.index(entity.label)
                    tags[entity.start : entity.end] = [begin, *[begin + 1] * (entity.end - entity.start - 1)]
            owners = encoded.word_ids(at)
            new = [owner not in (None, before) for owner, before in zip(owners, [None, *owners[:-1]], strict=True)]
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
            found.append(
                model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"]).logits.argmax(-1)
            )
        model.train()
        return [tags.tolist() for tags in found]


def wait(device: str) -> None:
    """Lets the device finish."""
    if device != "cpu":
        torch.cuda.synchronize()


# Rows

System = Ours | Before | Plain


def measured(system: System, rounds: list[Round], given: argparse.Namespace) -> Row:
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


def profile(system: System) -> Row:
    """Launches, copies, waits and computing of the device in one step, over steps that are not a training's first."""
    if isinstance(system, Before):
        measured_there: Row = system.asked("profile")
        return measured_there
    found = Profiler(activities=[ProfilerActivity.CUDA])
    if isinstance(system, Ours):
        run = system.run(system.fitted(), ())
        progress = loop.train(run, loop.accelerator_for(system.precision, system.device))
        next(progress)  # the loop looks at its losses after some steps, and has waited for the device then
        found.start()
        next(progress)
        found.stop()
    else:

        def watch(step: int) -> None:
            if step in (loop.CHECK_EVERY, 2 * loop.CHECK_EVERY):
                torch.cuda.synchronize()
                (found.start if step == loop.CHECK_EVERY else found.stop)()

        system.train(watch)
    counts: Counter[str] = Counter()
    computing = 0.0
    for event in found.events():
        if event.device_type == DeviceType.CPU:
            counts["waits"] += "Synchronize" in event.name
        elif not event.is_user_annotation:
            counts["copies" if event.name.startswith("Mem") else "launches"] += 1
            computing += event.time_range.elapsed_us()
    figures = {name: round(counts[name] / loop.CHECK_EVERY, 1) for name in ("launches", "copies", "waits")}
    return figures | {"device_ms": round(computing / 1000 / loop.CHECK_EVERY, 2)}


def in_small(given: argparse.Namespace) -> argparse.Namespace:
    """The same for a few documents."""
    few = {"documents": given.documents[: 4 * given.batch_size], "dev_documents": given.dev_documents[:10]}
    return argparse.Namespace(**vars(given) | few)


def rows(given: argparse.Namespace) -> Iterator[Row]:
    """Everything that was asked for."""
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    for precision in given.precisions.split(","):
        recipes = given.recipes.split(",")
        ours = [Ours(given, recipe, precision) for recipe in recipes]
        systems: list[System] = [*ours]
        if given.before is not None:
            systems += [Before(given, recipe, precision) for recipe in recipes]
        if not given.no_plain:
            systems.append(Plain(given, ours[0]))
        Ours(in_small(given), ours[0].name, precision).train()  # loads what the device needs
        first, *turns = [[system.train() for system in systems] for _ in range(given.rounds + 1)]
        for at, system in enumerate(systems):
            row = measured(system, [turn[at] for turn in turns], given) | {"first": round(first[at].seconds, 3)}
            if given.device != "cpu":
                row |= profile(system)
            yield {**row, "when": system.when}
        for system in systems:
            if isinstance(system, Before):
                system.process.communicate()  # without a further line it ends


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
    parser.add_argument("--before", type=Path, help="the source folder of an older version to train beside this one")
    parser.add_argument("--answers", action="store_true", help="the older version, called by the newer")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--output", type=Path, help="JSON lines are added to this file")
    given = parser.parse_args()
    given.documents = gold(given.data / given.corpus, "train", limit=given.sentences)
    given.dev_documents = gold(given.data / given.corpus, "dev", limit=given.dev)
    if given.answers:
        answer(given)
        return
    device = torch.cuda.get_device_name() if given.device != "cpu" else "cpu"
    facts = {"device": device, "versions": versions(), "commit": given.commit}
    for row in rows(given):
        if given.output is not None:
            with given.output.open("a") as out:
                out.write(json.dumps({**row, **facts}) + "\n")
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
