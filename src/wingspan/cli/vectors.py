"""`wingspan vectors`: word vectors from text, by default GloVe; and the nearest neighbors of words."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress

from wingspan.cli import app
from wingspan.cli.options import Json
from wingspan.files import atomic_write
from wingspan.training.vector_training import GloveSettings
from wingspan.views.console import say

if TYPE_CHECKING:
    from wingspan.encoders.vectors import WordVectors
    from wingspan.training.vector_training import Counts, Glove, GloveSettings, NumberedText, RunningWords


class MethodName(StrEnum):
    """How vectors are trained."""

    glove = "glove"
    word2vec = "word2vec"
    fasttext = "fasttext"


@app.command(epilog="Example: wingspan vectors train.jsonl --output vectors.npz --size 300 --nearest protein")
def vectors(
    texts: Annotated[
        list[Path], typer.Argument(metavar="TEXT...", help="Texts (.txt, a line each), corpora; or a file of vectors.")
    ],
    output: Annotated[
        Path | None, typer.Option(help="Train, and write the vectors here, as .npz, .txt or .txt.gz.")
    ] = None,
    nearest: Annotated[list[str] | None, typer.Option(help="Show the words nearest to this one.")] = None,
    count: Annotated[int, typer.Option(min=1, help="How many neighbors to show.")] = 10,
    against: Annotated[
        list[Path] | None, typer.Option(help="Test text: say how much of it is in the training text.")
    ] = None,
    method: Annotated[MethodName, typer.Option(help="GloVe, or gensim's word2vec or fastText.")] = MethodName.glove,
    size: Annotated[int, typer.Option(min=1, help="Numbers in a vector.")] = 100,
    window: Annotated[int, typer.Option(min=1, help="How many words on each side are near.")] = 10,
    min_count: Annotated[int, typer.Option(min=1, help="Leave out words that are rarer than this.")] = 5,
    lower_case: Annotated[bool, typer.Option("--lower-case", help="Without capitals.")] = False,
    splitter: Annotated[str, typer.Option(help="Where words end: words, or whitespace.")] = "words",
    epochs: Annotated[int, typer.Option(min=1, help="How often to go through all pairs.")] = 25,
    learning_rate: Annotated[float, typer.Option(min=0.0, help="AdaGrad's.")] = 0.05,
    x_max: Annotated[float, typer.Option(min=0.001, help="Pairs seen this often or more weigh the same.")] = 10.0,
    alpha: Annotated[float, typer.Option(min=0.0, help="How much less pairs weigh that were seen less often.")] = 0.75,
    seed: Annotated[int, typer.Option(help="Where the vectors start.")] = 1,
    memory: Annotated[int, typer.Option(min=16, help="MiB that counting may take; the rest goes to disk.")] = 1024,
    threads: Annotated[int | None, typer.Option(min=1, help="Processor threads; all by default.")] = None,
    format: Annotated[str | None, typer.Option(help="Format of the corpora; otherwise found.")] = None,
    json: Json = None,
) -> None:
    """Trains word vectors on text, and shows the nearest neighbors of words. Give it training text only."""
    if output is None and not nearest:
        raise ValueError("give --output FILE to train vectors, or --nearest WORD to look into a file of them")
    if output is None and len(texts) != 1:
        raise ValueError(f"--nearest looks into one file of vectors, not {len(texts)}")
    import torch
    from rich.console import Console

    from wingspan.encoders.vectors import open_vectors
    from wingspan.training.vector_training import GloveSettings, RunningWords
    from wingspan.views.console import write_json

    if threads is not None:
        torch.set_num_threads(threads)
    console = Console(stderr=json == Path("-"))
    figures: dict[str, Any] = {}
    if output is not None:
        check_name(output)
        settings = GloveSettings(size, epochs, learning_rate, x_max, alpha, seed)
        words = RunningWords(texts, lower_case, splitter, format)
        plan = Plan(words, method.value, window, min_count, settings, against or [], memory)
        made = make(plan, console)
        write(made, output)
        figures |= made.report
        show(made, console)
    if nearest:
        figures["nearest"] = neighbors(open_vectors(output or texts[0]), nearest, count)
        show_neighbors(figures["nearest"], console)
    if json is not None:
        write_json(figures, json)


UNKNOWN = "<unk>"
RAREST = 100
BYTES_PER_PAIR = 80  # while pairs are sorted: number, count, order, and copies of them

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Plan:
    """What vectors are made of, and how."""

    texts: RunningWords
    method: str = "glove"
    window: int = 10
    min_count: int = 5
    settings: GloveSettings = GloveSettings()
    against: Sequence[Path] = ()
    """Text that must not be among the training text; how much of it is there is counted."""
    memory: int = 1024
    """How much memory counting may take, in MiB."""


@dataclass
class Made:
    """Vectors, most frequent words first, and what is known of their training."""

    words: list[str]
    vectors: Vectors
    report: dict[str, Any]


def make(plan: Plan, console: Console) -> Made:
    """Reads the texts, counts, trains."""
    with TemporaryDirectory(prefix="wingspan-vectors-") as folder:
        return make_in(Path(folder), plan, console)


def make_in(folder: Path, plan: Plan, console: Console) -> Made:
    """The same with a folder for what does not fit into memory."""
    from wingspan.training.vector_training import looks_held_out, print_of

    began = time.perf_counter()
    held_out = {str(path): {print_of(words) for words in plan.texts.of(path) if words} for path in plan.against}
    text, found = read(plan.texts, folder / "words", held_out)
    words = text.words(plan.min_count)
    if len(words) < 2:
        raise ValueError(
            f"only {len(words)} of {len(text.counts()):,} different words stand {plan.min_count} times or more; "
            "give more text, or a smaller --min-count"
        )
    seconds = {"reading": time.perf_counter() - began}
    report: dict[str, Any] = {
        "method": plan.method,
        "texts": [str(path) for path in plan.texts.paths],
        "num_texts": text.num_texts,
        "running_words": text.num_words,
        "different_words": len(words),
        "settings": {**asdict(plan.settings), "window": plan.window, "min_count": plan.min_count},
        "lower_case": plan.texts.lower_case,
        "named_as_held_out": [str(path) for path in plan.texts.paths if looks_held_out(path)],
        "against": {name: {"texts": len(held_out[name]), "found": count} for name, count in found.items()},
    }
    for line in warnings_of(report):
        say(console, line)
    if plan.method == "glove":
        vectors = train_glove(plan, text, words, folder, report, seconds, console)
    else:
        words, vectors = train_gensim(plan, seconds)
    words, vectors = with_unknown(words, vectors)
    report["seconds"] = seconds
    report["words_per_second"] = {
        "reading and counting": round(text.num_words / (seconds["reading"] + seconds.get("counting", 0))),
        "training": round(text.num_words * plan.settings.epochs / seconds["training"]),
    }
    report["peak_memory_mib"] = round(peak_memory())
    return Made(words, vectors, report)


def read(texts: RunningWords, path: Path, held_out: Mapping[str, set[bytes]]) -> tuple[NumberedText, dict[str, int]]:
    """The texts as numbers, and how many of each set that should not be among them are."""
    from wingspan.training.vector_training import NumberedText, print_of

    found = dict.fromkeys(held_out, 0)
    waiting = {name: set(prints) for name, prints in held_out.items()}
    with NumberedText(path) as text:
        for words in texts:
            text.add(words)
            mine = print_of(words) if waiting else b""
            for name, prints in waiting.items():
                if mine in prints:
                    prints.remove(mine)
                    found[name] += 1
    return text, found


def warnings_of(report: Mapping[str, Any]) -> Iterator[str]:
    """What is to be known before results are believed."""
    for name in report["named_as_held_out"]:
        yield f"warning: {name} is named as test or dev text; vectors that saw it make scores on it too good"
    for name, one in report["against"].items():
        found, of = one["found"], one["texts"]
        state = "none of" if not found else f"warning: {found:,} of"
        yield f"{state} the {of:,} different texts of {name} {'is' if not found else 'are'} in the training text"


def train_glove(
    plan: Plan,
    text: NumberedText,
    words: Sequence[str],
    folder: Path,
    report: dict[str, Any],
    seconds: dict[str, float],
    console: Console,
) -> Vectors:
    """Counts pairs and fits vectors to them. In a random order of words, so that blocks of them are alike."""
    from wingspan.training.vector_training import Glove, Layout, PairCounter

    began = time.perf_counter()
    places = np.random.default_rng(plan.settings.seed).permutation(len(words)).astype(np.int32)
    layout = Layout.of(len(words), 2 * plan.window * text.num_words)
    counter = PairCounter(layout, plan.window, folder, plan.memory * 2**20 // BYTES_PER_PAIR)
    for some, texts in text.renumbered(dict(zip(words, places.tolist(), strict=True))):
        counter.add(some, texts)
    counts = counter.counts()
    if not len(counts.keys):
        raise ValueError("no two words stand in one text; give texts of several words")
    report["pairs"], report["spilled"] = len(counts.keys), len(counter.runs)
    seconds["counting"] = time.perf_counter() - began
    began = time.perf_counter()
    glove = Glove(counts, layout, plan.settings)
    report["losses"] = list(epochs(glove, counts, console))
    seconds["training"] = time.perf_counter() - began
    return glove.vectors()[places]


def epochs(glove: Glove, counts: Counts, console: Console) -> Iterator[float]:
    """The mean loss of each epoch, with a bar on a terminal."""
    settings, blocks = glove.settings, glove.layout.blocks**2
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("GloVe", total=settings.epochs * blocks)
        for number in range(1, settings.epochs + 1):
            loss = 0.0
            for one in glove.epoch():
                loss += one
                bar.advance(task)
            mean = loss / len(counts.keys)
            if not np.isfinite(mean):
                raise ValueError(f"the loss is no number after epoch {number}; use a smaller --learning-rate")
            bar.update(task, description=f"GloVe, epoch {number}, loss {mean:.5f}")
            yield mean


def train_gensim(plan: Plan, seconds: dict[str, float]) -> tuple[list[str], Vectors]:
    """Vectors by gensim."""
    from wingspan.training.vector_training import train_with_gensim

    began = time.perf_counter()
    own = plan.settings
    words, vectors = train_with_gensim(
        plan.method,
        plan.texts,
        size=own.size,
        window=plan.window,
        min_count=plan.min_count,
        epochs=own.epochs,
        seed=own.seed,
    )
    seconds["training"] = time.perf_counter() - began
    return words, vectors


def with_unknown(words: list[str], vectors: Vectors) -> tuple[list[str], Vectors]:
    """Adds a vector for words that are not there: the mean of the rarest, as GloVe has it."""
    if UNKNOWN in words:
        return words, vectors
    return [*words, UNKNOWN], np.concatenate([vectors, vectors[-RAREST:].mean(0, keepdims=True)])


def peak_memory() -> float:
    """The most memory this process has had, in MiB."""
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (2**20 if sys.platform == "darwin" else 2**10)


def check_name(path: Path) -> None:
    """Before a long training: whether its vectors can be written under that name."""
    if path.suffix != ".npz" and not path.name.removesuffix(".gz").endswith((".txt", ".vec")):
        raise ValueError(f"{path}: vectors are written as .npz, .txt or .txt.gz; choose one of these names")


def write(made: Made, path: Path) -> None:
    """An .npz with what is known of the training, in half precision; or text as GloVe writes it."""
    from wingspan.encoders.vectors import write_npz

    if path.suffix == ".npz":
        write_npz(path, made.words, made.vectors.astype(np.float16), made.report)
        return
    with atomic_write(path) as out:
        for word, row in zip(made.words, made.vectors.tolist(), strict=True):
            out.write(f"{word} {' '.join(f'{number:.6g}' for number in row)}\n")


def show(made: Made, console: Console) -> None:
    """What was trained on what, and at what cost."""
    report = made.report
    pairs = f", {report['pairs']:,} pairs" if "pairs" in report else ""
    say(console, f"{report['running_words']:,} words in {report['num_texts']:,} texts{pairs}")
    say(console, f"{len(made.words):,} vectors of {made.vectors.shape[1]} numbers")
    if report.get("losses"):
        say(console, f"loss {report['losses'][0]:.5f} in the first epoch, {report['losses'][-1]:.5f} in the last")
    speeds = ", ".join(f"{part} {speed:,} words per second" for part, speed in report["words_per_second"].items())
    say(console, f"{speeds}; peak memory {report['peak_memory_mib']:,} MiB")


def neighbors(source: WordVectors, words: Sequence[str], count: int) -> dict[str, Any]:
    """The nearest neighbors of words, as plain data; a word without a vector is a mistake worth a sentence."""
    from wingspan.encoders.vectors import nearest

    found = nearest(source, words, count)
    missing = [word for word in words if word not in found]
    if missing:
        raise ValueError(f"{missing[0]!r} has no vector; ask for another word, or train with a smaller --min-count")
    return {word: [{"word": near, "cosine": cosine} for near, cosine in pairs] for word, pairs in found.items()}


def show_neighbors(found: Mapping[str, Any], console: Console) -> None:
    """One line for each word."""
    for word, some in found.items():
        say(console, f"{word}: " + ", ".join(f"{near['word']} {near['cosine']:.2f}" for near in some))
