"""The command that makes word vectors: `vectors`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from wingspan.cli import app
from wingspan.cli.models import Json


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

    from wingspan.runs import vectors as run
    from wingspan.runs.figures import write_figures
    from wingspan.word_vectors import open_vectors
    from wingspan.word_vectors.glove import GloveSettings
    from wingspan.word_vectors.running_words import RunningWords

    if threads is not None:
        torch.set_num_threads(threads)
    console = Console(stderr=json == Path("-"))
    figures: dict[str, Any] = {}
    if output is not None:
        run.check_name(output)
        settings = GloveSettings(size, epochs, learning_rate, x_max, alpha, seed)
        words = RunningWords(texts, lower_case, splitter, format)
        plan = run.Plan(words, method.value, window, min_count, settings, against or [], memory)
        made = run.make(plan, console)
        run.write(made, output)
        figures |= made.report
        run.show(made, console)
    if nearest:
        figures["nearest"] = run.neighbors(open_vectors(output or texts[0]), nearest, count)
        run.show_neighbors(figures["nearest"], console)
    if json is not None:
        write_figures(figures, json)
