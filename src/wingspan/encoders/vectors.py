"""Word vectors from files: GloVe text, word2vec text or binary, fastText text or .bin, and .npz; plain or gzipped."""

import errno
import json
import mmap
import os
import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from wingspan.files import open_bytes, read_lines
from wingspan.tokenizing.static import Case

__all__ = ["Vector", "WordVectors", "nearest", "open_vectors", "read_vectors"]

Vector = NDArray[np.float32]

"""How a word is looked up: as written, lower-cased, or as written and otherwise lower-cased."""
WordRows = tuple[list[str], Vector]  # n words in a row and their vectors, (n, size)

BLOCK_SIZE = 4096
SMALL = 16 << 20  # files of up to this many bytes are parsed each time; larger ones are cached
HEADER = re.compile(r"(\d+) (\d+)\s*")  # the first line of word2vec and fastText files: number of words, size
EXTRA_NUMBER = re.compile(r"\S\s+-?\d+\.\d+(e-?\d+)?\Z")


class WordVectors:
    """Words in the order of their file, usually by frequency, with one vector each."""

    def __init__(self, words: Sequence[str], vectors: NDArray[Any]) -> None:
        self.words = words  # N of them
        self.vectors = vectors  # (N, size), float32 or float16
        self.row = {word: row for row, word in enumerate(words)}

    @property
    def size(self) -> int:
        """The length of a vector."""
        return int(self.vectors.shape[1])

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: str) -> bool:
        return word in self.row

    def of(self, words: Sequence[str]) -> Vector:
        """The vectors of these words, which `form_of` has returned.  (P, size)"""
        return np.asarray(self.vectors[[self.row[word] for word in words]], np.float32)

    def form_of(self, word: str, case: Case = "both") -> str | None:
        """The form of a word that has a vector, or None."""
        forms = {"exact": (word,), "lower": (word.lower(),), "both": (word, word.lower())}[case]
        return next((form for form in forms if form in self), None)


def read_vectors(path: str | Path, words: Iterable[str], size: int) -> dict[str, Vector]:
    """The vectors of these words as written, otherwise lower-cased; words without a vector are left out."""
    source = open_vectors(path)
    if source.size != size:
        raise ValueError(f"{path}: has vectors of {source.size} numbers, not {size}; set embedding_size={source.size}")
    forms = {word: form for word in set(words) if (form := source.form_of(word)) is not None}
    return dict(zip(forms, source.of(list(forms.values())), strict=True)) if forms else {}


def nearest(source: WordVectors, words: Sequence[str], count: int = 10) -> dict[str, list[tuple[str, float]]]:
    """The nearest neighbors of each word that has a vector, with their cosines, nearest first."""
    forms = {word: form for word in words if (form := source.form_of(word)) is not None}
    if not forms:
        return {}
    queries = unit(source.of(list(forms.values())))  # (Q, D)
    starts = range(0, len(source), BLOCK_SIZE)
    blocks = (source.of(source.words[start : start + BLOCK_SIZE]) for start in starts)
    cosines = np.concatenate([queries @ unit(block).T for block in blocks], axis=1)  # (Q, N)
    neighbors = {}
    for (word, form), row in zip(forms.items(), cosines, strict=True):
        best = np.argsort(-row, kind="stable")[: count + 1].tolist()
        neighbors[word] = [(source.words[at], float(row[at])) for at in best if source.words[at] != form][:count]
    return neighbors


def unit(vectors: Vector) -> Vector:
    """Scales vectors to length 1; zero vectors stay zero."""
    scaled: Vector = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.float32(1e-12))
    return scaled


def open_vectors(path: str | Path) -> WordVectors:
    """Opens a file of vectors in any format. A large one is parsed once: then `FILE.cached` lies beside it."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{path}: no such file of word vectors; check the path")
    kind = kind_of(path)
    if kind == "fasttext":
        return FastTextVectors(path)
    if path.stat().st_size <= SMALL:
        return in_memory(path, kind)
    try:
        return read_cache(path) or write_cache(path, kind)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        return in_memory(path, kind)  # nothing can be written here


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
    last = b"".join(line.split()[-1:])  # a line of text ends with a number
    return "text" if all(byte in b"0123456789+-.eEnaif" for byte in last) and min(line, default=9) >= 9 else "binary"


def in_memory(path: Path, kind: str) -> WordVectors:
    """Reads the whole file."""
    blocks = list(read_blocks(path, kind))
    if not blocks:
        raise ValueError(f"{path}: has no words; give a file of word vectors")
    words = [word for some, _ in blocks for word in some]
    return checked(path, kind, WordVectors(words, np.concatenate([vectors for _, vectors in blocks])))


def checked(path: Path, kind: str, vectors: WordVectors) -> WordVectors:
    """Refuses a word with two vectors."""
    if len(vectors.row) < len(vectors.words):
        first: dict[str, int] = {}
        at, word = next((at, word) for at, word in enumerate(vectors.words) if first.setdefault(word, at) != at)
        raise ValueError(f"{place(path, kind, at)}: {word!r} is already word {first[word] + 1:,}; remove one of them")
    return vectors


def place(path: Path, kind: str, row: int) -> str:
    """The start of a message about a row, counted from 0: with its line in a text file, otherwise its number."""
    if kind != "text":
        return f"{path}: word {row + 1:,}"
    _, first = next(read_lines(path))
    return f"{path}:{row + (2 if HEADER.fullmatch(first) else 1)}"


# The cache: all vectors as float32, which are mapped into memory; then JSON with the words; then where the JSON starts.


def read_cache(path: Path) -> WordVectors | None:
    """Opens the cache of a file, unless there is none or the file has changed since."""
    cache, state = path.with_name(f"{path.name}.cached"), path.stat()
    try:
        with cache.open("rb") as file:
            file.seek(-8, os.SEEK_END)
            file.seek(*struct.unpack("<q", file.read(8)))
            about = json.loads(file.read()[:-8])
    except (OSError, ValueError, struct.error):  # none, or damaged
        return None
    if about["stamp"] != [state.st_size, state.st_mtime_ns]:
        return None
    shape = len(about["words"]), about["size"]
    return WordVectors(about["words"], np.memmap(cache, np.float32, "r", shape=shape))


def write_cache(path: Path, kind: str) -> WordVectors:
    """Parses a file into its cache; memory holds all words, but only some vectors."""
    words: list[str] = []
    size, state, cache = 0, path.stat(), path.with_name(f"{path.name}.cached")
    stamp = [state.st_size, state.st_mtime_ns]  # changes when the file does
    part = cache.with_name(f".{cache.name}.{os.getpid()}")
    try:
        with part.open("wb") as out:
            for some, vectors in read_blocks(path, kind):
                words += some
                size = vectors.shape[1]
                vectors.tofile(out)
            start = out.tell()
            out.write(json.dumps({"stamp": stamp, "size": size, "words": words}).encode() + struct.pack("<q", start))
        mapped = checked(path, kind, WordVectors(words, np.memmap(part, np.float32, "r", shape=(len(words), size))))
        part.replace(cache)
    finally:
        part.unlink(missing_ok=True)
    return mapped


def read_blocks(path: Path, kind: str) -> Iterator[WordRows]:
    """The words of a file with their vectors, all finite: one bad number would spoil the mean and the training."""
    before = 0
    for words, vectors in {"npz": read_npz, "text": read_text, "binary": read_binary}[kind](path):
        bad = np.flatnonzero(~np.isfinite(vectors).all(1))
        if len(bad):
            row = int(bad[0])
            raise ValueError(
                f"{place(path, kind, before + row)}: the vector of {words[row]!r} has a number that is not finite; "
                "remove the word, or make the file again"
            )
        before += len(words)
        yield words, vectors


def read_text(path: Path) -> Iterator[WordRows]:
    """A word and its numbers on each line, after a header in word2vec and fastText files."""
    lines = read_lines(path)
    number, first = next(lines, (1, ""))
    header = HEADER.fullmatch(first)
    size = int(header[2]) if header else len(first.rstrip().split(" ")) - 1
    if size < 1:
        raise ValueError(f"{path}:1: a word and its numbers are expected, with spaces between")
    if not header:
        lines = chain([(number, first)], lines)
    count = 0
    while block := list(islice(lines, BLOCK_SIZE)):
        rows = [parse(path, number, line, size) for number, line in block]
        count += len(rows)
        with np.errstate(over="ignore"):  # refused as not finite
            yield [word for word, _ in rows], np.array([numbers for _, numbers in rows]).astype(np.float32)
    if header and int(header[1]) != count:
        raise ValueError(
            f"{path}:1: announces {int(header[1]):,} words, but there are {count:,}; "
            "the file was cut off, or line 1 is wrong"
        )


def parse(path: Path, number: int, line: str, size: int) -> tuple[str, list[float]]:
    """The word and the numbers of a line. A word may contain spaces: numbers are counted from the end."""
    word, *fields = line.rstrip(" \t").rsplit(" ", size)
    try:
        numbers = [float(field) for field in fields]
    except ValueError:
        numbers = []
    if len(numbers) == size and not EXTRA_NUMBER.search(word):
        return word, numbers
    count = len(line.rstrip().split(" ")) - 1
    if count != size:
        problem = f"{count} numbers where {size} are expected as in line 1; remove the line, or make the file again"
    else:
        problem = f"a word and its {size} numbers are expected, with spaces between; remove the line"
    raise ValueError(f"{path}:{number}: {problem}")


def read_binary(path: Path) -> Iterator[WordRows]:
    """word2vec's binary format: the header, then each word, a space, and its numbers as float32."""
    with open_bytes(path) as raw:
        header = HEADER.fullmatch(raw.readline().decode("ascii", "replace"))
        assert header, "kind_of has matched it"
        count, size = int(header[1]), int(header[2])
        for start in range(0, count, BLOCK_SIZE):
            words, rows = [], []
            for number in range(start + 1, min(start + BLOCK_SIZE, count) + 1):
                word = b""
                while (byte := raw.read(1)) not in (b" ", b""):
                    word += byte
                numbers = raw.read(4 * size)
                if len(numbers) < 4 * size:
                    raise ValueError(
                        f"{path}: announces {count:,} words, but ends in word {number:,}; "
                        "the file was cut off: fetch it again"
                    )
                try:
                    words.append(word.removeprefix(b"\n").decode())
                except UnicodeDecodeError as error:
                    raise ValueError(
                        f"{path}: word {number:,} ({word!r}) is not UTF-8; make the file from UTF-8 text"
                    ) from error
                rows.append(np.frombuffer(numbers, "<f4"))
            yield words, np.array(rows, np.float32)
        if raw.read(2).strip():
            raise ValueError(f"{path}: has more than the {count:,} words it announces; fetch it again")


def read_npz(path: Path) -> Iterator[WordRows]:
    """NumPy arrays `words` and `vectors`."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            words, vectors = stored["words"].tolist(), stored["vectors"]
    except (OSError, BadZipFile, KeyError, ValueError) as error:
        raise ValueError(f"{path}: no word vectors ({error}); an .npz needs `words` and `vectors`") from error
    if vectors.ndim != 2 or len(vectors) != len(words):
        raise ValueError(f"{path}: {len(words):,} words and vectors of shape {vectors.shape}; give one row per word")
    for start in range(0, len(words), BLOCK_SIZE):
        yield words[start : start + BLOCK_SIZE], vectors[start : start + BLOCK_SIZE].astype(np.float32)


# fastText models. See: Bojanowski et al. 2017, Enriching Word Vectors with Subword Information.

MAGIC = struct.pack("<i", 793712314)
END_OF_SENTENCE = "</s>"
MAX_CHARACTERS = 256  # the rest of a longer word is ignored


class FastTextVectors(WordVectors):
    """A fastText .bin model: a word's vector is the mean of its own row and the rows of its n-grams.

    The n-grams give a vector to any word. The matrix is mapped into memory, not read; the file layout is version 12.
    """

    def __init__(self, path: Path) -> None:
        if path.suffix == ".gz":
            raise ValueError(f"{path}: a gzipped fastText model cannot be mapped into memory; unpack it with gunzip")
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                words, start, shape = self._read_header(path, data)
            except (struct.error, IndexError) as error:
                raise ValueError(f"{path}: ends before its vectors; the file was cut off: fetch it again") from error
        super().__init__(words, np.memmap(path, np.dtype("<f4"), "r", start, shape))

    def _read_header(self, path: Path, data: mmap.mmap) -> tuple[list[str], int, tuple[int, int]]:
        """The words, and where the matrix starts and its shape."""
        _, version, size, *_, self.shortest, self.longest, _ = struct.unpack_from("<14i", data)
        if version not in (11, 12):
            raise ValueError(f"{path}: a fastText model of version {version}, not 12; save it with a current fastText")
        _, num_words, num_labels, _, pruned = struct.unpack_from("<3i2q", data, 64)
        words, at = [], 92
        for number in range(num_words + num_labels):
            end = data.find(b"\0", at)
            if end < 0 or data[end + 9] != (number >= num_words):  # 0 for a word, 1 for a label
                raise ValueError(f"{path}: entry {number + 1:,} is not a word; the file is damaged, fetch it again")
            try:
                words.append(data[at:end].decode())
            except UnicodeDecodeError as error:
                raise ValueError(f"{path}: the word {data[at:end]!r} is not UTF-8; train it on UTF-8 text") from error
            at = end + 10  # after a count of 8 bytes and the kind
        if pruned > 0 or data[at]:
            raise ValueError(f"{path}: a quantized fastText model, which has no vectors left; use the .bin file")
        rows, columns = struct.unpack_from("<2q", data, at + 1)
        if columns != size or len(data) < at + 17 + 4 * rows * columns:
            raise ValueError(f"{path}: ends before its {rows:,} vectors do; the file was cut off: fetch it again")
        self.buckets = rows - num_words if self.longest else 0
        return words[:num_words], at + 17, (rows, size)

    def of(self, words: Sequence[str]) -> Vector:
        """The vectors of any words that have a known part.  (P, size)"""
        rows = ([self.row[word]] if word in self.row else [] for word in words)
        means = [self.vectors[[*row, *self.n_grams(word)]].mean(0) for word, row in zip(words, rows, strict=True)]
        return np.asarray(means, np.float32)

    def form_of(self, word: str, case: Case = "both") -> str | None:
        """The form that is in the model, otherwise the word itself if it has n-grams."""
        form = super().form_of(word, case)
        if form is None:
            word = word.lower() if case == "lower" else word
            return word if self.n_grams(word) else None
        return form

    def n_grams(self, word: str) -> list[int]:
        """The rows of a word's character n-grams."""
        if not self.buckets or word == END_OF_SENTENCE:
            return []
        marked = f"<{word[:MAX_CHARACTERS]}>"
        grams = [
            marked[start : start + length]
            for start in range(len(marked))
            for length in range(self.shortest, self.longest + 1)
            if start + length <= len(marked) and not (length == 1 and start in (0, len(marked) - 1))
        ]
        return [len(self.words) + fnv(gram.encode("utf-8", "replace")) % self.buckets for gram in grams]


def fnv(text: bytes) -> int:
    """fastText's hash: FNV-1a over signed bytes."""
    value = 2166136261
    for byte in text:
        value = ((value ^ (byte | 0xFFFFFF00 if byte > 127 else byte)) * 16777619) & 0xFFFFFFFF
    return value
