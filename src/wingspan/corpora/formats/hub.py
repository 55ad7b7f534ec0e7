"""Hugging Face datasets: `tokens` with `ner_tags`, or the BigBIO schema. Needs the extra `hub`.

Reads a folder made by `save_to_disk`, Parquet files, or a dataset of the hub (`owner/name`, `owner/name@config`,
`owner/name:split`). Writes `tokens` and `ner_tags` (IOB2).
"""

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

from wingspan.corpora.formats import TAG_KEYS, Format, Holds, records
from wingspan.corpora.formats.records import Json, Misfit, RecordRef
from wingspan.corpora.formats.tagged import TOKENS, WordsWithTags, named_tags, read_rows, tagged_words
from wingspan.files import CorpusError, Problems, atomic_path, stem
from wingspan.text import Document, Entity

_GROUPS = ("document_id", "doc_id")
# raised by Arrow on damaged files (its own errors are kinds of these), and by the hub on unknown names
_DAMAGED = (ValueError, OSError, RuntimeError, KeyError, TypeError, AttributeError, OverflowError, MemoryError)


class SplitRows(NamedTuple):
    """One split: its columns with their types, and its rows, which can be iterated more than once."""

    split: str
    features: Json
    rows: Callable[[], Iterator[Json]]


def _datasets() -> Any:
    try:
        import datasets
    except ImportError:
        raise CorpusError(
            "the package `datasets` is needed for this format and is not installed; "
            "install it with: pip install 'wingspan-ner[hub]'"
        ) from None
    return datasets


def read(path: Path, problems: Problems, names: Sequence[str] | None = None) -> Iterator[Document]:
    """The documents of every split; where there are several, ids start with the split's name."""
    datasets = _datasets()
    try:
        tables = _tables(path, datasets)
        for table in tables:
            if {"passages", "entities"} <= set(table.features):
                documents = records.build_documents(zip(repeat(None), table.rows()), path, problems, _from_bigbio)
            else:
                documents = _read_tags(table, path, problems, names)
            prefix = f"{table.split}-" if len(tables) > 1 else ""
            yield from (replace(document, id=prefix + document.id) for document in documents)
    except (CorpusError, FileNotFoundError):
        raise
    except _DAMAGED as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        problems.add(path, None, f"no dataset that can be read here ({reason[:300]}); check the name and the files")


def _tables(path: Path, datasets: Any) -> list[SplitRows]:
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
    return [SplitRows(str(split), dict(table.features), partial(iter, table)) for split, table in splits.items()]


def _parquet(file: Path, datasets: Any) -> SplitRows:
    import pyarrow.parquet as parquet

    def rows() -> Iterator[Json]:
        with parquet.ParquetFile(file) as opened:
            for batch in opened.iter_batches(batch_size=1000):
                yield from batch.to_pylist()

    features = datasets.Features.from_arrow_schema(parquet.read_schema(file))
    return SplitRows(stem(file), dict(features), rows)


def _read_tags(table: SplitRows, path: Path, problems: Problems, names: Sequence[str] | None) -> Iterator[Document]:
    tokens, tags = _column(table, TOKENS, path), _column(table, TAG_KEYS, path)
    known = getattr(getattr(table.features[tags], "feature", None), "names", None)
    own = frozenset({"id", tokens, tags, *_GROUPS})

    def parse(row: Json, ref: RecordRef) -> WordsWithTags:
        group = next((name for key in _GROUPS if (name := records.identity(row, key, ""))), None)
        words = records.words_of(row[tokens], tokens)
        others = {"group": group, "meta": records.other_keys(row, own)}
        return WordsWithTags(
            words, named_tags(row[tags], names or known, tags), records.identity(row, "id", ref.name), others
        )

    where = f"{tags!r} of {table.split}"
    yield from read_rows(lambda _: zip(repeat(None), table.rows()), parse, path, problems, where)


def _column(table: SplitRows, names: tuple[str, ...], path: Path) -> str:
    column = next((name for name in names if name in table.features), None)
    if column is None:
        raise CorpusError(
            f"{path}: there is no column {' or '.join(map(repr, names))} among {', '.join(map(repr, table.features))}; "
            "rename the columns to 'tokens' and 'ner_tags'"
        )
    return column


def write(documents: Iterable[Document], path: Path) -> None:
    """Writes a folder for `load_from_disk`, or one Parquet file if the name ends in .parquet."""
    datasets = _datasets()
    columns: dict[str, list[Any]] = {"id": [], "document_id": [], "tokens": [], "ner_tags": []}
    for document in documents:
        for key, value in zip(columns, (document.id, document.group, *tagged_words(document)), strict=True):
            columns[key].append(value)
    labels = sorted({tag[2:] for tags in columns["ner_tags"] for tag in tags if tag != "O"})
    names = ["O", *(f"{letter}-{label}" for label in labels for letter in "BI")]
    features = datasets.Features(
        id=datasets.Value("string"),
        document_id=datasets.Value("string"),
        tokens=datasets.List(datasets.Value("string")),
        ner_tags=datasets.List(datasets.ClassLabel(names=names)),
    )
    dataset = datasets.Dataset.from_dict(columns, features=features)
    if path.is_dir() and not (path / "dataset_info.json").exists():
        raise CorpusError(f"{path}: a folder that holds something else than a dataset; choose another name")
    shown = datasets.is_progress_bar_enabled()
    datasets.disable_progress_bars()
    try:
        with atomic_path(path) as part:
            (dataset.to_parquet if path.suffix == ".parquet" else dataset.save_to_disk)(str(part))
    finally:
        if shown:
            datasets.enable_progress_bars()


_KEPT = Holds(nested=False, discontinuous=False, exact_text=False, words=True, groups=True)
FORMAT = Format("hub", read, write, replace(_KEPT, documents_without_words=False), read_named=read)


# The BigBIO knowledge-base schema: passages with offsets, entities with fragments and concept ids


_OWN = frozenset({"id", "document_id", "passages", "entities"})
_OWN_OF_ENTITY = frozenset({"type", "text", "offsets"})


def _from_bigbio(row: Json, ref: RecordRef) -> Iterator[Document]:
    """A row as one document; passages are put at their offsets, with spaces where they leave gaps."""
    text = ""
    for passage in _rows(row.get("passages"), "passages"):
        parts = records.list_of(passage.get("text"), "the text of a passage")
        offsets = records.list_of(passage.get("offsets"), "the offsets of a passage")
        if len(parts) != len(offsets):
            raise Misfit(f"a passage has {len(parts)} texts and {len(offsets)} offsets")
        for part, pair in zip(parts, offsets, strict=True):
            start = records.whole(records.pair_of(pair, "an offset")[0], "the start of a passage")
            if start < len(text):
                raise Misfit(f"a passage starts at {start}, inside of the one before it, which ends at {len(text)}")
            if start > len(text) + 1_000_000:
                raise Misfit(f"a passage starts at {start}, more than a million characters after the one before it")
            text = text.ljust(start) + records.text_of(part, "the text of a passage")
    entities = records.gather(_rows(row.get("entities"), "entities"), lambda raw: _entity(raw, text), ref)
    yield Document(records.identity(row, "document_id", ref.name), text, entities, meta=records.other_keys(row, _OWN))


def _entity(raw: Json, text: str) -> Entity:
    pairs = [records.pair_of(pair, "an offset") for pair in records.list_of(raw.get("offsets"), "offsets")]
    if not pairs:
        raise Misfit("an entity without offsets")
    spans = tuple(records.span_of(start, end, len(text)) for start, end in pairs)
    surfaces = records.list_of(raw.get("text"), "text")
    if len(surfaces) == len(spans):
        for span, surface in zip(spans, surfaces, strict=True):
            records.same_surface(text[span.start : span.end], surface, span)
    return Entity(records.label_of(raw.get("type")), spans, meta=records.other_keys(raw, _OWN_OF_ENTITY))


def _rows(value: Any, name: str) -> list[Json]:
    """A list of objects; older datasets store it as an object of lists."""
    if isinstance(value, dict):
        columns = {key: records.list_of(column, f"{name}.{key}") for key, column in value.items()}
        size = min(map(len, columns.values()), default=0)
        return [{key: column[at] for key, column in columns.items()} for at in range(size)]
    return records.records_of(value, name, f"one of {name}")
