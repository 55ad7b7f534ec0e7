"""`wingspan export`: a model as an ONNX graph that predicts without torch."""

from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from wingspan.cli import app
from wingspan.cli.options import ModelName, OneFormat, Parts, Threads, trusted, use_threads
from wingspan.corpora.demo import corpus
from wingspan.corpora.formats import read
from wingspan.views.console import say


@app.command(epilog="Example: wingspan export runs/mine runs/mine-onnx --texts dev.jsonl")
def export(
    model: ModelName,
    output: Annotated[Path, typer.Argument(metavar="OUT", help="Folder for the exported model.")],
    texts: Annotated[
        Path | None,
        typer.Option(help="A corpus to compare graph and model on, with --int8 in F1 too; otherwise the built-in one."),
    ] = None,
    first: Annotated[int, typer.Option(min=1, help="How many of its documents to compare on.")] = 200,
    int8: Annotated[
        bool, typer.Option("--int8", help="Store weights in 8 bits: smaller, a little less exact.")
    ] = False,
    format: OneFormat = None,
    parts: Parts = None,
    threads: Threads = None,
) -> Any:
    """Writes a model as an ONNX graph: it finds the same entities with onnxruntime, without torch."""
    from wingspan.export import export as write
    from wingspan.recognizer import Recognizer

    use_threads(threads)
    console = Console()
    if (output / "recipe.json").exists():
        raise ValueError(f"{output}: a model that can be trained is there; name another folder")
    documents = list(islice(chain(*corpus()) if texts is None else read(texts, format), first))
    recognizer = Recognizer.from_pretrained(model, device="cpu", parts=trusted(parts))
    result = write(
        recognizer,
        output,
        documents,
        int8=int8,
        gold=documents if texts is not None else (),
        say=lambda line: say(console, line),
    )
    if int8:
        say(console, f"weights in 8 bits: {size(result.bytes_exact)} became {size(result.bytes)}")
    if result.cost is not None:
        what = "accuracy" if recognizer.recipe.protocol == "typing" else "F1"
        before, after = result.cost.before, result.cost.after
        say(console, f"{what} on {texts}: {before:.2f} before, {after:.2f} with 8 bits ({after - before:+.2f})")
    say(console, f"{output}: {size(result.bytes)}; wingspan.load and every command that predicts can use it")
    return result


def size(count: int) -> str:
    """Bytes for people."""
    return f"{count / 2**20:.1f} MB"
