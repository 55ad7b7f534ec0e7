"""Trainings in two processes (gloo, through Accelerate), forked from one that has torch loaded, and the same in one."""

import os
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import torch
import torch._dynamo
import torch.distributed.tensor  # both are imported by the first training, which takes seconds: once is enough
from forking import forking
from names import Invented
from safetensors.torch import save_model
from several import two_corpora

import wingspan
from trainings import HASHED, TINY, dev_documents, entities, tiny, train_documents
from wingspan.candidates import Grid
from wingspan.cli import main
from wingspan.encoders.loading import set_dropout
from wingspan.encoders.lora import Lora
from wingspan.encoders.pretrained import PretrainedEncoder
from wingspan.experiments.run import speak_into
from wingspan.recipe import Phase, Recipe
from wingspan.recipe_json import override
from wingspan.recognizer import Recognizer
from wingspan.training.fit import fit
from wingspan.training.loop import Progress, TrainingData, TrainingRun, accelerator_for
from wingspan.training.loop import train as train_loop

torch.set_num_threads(1)
train_documents()
SENTENCES, BATCH, EPOCHS = 21, 5, 2  # 10 steps; the last batch of an epoch has one sentence, so one process has none


def in_two(work: Callable[..., None], *given: object) -> None:
    """Runs `work(number, *given)` in two processes that know of each other as torchrun would tell them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = forking()
    started = [context.Process(target=one_of_two, args=(number, port, work, given)) for number in (0, 1)]
    for process in started:
        process.start()
    for process in started:
        process.join(120)
    codes = [process.exitcode for process in started]
    for process in started:
        process.kill()
    assert codes == [0, 0]


def one_of_two(number: int, port: int, work: Callable[..., None], given: tuple) -> None:
    """The environment that torchrun makes, then the work."""
    torch.set_num_threads(1)
    place = {"RANK": number, "LOCAL_RANK": number, "WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 2, "MASTER_PORT": port}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "OMP_NUM_THREADS": "1", **{key: str(at) for key, at in place.items()}}
    work(number, *given)


def recipes(bert: Path) -> dict[str, Recipe]:
    """Systems with all kinds of losses between them, exact: all spans, nothing hidden."""
    settings = dict(batch_size=BATCH, epochs=EPOCHS, learning_rate=1e-2, weight_decay=0.1)
    small_vaes = {"latent_size": 6, "embedding_size": 5, "hidden": 7, "word_dropout": 0.0}
    generating = replace(tiny("compress_generate", **settings), encoder=HASHED)
    generating = replace(generating, phases=(Phase(1, ("generate",)), Phase(1)))
    for key, value in small_vaes.items():
        generating = override(generating, f"terms.generate.objective.{key}", str(value))
    adapters = Lora(rank=2, dropout=0.0) if find_spec("peft") else None
    encoder = partial(PretrainedEncoder, name=str(bert), adapters=adapters)
    several = tiny("conditional", **settings, sampling="uniform")
    for key, value in {"hidden": 8, "latent_size": 6}.items():
        several = override(several, f"terms.cvae.objective.{key}", str(value))
    several = override(several, "terms.cvae.weight", "0.1")
    return {
        "bundling/bl-span": replace(tiny("bundling/bl-span", **settings, accumulate=2), candidates=partial(Grid)),
        "bundling/bl-seq-crf": replace(tiny("bundling/bl-seq-crf", **settings), candidates=partial(Grid)),
        "baseline/proposals": override(tiny("baseline/proposals", **settings), "candidates.budget", "99"),
        "compress_generate": generating,
        "deep_span": replace(tiny("deep_span", **settings), encoder=encoder),
        "discontinuous": tiny("discontinuous", **settings),
        "conditional": several,
        "conditional/shared": several,
    }


NAMES = tuple(recipes(Path()))


def train(name: str, recipe: Recipe, path: Path) -> list[float]:
    """Trains in float64 without any random draw, saves all weights, and returns the losses and dev scores."""
    torch.randn = torch.zeros
    torch.randn_like = torch.zeros_like
    plan = two_corpora(heads="shared" if "shared" in name else "own") if "conditional" in name else None
    documents, declared = (plan.training, plan.labels) if plan is not None else (train_documents(), None)
    fitted = fit(recipe, documents, seed=3, lexicon=Invented(), declared=declared)
    set_dropout(fitted.learner.double(), 0.0)
    sentences = fitted.sentences[:: len(fitted.sentences) // SENTENCES][:SENTENCES]
    assert len(sentences) == SENTENCES
    assert len({sentence.dataset for sentence in sentences}) == 1 + (plan is not None)
    run = TrainingRun(fitted.recipe, fitted.labels, fitted.learner, TrainingData(sentences, dev_documents(3)), 3)
    seen = list(train_loop(run, accelerator_for("no", "cpu")))
    save_model(run.learner, str(path))
    scores = [progress.scores.micro.f1 for progress in seen if progress.scores is not None]
    return [value for progress in seen for value in progress.losses.values()] + scores


def places(model: Recognizer) -> str:
    """What a model finds when it takes all it can, without scores: one process calibrates them, the others do not."""
    found = entities(model.predict(dev_documents(3), threshold=0.0))
    return repr([[entity[:2] for entity in document] for document in found])


def train_and_go_on(number: int, folder: Path) -> None:
    """An undisturbed run, one that is stopped and resumed, and one from the shell; what is said goes to files."""

    def go(name: str, **others: object) -> None:
        recipe = tiny("bundling/bl-span", epochs=3, batch_size=8, checkpoint_steps=2)  # with dropout and drawn spans
        data = dict(train=train_documents(8), dev=dev_documents(3), output=folder / name, seed=4, device="cpu")
        model = wingspan.train(recipe, **data, **others)
        (folder / f"{name}-{number}.txt").write_text(places(model))

    def stop(progress: Progress) -> None:
        if progress.position.epoch == 2:
            raise KeyboardInterrupt

    go("whole")
    with suppress(KeyboardInterrupt):
        go("stopped", watch=stop)
    go("stopped", resume=True)
    speak_into(folder / f"said-{number}.txt")
    files = ["--train", str(folder / "train.jsonl"), "--dev", str(folder / "dev.jsonl"), "--device", "cpu"]
    quick = [part for key, value in {**TINY, "train.epochs": 1}.items() for part in ("--set", f"{key}={value}")]
    output = ["--output", str(folder / "shell"), "--json", str(folder / f"figures-{number}.json"), "--seeds", "1,2"]
    sys.argv = ["wingspan", "train", "baseline", *files, *output, *quick]
    with suppress(SystemExit):
        main()


def train_all(number: int, bert: Path, folder: Path) -> None:
    """All recipes, one after the other; both processes write what they have come to."""
    for name, recipe in recipes(bert).items():
        figures = train(name, recipe, folder / f"{name.replace('/', '-')}-{number}.safetensors")
        (folder / f"{name.replace('/', '-')}-{number}.txt").write_text(" ".join(map(repr, figures)))
