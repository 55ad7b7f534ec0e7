"""Opening files of word vectors. Large ones are read once: then they lie beside the file as arrays that are mapped.

The folder `FILE.cache` holds numbers, words and their index; it is made again when the file changes.
"""

from __future__ import annotations

import errno
import json
import mmap
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from tempfile import gettempdir

import numpy as np
from filelock import FileLock

from wingspan.corpora.concept_table import Strings
from wingspan.corpora.files import open_bytes
from wingspan.word_vectors.binary_files import read_binary_file
from wingspan.word_vectors.fasttext_model import MAGIC, FastTextVectors, Layout, read_layout
from wingspan.word_vectors.npz_files import read_npz
from wingspan.word_vectors.table import WordIndex, WordVectors
from wingspan.word_vectors.text_files import HEADER, Block, read_text_file

SMALL = 16 << 20
"""Files of up to so many bytes are read each time: a second, and no folder beside them."""
VERSION = 1
UNWRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS)
"""Where nothing can be written beside a file, it is read each time: that takes longer, that is all."""


def open_vectors(path: str | Path) -> WordVectors:
    """The vectors of a file, whatever its format."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{path}: no such file of word vectors; check the path")
    kind = kind_of(path)
    if kind == "fasttext":
        return open_model(path)
    if path.stat().st_size <= SMALL:
        return in_memory(path, kind)
    folder = cache_of(path)
    if not is_fresh(folder, path):
        try:
            with building(path):
                if not is_fresh(folder, path):  # another process may have been quicker
                    build(path, kind, folder)
        except OSError as error:
            if error.errno not in UNWRITABLE:
                raise
            return in_memory(path, kind)
    size = json.loads((folder / "about.json").read_text())["size"]
    return WordVectors(read_index(folder), np.memmap(folder / "vectors.f32", np.float32, "r").reshape(-1, size))


def kind_of(path: Path) -> str:
    """npz, text, binary (word2vec's) or fasttext (a model with sub-words)."""
    if path.suffix == ".npz":
        return "npz"
    with open_bytes(path) as raw:
        start = raw.read(4096)
    if start[:4] == MAGIC:
        return "fasttext"
    first, _, rest = start.partition(b"\n")
    if not HEADER.fullmatch(first.decode("ascii", "replace")):
        return "text"
    line = rest.lstrip(b"\n").partition(b"\n")[0]
    last = b"".join(line.split()[-1:])  # what a line of text ends with is a number
    return "text" if all(byte in b"0123456789+-.eEnaif" for byte in last) and min(line, default=9) >= 9 else "binary"


def blocks_of(path: Path, kind: str) -> Iterator[Block]:
    """The words and vectors of a file. One that is no number would spoil the mean of all, and whatever is trained."""
    before = 0
    for block in {"npz": read_npz, "text": read_text_file, "binary": read_binary_file}[kind](path):
        broken = np.flatnonzero(~np.isfinite(block.vectors).all(1))
        if len(broken):
            row = int(broken[0])
            place = f"{path}:{line_of(path, before + row)}" if kind == "text" else f"{path}: word {before + row + 1:,}"
            raise ValueError(
                f"{place}: the vector of {block.words[row]!r} has a number that is not finite; "
                "remove the word, or make the file again"
            )
        before += len(block.words)
        yield block


def in_memory(path: Path, kind: str) -> WordVectors:
    """Reads all of a file."""
    blocks = list(blocks_of(path, kind))
    if not blocks:
        raise ValueError(f"{path}: no word and no vector in it; give a file that has some")
    index = WordIndex.of(Strings.of(word for block in blocks for word in block.words))
    check_twice(path, kind, index)
    return WordVectors(index, np.concatenate([block.vectors for block in blocks]))


def check_twice(path: Path, kind: str, index: WordIndex) -> None:
    """A word has one vector."""
    twice = index.twice()
    if twice is None:
        return
    first, second = twice
    word = index.words[second]
    if kind == "text":
        lines = line_of(path, first), line_of(path, second)
        raise ValueError(f"{path}:{lines[1]}: {word!r} stands in line {lines[0]} already; remove one line")
    raise ValueError(f"{path}: word {second + 1:,}, {word!r}, is word {first + 1:,} already; make the file again")


def line_of(path: Path, row: int) -> int:
    """The line of a text file on which its word number `row`, from 0, stands."""
    with open_bytes(path) as raw:
        first = raw.readline(100).decode("ascii", "replace").rstrip("\r\n")
    return row + (2 if HEADER.fullmatch(first) else 1)


def cache_of(path: Path) -> Path:
    """Where the arrays of a file lie."""
    return path.with_name(f"{path.name}.cache")


def is_fresh(folder: Path, path: Path) -> bool:
    """Whether the folder holds the arrays of the file as it is now."""
    try:
        about = json.loads((folder / "about.json").read_text())
    except (OSError, ValueError):
        return False
    return bool(about.get("source") == stamp(path))


def stamp(path: Path) -> list[int]:
    """What changes when a file does."""
    state = path.stat()
    return [VERSION, state.st_size, state.st_mtime_ns]


def building(path: Path) -> FileLock:
    """One process at a time makes the arrays of a file; the others wait for them."""
    name = blake2b(str(path.resolve()).encode("utf-8", "replace"), digest_size=12).hexdigest()
    return FileLock(Path(gettempdir()) / f"wingspan-vectors-{os.getuid()}-{name}.lock")


@contextmanager
def renewed(folder: Path) -> Iterator[Path]:
    """A new folder that takes the place of the old one when all went well."""
    new = folder.with_name(f".{folder.name}.{os.getpid()}.new")
    new.mkdir()
    try:
        yield new
        shutil.rmtree(folder, ignore_errors=True)
        new.rename(folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def build(path: Path, kind: str, folder: Path) -> None:
    """Writes the arrays of a file; memory holds the words, never all vectors."""
    source = stamp(path)
    words: list[str] = []
    size = 0
    with renewed(folder) as new:
        with (new / "vectors.f32").open("wb") as out:
            for block in blocks_of(path, kind):
                words += block.words
                size = block.vectors.shape[1]
                block.vectors.tofile(out)
        index = WordIndex.of(Strings.of(words))
        check_twice(path, kind, index)
        write_index(new, index)
        (new / "about.json").write_text(json.dumps({"source": source, "size": size}))


def write_index(folder: Path, index: WordIndex) -> None:
    """Words, and where they are."""
    (folder / "words.txt").write_bytes(index.words.text)
    for name, part in (("ends", index.words.ends), ("checksums", index.checksums), ("places", index.places)):
        np.save(folder / f"{name}.npy", part)


def read_index(folder: Path) -> WordIndex:
    """The index, mapped."""
    with (folder / "words.txt").open("rb") as file:
        text = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)  # read where it is looked at
    ends, checksums, places = (np.load(folder / f"{name}.npy", "r") for name in ("ends", "checksums", "places"))
    return WordIndex(Strings(text, ends), checksums, places)


def open_model(path: Path) -> FastTextVectors:
    """A fastText model: its numbers stay where they are, only its words lie beside it where they are many."""
    folder = cache_of(path)
    if is_fresh(folder, path):
        layout = Layout(*json.loads((folder / "about.json").read_text())["layout"])
        return FastTextVectors(path, read_index(folder), layout)
    with building(path):
        if is_fresh(folder, path):  # another process was quicker
            return open_model(path)
        layout, words = read_layout(path)
        index = WordIndex.of(Strings.of(words))
        if path.stat().st_size > SMALL:
            keep_model(folder, path, index, layout)
    return FastTextVectors(path, index, layout)


def keep_model(folder: Path, path: Path, index: WordIndex, layout: Layout) -> None:
    """Writes the index and where the numbers are, where that is possible."""
    try:
        with renewed(folder) as new:
            write_index(new, index)
            (new / "about.json").write_text(json.dumps({"source": stamp(path), "layout": layout}))
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
