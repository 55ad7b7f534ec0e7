"""Hugging Face datasets: `tokens` with `ner_tags`, or the BigBIO schema. Needs the extra `hub`.

Reads a folder made by `save_to_disk`, Parquet files, or a dataset of the hub (`owner/name`, `owner/name@config`,
`owner/name:split`). Writes `tokens` and `ner_tags` (IOB2).
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from wingspan.corpora.bigbio import document_of, is_bigbio
from wingspan.corpora.checks import SHAPE, WORDS, Misfit, identity, other_keys, words_of
from wingspan.corpora.files import stem
from wingspan.corpora.formats import CorpusError, Format, Holds, Problems
from wingspan.corpora.records import Place
from wingspan.corpora.tags import detect_scheme, spans_of, tags_of
from wingspan.corpora.word_level import in_words
from wingspan.text import Document, Entity

_TOKENS = ("tokens", "words")
_TAGS = ("ner_tags", "tags", "labels", "ner")
_GROUPS = ("document_id", "doc_id")
# what Arrow raises on damaged files (its own errors are kinds of these), and the hub on names it does not have
_DAMAGED = (ValueError, OSError, RuntimeError, KeyError, TypeError, OverflowError, MemoryError)


@dataclass(frozen=True)
class Table:
    """One split: the names and kinds of its columns, and its rows, which can be gone through more than once."""

    split: str
    features: dict[str, Any]
    rows: Callable[[], Iterator[dict[str, Any]]]


def _datasets() -> Any:
    try:
        import datasets
    except ImportError:
        raise CorpusError(
            "the package `datasets` is needed for this format and is not installed; "
            "install it with: pip install 'wingspan[hub]'"
        ) from None
    return datasets


def read(path: Path, problems: Problems) -> Iterator[Document]:
    """The documents of every split; where there are several, ids start with the split's name."""
    datasets = _datasets()
    try:
        tables = _tables(path, datasets)
        for table in tables:
            reader = _read_bigbio if is_bigbio(set(table.features)) else _read_tags
            yield from reader(table, path, problems, f"{table.split}-" if len(tables) > 1 else "")
    except (CorpusError, FileNotFoundError):
        raise
    except _DAMAGED as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        problems.add(path, None, f"no dataset that can be read here ({reason[:300]}); check the name and the files")


def _tables(path: Path, datasets: Any) -> list[Table]:
    if path.is_file() or (path.is_dir() and any(path.rglob("*.parquet"))):
        files = [path] if path.is_file() else sorted(path.rglob("*.parquet"))
        return [_parquet(file, datasets) for file in files]
    if path.is_dir():
        loaded = datasets.load_from_disk(str(path))
    elif path.is_absolute() or len(path.parts) > 2 or path.parts[:1] in ((".",), ("..",)):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))  # no name that the hub could have
    else:
        name, _, split = str(path).removeprefix("hub:").partition(":")
        name, _, config = name.partition("@")
        loaded = datasets.load_dataset(name, config or None, split=split or None)
    splits = loaded if isinstance(loaded, dict) else {str(loaded.split or stem(path)): loaded}
    return [Table(str(split), dict(table.features), partial(iter, table)) for split, table in splits.items()]


def _parquet(file: Path, datasets: Any) -> Table:
    import pyarrow.parquet as parquet

    def rows() -> Iterator[dict[str, Any]]:
        with parquet.ParquetFile(file) as opened:
            for batch in opened.iter_batches(batch_size=1000):
                yield from batch.to_pylist()

    features = datasets.Features.from_arrow_schema(parquet.read_schema(file))
    return Table(stem(file), dict(features), rows)


def _read_bigbio(table: Table, path: Path, problems: Problems, prefix: str) -> Iterator[Document]:
    for number, row in enumerate(table.rows(), 1):
        place = Place(path, None, number, problems)
        try:
            document = document_of(row, place.name, place.complain)
        except Misfit as misfit:
            place.complain(f"{misfit}; mend the row, or leave it out with --on-error skip")
            continue
        yield Document(prefix + document.id, document.text, document.entities, meta=document.meta)


def _read_tags(table: Table, path: Path, problems: Problems, prefix: str) -> Iterator[Document]:
    tokens = _column(table, _TOKENS, path)
    tags = _column(table, _TAGS, path)
    names = getattr(getattr(table.features[tags], "feature", None), "names", None)
    scheme = detect_scheme(_readable_tags(table, tags, names))
    problems.note(path, f"{table.split}: tags in {tags!r} follow {scheme}")
    own = frozenset({"id", tokens, tags, *_GROUPS})
    repairs = 0
    for number, row in enumerate(table.rows(), 1):
        place = Place(path, None, number, problems)
        try:
            words, given = words_of(row[tokens], tokens), _named(row[tags], names)
            if len(words) != len(given):
                raise Misfit(f"{len(words)} words and {len(given)} tags; give one tag for each word")
            group = next((identity(row, key, "") for key in _GROUPS if identity(row, key, "")), None)
            name = prefix + identity(row, "id", place.name)
        except Misfit as misfit:
            place.complain(f"{misfit}; mend the row, or leave it out with --on-error skip")
            continue
        spans, broken = spans_of(given, scheme)
        repairs += broken
        entities = tuple(Entity.at(label, start, end) for label, start, end in spans)
        meta = {**other_keys(row, own), SHAPE: WORDS}
        yield Document.from_words(name, words, entities, group=group, meta=meta)
    if repairs:
        problems.note(path, f"{table.split}: {repairs} tags break {scheme} and were read as conlleval reads them")


def _readable_tags(table: Table, column: str, names: list[str] | None) -> Iterator[list[str]]:
    """The tags of every row that has them; what is wrong with the others is told when the row is read."""
    for row in table.rows():
        try:
            yield _named(row[column], names)
        except Misfit:
            continue


def _column(table: Table, names: tuple[str, ...], path: Path) -> str:
    found = next((name for name in names if name in table.features), None)
    if found is None:
        raise CorpusError(
            f"{path}: there is no column {' or '.join(map(repr, names))} among {', '.join(map(repr, table.features))}; "
            "rename the columns to 'tokens' and 'ner_tags'"
        )
    return found


def _named(values: Any, names: list[str] | None) -> list[str]:
    """Tags as strings. Numbers need the names that a ClassLabel has; what is no known number is told as a misfit."""
    if not isinstance(values, list):
        return []
    if all(isinstance(value, str) for value in values):
        return values
    if names is None:
        raise Misfit("the tags are numbers without names; store them as strings or as ClassLabel")
    if not all(isinstance(value, int) and 0 <= value < len(names) for value in values):
        raise Misfit(f"a tag is no number from 0 to {len(names) - 1}")
    return [names[value] for value in values]


def write(documents: Iterable[Document], path: Path) -> None:
    """Writes a folder for `load_from_disk`, or one Parquet file if the name ends in .parquet."""
    datasets = _datasets()
    columns: dict[str, list[Any]] = {"id": [], "document_id": [], "tokens": [], "ner_tags": []}
    for document in documents:
        words, tags = _tagged(document)
        for key, value in zip(columns, (document.id, document.group, words, tags), strict=True):
            columns[key].append(value)
    labels = sorted({tag[2:] for tags in columns["ner_tags"] for tag in tags if tag != "O"})
    names = ["O", *(f"{letter}-{label}" for label in labels for letter in "BI")]
    features = datasets.Features(
        id=datasets.Value("string"),
        document_id=datasets.Value("string"),
        tokens=datasets.List(datasets.Value("string")),
        ner_tags=datasets.List(datasets.ClassLabel(names=names)),
    )
    _save(datasets.Dataset.from_dict(columns, features=features), path, datasets)


def _tagged(document: Document) -> tuple[list[str], list[str]]:
    words, entities = in_words(document)
    layers = tags_of(len(words), [(entity.label, *span) for entity, spans in entities for span in spans])
    if len(layers) > 1 or any(entity.discontinuous for entity, _ in entities):
        raise CorpusError(
            f"document {document.id}: one tag for each word holds no overlapping and no discontinuous entities; "
            "`wingspan convert --lossy` keeps the outermost"
        )
    return words, layers[0]


def _save(dataset: Any, path: Path, datasets: Any) -> None:
    if path.is_dir() and not (path / "dataset_info.json").exists():
        raise CorpusError(f"{path}: a folder that holds something else than a dataset; choose another name")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    shown = datasets.is_progress_bar_enabled()
    datasets.disable_progress_bars()
    try:
        if path.suffix == ".parquet":
            dataset.to_parquet(str(part))
        else:
            dataset.save_to_disk(str(part))
            shutil.rmtree(path, ignore_errors=True)
        part.replace(path)
    finally:
        if shown:
            datasets.enable_progress_bars()
        shutil.rmtree(part, ignore_errors=True)


FORMAT = Format(
    name="hub",
    read=read,
    write=write,
    suffixes=(".parquet",),
    holds=Holds(
        nested=False,
        discontinuous=False,
        same_span_labels=False,
        exact_text=False,
        documents_without_words=False,
        words=True,
        groups=True,
    ),
    unit="words",
    description="Hugging Face datasets: tokens with ner_tags, or BigBIO (extra: hub)",
)
