"""Parquet and JSON-lines files: cut into batches, and written whole or not at all, with what failed beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from glob import glob, has_magic
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute
import pyarrow.parquet as parquet

from wingspan.corpora.formats.records import dumps
from wingspan.files import CorpusError, atomic_path, atomic_write, brief, lines_of_bytes
from wingspan.scale import ENTITIES, FAILURE, FOUND, PREDICTION, Batch, Columns, Lines, RowKind

MOST_ROWS = 4096  # of a batch
ROW_GROUP = 32 * 2**20  # bytes of a row group that is written
ENDINGS = (".parquet", ".jsonl", ".jsonl.gz", ".ndjson")
FAILED = ".failed.jsonl"  # the end of the name of a side file


@dataclass
class Tally:
    """What became of documents."""

    documents: int = 0
    entities: int = 0
    failures: int = 0
    without_text: int = 0

    def add(self, other: Tally) -> None:
        """Adds the counts of another."""
        for name, count in asdict(other).items():
            setattr(self, name, getattr(self, name) + count)


@dataclass(frozen=True)
class Source:
    """A file to predict, and where its predictions go."""

    path: Path
    target: Path
    text: str = "text"
    """The column or key with the texts."""

    @property
    def is_parquet(self) -> bool:
        """Whether it has columns."""
        return self.path.suffix == ".parquet"

    @property
    def rows(self) -> RowKind:
        """What its rows are."""
        return Columns(self.text) if self.is_parquet else Lines(str(self.path), self.text)

    @property
    def side_file(self) -> Path:
        """Where documents go that could not be predicted."""
        return self.target.with_name(self.target.name + FAILED)

    @property
    def done(self) -> bool:
        """Whether its predictions are there, complete (they get their name last), and not older than the file."""
        return self.target.is_file() and self.target.stat().st_mtime_ns >= self.path.stat().st_mtime_ns

    # Reading

    def check(self) -> None:
        """Refuses a file without a column of texts. What else may be wrong with it is said when it is read."""
        with suppress(pa.ArrowException, OSError):
            if self.is_parquet:
                Columns(self.text).check(parquet.read_schema(self.path), str(self.path))

    def batches(self, size: int) -> Iterator[Batch]:
        """Batches of about so many bytes of text, at least one; a CorpusError if the file cannot be read."""
        return self._parquet_batches(size) if self.is_parquet else self._line_batches(size)

    def _parquet_batches(self, size: int) -> Iterator[Batch]:
        try:
            with parquet.ParquetFile(self.path) as opened:
                Columns(self.text).check(opened.schema_arrow, str(self.path))
                if not opened.metadata.num_rows:
                    yield opened.schema_arrow.empty_table()
                for piece in opened.iter_batches(MOST_ROWS):
                    lengths = compute.binary_length(piece.column(self.text).cast(pa.large_string())).fill_null(0)
                    bounds = np.flatnonzero(np.diff(np.cumsum(lengths.to_numpy()) // size, prepend=0)).tolist()
                    table = pa.Table.from_batches([piece])
                    for start, end in zip([0, *bounds], [*bounds, len(table)], strict=True):
                        if start < end:
                            yield table.slice(start, end - start)
        except (pa.ArrowException, OSError) as error:
            raise CorpusError(f"{self.path}: no Parquet that can be read ({brief(error)}); write it again") from error

    def _line_batches(self, size: int) -> Iterator[Batch]:
        held: list[tuple[bytes, int, int]] = []
        filled, record = 0, 0
        for number, line in lines_of_bytes(self.path):
            if not line.strip():
                continue
            record += 1
            held.append((line, number, record))
            filled += len(line)
            if filled >= size or len(held) == MOST_ROWS:
                yield table_of_lines(held)
                held, filled = [], 0
        if held or not record:
            yield table_of_lines(held)

    # Writing

    def write(self, batches: Iterable[Batch]) -> Tally:
        """Writes predicted batches in their order. The predictions get their name last, after the side file."""
        tally = Tally()
        self.side_file.unlink(missing_ok=True)
        with self._output() as put, ExitStack() as side:
            failed: Any = None
            for batch in batches:
                for record in self._failures(batch, tally.documents):
                    failed = failed or side.enter_context(atomic_write(self.side_file))
                    failed.write(dumps(record) + "\n")
                    tally.failures += 1
                tally.documents += len(batch)
                if self.is_parquet:
                    tally.without_text += batch.column(self.text).null_count
                    tally.entities += compute.sum(compute.list_value_length(batch.column(ENTITIES))).as_py() or 0
                else:
                    tally.entities += compute.sum(batch.column(FOUND)).as_py() or 0
                put(batch.drop_columns([FAILURE]))
        return tally

    def _failures(self, batch: Batch, before: int) -> Iterator[dict[str, Any]]:
        """The records of a side file: where the document is, why it failed, and what it was."""
        reasons = batch.column(FAILURE)
        for at in np.flatnonzero(reasons.is_valid().to_numpy()).tolist() if reasons.null_count < len(batch) else ():
            row = {"file": str(self.path), "reason": reasons[at].as_py()}
            if self.is_parquet:
                yield {**row, "row": before + at, "text": batch.column(self.text)[at].as_py()}
            else:
                line = batch.column("line")[at].as_py().decode("utf-8", "replace")
                yield {**row, "line": batch.column("number")[at].as_py(), "record": line.rstrip("\r\n")}

    @contextmanager
    def _output(self) -> Iterator[Callable[[Batch], None]]:
        """A function that writes a batch to the file, which gets its name if all went well."""
        if not self.is_parquet:
            with atomic_write(self.target) as file:
                yield lambda batch: file.writelines(
                    f"{line}\n" for line in batch.column(PREDICTION).to_pylist() if line is not None
                )
            return
        with atomic_path(self.target) as part, ExitStack() as opened:
            held: list[Batch] = []
            writer: Any = None

            def flush() -> None:
                nonlocal writer
                writer = writer or opened.enter_context(parquet.ParquetWriter(part, held[0].schema))
                writer.write_table(pa.concat_tables(held))
                held.clear()

            def put(batch: Batch) -> None:
                held.append(batch)
                if sum(each.nbytes for each in held) >= ROW_GROUP:
                    flush()

            yield put
            if held:
                flush()


def table_of_lines(lines: Sequence[tuple[bytes, int, int]]) -> Batch:
    """Lines with their numbers and those of their records, as `Lines` takes them."""
    columns = list(zip(*lines, strict=True)) or [(), (), ()]
    types = {"line": pa.large_binary(), "number": pa.int64(), "record": pa.int64()}
    return pa.table({name: pa.array(column, types[name]) for name, column in zip(types, columns, strict=True)})


# Which files there are


def find_sources(inputs: Sequence[str], output: Path, text: str = "text") -> list[Source]:
    """The files that arguments name: files, patterns and folders. Below the output they keep their places."""
    sources: dict[Path, Source] = {}
    for argument in inputs:
        for path, place in files_of(argument):
            source = Source(path, output / place, text)
            if source.target.exists() and source.target.samefile(path):
                raise CorpusError(f"{path}: it is read, and would be written over; choose another --output")
            other = sources.setdefault(source.target, source)
            if other.path != path:
                raise CorpusError(
                    f"{other.path} and {path} would both become {source.target}; give their common folder instead"
                )
    return list(sources.values())


def files_of(argument: str) -> Iterator[tuple[Path, Path]]:
    """The files of an argument and their places below the folder that it names, in order."""
    path = Path(argument)
    if path.is_dir():
        root, found = path, sorted(path.rglob("*"))
    elif not path.exists() and has_magic(argument):
        fixed = [part for part in path.parts[: next(n for n, part in enumerate(path.parts) if has_magic(part))]]
        root, found = Path(*fixed), sorted(map(Path, glob(argument, recursive=True)))
    else:
        if not path.exists():
            raise FileNotFoundError(2, "no such file or folder", argument)
        if not path.name.endswith(ENDINGS):
            raise CorpusError(f"{path}: --engine reads {', '.join(ENDINGS)}; convert it, or leave --engine out")
        root, found = path.parent, [path]
    fitting = [file for file in found if is_corpus(file)]
    if not fitting:
        raise CorpusError(f"{argument}: no {' or '.join(ENDINGS)} file there; check the path")
    yield from ((file, file.relative_to(root)) for file in fitting)


def is_corpus(file: Path) -> bool:
    """Whether it is a file of documents: no side file, and none that is not complete."""
    return file.name.endswith(ENDINGS) and not file.name.endswith(FAILED) and file.name[0] != "." and file.is_file()
