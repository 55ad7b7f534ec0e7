"""`wingspan demo`: what the installed model finds; then a training on the built-in corpus, without a network."""

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from rich.console import Console

from wingspan.box import EXAMPLES, HOW, NAME, installed_folder
from wingspan.cli import app
from wingspan.cli.options import Seed, Threads, use_threads
from wingspan.corpora.demo import corpus, memorizer
from wingspan.evaluation.scores import Scores, recognition
from wingspan.views.console import program, say
from wingspan.views.terminal import legend, show


@app.command(epilog="Example: wingspan demo")
def demo(
    output: Annotated[Path | None, typer.Option(help="Keep the model in this folder.")] = None,
    seed: Seed = 1,
    threads: Threads = None,
) -> None:
    """Shows entities with the installed model, then trains, scores and shows entities on the built-in corpus.

    No network, under three minutes on two cores.
    """
    from wingspan.training.corpora import Corpora
    from wingspan.training.run import TrainingJob, prepare, run

    use_threads(threads)
    console = Console()
    if output is not None and output.exists():
        raise ValueError(f"{output}: is there already; choose another --output for the demo's model")
    show_installed(console)
    train, dev, test = corpus()
    words = sum(len(document.text.split()) for document in (*train, *dev, *test))
    console.print(
        f"The built-in corpus: {len(train)} training, {len(dev)} dev and {len(test)} test documents, about {words:,} "
        "words, generated; most names in the test part never occur in training.",
        highlight=False,
    )
    with TemporaryDirectory() as temporary:
        folder = output or Path(temporary) / "model"
        began = time.perf_counter()
        job = TrainingJob(
            prepare("baseline", None, {"train.epochs": 10, "train.batch_size": 16}),
            Corpora(train, dev, test),
            folder,
            seed,
        )
        model, scores = run(job, console)
        seconds = time.perf_counter() - began
    assert isinstance(scores, Scores)
    remember = memorizer(train)
    dictionary = recognition(test, [remember(document) for document in test])
    console.print(
        f"Strict F1 on the test part: [bold]{scores.micro.f1:.1f}[/]; a dictionary of the training names reaches "
        f"{dictionary.micro.f1:.1f}. Training and scoring took {seconds:.0f} seconds.",
        highlight=False,
    )
    chosen = [
        document
        for document in test
        if any(a is not b and a.hull.contains(b.hull) for a in document.entities for b in document.entities)
    ][:3]
    console.print("\nWhat the model finds in unseen documents, nested entities stacked:\n")
    labels = sorted({entity.label for document in train for entity in document.entities})
    legend(labels, console)
    for gold, predicted in zip(chosen, model.predict(chosen), strict=True):
        console.print(f"\n{predicted.id}", style="dim")
        show(predicted, console, gold=gold, labels=labels)
    say(console, f"\nNext: {program()} train baseline --train YOUR.jsonl --dev DEV.jsonl --output runs/mine")
    say(console, f"      {program()} predict 'Some text.' --model {output or 'runs/mine'}")
    say(console, f"      {program()} recipes        (all systems)")


def show_installed(console: Console) -> None:
    """What the installed model finds in sentences that were written for this; one line where it is not installed."""
    if installed_folder() is None:
        say(console, f"{NAME}, a model to begin with, is not installed; in a checkout of Wingspan run: {HOW}\n")
        return
    from wingspan.recognizer import Recognizer

    began = time.perf_counter()
    model = Recognizer.from_pretrained(NAME, device="cpu")
    found = model.predict(EXAMPLES)
    say(console, f"What {NAME}, the installed model, finds; loaded and done in {time.perf_counter() - began:.1f} s:\n")
    labels = sorted(model.labels.types[model.labels.target])
    legend(labels, console)
    for document in found:
        console.print()
        show(document, console, labels=labels)
    say(console, "\nAnd now a model of your own.")
