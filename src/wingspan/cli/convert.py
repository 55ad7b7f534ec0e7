"""`wingspan convert`: a corpus from one format to another. Entities that would change are counted beforehand."""

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from wingspan.cli import app
from wingspan.cli.options import LabelNames
from wingspan.corpora.formats import Format, by_suffix, detect, format_named, keep_apart, reader_of
from wingspan.corpora.formats.conversion_loss import described, fit, loss_lines
from wingspan.corpora.formats.tagged import label_names
from wingspan.corpora.overlaps import Flattening, flatten
from wingspan.files import CorpusError, OnError, Problems, numbered
from wingspan.text import Document
from wingspan.views.console import counted


@app.command(epilog="Example: wingspan convert annotations/ train.jsonl --from brat")
def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="The corpus: a file or folder in any format.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="Where to write it.")],
    from_format: Annotated[
        str | None, typer.Option("--from", help="Format of IN; otherwise found by name or content.")
    ] = None,
    to_format: Annotated[str | None, typer.Option("--to", help="Format of OUT; otherwise told by its name.")] = None,
    lossy: Annotated[bool, typer.Option("--lossy", help="Go on although entities change; they are counted.")] = False,
    on_error: Annotated[
        OnError, typer.Option(help="At what does not fit: stop, or leave it out and count it.")
    ] = "raise",
    flattening: Annotated[
        Flattening,
        typer.Option("--flatten", help="Of overlapping entities keep all, the outermost, the innermost, or none."),
    ] = "keep",
    labels: LabelNames = None,
    overlap: Annotated[Flattening | None, typer.Option(hidden=True, help="The earlier name of --flatten.")] = None,
) -> None:
    """Converts a corpus to another format; nothing is lost silently, and no entity changes without --lossy."""
    names = label_names(labels) if labels is not None else None
    result = convert_corpus(source, target, from_format, to_format, lossy, on_error, overlap or flattening, names)
    show(result, target, Console())


@dataclass
class Conversion:
    """The result of a conversion."""

    target_format: str
    documents: int = 0
    entities: int = 0
    flattened: int = 0
    losses: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def convert_corpus(
    source: str | Path,
    target: str | Path,
    from_format: str | Format | None = None,
    to_format: str | Format | None = None,
    lossy: bool = False,
    on_error: OnError = "raise",
    flattening: Flattening = "keep",
    labels: Sequence[str] | None = None,
) -> Conversion:
    """Writes the documents of `source` to `target`; raises before anything is written if that would change an entity.

    Streams: without `lossy` the source is read once to see what would change, and once more to write. `labels` are the
    names of tags that the source has as numbers.
    """
    source, target = Path(source), Path(target)
    keep_apart(target, [source])
    read, writer = reader_of(from_format or detect(source), labels), format_named(to_format or by_suffix(target))
    if writer.write is None:
        raise CorpusError(f"{target}: format {writer.name!r} can be read, not written; choose another with --to")

    def adapted(result: Conversion) -> Iterator[Document]:
        """The documents as the target can hold them; `result` counts along."""
        problems = Problems(on_error)
        for document in read(source, problems):
            document, removed = flatten(document, flattening)
            result.documents += 1
            document, lost = fit(document, writer, numbered(target, result.documents))
            result.entities += len(document.entities)
            result.flattened += removed
            result.losses.update(lost)
            yield document
        result.problems, result.notes = problems.messages, list(dict.fromkeys(problems.notes))

    if not lossy:
        foreseen = Conversion(writer.name)
        deque(adapted(foreseen), maxlen=0)
        if changed := described(foreseen.losses, of_entities=True):
            raise CorpusError(
                f"{source}: {writer.name!r} cannot hold {changed}; "
                "go on with --lossy, or choose another format with --to"
            )
    result = Conversion(writer.name)
    documents = adapted(result)
    first = next(documents, None)
    if first is None:
        raise CorpusError(f"{source}: there are no documents in it; check the file, and its format with --from")
    writer.write(chain([first], documents), target)
    return result


def show(result: Conversion, target: Path, console: Console) -> None:
    """Says what was written, and what was left behind."""
    found = f"{counted(result.documents, 'document')}, {counted(result.entities, 'entity', 'entities')}"
    lines = [f"{target}: {found}, in {result.target_format}"]
    if result.flattened:
        lines.append(f"removed by --flatten: {counted(result.flattened, 'entity', 'entities')}")
    lines += loss_lines(result.losses, result.target_format)
    if result.problems:
        lines.append(f"left out: {len(result.problems):,} records or entities that do not fit")
        lines += [f"  {message}" for message in result.problems[:20]]
        if len(result.problems) > 20:
            lines.append("  ... (see all with `wingspan validate --json FILE`)")
    lines += [f"note: {note}" for note in result.notes[:20]]
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
