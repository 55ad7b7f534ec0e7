"""`wingspan predict`: a text, files in any corpus format, plain text files, a folder, or standard input."""

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TimeElapsedColumn

from wingspan.answers import model_version
from wingspan.box import chosen
from wingspan.cli import app
from wingspan.cli.options import (
    ComputeIn,
    Dataset,
    Device,
    MostSentences,
    NoProgress,
    Parts,
    Threads,
    is_model,
    trusted,
    use_threads,
)
from wingspan.corpora.formats import (
    Format,
    by_suffix,
    detect,
    format_named,
    is_prose,
    keep_apart,
    read,
    write_predictions,
)
from wingspan.corpora.formats.conversion_loss import OVERLAPS, described, fit, loss_lines
from wingspan.corpora.formats.jsonl import record_of_prediction
from wingspan.corpora.formats.records import dumps
from wingspan.decoding import Overlap
from wingspan.files import CorpusError, OnError, Problems, numbered, read_text
from wingspan.text import Document
from wingspan.views.console import counted, say
from wingspan.views.terminal import show

if TYPE_CHECKING:
    from wingspan.scale import Job
    from wingspan.scale.sources import Source, Tally

Engine = Literal["local", "ray"]
SUFFIXES = (".txt", ".jsonl", ".json", ".gz", ".ann", ".conll")  # of arguments that are meant as files


@app.command(epilog="Example: wingspan predict 'Familial breast cancer.' --model runs/mine")
def predict(
    inputs: Annotated[list[str], typer.Argument(metavar="INPUT", help="A text, files, a folder, or - for lines.")],
    model: Annotated[
        str | None,
        typer.Option(help="A model folder or hub id, or put the folder first; otherwise wingspan-bio-small."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Write documents here; otherwise show them, or print JSON lines in a pipe.")
    ] = None,
    format: Annotated[str | None, typer.Option("--from", help="Format of the input files.")] = None,
    to: Annotated[
        str | None, typer.Option("--to", "--format", help="Format of the output; otherwise by its suffix.")
    ] = None,
    lossy: Annotated[
        bool, typer.Option("--lossy", help="Write even if the format changes entities, such as discontinuous ones.")
    ] = False,
    overlap: Annotated[Overlap | None, typer.Option(help="Which entities may overlap; otherwise as trained.")] = None,
    threshold: Annotated[float | None, typer.Option(min=0.0, max=1.0, help="The least score of an entity.")] = None,
    on_error: Annotated[
        OnError, typer.Option(help="At a file or record that cannot be read: stop, or leave it out and count it.")
    ] = "raise",
    uncertain: Annotated[
        int | None, typer.Option(min=1, help="Only so many documents: those to annotate next, least certain first.")
    ] = None,
    dataset: Dataset = None,
    batch_size: MostSentences = None,
    parts: Parts = None,
    device: Device = None,
    precision: ComputeIn = "auto",
    threads: Threads = None,
    engine: Annotated[
        Engine | None, typer.Option(help="Predict Parquet and JSON-lines files into a folder, with many workers.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes or actors of --engine; otherwise all cores or GPUs.")
    ] = None,
    address: Annotated[
        str | None, typer.Option(help="The Ray cluster of --engine ray; otherwise this machine.")
    ] = None,
    text: Annotated[str | None, typer.Option(help="With --engine: the column or key with the texts.")] = None,
    no_progress: NoProgress = False,
) -> None:
    """Finds entities in texts of any length."""
    console = Console()
    if engine is not None:
        refuse_with_engine(output, format, to, lossy)
    elif workers is not None or address is not None or text is not None:
        raise ValueError("--workers, --address and --text are about --engine; give --engine local or ray too")
    if output is None and (to is not None or lossy):
        raise ValueError("--to and --lossy are about the file of --output; give one, or leave them out")
    if model is None and is_model(inputs[0]) and len(inputs) > 1:
        model, *inputs = inputs
    if model is None and is_model(inputs[0]):
        raise ValueError(f"{inputs[0]} is a model; give a text or files too: wingspan predict MODEL INPUT")
    if engine is not None and output is not None:
        from wingspan.scale import Job

        files = tuple(str(path.resolve()) for path in parts or ())
        job = Job(chosen(model), device, precision, files, batch_size, threshold, overlap, dataset, threads or 1)
        where = {"engine": engine, "workers": workers, "address": address, "text": text or "text"}
        predict_at_scale(job, inputs, output, where, no_progress)
        return
    from wingspan.recognizer import Recognizer
    from wingspan.recognizer.uncertain import most_uncertain

    use_threads(threads)
    check_inputs(inputs, format)  # whatever is wrong is said before a model is loaded
    target = None if output is None else format_named(to or by_suffix(output))
    if output is not None:
        keep_apart(output, (Path(argument) for argument in inputs if argument))
    recognizer = Recognizer.from_pretrained(model, device=device, precision=precision, parts=trusted(parts))
    if target is not None and not target.holds.discontinuous and recognizer.recipe.joining.joins and not lossy:
        raise CorpusError(  # before hours of prediction, not after
            f"{output}: {target.name!r} cannot hold discontinuous entities, and this model finds them; "
            "go on with --lossy (an entity is made of each fragment), or choose another --to"
        )
    version = model_version(recognizer.recipe.name, recognizer.facts)
    typing = recognizer.recipe.protocol == "typing"
    problems = Problems(on_error)
    texts: Iterable[Document] = documents(inputs, format, problems)
    texts = with_spans(texts) if typing else texts
    if uncertain is not None:
        texts = most_uncertain(recognizer, texts, uncertain, batch_size=batch_size, dataset=dataset)
    given = Counted(texts)
    predicted = Counted(
        recognizer.predict_stream(given, batch_size=batch_size, threshold=threshold, overlap=overlap, dataset=dataset)
    )
    if output is not None and target is not None:
        write_predictions(predicted.fitted(target, output, lossy), output, target, version)
        for line in loss_lines(predicted.lost, target.name):
            say(console, line)
    elif console.is_terminal:
        labels = sorted({label for types in recognizer.labels.types.values() for label in types})
        only_text = len(inputs) == 1 and inputs[0] != "-" and not os.path.exists(inputs[0])  # its id says nothing
        for document in predicted:
            if not only_text:
                console.print(document.id, style="dim", markup=False, highlight=False)
            show(document, console, labels=labels)
    else:
        for document in predicted:
            sys.stdout.write(dumps(record_of_prediction(document)) + "\n")
    for note in problems.notes:
        say(Console(stderr=True), f"note: {note}")
    if problems.messages:
        left_out = counted(len(problems.messages), "file or record", "files or records")
        for line in (f"left out: {left_out} that could not be read", *problems.messages[:20]):
            say(Console(stderr=True), line)
    if typing and predicted.entities < given.entities:
        say(
            Console(stderr=True),
            f"{given.entities - predicted.entities:,} of {given.entities:,} given entities got no type and are left "
            "out: they hold no word, are longer than what the model reads at once, stay below the threshold, "
            "or share a span with more entities than there are types",
        )
    if output is not None:
        say(console, f"{output}: {counted(predicted.number, 'document')}")


def refuse_with_engine(output: Path | None, format: str | None, to: str | None, lossy: bool) -> None:
    """Refuses options that are about one file of any format."""
    if output is None:
        raise ValueError("--engine writes files; give the folder for them with --output")
    if output.is_file():
        raise ValueError(f"{output}: a file of this name is there; --engine needs a folder")
    if format is not None or to is not None or lossy:
        raise ValueError("--engine reads and writes Parquet and JSON-lines; leave out --from, --to and --lossy")


def predict_at_scale(job: "Job", inputs: list[str], output: Path, where: dict[str, Any], no_progress: bool) -> None:
    """Predicts files into a folder; tells of each, and at the end of what failed."""
    from wingspan.scale.run import predict_files

    console = Console(stderr=True)
    with Follow(console, bar=console.is_terminal and not no_progress) as follow:
        summary = predict_files(job, inputs, output, watch=follow, **where)
    tally = summary.tally
    parts = [
        counted(summary.files, "file"),
        counted(tally.documents, "document"),
        counted(tally.entities, "entity", "entities"),
    ]
    if summary.there:
        parts.append(f"{counted(summary.there, 'file')} predicted before")
    if tally.without_text:
        parts.append(f"{counted(tally.without_text, 'row')} without a text")
    say(Console(), f"{output}: {', '.join(parts)}")
    if tally.failures:
        say(console, f"{counted(tally.failures, 'document')} could not be predicted; see {output}/**/*.failed.jsonl")
    for problem in summary.unreadable[:20]:
        say(console, problem)
    if summary.unreadable:
        raise ValueError(f"{counted(len(summary.unreadable), 'file')} could not be predicted; all others are complete")


class Follow:
    """How far a run is: a bar in a terminal, otherwise a line for each file."""

    def __init__(self, console: Console, bar: bool) -> None:
        self.console, self.files, self.finished_files = console, 0, 0
        shown = (
            "{task.description}",
            BarColumn(),
            "{task.completed:,} documents",
            "{task.fields[rate]}",
            TimeElapsedColumn(),
        )
        self.bar = Progress(*shown, console=console, transient=True) if bar else None

    def __enter__(self) -> Self:
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def begin(self, files: int) -> None:
        """So many files are to be predicted."""
        self.files = files
        if self.bar is not None:
            self.task = self.bar.add_task(f"0 of {files} files", total=None, rate="")

    def progress(self, documents: int) -> None:
        """So many documents more."""
        if self.bar is not None:
            self.bar.advance(self.task, documents)
            task = self.bar.tasks[0]
            self.bar.update(self.task, rate=f"{task.completed / max(task.elapsed or 0.0, 0.1):,.0f} per second")

    def finished(self, source: "Source", tally: "Tally") -> None:
        """The predictions of a file are there."""
        self.finished_files += 1
        if self.bar is not None:
            self.bar.update(self.task, description=f"{self.finished_files} of {self.files} files")
        else:
            done = f"{self.finished_files:,} of {counted(self.files, 'file')}"
            say(self.console, f"{source.target}: {counted(tally.documents, 'document')} ({done})")


class Counted:
    """Counts documents and entities that pass through, and what a format loses of them."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self.documents = documents
        self.number = self.entities = 0
        self.lost: Counter[str] = Counter()

    def fitted(self, target: Format, path: Path, lossy: bool) -> Iterator[Document]:
        """The documents as the format can hold them in a file of that name."""
        for document in self:
            document, lost = fit(document, target, numbered(path, self.number))
            if (changed := described(lost, of_entities=True)) and not lossy:
                flat = ", --overlap flat" if OVERLAPS in lost else ""
                raise CorpusError(
                    f"{path}: {target.name!r} cannot hold {changed} of document {document.id!r}; "
                    f"go on with --lossy{flat}, or choose another --to"
                )
            self.lost.update(lost)
            yield document

    def __iter__(self) -> Iterator[Document]:
        for document in self.documents:
            self.number += 1
            self.entities += len(document.entities)
            yield document


def with_spans(given: Iterable[Document]) -> Iterator[Document]:
    """Documents for a model that types given spans; an error if none of the first thousand has an entity."""
    rest = iter(given)
    held: list[Document] = []
    for document in islice(rest, 1000):
        held.append(document)
        if document.entities:
            break
    if held and not held[-1].entities:
        raise ValueError(
            "this model types given spans and finds none itself; give documents with entities, whatever their labels"
        )
    yield from held
    yield from rest


def check_inputs(inputs: Sequence[str], format: str | None) -> None:
    """Refuses a format that there is not, and what looks like the name of a file that there is not."""
    if format is not None:
        format_named(format)
    for argument in inputs:
        looks_like_a_file = "/" in argument or Path(argument).suffix in SUFFIXES
        if looks_like_a_file and not any(map(str.isspace, argument)) and not os.path.exists(argument):
            raise FileNotFoundError(2, "no such file or folder", argument)


def documents(inputs: Sequence[str], format: str | None, problems: Problems) -> Iterator[Document]:
    """Documents from the arguments: an existing path, `-` for standard input, or else a text."""
    for number, argument in enumerate(inputs):
        path = Path(argument)
        if argument == "-":
            yield from lines_of_stdin(problems)
        elif os.path.exists(argument):  # unlike a Path, it takes any text, and the empty one is no folder
            yield from of_path(path, format, problems)
        else:
            yield Document(str(number), argument)


def of_path(path: Path, format: str | None, problems: Problems, name: str | None = None) -> Iterator[Document]:
    """A corpus, or a plain text file as one document; in a folder its id is its path there."""
    if format is None and is_prose(path, problems):
        try:
            yield Document(name or path.stem, read_text(path))  # line ends as they are: offsets count them
        except CorpusError as error:
            if problems.on_error == "raise":
                raise
            problems.messages.append(str(error))
    elif format is None and path.is_dir() and not is_corpus(path):
        texts = sorted(path.rglob("*.txt"))
        if not texts:
            raise ValueError(f"{path}: no .txt file in this folder; name the files, or give their format with --from")
        for text in texts:
            yield from of_path(text, None, problems, str(text.relative_to(path).with_suffix("")))
    else:
        yield from read(path, format, problems=problems)


def is_corpus(folder: Path) -> bool:
    """Whether a folder is in a format, or else one of texts."""
    try:
        return bool(detect(folder))
    except CorpusError:
        return False


def lines_of_stdin(problems: Problems) -> Iterator[Document]:
    """One document per line of standard input, in UTF-8 whatever the locale."""
    for number, line in enumerate(sys.stdin.buffer):
        try:
            text = line.decode("utf-8-sig" if number == 0 else "utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"standard input, line {number + 1}: not UTF-8; convert it to UTF-8 first") from error
        if number == 0 and text.startswith(("{", "-DOCSTART-")):
            problems.note("standard input", "every line is read as a text; to read a format, name a file instead of -")
        yield Document(str(number), text.rstrip("\r\n"))
