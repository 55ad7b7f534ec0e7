"""A training for the tests that kill it; each run is a separate process, forked from one that has torch loaded."""

import multiprocessing
from pathlib import Path

import torch
import torch._dynamo
import torch.distributed.tensor  # both are imported by the first training, which takes seconds: once is enough
from forking import forking
from killing import deadly
from several import two_corpora

import wingspan
from trainings import dev_documents, tiny, train_documents
from wingspan.training import state

torch.set_num_threads(1)
train_documents()
STEPS = 15
"""How many optimizer steps the training has."""


def process(
    folder: Path,
    resume: bool = False,
    kill: tuple[str, int] | None = None,
    several: bool = False,
) -> multiprocessing.Process:
    """The training, started; `kill` names where it kills itself, and at which call. On one corpus or on two."""
    started = forking().Process(target=run, args=(folder, resume, kill, several))
    started.start()
    return started


def run(folder: Path, resume: bool, kill: tuple[str, int] | None, several: bool) -> None:
    if kill is not None and kill[0] == "step":
        torch.optim.AdamW.step = deadly(torch.optim.AdamW.step, kill[1])
    elif kill is not None:
        setattr(state, kill[0], deadly(getattr(state, kill[0]), kill[1], half_a_file))
    if several:
        drawn = {"sampling": "uniform", "batches": "turns", "accumulate": 2, "checkpoint_steps": 2}
        recipe = tiny("baseline", epochs=3, batch_size=8, learning_rate=1e-2, **drawn)
        wingspan.train(recipe, corpora=two_corpora(5), output=folder, seed=4, device="cpu", resume=resume)
        return
    wingspan.train(
        tiny("bundling/bl-span", epochs=3, batch_size=8, checkpoint_steps=2, accumulate=2, learning_rate=1e-2),
        train=train_documents(10),
        dev=dev_documents(3),
        output=folder,
        seed=4,
        device="cpu",
        resume=resume,
    )


def half_a_file(path: Path, *_: object) -> None:
    """Leaves half of a file under a temporary name, like a kill in the middle of writing."""
    path.with_name(f".{path.name}.0.new").write_bytes(b"half of")
