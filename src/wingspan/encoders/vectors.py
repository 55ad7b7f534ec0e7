"""Word vectors from a file: GloVe, word2vec (text or binary), fastText (text or model), or .npz; plain or gzipped."""

from __future__ import annotations

import errno
import json
import mmap
import os
import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from tempfile import gettempdir
from typing import IO, Any, Literal, NamedTuple
from zipfile import BadZipFile
from zlib import crc32

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from wingspan.corpora.lexicon import Strings
from wingspan.files import atomic_path, open_bytes, read_lines

__all__ = ["Vector", "WordVectors", "open_vectors", "read_vectors"]


def read_vectors(path: str | Path, words: Iterable[str], size: int) -> dict[str, Vector]:
    """The vectors of these words: of the word as it is written, else of its lower-cased form."""
    source = open_vectors(path)
    if source.size != size:
        raise ValueError(f"{path}: has vectors of {source.size} numbers, not {size}; set embedding_size={source.size}")
    forms = {word: source.form_of(word) for word in set(words)}
    known = {word: form for word, form in forms.items() if form is not None}
    return dict(zip(known, source.of(list(known.values())), strict=True)) if known else {}


# --- Words with their vectors, without a Python object per word: they may lie in a file that is mapped, not read.


Vector = NDArray[np.float32]
Case = Literal["exact", "lower", "both"]
"""Under which form a word is looked up: as written, lower-cased, or as written and else lower-cased."""


@dataclass(frozen=True)
class WordIndex:
    """Where each word is. A word is found by its checksum among all of them, sorted; then the words are compared."""

    words: Strings  # N of them
    checksums: NDArray[np.uint32]  # (N,), sorted
    places: NDArray[np.uint32]  # (N,), the word that has the checksum

    @classmethod
    def of(cls, words: Strings) -> WordIndex:
        """Sorts the checksums of these words."""
        text, ends = words.text, words.ends.tolist()
        sums = (crc32(text[start:end]) for start, end in zip([0, *ends], ends, strict=False))
        checksums = np.fromiter(sums, np.uint32, len(words))
        order = np.argsort(checksums, kind="stable")
        return cls(words, checksums[order], order.astype(np.uint32))

    def find(self, word: str) -> int | None:
        """The place of a word."""
        try:
            value = np.uint32(crc32(word.encode()))  # of the array's type, or the whole array would be converted
        except UnicodeEncodeError:
            return None  # half a surrogate pair is in no file
        at = int(np.searchsorted(self.checksums, value))
        while at < len(self.checksums) and self.checksums[at] == value:
            if self.words[int(self.places[at])] == word:
                return int(self.places[at])
            at += 1
        return None

    def twice(self) -> tuple[int, int] | None:
        """The first two places that have the same word."""
        found = []
        for at in np.flatnonzero(self.checksums[1:] == self.checksums[:-1]).tolist():
            same = self.places[at : at + 2].tolist()
            if self.words[same[0]] == self.words[same[1]]:
                found.append((min(same), max(same)))
        return min(found, key=lambda pair: pair[1]) if found else None


class WordVectors:
    """The words of a file in its order, usually by frequency, and one vector for each."""

    def __init__(self, index: WordIndex, vectors: NDArray[Any]) -> None:
        self.index = index
        self.vectors = vectors  # (N, size), float32 or float16

    @property
    def size(self) -> int:
        """How many numbers a vector has."""
        return int(self.vectors.shape[1])

    def __len__(self) -> int:
        return len(self.index.words)

    def __contains__(self, word: str) -> bool:
        return self.index.find(word) is not None

    def first(self, count: int) -> list[str]:
        """The first words of the file."""
        return [self.index.words[at] for at in range(min(count, len(self)))]

    def rows(self, places: Sequence[int]) -> Vector:
        """The vectors at these places.  (P, size)"""
        return np.asarray(self.vectors[np.asarray(places, np.int64)], np.float32)

    def of(self, words: Sequence[str]) -> Vector:
        """The vectors of words in forms that have one.  (P, size)"""
        places = [self.index.find(word) for word in words]
        missing = next((word for word, place in zip(words, places, strict=True) if place is None), None)
        if missing is not None:
            raise KeyError(missing)
        return self.rows([place for place in places if place is not None])

    def form_of(self, word: str, case: Case = "both") -> str | None:
        """The form of a word that has a vector; None where none has."""
        forms: Iterable[str] = {"exact": (word,), "lower": (word.lower(),), "both": (word, word.lower())}[case]
        return next((form for form in forms if form in self), None)


# --- Opening files of word vectors. Large ones are read once: then they lie beside the file as arrays that are
# mapped.
#
# The folder `FILE.cache` holds numbers, words and their index; it is made again when the file changes.


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


def build(path: Path, kind: str, folder: Path) -> None:
    """Writes the arrays of a file; memory holds the words, never all vectors."""
    source = stamp(path)
    words: list[str] = []
    size = 0
    with atomic_path(folder) as new:
        new.mkdir()
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
        with atomic_path(folder) as new:
            new.mkdir()
            write_index(new, index)
            (new / "about.json").write_text(json.dumps({"source": stamp(path), "layout": layout}))
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise


# --- GloVe, word2vec and fastText as text: a word and its numbers on each line; the last two begin with their
# counts.


LINES = 4096
HEADER = re.compile(r"(\d+) (\d+)\s*")


class Block(NamedTuple):
    """Some words that follow each other, and their vectors."""

    words: list[str]
    vectors: Vector  # (n, size)


def read_text_file(path: Path) -> Iterator[Block]:
    """The file block by block. A word may hold spaces: the numbers are counted from the end of the line."""
    lines = read_lines(path)
    number, line = next(lines, (0, ""))
    header = HEADER.fullmatch(line)
    size = int(header[2]) if header else len(line.rstrip().split(" ")) - 1
    if size < 1:
        raise ValueError(f"{path}:1: a word and its numbers are expected, with spaces between")
    waiting = [] if header else [(number, line)]
    told, read = int(header[1]) if header else None, 0
    while block := [*waiting, *islice(lines, LINES - len(waiting))]:
        waiting = []
        parsed = parse(path, block, size)
        read += len(parsed.words)
        yield parsed
    if told is not None and told != read:
        raise ValueError(
            f"{path}:1: {told:,} words are announced, but there are {read:,}; the file was cut off, or line 1 is wrong"
        )


def parse(path: Path, lines: list[tuple[int, str]], size: int) -> Block:
    """Words and numbers of some lines."""
    words = []
    vectors = np.empty((len(lines), size), np.float32)
    for row, (number, line) in enumerate(lines):
        word, *fields = line.rstrip(" \t").rsplit(" ", size)
        numbers = parsed(" ".join(fields))
        if len(fields) != size or len(numbers) != size or is_number(word.rpartition(" ")):
            raise ValueError(f"{path}:{number}: {mistake(line, size)}")
        words.append(word)
        vectors[row] = numbers
    return Block(words, vectors)


def parsed(text: str) -> Vector:
    """The numbers of a line; none where some are no numbers."""
    try:
        return np.fromstring(text, np.float32, sep=" ")
    except ValueError:
        return np.empty(0, np.float32)


def is_number(parts: tuple[str, str, str]) -> bool:
    """Whether what stands before the numbers is a word and one number more."""
    before, space, last = parts
    return bool(space and before.strip()) and bool(re.fullmatch(r"-?\d+\.\d+(e-?\d+)?", last))


def mistake(line: str, size: int) -> str:
    """What is wrong with a line."""
    found = len(line.rstrip().split(" ")) - 1
    if found != size:
        return f"{found} numbers where {size} are expected as in line 1; remove the line, or make the file again"
    return f"a word and its {size} numbers are expected, with spaces between; remove the line"


# --- word2vec's binary files: the counts on a line, then each word, a space, and its numbers as float32.


WORDS = 4096
CHUNK = 1 << 22


class Buffer:
    """Bytes of a stream, as many as are asked for, or up to a byte."""

    def __init__(self, raw: IO[bytes]) -> None:
        self.raw, self.held, self.at = raw, b"", 0

    def fill(self) -> bool:
        """Reads on; False at the end."""
        more = self.raw.read(CHUNK)
        self.held, self.at = self.held[self.at :] + more, 0
        return bool(more)

    def until(self, mark: bytes) -> bytes | None:
        """What stands before the next mark; None at the end of the file."""
        while (end := self.held.find(mark, self.at)) < 0:
            if not self.fill():
                return None
        found, self.at = self.held[self.at : end], end + 1
        return found

    def take(self, count: int) -> bytes:
        """The next bytes; fewer at the end of the file."""
        while len(self.held) - self.at < count and self.fill():
            pass
        found = self.held[self.at : self.at + count]
        self.at += len(found)
        return found


def read_binary_file(path: Path) -> Iterator[Block]:
    """The file block by block."""
    with open_bytes(path) as raw:
        buffer = Buffer(raw)
        header = HEADER.fullmatch((buffer.until(b"\n") or b"").decode("ascii", "replace"))
        assert header, "the file's kind was looked at before"
        count, size = int(header[1]), int(header[2])
        for start in range(0, count, WORDS):
            some = min(WORDS, count - start)
            vectors = np.empty((some, size), np.float32)
            words = []
            for row in range(some):
                word, numbers = buffer.until(b" "), buffer.take(4 * size)
                if word is None or len(numbers) < 4 * size:
                    raise ValueError(
                        f"{path}: {count:,} words are announced, but it ends in word {start + row + 1:,}; "
                        "the file was cut off: fetch it again"
                    )
                try:
                    words.append(word.removeprefix(b"\n").decode())
                except UnicodeDecodeError as error:
                    raise ValueError(
                        f"{path}: word {start + row + 1:,} ({word!r}) is no UTF-8; make the file from UTF-8 text"
                    ) from error
                vectors[row] = np.frombuffer(numbers, "<f4")
            yield Block(words, vectors)
        if buffer.take(2).strip():
            raise ValueError(f"{path}: there is more than the {count:,} words that are announced; fetch it again")


# --- Vectors as numpy keeps them: `words`, `vectors`, and `about`, what is known of their training, as JSON.


def read_npz(path: Path) -> Iterator[Block]:
    """The file block by block."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            words, vectors = stored["words"].tolist(), stored["vectors"]
    except (OSError, BadZipFile, KeyError, ValueError) as error:
        raise ValueError(f"{path}: no word vectors ({error}); an .npz needs `words` and `vectors`") from error
    if vectors.ndim != 2 or len(vectors) != len(words):
        raise ValueError(
            f"{path}: {len(words):,} words and vectors of shape {vectors.shape}; one row for each word is needed"
        )
    for start in range(0, len(words), LINES):
        yield Block(words[start : start + LINES], vectors[start : start + LINES].astype(np.float32))


def about(path: Path) -> dict[str, Any]:
    """What the file says of its training; empty where it says nothing."""
    with np.load(path, allow_pickle=False) as stored:
        return dict(json.loads(str(stored["about"]))) if "about" in stored else {}


def write_npz(path: Path, words: Sequence[str], vectors: NDArray[Any], known: Mapping[str, Any]) -> None:
    """Writes a whole file, or none of it."""
    with atomic_path(path) as part, part.open("wb") as out:
        np.savez_compressed(out, words=np.array(words), vectors=vectors, about=np.array(json.dumps(known)))


# --- fastText's own models (.bin): vectors of words and of their character n-grams, which make up any word at all.
#
# The matrix is mapped where it lies, so that a model of several gigabytes is open at once. Cf. Bojanowski et al.
# 2017, Enriching Word Vectors with Subword Information; the layout is that of version 12.


MAGIC = struct.pack("<i", 793712314)
WORD, LABEL = 0, 1
END_OF_SENTENCE = "</s>"
LONGEST = 256  # characters of a word that are looked at


class Layout(NamedTuple):
    """Where the numbers lie in a model's file, and what they are of: everything a second opening needs."""

    size: int
    num_words: int
    buckets: int
    shortest: int  # of the n-grams, in characters
    longest: int
    start: int  # of the matrix, in bytes


def read_layout(path: Path) -> tuple[Layout, list[str]]:
    """Reads what stands before the numbers; the words, by frequency."""
    if path.suffix == ".gz":
        raise ValueError(f"{path}: a fastText model is mapped, which a packed file cannot be; unpack it with gunzip")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as held:
        try:
            return _layout(path, held)
        except (struct.error, IndexError) as error:
            raise ValueError(f"{path}: ends before its vectors do; the file was cut off: fetch it again") from error


def _layout(path: Path, held: mmap.mmap) -> tuple[Layout, list[str]]:
    _, version, size, *_, shortest, longest, _ = struct.unpack_from("<14i", held)
    if version not in (11, 12):
        raise ValueError(f"{path}: a fastText model of version {version}, not 12; save it with a current fastText")
    _, num_words, num_labels, _, pruned = struct.unpack_from("<3i2q", held, 64)  # a threshold stands before
    words, at = [], 92
    for number in range(num_words + num_labels):
        end = held.find(b"\0", at)
        if end < 0 or held[end + 9] != (WORD if number < num_words else LABEL):
            raise ValueError(f"{path}: entry {number + 1:,} is no word; the file is damaged, fetch it again")
        try:
            words.append(held[at:end].decode())
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: the word {held[at:end]!r} is no UTF-8; train it on UTF-8 text") from error
        at = end + 10  # a count of 8 bytes and a kind
    if pruned > 0 or held[at]:
        raise ValueError(f"{path}: a quantized fastText model, which has no vectors left; use the .bin file")
    rows, columns = struct.unpack_from("<2q", held, at + 1)
    if columns != size or len(held) < at + 17 + 4 * rows * columns:
        raise ValueError(f"{path}: ends before its {rows:,} vectors do; the file was cut off: fetch it again")
    buckets = rows - num_words if longest else 0
    return Layout(size, num_words, buckets, shortest, longest, at + 17), words[:num_words]


class FastTextVectors(WordVectors):
    """The vectors of a model: a word's is the mean of its own row and those of its n-grams."""

    def __init__(self, path: Path, index: WordIndex, layout: Layout) -> None:
        shape = (layout.num_words + layout.buckets, layout.size)
        super().__init__(index, np.memmap(path, np.dtype("<f4"), "r", layout.start, shape))
        self.layout = layout

    def rows(self, places: Sequence[int]) -> Vector:
        """The vectors of the words at these places.  (P, size)"""
        return np.stack([self._mean(self.index.words[at], [at]) for at in map(int, places)])

    def of(self, words: Sequence[str]) -> Vector:
        """The vectors of any words of which the model knows a part.  (P, size)"""
        places = ((word, self.index.find(word)) for word in words)
        return np.stack([self._mean(word, [] if place is None else [place]) for word, place in places])

    def form_of(self, word: str, case: Case = "both") -> str | None:
        """The form of a word that the model has, else the word itself, made up of its parts."""
        known = super().form_of(word, case)
        made_up = word.lower() if case == "lower" else word
        return known if known is not None or not self.n_grams(made_up) else made_up

    def n_grams(self, word: str) -> list[int]:
        """The rows of a word's n-grams."""
        layout = self.layout
        if not layout.buckets or word == END_OF_SENTENCE:
            return []
        marked = f"<{word[:LONGEST]}>"
        grams = [
            marked[start : start + length]
            for start in range(len(marked))
            for length in range(layout.shortest, layout.longest + 1)
            if start + length <= len(marked) and not (length == 1 and start in (0, len(marked) - 1))
        ]
        return [layout.num_words + fnv(gram.encode("utf-8", "replace")) % layout.buckets for gram in grams]

    def _mean(self, word: str, rows: list[int]) -> Vector:
        return np.asarray(self.vectors[[*rows, *self.n_grams(word)]].mean(0), np.float32)


def fnv(text: bytes) -> int:
    """fastText's hash: FNV-1a over signed bytes."""
    value = 2166136261
    for byte in text:
        signed = byte | 0xFFFFFF00 if byte > 127 else byte
        value = ((value ^ signed) * 16777619) & 0xFFFFFFFF
    return value


# --- The words nearest to a word, by the angle between vectors.


ROWS = 16_384


def nearest(source: WordVectors, words: Sequence[str], count: int = 10) -> dict[str, list[tuple[str, float]]]:
    """For each word that has a vector its nearest neighbors with their cosines, nearest first."""
    forms = {word: source.form_of(word) for word in words}
    known = {word: form for word, form in forms.items() if form is not None}
    if not known:
        return {}
    wanted = unit(source.of(list(known.values())))  # (W, D)
    cosines = np.empty((len(known), len(source)), np.float32)
    for start in range(0, len(source), ROWS):
        rows = source.rows(range(start, min(start + ROWS, len(source))))
        cosines[:, start : start + ROWS] = wanted @ unit(rows).T
    best = np.argsort(-cosines, axis=1, kind="stable")[:, : count + 1]
    found = {}
    for row, (word, form) in enumerate(known.items()):
        near = [(source.index.words[int(at)], float(cosines[row, at])) for at in best[row]]
        found[word] = [pair for pair in near if pair[0] != form][:count]
    return found


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Vectors of length 1; those of length 0 stay it."""
    lengths = np.sqrt(np.square(vectors).sum(1, keepdims=True))
    scaled: NDArray[np.float32] = vectors / np.maximum(lengths, np.float32(1e-12))
    return scaled
