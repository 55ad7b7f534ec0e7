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

from wingspan.corpora.formats import Format, Holds
from wingspan.corpora.formats.conll import detect_scheme, spans_of, tags_of
from wingspan.corpora.formats.records import (
    SHAPE,
    WORDS,
    Misfit,
    Place,
    gather,
    identity,
    label_of,
    list_of,
    other_keys,
    record_of,
    same_surface,
    span_of,
    text_of,
    whole,
    words_of,
)
from wingspan.corpora.words import in_words
from wingspan.files import CorpusError, Problems, stem
from wingspan.text import Document, Entity, Span

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


# --- Rows in the BigBIO knowledge-base schema: passages with offsets, entities with fragments and concept ids.


_OWN = frozenset({"id", "document_id", "passages", "entities"})
_OWN_OF_ENTITY = frozenset({"type", "text", "offsets"})


def is_bigbio(columns: set[str]) -> bool:
    """Whether a dataset with these columns follows the schema."""
    return {"passages", "entities"} <= columns


def document_of(row: dict[str, Any], name: str, complain: Callable[[str], None]) -> Document:
    """A row as one document; passages stand at their offsets, with spaces where the passages leave gaps."""
    text = ""
    for passage in rows_of(row.get("passages"), "passages"):
        parts = list_of(passage.get("text"), "the text of a passage")
        offsets = list_of(passage.get("offsets"), "the offsets of a passage")
        if len(parts) != len(offsets):
            raise Misfit(f"a passage has {len(parts)} texts and {len(offsets)} offsets")
        for part, pair in zip(parts, offsets, strict=True):
            text = _append(text, text_of(part, "the text of a passage"), _pair(pair))
    entities = gather(rows_of(row.get("entities"), "entities"), lambda raw: _entity(raw, text), complain)
    return Document(identity(row, "document_id", name), text, tuple(entities), meta=other_keys(row, _OWN))


def _append(text: str, part: str, pair: list[Any]) -> str:
    start = whole(pair[0], "the start of a passage")
    if start < len(text):
        raise Misfit(f"a passage starts at {start}, inside of the one before it, which ends at {len(text)}")
    if start > len(text) + 1_000_000:
        raise Misfit(f"a passage starts at {start}, more than a million characters after the one before it")
    return text.ljust(start) + part


def _entity(raw: dict[str, Any], text: str) -> Entity:
    pairs = [_pair(pair) for pair in list_of(raw.get("offsets"), "offsets")]
    if not pairs:
        raise Misfit("an entity without offsets")
    spans = tuple(span_of(start, end, len(text)) for start, end in pairs)
    surfaces = list_of(raw.get("text"), "text")
    if len(surfaces) == len(spans):
        for span, surface in zip(spans, surfaces, strict=True):
            same_surface(text[span.start : span.end], surface, Span(*span))
    return Entity(label_of(raw.get("type")), spans, meta=other_keys(raw, _OWN_OF_ENTITY))


def _pair(value: Any) -> list[Any]:
    pair = list_of(value, "an offset")
    if len(pair) != 2:
        raise Misfit(f"an offset has {len(pair)} numbers, not [start, end]")
    return pair


def rows_of(value: Any, name: str) -> list[dict[str, Any]]:
    """A list of objects; older datasets store it as an object of lists."""
    if isinstance(value, dict):
        columns = {key: list_of(column, f"{name}.{key}") for key, column in value.items()}
        size = min(map(len, columns.values()), default=0)
        return [{key: column[at] for key, column in columns.items()} for at in range(size)]
    return [record_of(item, f"one of {name}") for item in list_of(value, name)]
