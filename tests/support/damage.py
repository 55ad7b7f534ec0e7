"""Files in every format, and ways to damage them: for the fuzz tests and for `benchmarks/fuzz.py`."""

from __future__ import annotations

import copy
import json
import random
import re
import shutil
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from wingspan.corpora.formats import FORMATS, format_named
from wingspan.corpora.formats.conversion_loss import fit
from wingspan.text import Document, Entity, Span

FIXTURES = Path(__file__).parents[1] / "corpora" / "formats" / "fixtures"
EXTRAS = {"docbin": "spacy", "hub": "datasets"}
ODD_TEXT = [
    *("\ufeff", "\u200b", "\u0301", "\u202e", "\u00a0", "😀", "\r\n", "\n", "\r", "\t", "\x00", "\x85", "\u2028"),
    *(" ", "|", "\\", '"', "#", "ﷺ", "口腔"),
]
ODD_LABELS = [
    "",
    " ",
    "\u00a0",
    "\r",
    "X\r",
    "X\t",
    "B-",
    "O",
    "-",
    "_",
    "#",
    "😀",
    "a b",
    " X",
    "X ",
    "ENTITY",
    "NP",
    "\u2028",
]
ODD_VALUES: list[Any] = [
    *(
        None,
        True,
        False,
        -1,
        0,
        3,
        10**12,
        10**400,
        1.5,
        2.0,
        float("nan"),
        "",
        " ",
        "😀",
        "\ud83d",
        "3",
        "_",
        [],
        [[]],
    ),
    *([None], [0, 1], [[0, 1, "X"]], {}, {"start": 0}, [{"start": 0, "end": 1}], {"a": {"b": 1}}, [["a"]], "口腔"),
]

Mutation = Callable[[bytes, random.Random], bytes]


# Bytes and lines


def flip(data: bytes, draw: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(draw.randint(1, 4)):
        changed[draw.randrange(len(changed))] = draw.randrange(256)
    return bytes(changed)


def truncate(data: bytes, draw: random.Random) -> bytes:
    return data[: draw.randrange(len(data))]


def drop_line(data: bytes, draw: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    del lines[draw.randrange(len(lines))]
    return b"".join(lines)


def repeat_line(data: bytes, draw: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    lines.insert(draw.randrange(len(lines) + 1), draw.choice(lines))
    return b"".join(lines)


def swap_lines(data: bytes, draw: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    here, there = draw.randrange(len(lines)), draw.randrange(len(lines))
    lines[here], lines[there] = lines[there], lines[here]
    return b"".join(lines)


def join_lines(data: bytes, draw: random.Random) -> bytes:
    ends = [at for at, byte in enumerate(data) if byte == 10]
    if not ends:
        return flip(data, draw)
    at = draw.choice(ends)
    return data[:at] + data[at + 1 :]


def append_itself(data: bytes, draw: random.Random) -> bytes:
    return data + draw.choice([b"", b"\n", b"\n\n", b",", b"\xef\xbb\xbf"]) + data


def insert_odd_text(data: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(data) + 1)
    return data[:at] + draw.choice(ODD_TEXT).encode() + data[at:]


def remove_characters(data: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(data))
    return data[:at] + data[at + draw.choice([1, 1, 1, 2, 3, 10, 30]) :]


def change_digit(data: bytes, draw: random.Random) -> bytes:
    places = [at for at, byte in enumerate(data) if chr(byte).isdigit()]
    if not places:
        return flip(data, draw)
    at = draw.choice(places)
    return data[:at] + draw.choice(["9", "999", "-", "0", " ", "1e3", "1", "00"]).encode() + data[at + 1 :]


LABEL = re.compile(rb"PER|LOC|ORG|DIS|Disease|Gene|GENE|BODY|SYMPTOM|Work of art")


def change_label(data: bytes, draw: random.Random) -> bytes:
    places = list(LABEL.finditer(data))
    if not places:
        return flip(data, draw)
    place = draw.choice(places)
    return data[: place.start()] + draw.choice(ODD_LABELS).encode() + data[place.end() :]


# JSON


def _parsed(data: bytes) -> tuple[list[Any], Callable[[list[Any]], bytes]]:
    """The values of a JSON file, and how to write them back: one whole value, or one on each line."""
    text = data.decode()
    try:
        return [json.loads(text)], lambda values: json.dumps(values[0]).encode()
    except json.JSONDecodeError:
        lines = [json.loads(line) for line in text.splitlines() if line.strip()]
        return lines, lambda values: "\n".join(map(json.dumps, values)).encode()


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every container in a value with each of its keys or indices."""
    places: list[tuple[Any, Any]] = []
    todo = [value]
    while todo:
        node = todo.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node))
        places += [(node, key) for key in keys]
        todo += [node[key] for key in keys if isinstance(node[key], dict | list) and node[key]]
    return places


def changed_value(value: Any, draw: random.Random) -> Any:
    """The value with another one somewhere in it: what a hand-written script would get wrong."""
    value = copy.deepcopy(value)
    places = _places(value)
    node, key = draw.choice(places)
    kind = draw.random()
    if kind < 0.15:
        del node[key]
    elif kind < 0.3 and isinstance(node, dict):
        node[draw.choice([str(key)[:-1], str(key).upper(), f"{key}s", "labels", "spans", "_meta"])] = node.pop(key)
    elif kind < 0.4:
        other, its_key = draw.choice(places)
        node[key] = copy.deepcopy(other[its_key])
    else:
        node[key] = draw.choice(ODD_VALUES)
    return value


def change_value(data: bytes, draw: random.Random) -> bytes:
    values, written = _parsed(data)
    at = draw.randrange(len(values))
    values[at] = changed_value(values[at], draw)
    return written(values)


def repeat_key(data: bytes, draw: random.Random) -> bytes:
    """Writes a key of an object twice, with two values: most parsers keep the last."""
    text = data.decode()
    keys = list(re.finditer(r'"\w+" ?: ?(?=[\[{"\d])', text))
    if not keys:
        return flip(data, draw)
    key = draw.choice(keys)
    try:
        value, end = json.JSONDecoder().raw_decode(text, key.end())
    except ValueError:
        return flip(data, draw)
    again = json.dumps(draw.choice([value, [], "", value]))
    return (text[:end] + ", " + key[0] + again + text[end:]).encode()


def drop_sign(data: bytes, draw: random.Random) -> bytes:
    places = [at for at, byte in enumerate(data) if byte in b'{}[],:"']
    if not places:
        return flip(data, draw)
    at = draw.choice(places)
    return data[:at] + data[at + 1 :]


def merge_objects(data: bytes, draw: random.Random) -> bytes:
    """Two neighboring objects of a list become one, with every key twice."""
    borders = list(re.finditer(rb"\}\s*,\s*\{", data))
    if not borders:
        return flip(data, draw)
    border = draw.choice(borders)
    return data[: border.start()] + b"," + data[border.end() :]


# Binary files: what is inside of them


def change_docbin(data: bytes, draw: random.Random) -> bytes:
    """Changes the strings, the sizes, or what documents carry along."""
    import srsly

    content = srsly.msgpack_loads(zlib.decompress(data))
    kind = draw.choice(["strings", "lengths", "user_data", "user_data", "user_data", "tokens", "any"])
    if kind == "user_data" and content["user_data"]:
        at = draw.randrange(len(content["user_data"]))
        carried = srsly.msgpack_loads(content["user_data"][at], use_list=True)
        content["user_data"][at] = srsly.msgpack_dumps(
            _packable(changed_value({str(k): v for k, v in _pairs(carried)}, draw))
        )
    elif kind == "strings":
        at = draw.randrange(len(content["strings"]))
        content["strings"][at] = draw.choice([*ODD_LABELS, *ODD_TEXT])
    elif kind in ("lengths", "tokens"):
        content[kind] = flip(content[kind], draw) if content[kind] else b"\0"
    else:
        key = draw.choice(list(content))
        content[key] = draw.choice([None, b"", [], 0, "", {}])
    return zlib.compress(srsly.msgpack_dumps(content))


def _pairs(value: Any) -> Iterator[tuple[Any, Any]]:
    return iter(value.items()) if isinstance(value, dict) else iter(dict(value).items())


def _packable(value: Any) -> Any:
    """The value without what msgpack cannot hold."""
    if isinstance(value, dict):
        return {str(key): _packable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_packable(item) for item in value]
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return 2**62
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def change_table(data: bytes, draw: random.Random) -> bytes:
    """Changes a cell of a Parquet file, or the names of its tags."""
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    table = parquet.read_table(arrow.BufferReader(data))
    metadata = dict(table.schema.metadata or {})
    out = arrow.BufferOutputStream()
    if metadata and draw.random() < 0.4:
        metadata = {key: change_label(value, draw) for key, value in metadata.items()}
        parquet.write_table(table.replace_schema_metadata(metadata), out)
        return bytes(out.getvalue())
    rows = table.to_pylist()
    if draw.random() < 0.5:  # tags as strings
        names = ["O", "B-PER", "I-PER", *(f"B-{label}" for label in ODD_LABELS), draw.choice(ODD_LABELS)]
        for row in rows:
            row["ner_tags"] = [draw.choice(names) if draw.random() < 0.2 else names[tag % 3] for tag in row["ner_tags"]]
        metadata = {}
    else:
        rows = changed_value(rows, draw)
    try:
        changed = arrow.Table.from_pylist(_packable(rows))
        parquet.write_table(changed.replace_schema_metadata(metadata), out)
    except (arrow.ArrowException, TypeError, AttributeError, ValueError, OverflowError):
        return flip(data, draw)
    return bytes(out.getvalue())


# Sound files to start from

LINES: list[Mutation] = [
    *(flip, truncate, drop_line, repeat_line, swap_lines, join_lines, append_itself, insert_odd_text, change_digit),
    *(remove_characters, change_label, change_label),
]
OBJECTS: list[Mutation] = [*LINES, *([change_value] * 8), repeat_key, repeat_key, drop_sign, merge_objects]


@dataclass(frozen=True)
class SoundFile:
    """A sound corpus: what to read, the files of it to damage, and how."""

    format: str
    path: Path
    files: tuple[Path, ...]
    mutations: tuple[Mutation, ...]

    def damaged(self, draw: random.Random) -> tuple[Path, Mutation, bytes]:
        """A file of it, how it was damaged, and its new content; nothing is written yet."""
        file, mutate = draw.choice(self.files), draw.choice(self.mutations)
        data = mutate(file.read_bytes() or b"\n", draw)
        while draw.random() < 0.25 and data:  # several faults meet
            data = draw.choice([flip, insert_odd_text, drop_line, change_label, remove_characters])(data, draw)
        return file, mutate, data


def available(name: str) -> bool:
    """Whether the extra that a format needs is installed."""
    return name not in EXTRAS or find_spec(EXTRAS[name]) is not None


def sound_files(name: str, folder: Path) -> list[SoundFile]:
    """Copies of the fixture of a format, and ten documents as its writer writes them."""
    found = [*FIXTURES.glob(f"{name}.*"), *([FIXTURES / name] if (FIXTURES / name).is_dir() else [])]
    paths = []
    for original in found:
        copied = folder / "fixture" / original.name
        copied.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if original.is_dir() else shutil.copy)(original, copied)
        paths.append(copied)
    form = format_named(name)
    if form.write is not None:
        made = folder / "made" / ("corpus" if name == "brat" else f"made{FORMATS[name].suffixes[0]}")
        made.parent.mkdir(parents=True, exist_ok=True)
        form.write([fit(document, form)[0] for document in ten_documents()], made)
        paths.append(made)
    return [_sound_file(name, path) for path in paths]


def _sound_file(name: str, path: Path) -> SoundFile:
    files = sorted(path.rglob("*.*")) if path.is_dir() else [path]
    special: dict[str, list[Mutation]] = {
        "docbin": [flip, truncate, *([change_docbin] * 6)],
        "hub": [flip, truncate, *([change_table] * 6)],
    }
    by_kind = OBJECTS if path.suffix in (".json", ".jsonl") else LINES
    return SoundFile(name, path, tuple(files), tuple(special.get(name, by_kind)))


WORDS = ["Ada", "saw", "U.S.", "é", "😀", "Oslo", "in", ",", "IL-2", "cancer", "口", "腔", "#", "1", "right"]


def ten_documents() -> list[Document]:
    """Documents with all that formats hold: nesting, fragments, groups, scores, other keys, words, sentences."""
    draw = random.Random("ten documents")
    documents = []
    for number in range(10):
        words = tuple(draw.choices(WORDS, k=draw.randint(3, 9)))
        entities = {}
        for _ in range(draw.randint(0, 4)):
            start = draw.randrange(len(words))
            span = Span(start, draw.randint(start + 1, min(len(words), start + 3)))
            meta = {"id": f"T{len(entities) + 1}", "concept_id": f"D{number}"} if number % 2 else {}
            entity = Entity(draw.choice(["PER", "LOC", "Work of art"]), (span,), draw.choice([1.0, 0.25]), meta)
            entities[entity.label, span] = entity
        if number == 3:
            entities["PER", Span(0, 3)] = Entity("PER", (Span(0, 1), Span(2, 3)))
        group = f"article {number // 4}" if number < 8 else None
        document = Document.from_words(f"d{number}", words, tuple(entities.values()), group=group)
        if number % 3 == 0:
            document = replace(document, sentences=(Span(0, len(document.text)),))
        documents.append(replace(document, meta={"year": 1990 + number, "source": "made"}))
    return documents


def a_long_file(name: str, folder: Path, size: int = 300_000) -> SoundFile:
    """A file of about this many characters in few documents, as full texts are; for what must not take long."""
    form = format_named(name)
    assert form.write is not None
    words = tuple(f"{word}{at % 97}" for at in range(size // 16) for word in ("renal", "cancer"))
    step = 4
    spans = [Span(at, at + 1 + at % 3) for at in range(0, len(words) - 3, step)]
    meta = [{"id": f"T{at + 1}", "concept_id": f"D{at}"} for at in range(len(spans))]
    entities = tuple(Entity("Disease", (span,), meta=about) for span, about in zip(spans, meta, strict=True))
    long = replace(Document.from_words("long", words, entities), words=None)
    path = folder / "long" / ("corpus" if name == "brat" else f"long{FORMATS[name].suffixes[0]}")
    path.parent.mkdir(parents=True, exist_ok=True)
    form.write([fit(document, form)[0] for document in (long, *ten_documents())], path)
    return _sound_file(name, path)
