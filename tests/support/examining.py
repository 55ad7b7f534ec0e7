"""What must hold of a reader on any file, damaged or not.

A file is read, or refused in one sentence; documents are sound; the file's own count of documents and entities, made
here without the reader, is what was read, unless a message or a note says otherwise; what was read can be written in
the same format and as JSON-lines and comes back equal, unless the losses were declared; and it does not take long.
"""

from __future__ import annotations

import csv
import json
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from wingspan.corpora.formats import FORMATS, Format, format_named
from wingspan.corpora.formats.conversion_loss import fit
from wingspan.corpora.formats.records import SHAPE
from wingspan.files import CorpusError, OnError, Problems, numbered
from wingspan.text import Document

SECONDS_PER_MB = 10.0  # far more than any reader needs, on a machine that does other things too
LEAST_SECONDS = 2.0
ROUTINE = re.compile(r"tags in |: tags in ")  # notes that every file of the format gets


@dataclass
class Findings:
    """How a file was taken, and everything that must not be."""

    outcome: str = "read"  # read, reported (in part), or refused
    seconds: float = 0.0
    documents: int = 0
    defects: list[str] = field(default_factory=list)


def examine(name: str, path: Path, size: int, again: bool = True) -> Findings:
    """Reads a file in both ways of handling errors, and checks all that must hold; `again`: also of what is written."""
    findings = Findings()
    began = time.process_time()
    documents: list[Document] = []
    problems = Problems()
    refused = False
    for on_error in ("raise", "skip"):
        documents, problems, refused = _read(name, path, on_error, findings)
    findings.seconds = time.process_time() - began
    if findings.seconds > max(LEAST_SECONDS, 2 * SECONDS_PER_MB * size / 1e6):
        findings.defects.append(f"slow: {findings.seconds:.1f} s for {size:,} bytes")
    findings.documents = len(documents)
    told = [*problems.messages, *(note for note in problems.notes if not ROUTINE.search(note))]
    findings.outcome = "refused" if refused else "reported" if problems.messages else "read"
    if refused or findings.defects:
        return findings
    if not told:
        findings.defects += _miscounted(name, path, documents)
    if not again:
        return findings
    for target in dict.fromkeys([name, "jsonl"]):
        findings.defects += _changed(documents, format_named(target))
    if not told and not findings.defects:
        findings.defects += _forgotten(name, path, documents)
    return findings


def _read(name: str, path: Path, on_error: OnError, findings: Findings) -> tuple[list[Document], Problems, bool]:
    problems, documents, refused = Problems(on_error), list[Document](), False
    try:
        for document in format_named(name).read(path, problems):
            documents.append(document)
            findings.defects += [f"unsound ({on_error}): {reason}" for reason in unsound(document)]
    except CorpusError as error:
        problems.messages.append(str(error))
        refused = True
    except Exception as error:  # any other is a defect, which is what this looks for
        findings.defects.append(f"{type(error).__name__} ({on_error}): {' '.join(str(error).split())[:200]}")
        refused = True
    for message in problems.messages:
        if "\n" in message or len(message) >= 1000 or not (str(path.parent) in message or "document" in message):
            findings.defects.append(f"no sentence with its place: {message[:300]!r}")
    return documents, problems, refused


def unsound(document: Document) -> Iterator[str]:
    """What no document may have, whatever it was read from."""
    size = len(document.text)
    for value in (document.id, document.dataset, *([document.group] if document.group is not None else [])):
        if not isinstance(value, str):
            yield f"{value!r} is no string"
    try:
        document.text.encode()
    except UnicodeEncodeError:
        yield "half of a surrogate pair in the text"
    for entity in document.entities:
        if not isinstance(entity.label, str) or not entity.label.strip():
            yield f"the label {entity.label!r}"
        if not all(0 <= start < end <= size for start, end in entity.spans):
            yield f"an entity off the text: {entity}"
    for kind, spans in (("word", document.words), ("sentence", document.sentences)):
        at = 0
        for start, end in spans or ():
            if not at <= start < end <= size:
                yield f"a {kind} out of order or off the text: {start}-{end}"
                break
            at = end


# Counted without the reader


class FileCount(NamedTuple):
    """How many documents and entities a file has; None where it does not say."""

    documents: int | None
    entities: int | None = None


class Pairs(list[Any]):
    """A JSON object with all its keys, also those that it has twice."""

    def all(self, *keys: str) -> list[Any]:
        """The values of these keys."""
        return [value for key, value in self if key in keys]


def _miscounted(name: str, path: Path, documents: list[Document]) -> list[str]:
    counted = count(name, path)
    read = FileCount(len(documents), sum(len(document.entities) for document in documents))
    pairs = zip(FileCount._fields, counted, read, strict=True)
    return [
        f"{is_read} of {there} {what} and no note" for what, there, is_read in pairs if there not in (None, is_read)
    ]


def count(name: str, path: Path) -> FileCount:
    """The file's own count."""
    if name == "bioc":
        name = "bioc-xml" if path.read_bytes().lstrip()[:1] == b"<" else "bioc-json"
    if name in RECORDS:
        records = _records(path.read_bytes())
        rows = [RECORDS[name](record) for record in records or ()]
        if records is None or None in rows:
            return FileCount(None)
        return FileCount(sum(row[0] for row in rows), sum(row[1] for row in rows))
    return OTHERS[name](path)


def _records(data: bytes) -> list[Pairs] | None:
    """The records of a JSON list or of lines; None where it is neither."""
    text = data.decode("utf-8-sig", "replace")
    try:
        whole = json.loads(text, object_pairs_hook=Pairs)
        values = whole if isinstance(whole, list) and not isinstance(whole, Pairs) else [whole]
    except (ValueError, RecursionError):
        try:
            lines = [line for line in text.split("\n") if line.strip()]
            values = [json.loads(line, object_pairs_hook=Pairs) for line in lines]
        except (ValueError, RecursionError):
            return None
    return values if all(isinstance(value, Pairs) for value in values) else None


def _items(lists: Iterable[Any]) -> list[Any]:
    return [item for values in lists if isinstance(values, list) for item in values]


NESTING = {"documents", "PubTator3", "passages", "sentences"}


def _inside(value: Any, key: str) -> Iterator[Any]:
    """Every value of a key of a collection, its documents, passages and sentences."""
    for at in value if isinstance(value, list) else ():
        if isinstance(value, Pairs):
            if at[0] == key:
                yield at[1]
            yield from _inside(at[1], key) if at[0] in NESTING else ()
        else:
            yield from _inside(at, key)


def _regions(record: Pairs) -> int:
    """The labels of the regions of a task of Label Studio, in either export."""
    if not record.all("data"):
        return len(_items(record.all("label")))
    results = [
        item
        for one in _items(record.all("annotations"))
        if isinstance(one, Pairs)
        for item in _items(one.all("result"))
    ]
    values = [value for item in results if isinstance(item, Pairs) for value in item.all("value")]
    return sum(
        max(1, len(_items(value.all("labels")))) for value in values if isinstance(value, Pairs) and value.all("labels")
    )


def _tagged(record: Pairs) -> tuple[int, int] | None:
    tags = _items(record.all("ner_tags"))
    return (1, entity_starts([tags])) if all(isinstance(tag, str) for tag in tags) else None


RECORDS: dict[str, Any] = {
    "jsonl": lambda record: (1, len(_items(record.all("entities")))),
    "spert": lambda record: (1, len(_items(record.all("entities")))),
    "pure": lambda record: (1, len(_items(_items(record.all("ner"))))),
    "w2ner": lambda record: (1, len(_items(record.all("ner", "entity_mentions")))),
    "gliner": lambda record: (1, len(_items(record.all("ner")))),
    "doccano": lambda record: (1, len(_items(record.all("label", "labels", "entities")))),
    "prodigy": lambda record: (1, len(_items(record.all("spans")))),
    "label-studio": lambda record: (1, _regions(record)),
    "bioc-json": lambda record: (
        len(list(_inside([record], "passages"))),
        len(_items(_inside([record], "annotations"))),
    ),
    "ner-tags": _tagged,
}


def entity_starts(rows: Iterable[list[str]]) -> int | None:
    """The number of entities that tags have, as conlleval counts them."""
    total = 0
    tags = [tag for row in rows for tag in (*row, "O")]
    forms = [re.fullmatch(r"([BIMELSUW])(?:[-_](.+))?", tag, re.DOTALL) for tag in tags]
    outside = [tag in ("O", "", "-", "_") for tag in tags]
    if any(not form and not out for form, out in zip(forms, outside, strict=True)):
        return None  # labels without prefix, or no tags at all
    before, label = "O", ""
    for form in forms:
        letter, name = (form[1], form[2] or "") if form else ("O", "")
        ended = before in "OELSUW" or name != label
        total += letter in "BSUW" or (letter in "IMEL" and ended)
        before, label = letter, name
    return total


def _lines(path: Path) -> list[str]:
    text = path.read_bytes().decode("utf-8-sig", "replace")
    return [line.removesuffix("\r") for line in text.split("\n")]


def _count_columns(path: Path) -> FileCount:
    blocks: list[list[str]] = [[]]
    for line in _lines(path):
        if line.startswith("-DOCSTART-") or not line.strip(" \t"):
            blocks.append([])
        else:
            blocks[-1].append(line)
    if any(line.startswith("#") for block in blocks for line in block):
        return FileCount(None)  # a comment, or a word
    rows = [
        [re.split(r"\t" if "\t" in block[0] else r"[ \t]+", line.strip(" ")) for line in block]
        for block in blocks
        if block
    ]
    width = max((len(row) for block in rows for row in block), default=0)
    if any(len(row) != width for block in rows for row in block):
        return FileCount(len(rows))
    layers, last = [], width - 1
    while last > 0 and all(re.fullmatch(r"O|[BI]-(?![NV]P$).*[^\s].*", row[last]) for block in rows for row in block):
        layers.append([[row[last] for row in block] for block in rows])
        last -= 1
    if any(row[at][:2] in ("B-", "I-") for block in rows for row in block for at in range(1, last + 1)):
        return FileCount(len(rows))  # another column has tags too: chunks, or a layer with something else in it
    spans = [
        {(tag[2:], *span) for layer in layers for tag, *span in _tagged_spans(layer[number])}
        for number in range(len(rows))
    ]
    return FileCount(len(rows), sum(map(len, spans)) if layers else None)


def _tagged_spans(tags: list[str]) -> Iterator[tuple[str, int, int]]:
    """The entities of one layer, as their first tags and their ranges."""
    starts = [
        at
        for at, tag in enumerate(tags)
        if tag != "O" and entity_starts([tags[max(0, at - 1) : at + 1]]) != entity_starts([tags[max(0, at - 1) : at]])
    ]
    for at in starts:
        end = next((to for to in range(at + 1, len(tags)) if tags[to] == "O" or to in starts), len(tags))
        yield tags[at], at, end


def _count_brat(path: Path) -> FileCount:
    lines = [line for file in path.rglob("*.ann") for line in _lines(file)]
    return FileCount(len(list(path.rglob("*.txt"))), sum(bool(re.match(r"T\S*\t", line)) for line in lines))


def _count_pubtator(path: Path) -> FileCount:
    documents = entities = 0
    fresh, name = True, ""
    for line in _lines(path):
        if not line.strip():
            fresh = True
            continue
        parts = line.split("|", 2)
        if (
            len(parts) == 3
            and parts[0].strip()
            and "\t" not in parts[0]
            and re.fullmatch(r"\w{1,20}", parts[1], re.ASCII)
        ):
            documents += fresh or parts[1] == "t" or parts[0].replace("\ufeff", "").strip() != name
            fresh, name = False, parts[0].replace("\ufeff", "").strip()
        else:
            numbers = line.split("\t")[1:3]
            entities += len(numbers) == 2 and all(re.fullmatch(r" *-?\d{1,18} *", number) for number in numbers)
    return FileCount(documents, entities)


def _count_xml(path: Path) -> FileCount:
    text = path.read_bytes().decode("utf-8", "replace")
    if "<!--" in text or "CDATA" in text:
        return FileCount(None)
    return FileCount(*(len(re.findall(rf"<{tag}[\s/>]", text)) for tag in ("document", "annotation")))


def _count_docbin(path: Path) -> FileCount:
    import spacy.tokens
    import spacy.vocab

    docs = list(spacy.tokens.DocBin().from_disk(path).get_docs(spacy.vocab.Vocab()))
    spans = [{(s.label_, s.start, s.end) for s in (*doc.ents, *doc.spans.get("sc", ()))} for doc in docs]
    return FileCount(len(docs), sum(map(len, spans)))


def _count_table(path: Path) -> FileCount:
    import pyarrow.parquet as parquet

    table = parquet.read_table(path)
    described = re.findall(r'"names": (\[[^\]]*\])', (table.schema.metadata or {}).get(b"huggingface", b"").decode())
    names = [json.loads(one) for one in described]
    rows = table.column("ner_tags").to_pylist() if "ner_tags" in table.column_names else []
    if names and all(isinstance(tag, int) for row in rows for tag in row or ()):
        rows = [[names[-1][tag] for tag in row or ()] for row in rows]
    strings = all(isinstance(tag, str) for row in rows for tag in row or ())
    return FileCount(table.num_rows, entity_starts([list(row or ()) for row in rows]) if strings else None)


def _count_csv(path: Path) -> FileCount:
    rows = list(csv.reader(_lines(path)))
    heading = rows[0] if rows else []
    if heading[:2] != ["sentence_id", "doc_id"] or not all(map(any, rows)):
        return FileCount(None)
    names = [row[:2] for row in rows[1:] if row]
    return FileCount(sum(at == 0 or name != names[at - 1] for at, name in enumerate(names)))


OTHERS: dict[str, Any] = {
    "conll": _count_columns,
    "brat": _count_brat,
    "pubtator": _count_pubtator,
    "bioc-xml": _count_xml,
    "docbin": _count_docbin,
    "hub": _count_table,
    "csv": _count_csv,
}


# Written and read again


def _changed(documents: list[Document], form: Format) -> list[str]:
    """What writing in this format does to documents that it has declared it can hold."""
    if form.write is None or not documents:
        return []
    with TemporaryDirectory() as folder:
        path = Path(folder) / ("corpus" if form.name == "brat" else f"back{FORMATS[form.name].suffixes[0]}")
        kept = []
        for number, document in enumerate(documents, 1):
            fitted, lost = fit(document, form, numbered(path, number))
            kept.append((fitted, lost))
        safe = [fitted for fitted, lost in kept if not lost or form.name in ("conll", "csv")]
        ids = [document.id for document in safe]
        if form.name in ("brat", "pubtator") and len(set(ids)) < len(ids):
            return []  # one file or block for each id; the writers say so
        if not safe:
            return []
        try:
            form.write(safe, path)
            back = list(form.read(path, Problems()))
        except CorpusError as error:
            return [f"{form.name} refuses what it said it holds: {str(error)[:300]}"]
        except Exception as error:
            return [f"{form.name}, writing: {type(error).__name__}: {' '.join(str(error).split())[:300]}"]
    if form.name == "brat":
        back, safe = sorted(back, key=lambda one: one.id), sorted(safe, key=lambda one: one.id)
    if len(back) != len(safe):
        return [f"{form.name}: {len(safe)} documents written, {len(back)} read"]
    return [
        f"{form.name} changed {key}: {theirs!r:.200} -> {ours!r:.200}"
        for before, after in zip(safe, back, strict=True)
        for key, theirs, ours in _differences(before, after, form)
    ][:3]


def _differences(before: Document, after: Document, form: Format) -> Iterator[tuple[str, Any, Any]]:
    holds = form.holds
    same_text = holds.exact_text or (holds.words and before.words is not None)
    checked = {"text": same_text, "dataset": holds.datasets, "group": holds.groups, "id": holds.ids}
    for key, check in {
        **checked,
        "words": holds.words and before.words is not None,
        "sentences": holds.sentences,
    }.items():
        if check and getattr(before, key) != getattr(after, key):
            yield key, getattr(before, key), getattr(after, key)
    places = [
        sorted(
            (entity.label, before_or_after.text_of(entity), *(entity.spans if same_text else ()))
            for entity in before_or_after.entities
        )
        for before_or_after in (before, after)
    ]
    if places[0] != places[1]:
        yield "entities", places[0], places[1]
    if holds.document_keys == "all":
        ours, theirs = _about(after), _about(before)
        if ours != theirs:
            yield "meta", theirs, ours


def _about(document: Document) -> str:
    """Everything else that was kept; relations of SpERT with their entities instead of the entities' numbers."""
    meta: dict[str, Any] = {key: value for key, value in document.meta.items() if key != SHAPE}
    named = {entity.meta["spert_index"]: repr(entity) for entity in document.entities if "spert_index" in entity.meta}
    if named and isinstance(meta.get("relations"), list):
        ends = ("head", "tail")
        meta["relations"] = [
            {
                key: named.get(value, value) if key in ends and isinstance(value, int) else value
                for key, value in row.items()
            }
            if isinstance(row, dict)
            else row
            for row in meta["relations"]
        ]
    return json.dumps(meta, sort_keys=True, default=str)


# Everything that a JSON file says, in what is written back

DERIVED = {  # made anew by the writer
    *("spans.token_start", "spans.token_end", "tokens.ws", "tokens.id", "relations.head", "relations.tail"),
    *("passages.offset", "sentences.offset", "locations.offset", "locations.length", "._sentences_unknown"),
}


def _forgotten(name: str, path: Path, documents: list[Document]) -> list[str]:
    """The values of a JSON file that are not in the file that the writer makes of it."""
    form = format_named(name)
    if name not in RECORDS or form.write is None or not documents:
        return []
    fitted = [fit(document, form) for document in documents]
    if any(lost for _, lost in fitted):
        return []
    with TemporaryDirectory() as folder:
        back = Path(folder) / f"back{FORMATS[name].suffixes[0]}"
        form.write([document for document, _ in fitted], back)
        missing = _values(path.read_bytes()) - _values(back.read_bytes())
    return [f"values forgotten: {dict(missing)!r:.300}"] if missing else []


def _values(data: bytes) -> Counter[str]:
    """Every value that is not empty, with its key and the key of what it is in; of tags only their labels."""
    values: Counter[str] = Counter()

    def walk(value: Any, key: str) -> None:
        if isinstance(value, Pairs):
            for inner, item in value:
                if f"{key}.{inner}" not in DERIVED:
                    walk(item, inner)
        elif isinstance(value, list):
            for item in value:
                walk(item, key)
        elif value is not None and value != "":
            number = int(value) if isinstance(value, float) and value.is_integer() else value
            key = "place" if key in ("start", "end", "fragments") else key
            if key == "ner_tags":
                number = re.sub(r"^([BIMELSUW][-_]|O$|-$|_$)", "", str(number))
            values[f"{key}={''.join(str(number).split())}"] += bool(number != "")

    walk(_records(data), "")
    return values
