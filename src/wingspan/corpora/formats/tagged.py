"""Words with one tag each: Hugging Face's `tokens` and `ner_tags` as JSON, and CSV with one word a row.

Tags may be numbers where their names are known: given with `--labels`, or in a file beside the corpus (`SIDECARS`).
Rows of Hugging Face tables are read in the same way (`read_rows`).
"""

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from wingspan.corpora.formats import ALL, TAG_KEYS, Format, Holds, records
from wingspan.corpora.formats.conll import detect_scheme, is_tag, not_a_tag, spans_of, tags_of
from wingspan.corpora.formats.conversion_loss import changed
from wingspan.corpora.formats.records import Json, Misfit, RecordRef
from wingspan.corpora.words import in_words
from wingspan.files import CorpusError, Problems, atomic_write, read_json, read_lines, stem
from wingspan.text import Document, Entity

TOKENS = ("tokens", "words")
GROUPS = ("document_id", "doc_id")
SIDECARS = (
    *("labels.json", "label.json", "labels.txt", "names.json", "names.txt", "features.json"),
    *("dataset_info.json", "dataset_infos.json"),
)
_HOLDS = Holds(
    nested=False,
    discontinuous=False,
    exact_text=False,
    documents_without_words=False,
    words=True,
    groups=True,
)


class WordsWithTags(NamedTuple):
    """The words of a document, a tag for each, its id, and the other fields of a `Document`."""

    words: tuple[str, ...]
    tags: Sequence[str]
    id: str
    others: Json


Rows = Callable[[Problems], Iterable[tuple[int | None, Json]]]
Parse = Callable[[Json, RecordRef], WordsWithTags]


def read_rows(rows: Rows, parse: Parse, path: Path, problems: Problems, where: str) -> Iterator[Document]:
    """The documents of rows that are gone through twice: for the tagging scheme, and for what they hold."""

    def readable_tags() -> Iterator[Sequence[str]]:
        unheard = Problems("skip")  # what does not fit is reported when the rows are read
        for number, (line, row) in enumerate(rows(unheard), 1):
            with suppress(Misfit):
                yield parse(row, RecordRef(path, line, number, unheard)).tags

    scheme = detect_scheme(readable_tags())
    problems.note(path, f"tags in {where} follow {scheme}")
    repairs = 0

    def build(row: Json, ref: RecordRef) -> Iterator[Document]:
        nonlocal repairs
        words, tags, name, others = parse(row, ref)
        if len(words) != len(tags):
            raise Misfit(f"{len(words)} words and {len(tags)} tags; give one tag for each word")
        for tag in tags:
            if not is_tag(tag, scheme):
                raise Misfit(not_a_tag(tag, scheme))
        spans, broken = spans_of(tags, scheme)
        repairs += broken
        others["meta"] = {**others.get("meta", {}), records.SHAPE: records.WORDS}
        yield Document.from_words(name, words, tuple(Entity.at(*span) for span in spans), **others)

    yield from records.build_documents(rows(problems), path, problems, build)
    if repairs:
        problems.note(path, f"{repairs} tags in {where} break {scheme} and were read as conlleval reads them")


def tagged_words(document: Document) -> tuple[list[str], list[str]]:
    """The words and their tags (IOB2), for formats with one tag for each word."""
    words, entities = in_words(document)
    layers = tags_of(len(words), [(entity.label, *span) for entity, spans in entities for span in spans])
    if len(layers) > 1 or any(entity.discontinuous for entity, _ in entities):
        raise CorpusError(
            f"document {document.id}: one tag for each word holds no overlapping and no discontinuous entities; "
            "`wingspan convert --lossy` keeps the outermost"
        )
    return words, layers[0]


# The names of tags that are numbers


def named_tags(values: Any, names: Sequence[str] | None, name: str) -> list[str]:
    """Tags as strings. Numbers need names."""
    tags = records.list_of(values, name)
    if all(isinstance(tag, str) for tag in tags):
        return tags
    if names is None:
        raise Misfit(f"{name} has numbers without names; give their names with `wingspan convert --labels`")
    if not all(isinstance(tag, int) and not isinstance(tag, bool) and 0 <= tag < len(names) for tag in tags):
        raise Misfit(f"one of {name} is no number from 0 to {len(names) - 1}, the numbers that have names")
    return [names[tag] for tag in tags]


def label_names(labels: str) -> tuple[str, ...]:
    """The names that `--labels` gives: in a file, or themselves with commas between them."""
    if not Path(labels).is_file():
        return tuple(name.strip() for name in labels.split(","))
    if names := _names_in(Path(labels)):
        return names
    raise CorpusError(f"{labels}: there is no list of labels in it; write a JSON list of names, or one name per line")


def names_beside(path: Path, problems: Problems) -> tuple[str, ...]:
    """The names of tags in a file beside the corpus."""
    for file in (path.with_name(f"{stem(path)}.labels.json"), *(path.with_name(name) for name in SIDECARS)):
        if file.is_file() and (names := _names_in(file)):
            problems.note(path, f"tags in numbers get the names in {file.name}")
            return names
    raise CorpusError(
        f"{path}: the tags are numbers, and no file beside it names them; put their names in order into labels.json "
        "beside it, or give them with `wingspan convert --labels O,B-PER,I-PER,...`"
    )


def _names_in(file: Path) -> tuple[str, ...] | None:
    if file.suffix == ".txt":
        return tuple(line.strip() for _, line in read_lines(file) if line.strip()) or None
    return _names_of(read_json(file))


def _names_of(value: Any) -> tuple[str, ...] | None:
    """The names in a list, in an object from names to numbers or back, or in one of these inside of the value."""
    if isinstance(value, list) and value and all(isinstance(name, str) for name in value):
        return tuple(value)
    if not isinstance(value, dict):
        return None
    numbered = {int(at): name for name, at in value.items() if isinstance(at, int) and not isinstance(at, bool)}
    numbered |= {int(at): name for at, name in value.items() if isinstance(name, str) and at.isdecimal()}
    if value and len(numbered) == len(value) and set(numbered) == set(range(len(value))):
        return tuple(numbered[at] for at in range(len(value)))
    # where columns are described, that of the tags comes first: others have names too
    inner = sorted(value, key=lambda key: TAG_KEYS.index(key) if key in TAG_KEYS else len(TAG_KEYS))
    return next((names for key in inner if (names := _names_of(value[key]))), None)


# Hugging Face's JSON: a list of records, or one per line


def _read_json(path: Path, problems: Problems, names: Sequence[str] | None = None) -> Iterator[Document]:
    keys: dict[str, str] = {}
    for _, record in records.read_records(path, Problems("skip")):  # the first one with tags tells their keys
        found = {
            kind: key for kind, known in (("words", TOKENS), ("tags", TAG_KEYS)) for key in known[::-1] if key in record
        }
        keys = keys or found
        if len(found) == 2 and isinstance(tags := record[found["tags"]], list) and tags:
            keys = found
            if names is None and isinstance(tags[0], int):
                names = names_beside(path, problems)
            break
    words, tags = keys.get("words", TOKENS[0]), keys.get("tags", TAG_KEYS[0])
    own = frozenset({"id", words, tags})

    def parse(record: Json, ref: RecordRef) -> WordsWithTags:
        fields = records.common_fields(record, own)
        tagged = records.words_of(record.get(words), words), named_tags(record.get(tags), names, tags)
        return WordsWithTags(*tagged, records.identity(record, "id", ref.name), fields)

    yield from read_rows(partial(records.read_records, path), parse, path, problems, repr(tags))


def _write_json(documents: Iterable[Document], path: Path) -> None:
    records.write_lines(map(_json_record, documents), path)


def _json_record(document: Document) -> Json:
    words, tags = tagged_words(document)
    own = frozenset({"id", TOKENS[0], TAG_KEYS[0]})
    return records.with_common_fields({"id": document.id, TOKENS[0]: words, TAG_KEYS[0]: tags}, document, own)


NER_TAGS = Format("ner-tags", _read_json, _write_json, replace(_HOLDS, document_keys=ALL), read_named=_read_json)


# CSV: one word a row. A sentence ends at an empty row, or where the column of sentences or documents has a new value.

_HEADINGS = {  # the first of each is what is written
    "id": ("sentence_id", "sentence", "sent_id", "sentence_no", "sentence_idx", "sentence_number", "sent"),
    "group": ("doc_id", "document_id", "document", "doc"),
    "word": ("word", "words", "token", "tokens"),
    "tag": ("tag", "tags", "label", "labels", "ner", "ner_tag", "ner_tags", "ner_label", "entity"),
}
_COLUMNS = "csv_columns"  # the key in `meta` for the other columns, by their headings
_CSV_HOLDS = replace(_HOLDS, document_keys=frozenset({_COLUMNS}))


class CsvColumns(NamedTuple):
    """The columns of a file: what divides them, how many there are, and where what is."""

    delimiter: str
    width: int
    places: dict[str, int]
    others: dict[str, int]
    """The columns that are kept as they are, by their headings."""

    def misfit(self, row: list[str], first: bool) -> str | None:
        """The problem with a row, or None. The first row of a sentence may be empty: then it has no words."""
        if len(row) != self.width:
            return f"{len(row)} columns where the first line names {self.width}; divide every line alike"
        if any("\n" in cell or "\r" in cell for cell in row):
            return 'a cell goes over several lines; write the word " as """"'
        word, tag = row[self.places["word"]], row[self.places["tag"]]
        return None if word or (first and not tag) else "the word is empty; remove the row"


def csv_columns(heading: str) -> CsvColumns | None:
    """The columns that the first line of a file names, or None where it names no words or no tags."""
    delimiter = max(",\t;", key=heading.count)
    headings = next(csv.reader([heading], delimiter=delimiter), [])
    plain = [re.sub(r"\W+", "_", name.strip().lower()).strip("_") for name in headings]
    places = {kind: plain.index(name) for kind, names in _HEADINGS.items() for name in names[::-1] if name in plain}
    if not {"word", "tag"} <= places.keys():
        return None
    others: dict[str, int] = {}
    for at, name in enumerate(headings):
        if at not in places.values():
            others[f"{name}.{at + 1}" if name in others else name] = at
    return CsvColumns(delimiter, len(headings), places, others)


def _read_csv(path: Path, problems: Problems, names: Sequence[str] | None = None) -> Iterator[Document]:
    heading = next((line for _, line in read_lines(path) if line.strip()), "")
    columns = csv_columns(heading)
    if columns is None:
        raise CorpusError(
            f"{path}: the first line has to name the columns of words and tags, such as sentence_id,word,tag; "
            f"it is {records.shorten(heading)}"
        )
    rows = partial(_sentences, path, columns)
    every = {tag for _, row in rows(Problems("skip")) for tag in row["tags"]}
    numbers = bool(every) and all(tag.isascii() and tag.isdecimal() for tag in every)
    if numbers and names is None:
        names = names_beside(path, problems)

    def parse(row: Json, ref: RecordRef) -> WordsWithTags:
        tags = named_tags([int(tag[:18]) for tag in row["tags"]], names, "the tags") if numbers else row["tags"]
        return WordsWithTags(row["words"], tags, row["id"] or ref.name, {"group": row["group"], "meta": row["meta"]})

    yield from read_rows(rows, parse, path, problems, "the column of tags")


def _sentences(path: Path, columns: CsvColumns, problems: Problems) -> Iterator[tuple[int, Json]]:
    """The sentences, each with its first line. One with a row that does not fit is reported and left out."""
    marks = [at for kind, at in columns.places.items() if kind in ("id", "group")]
    rows: list[list[str]] = []  # of the sentence that is being read
    line, damaged = 0, False
    for number, row in _filled_rows(path, columns.delimiter, problems):
        values = [row[at] if at < len(row) else "" for at in marks]
        new = rows and any(value and value != rows[0][at] for at, value in zip(marks, values, strict=True))
        if rows and (new or not row):
            if not damaged:
                yield line, _sentence(rows, columns)
            rows, damaged = [], False
        if not row:
            continue
        row += [""] * (max(marks, default=-1) + 1 - len(row))
        if reason := columns.misfit(row, first=not rows):
            problems.add(path, number, reason)
            damaged = True
        line = line if rows else number
        rows.append(row)


def _filled_rows(path: Path, delimiter: str, problems: Problems) -> Iterator[tuple[int, list[str]]]:
    """The rows after the headings with the lines they end at; a row of empty cells, and the end, as an empty row."""
    table = csv.reader((f"{line}\n" for _, line in read_lines(path)), delimiter=delimiter, strict=True)
    headed = False
    try:
        for row in table:
            filled = any(cell.strip() for cell in row)
            if headed:
                yield table.line_num, row if filled else []
            headed = headed or filled
    except csv.Error as error:
        problems.add(path, table.line_num, f"no valid CSV ({error}); nothing after this line is read")
    yield table.line_num, []


def _sentence(rows: list[list[str]], columns: CsvColumns) -> Json:
    first = {kind: rows[0][at] for kind, at in columns.places.items()}
    rows = rows if first["word"] else rows[1:]
    others = {name: [row[at] for row in rows] for name, at in columns.others.items()}
    return {
        "id": first.get("id", ""),
        "group": first.get("group") or None,
        "words": tuple(row[columns.places["word"]] for row in rows),
        "tags": [row[columns.places["tag"]] for row in rows],
        "meta": {_COLUMNS: others} if others else {},
    }


def _write_csv(documents: Iterable[Document], path: Path) -> None:
    """Writes sentence_id, word, tag and the columns that were kept; and doc_id, where a document has a group."""
    kept = list(documents)  # all rows have the same columns, and the last document may have another one
    others = list(dict.fromkeys(name for document in kept for name in _other_columns(document)))
    grouped = bool(others) or any(document.group is not None for document in kept)
    headings = ["sentence_id", *(["doc_id"] if grouped else []), "word", "tag", *others]
    with atomic_write(path) as out:
        table = csv.writer(out, lineterminator="\n")
        table.writerow(headings)
        before = None
        for document in kept:
            words, tags = tagged_words(document)
            columns = _other_columns(document)
            marks = [document.id, *([document.group or ""] if grouped else [])]
            cells = [columns.get(name, [""] * len(words)) for name in others]
            rows = [[*marks, *row] for row in zip(words, tags, *cells, strict=True)] or [
                [*marks, "", "", *[""] * len(others)]
            ]
            _check_rows(document, rows)
            if document.id == before:
                table.writerow([""] * len(headings))
            before = document.id
            table.writerows(rows)


def _check_rows(document: Document, rows: list[list[str]]) -> None:
    """Refuses values that would be read back as something else."""
    if not document.id.strip():
        raise CorpusError(f"document {document.id!r}: CSV tells sentences apart by their ids; give it one")
    for cell in (cell for row in rows for cell in row):
        if "\n" in cell or "\r" in cell:
            raise CorpusError(f"document {document.id}: {cell!r} has a line end, which a cell here cannot have")


def _other_columns(document: Document) -> dict[str, list[str]]:
    """The columns that were kept, where they still have a value for each word."""
    kept, size = document.meta.get(_COLUMNS), len(document.words or ())
    columns = kept.items() if isinstance(kept, dict) else ()
    return {
        str(name): list(map(str, values))
        for name, values in columns
        if isinstance(values, list) and len(values) == size
    }


def _csv_changes(document: Document) -> Counter[str]:
    back = {_COLUMNS: columns} if (columns := _other_columns(document)) else {}
    return changed(document, [replace(document, meta=back)], _CSV_HOLDS)


CSV = Format("csv", _read_csv, _write_csv, _CSV_HOLDS, _csv_changes, read_named=_read_csv)
