"""Prediction of whole corpora: an Arrow batch in, an Arrow batch out, by a model that a worker loads once.

Every engine works with `Predictor`: local processes (`local`), Ray (`ray_data`) and Spark (`spark`). `run` predicts
files with the first two, file by file, so that it can be stopped and started again. Needs pyarrow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wingspan.corpora.formats.jsonl import document_of_line, record_of_prediction
from wingspan.corpora.formats.records import dumps
from wingspan.decoding import Overlap
from wingspan.files import CorpusError, brief
from wingspan.text import Document

try:
    import pyarrow as pa
except ImportError:
    raise CorpusError("pyarrow is needed here and is not installed; pip install 'wingspan-ner[scale]'") from None

if TYPE_CHECKING:
    from wingspan.recognizer import Recognizer

Batch = Any  # a pyarrow.Table or RecordBatch; pyarrow has no types
ENTITIES, FAILURE, PREDICTION, FOUND = "entities", "failure", "prediction", "found"  # columns that are added
ENTITY = pa.struct(
    [
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("text", pa.string()),
        ("label", pa.string()),
        ("score", pa.float64()),
        ("fragments", pa.list_(pa.list_(pa.int64()))),
    ]
)


@dataclass(frozen=True)
class Job:
    """A model and how it predicts: what a worker has to know, wherever it runs."""

    model: str
    device: str | None = None
    precision: str = "auto"
    parts: tuple[str, ...] = ()  # Python files of the user with parts of the model
    batch_size: int | None = None
    threshold: float | None = None
    overlap: Overlap | None = None
    dataset: str | None = None
    threads: int | None = 1  # of each worker; None: as torch likes


class Failure(str):
    """Why a document has no prediction."""


Answer = Document | Failure | None
"""A document before or after prediction, why there is none, or None where the row has no text."""


class RowKind:
    """What the rows of a batch are: how documents are made of them, and how they are given back."""

    def documents(self, batch: Batch) -> list[Answer]:
        """A document of each row."""
        raise NotImplementedError

    def answered(self, batch: Batch, answers: Sequence[Answer]) -> Batch:
        """The batch with a column of predictions, and one of failures, which is empty where all went well."""
        raise NotImplementedError


@dataclass(frozen=True)
class Columns(RowKind):
    """A table with a column of texts. All columns are kept; `entities` has one list for each row."""

    text: str = "text"

    def check(self, schema: Any, place: str) -> None:
        """Refuses a table without such a column."""
        if self.text not in schema.names:
            known = ", ".join(schema.names)
            raise CorpusError(f"{place}: no column {self.text!r}; name the one with the texts (--text), of {known}")
        kind = schema.field(self.text).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
            raise CorpusError(f"{place}: column {self.text!r} is of type {kind}; name one of texts (--text)")

    def documents(self, batch: Batch) -> list[Answer]:
        """A document of each text that there is."""
        self.check(batch.schema, "the table")
        texts = batch.column(self.text).to_pylist()
        return [None if text is None else Document(str(number), text) for number, text in enumerate(texts)]

    def answered(self, batch: Batch, answers: Sequence[Answer]) -> Batch:
        """The columns as they were, and the entities; a row without a text, or that failed, has null."""
        table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
        table = table.drop_columns([name for name in (ENTITIES, FAILURE) if name in table.column_names])
        rows = [answer.to_dict()["entities"] if isinstance(answer, Document) else None for answer in answers]
        table = table.append_column(ENTITIES, pa.array(rows, pa.list_(ENTITY)))
        return table.append_column(FAILURE, failures(answers))


@dataclass(frozen=True)
class Lines(RowKind):
    """Lines of a file of JSON-lines, as bytes in the column `line` with their `number` and that of the `record`."""

    file: str
    text: str = "text"
    """The key with the text."""

    def documents(self, batch: Batch) -> list[Answer]:
        """A document of each line."""
        rows = zip(*(batch.column(name).to_pylist() for name in ("line", "number", "record")), strict=True)
        return [self._document(*row) for row in rows]

    def _document(self, line: bytes, number: int, record: int) -> Document | Failure:
        try:
            return document_of_line(line, Path(self.file), number, record, self.text)
        except CorpusError as error:
            return Failure(brief(error))

    def answered(self, batch: Batch, answers: Sequence[Answer]) -> Batch:
        """The lines of predictions, in the schema of all predictions in JSON-lines, and how many entities they have."""
        rows = [dumps(record_of_prediction(answer)) if isinstance(answer, Document) else None for answer in answers]
        table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
        found = [len(answer.entities) if isinstance(answer, Document) else 0 for answer in answers]
        table = table.append_column(PREDICTION, pa.array(rows, pa.string())).append_column(FOUND, pa.array(found))
        return table.append_column(FAILURE, failures(answers))


def failures(answers: Sequence[Answer]) -> Any:
    """The reasons of documents that failed, as a column."""
    return pa.array([str(answer) if isinstance(answer, Failure) else None for answer in answers], pa.string())


class Predictor:
    """A model that is loaded once and predicts batch after batch: what each worker of an engine holds."""

    def __init__(self, job: Job) -> None:
        import torch

        from wingspan.recipes import import_file
        from wingspan.recognizer import load

        if job.threads is not None:
            torch.set_num_threads(job.threads)
        parts = [import_file(Path(path)).__name__ for path in job.parts]
        self.recognizer: Recognizer = load(job.model, device=job.device, precision=job.precision, parts=parts)
        self.options: dict[str, Any] = {
            "batch_size": job.batch_size,
            "threshold": job.threshold,
            "overlap": job.overlap,
            "dataset": job.dataset,
        }
        self.recognizer.predict_stream((), **self.options)  # says now which option does not fit the model

    def __call__(self, batch: Batch, rows: RowKind) -> Batch:
        """The batch with its predictions. A document that fails does not keep the others from being predicted."""
        if self.recognizer.recipe.protocol == "typing" and isinstance(rows, Columns):
            raise ValueError("this model types given spans, which a column of texts does not have; give JSON-lines")
        read = rows.documents(batch)
        predicted = self._predicted([document for document in read if isinstance(document, Document)])
        return rows.answered(batch, [next(predicted) if isinstance(each, Document) else each for each in read])

    def _predicted(self, documents: Sequence[Document]) -> Iterator[Document | Failure]:
        try:
            return iter(list(self.recognizer.predict_stream(documents, **self.options)))
        except Exception as error:  # torch, tokenizers and the user's parts run here, and any of them may stumble
            if len(documents) == 1:
                return iter([Failure(f"the model failed ({type(error).__name__}: {brief(error)})")])
            alone = [next(self._predicted([document])) for document in documents]
            if not any(isinstance(answer, Document) for answer in alone):
                raise ValueError(f"none of {len(alone)} documents could be predicted: {alone[0]}") from error
            return iter(alone)
