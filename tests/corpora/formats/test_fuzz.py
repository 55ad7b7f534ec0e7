"""Every reader on damaged files: sound documents or one sentence; no other exception, no entity off the text."""

import copy
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wingspan.corpora.formats import FORMATS, format_named
from wingspan.files import CorpusError, OnError, Problems
from wingspan.text import Document, Entity

FIXTURES = Path(__file__).parent / "fixtures"
ROUNDS = 500
ODD_TEXT = [
    "\ufeff",
    "\u200b",
    "\u0301",
    "\u202e",
    "😀",
    "\r\n",
    "\r",
    "\t",
    "\x00",
    "\x85",
    "\u2028",
    "|",
    "\\",
    '"',
    "ﷺ",
]
ODD_VALUES: list[Any] = [
    None, True, -1, 0, 3, 10**12, 10**400, 1.5, 2.0, float("nan"), "", " ", "😀", "\ud83d", "3", [], [[]], [None],
    [0, 1], [[0, 1, "X"]], {}, {"start": 0}, [{"start": 0, "end": 1}], {"a": {"b": 1}},
]  # fmt: skip

Mutation = Callable[[bytes, random.Random], bytes]


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


def insert_odd_text(data: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(data) + 1)
    return data[:at] + draw.choice(ODD_TEXT).encode() + data[at:]


def change_digit(data: bytes, draw: random.Random) -> bytes:
    places = [at for at, byte in enumerate(data) if chr(byte).isdigit()]
    if not places:
        return flip(data, draw)
    at = draw.choice(places)
    return data[:at] + draw.choice(["9", "999", "-", "0", " ", "1e3"]).encode() + data[at + 1 :]


def change_value(data: bytes, draw: random.Random) -> bytes:
    """Puts a value of another kind somewhere into the JSON: what a hand-written script would get wrong."""
    text = data.decode()
    try:
        return _json(_changed(json.loads(text), draw))
    except json.JSONDecodeError:
        lines = [line for line in text.splitlines() if line.strip()]
        at = draw.randrange(len(lines))
        lines[at] = _json(_changed(json.loads(lines[at]), draw)).decode()
        return "\n".join(lines).encode()


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _changed(value: Any, draw: random.Random) -> Any:
    value = copy.deepcopy(value)
    places: list[tuple[Any, Any]] = []
    todo = [value]
    while todo:
        node = todo.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node))
        places += [(node, key) for key in keys]
        todo += [node[key] for key in keys if isinstance(node[key], dict | list) and node[key]]
    node, key = draw.choice(places)
    if draw.random() < 0.2:
        del node[key]
    else:
        node[key] = draw.choice(ODD_VALUES)
    return value


TEXT = [flip, truncate, drop_line, repeat_line, insert_odd_text, change_digit]
JSON = [*TEXT, change_value, change_value, change_value, change_value]
BINARY = [flip, truncate]


def made_docbin(folder: Path) -> Path:
    pytest.importorskip("spacy", reason="the extra `spacy` is not installed")
    documents = [Document("a", "Ada in Oslo 😀", (Entity.at("PER", 0, 3), Entity.at("LOC", 7, 11)))]
    format_named("docbin").write(documents, folder / "x.spacy")  # type: ignore[misc]
    return folder / "x.spacy"


def made_parquet(folder: Path) -> Path:
    pytest.importorskip("datasets", reason="the extra `hub` is not installed")
    documents = [Document.from_words("a", ("Ada", "in", "Oslo"), (Entity.at("PER", 0, 1), Entity.at("LOC", 2, 3)))]
    format_named("hub").write(documents, folder / "x.parquet")  # type: ignore[misc]
    return folder / "x.parquet"


def fixture_of(name: str, folder: Path) -> tuple[Path, list[Path], list[Mutation]]:
    """What to read, the files of it to damage, and how."""
    if name == "docbin":
        return (path := made_docbin(folder)), [path], BINARY
    if name == "hub":
        return (path := made_parquet(folder)), [path], BINARY
    (original,) = FIXTURES.glob(f"{name}.*") if name != "brat" else [FIXTURES / "brat"]
    path = folder / original.name
    if original.is_dir():
        shutil.copytree(original, path)
        return path, sorted(path.iterdir()), TEXT
    shutil.copy(original, path)
    return path, [path], JSON if path.suffix in (".json", ".jsonl") else TEXT


def read_damaged(name: str, path: Path, on_error: OnError) -> str:
    problems = Problems(on_error)
    outcome = "read"
    try:
        for document in format_named(name).read(path, problems):
            document.text.encode()
            for entity in document.entities:
                assert entity.label
                assert all(0 <= start < end <= len(document.text) for start, end in entity.spans)
            for start, end in (*(document.words or ()), *(document.sentences or ())):
                assert 0 <= start < end <= len(document.text)
    except CorpusError as error:
        problems.messages.append(str(error))
        outcome = "refused"
    for message in problems.messages:
        assert message.startswith(str(path.parent)) or "document" in message
        assert "\n" not in message
        assert len(message) < 1000
    return outcome


@pytest.mark.parametrize("name", FORMATS)
def test_the_fixture_itself_is_sound(name: str, tmp_path: Path) -> None:
    path, _, _ = fixture_of(name, tmp_path)
    assert read_damaged(name, path, "raise") == "read"
    assert any(document.entities for document in format_named(name).read(path, Problems()))


@pytest.mark.parametrize("name", FORMATS)
def test_damaged_files_give_sound_documents_or_one_sentence(name: str, tmp_path: Path) -> None:
    path, files, mutations = fixture_of(name, tmp_path)
    whole = {file: file.read_bytes() for file in files}
    draw = random.Random(name)
    outcomes = []
    for number in range(ROUNDS):
        file, mutate = draw.choice(files), draw.choice(mutations)
        file.write_bytes(mutate(whole[file], draw))
        for on_error in ("raise", "skip"):
            try:
                outcomes.append(read_damaged(name, path, on_error))
            except BaseException as error:
                error.add_note(f"round {number}: {mutate.__name__}, {on_error}: {file.read_bytes()[:3000]!r}")
                raise
        file.write_bytes(whole[file])
    assert {"read", "refused"} <= set(outcomes)  # the damage is neither always fatal nor always harmless
