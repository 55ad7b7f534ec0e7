"""Files: read as UTF-8 text with clear error messages, written under a temporary name and then renamed."""

import difflib
import gzip
import io
import json
import os
import shutil
import stat
import tomllib
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import file_digest
from pathlib import Path
from tempfile import mkdtemp
from typing import IO, Any, Literal, TypeVar


class CorpusError(ValueError):
    """A file that cannot be read: one sentence with file, line and fix."""


OnError = Literal["raise", "skip"]


class CorpusWarning(UserWarning):
    """A part of a file that looks like annotation and is not read as such."""


@dataclass
class Problems:
    """Collects problems of a corpus. With `on_error="raise"` the first one ends the reading."""

    on_error: OnError = "raise"
    messages: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    warns: bool = False
    """Whether Python warns of what `warn` is told: where nobody looks at the notes."""

    def add(self, path: Path | str, line: int | None, message: str) -> None:
        """Reports a record or entity that is left out. `message` has the problem and the fix, without a period."""
        where = f"{path}:{line}" if line is not None else str(path)
        sentence = f"{where}: {message}"
        if self.on_error == "raise":
            raise CorpusError(sentence)
        self.messages.append(sentence)

    def note(self, path: Path | str, message: str) -> None:
        """Reports a fact that loses nothing, such as the tagging scheme that was detected; a repetition is left out."""
        if (note := f"{path}: {message}") not in self.notes[-1:]:
            self.notes.append(note)

    def warn(self, path: Path | str, message: str) -> None:
        """Reports a fact that the user has to know, because annotations may not be what they seem."""
        self.note(path, message)
        if self.warns:
            warnings.warn(self.notes[-1], CorpusWarning, stacklevel=2)


BYTE_ORDER_MARK = "\ufeff"


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """A name beside `path` to write a file or folder to; it replaces `path` only when all went well."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name[:200]}.{os.getpid()}.part")
    try:
        yield part
        if part.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        part.replace(path)
    finally:
        shutil.rmtree(part) if part.is_dir() else part.unlink(missing_ok=True)


@contextmanager
def atomic_write(path: str | Path) -> Iterator[IO[str]]:
    """A text file to write, gzipped if the name ends in .gz; it replaces the old one only when all went well."""
    try:
        with atomic_path(path) as part, part.open("wb") as raw:
            if Path(path).suffix == ".gz":
                # no name and no time in the header: equal documents give equal bytes
                packed = gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0)
                with packed, io.TextIOWrapper(packed, encoding="utf-8", newline="") as text:
                    yield text
            else:
                with io.TextIOWrapper(raw, encoding="utf-8", newline="") as text:
                    yield text
    except UnicodeEncodeError as error:
        code = ord(error.object[error.start])
        raise CorpusError(
            f"{path}: the text holds U+{code:04X}, half of a surrogate pair, which no UTF-8 file can hold; "
            "repair the source of the text"
        ) from error


@contextmanager
def staged_folder(folder: Path, last: str = "") -> Iterator[Path]:
    """A new folder to fill; its files replace those in `folder` once all are whole, the one named `last` at the end."""
    existed = folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    for left_by_a_kill in folder.glob(".new-*"):
        shutil.rmtree(left_by_a_kill, ignore_errors=True)
    new = Path(mkdtemp(prefix=".new-", dir=folder))
    try:
        yield new
        for file in sorted((file for file in new.rglob("*") if file.is_file()), key=lambda file: file.name == last):
            target = folder / file.relative_to(new)
            target.parent.mkdir(parents=True, exist_ok=True)
            file.replace(target)
    finally:
        shutil.rmtree(new, ignore_errors=True)
        if not existed:
            with suppress(OSError):  # only an empty folder is removed
                folder.rmdir()


def read_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """The lines of a file, plain or gzipped, numbered from 1, without line ends (LF or CR LF) and byte order mark."""
    path = Path(path)
    at = 0
    for number, line in lines_of_bytes(path):
        text = _decode(line, path, number, at)
        at += len(line)
        if number == 1:
            text = text.removeprefix(BYTE_ORDER_MARK)
        yield number, text.removesuffix("\n").removesuffix("\r")


def lines_of_bytes(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file, plain or gzipped, numbered from 1, as they are."""
    with open_bytes(path) as raw:
        yield from enumerate(iter(lambda: _next_line(raw, path), b""), 1)


def read_text(path: str | Path, keep_mark: bool = False) -> str:
    """The whole file with its line ends as they are; the byte order mark is dropped unless it is to be kept."""
    path = Path(path)
    with open_bytes(path) as raw:
        text = "".join(
            _decode(line, path, n, None) for n, line in enumerate(iter(lambda: _next_line(raw, path), b""), 1)
        )
    return text if keep_mark else text.removeprefix(BYTE_ORDER_MARK)


def read_json(path: str | Path) -> Any:
    """The one JSON value of a file."""
    path = Path(path)
    try:
        return _parse_json(read_text(path))
    except json.JSONDecodeError as error:
        raise CorpusError(f"{path}:{error.lineno}: no valid JSON ({error.msg} at column {error.colno})") from error
    except ValueError as error:
        raise CorpusError(f"{path}: {error}") from error


def read_json_lines(path: str | Path, problems: Problems) -> Iterator[tuple[int, dict[str, Any]]]:
    """The JSON objects of a file with one on each line, and the numbers of their lines; blank lines are skipped."""
    path = Path(path)
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            record = _object_on(line)
        except ValueError as error:
            problems.add(path, number, str(error))
        else:
            yield number, record


def json_of_line(line: bytes, path: Path, number: int) -> dict[str, Any]:
    """The JSON object on one line of a file, for those that read the lines themselves."""
    text = _decode(line, path, number, None)
    try:
        return _object_on(text.removeprefix(BYTE_ORDER_MARK) if number == 1 else text)
    except ValueError as error:
        raise CorpusError(f"{path}:{number}: {error}") from error


def _object_on(line: str) -> dict[str, Any]:
    try:
        record = _parse_json(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"no valid JSON ({error.msg} at column {error.colno}); give one object on a line") from error
    if not isinstance(record, dict):
        raise ValueError(f"a JSON {type(record).__name__} where an object is needed; write {{...}}")
    return record


def stem(path: str | Path) -> str:
    """The file's name without folder and suffixes of its format; documents without ids are named after it."""
    name = Path(path).name.removesuffix(".gz")
    return Path(name).stem or name


def numbered(path: str | Path, number: int) -> str:
    """The id of a document without one, by its number in the file, counted from 1."""
    return f"{stem(path)}-{number}"


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked if its name ends in .gz."""
    if path.is_dir():
        raise CorpusError(f"{path}: a folder where a file is needed; name one of its files")
    if path.suffix == ".gz":
        with gzip.open(path, "rb") as packed, io.BufferedReader(packed) as raw:  # reading lines is faster so
            yield raw
    else:
        with path.open("rb") as raw:
            yield raw


def _next_line(raw: IO[bytes], path: Path) -> bytes:
    try:
        return raw.readline()
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise CorpusError(
            f"{path}: incomplete gzip file ({error}); fetch it again, or drop .gz from its name"
        ) from error


def _decode(line: bytes, path: Path, number: int, at: int | None) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        if number == 1 and line[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise CorpusError(f"{path}: the file is UTF-16, not UTF-8; save it as UTF-8") from error
        place = f"byte {error.start + 1} of the line" + (f" ({at + error.start} of the file)" if at is not None else "")
        raise CorpusError(
            f"{path}:{number}: {place} is 0x{line[error.start]:02x}, which is no UTF-8; save the file as UTF-8"
        ) from error


def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object as a dictionary; one that has a key twice is refused, because only the last value would stay."""
    record = dict(pairs)
    if len(record) < len(pairs):
        twice = next(key for at, (key, _) in enumerate(pairs) if any(key == other for other, _ in pairs[:at]))
        raise ValueError(f"an object has the key {twice[:40]!r} twice; leave one of them out")
    return record


def _parse_json(text: str) -> Any:
    """Parsed JSON; a lone escape such as \\ud83d is refused, because no file could hold it again."""
    try:
        value = json.loads(text, object_pairs_hook=distinct)
        if "\\ud" in text or "\\uD" in text:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError("an escape \\ud... stands alone; write both halves of the character") from error
    except RecursionError as error:
        raise ValueError("JSON nested too deep to read") from error
    return value


# Files of a model folder, which may come from anybody: nothing else is opened, and no more than a model needs

MODEL_SUBFOLDERS = ("encoder", "additional_chat_templates")
LARGEST_FILE = 256 * 2**20  # bytes, weights aside; the tokenizer of 250,000 pieces takes 20 MB
DEEPEST_JSON = 64


def check_model_folder(folder: Path, within: Path | None = None) -> None:
    """Refuses a pipe, a device, or a link out of the folder (or out of `within`): reading it may never end."""
    root = (within or folder).resolve()
    for place in (folder, *(folder / name for name in MODEL_SUBFOLDERS)):
        for path in sorted(place.iterdir()) if place.is_dir() else ():
            try:
                real = path.resolve(strict=True)
            except (OSError, RuntimeError):  # the latter for links in a circle, before Python 3.13
                raise ValueError(f"{path}: a link that leads nowhere; remove it, or copy the file here") from None
            read = not real.is_dir() or path.name in MODEL_SUBFOLDERS
            if read and not (real.is_dir() or stat.S_ISREG(real.stat().st_mode)):
                raise ValueError(f"{path}: no regular file but a pipe, device or socket, which no model has; remove it")
            if read and not real.is_relative_to(root):
                raise ValueError(f"{path}: a link that leaves the model folder; copy the file here in its place")


def check_size(path: Path) -> None:
    """Refuses a file that would fill the memory."""
    if path.stat().st_size > LARGEST_FILE:
        raise ValueError(f"{path.name} is larger than {LARGEST_FILE // 2**20} MB")


def stored_json(path: Path) -> Any:
    """A JSON file of a model folder."""
    try:
        check_size(path)
        value = json.loads(path.read_text(encoding="utf-8"))
        level, depth = [value], 0
        while level := [part for part in level if isinstance(part, dict | list)]:
            depth += 1
            if depth > DEEPEST_JSON:
                raise ValueError(f"nested deeper than {DEEPEST_JSON} levels")
            level = [inner for part in level for inner in (part.values() if isinstance(part, dict) else part)]
    except (FileNotFoundError, IsADirectoryError):
        raise ValueError(f"{path}: missing; copy the whole model folder") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: damaged ({brief(error)}); copy or train the model again") from error
    return value


def stored_object(path: Path) -> dict[str, Any]:
    """A JSON file of a model folder that holds an object."""
    value = stored_json(path)
    if not isinstance(value, dict):
        raise ValueError(f"{path}: damaged (no JSON object); copy or train the model again")
    return value


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def brief(error: BaseException) -> str:
    """The beginning of an error's message, on one line."""
    return " ".join(str(error).split())[:200] or type(error).__name__


# TOML files that people write: every key has to be known and every value of its type

T = TypeVar("T")


class TomlTable:
    """One table of a file. `take` and `need` make a key known; `close` refuses the other keys."""

    def __init__(self, content: Mapping[str, Any], place: str) -> None:
        self.content = dict(content)
        self.place = place
        self.known: list[str] = []

    def take(self, name: str, kind: Callable[[Any], T | None], expected: str, default: T) -> T:
        """The value of a key, converted by `kind` (None: it does not fit); the default where the key is missing."""
        if name in self.content:
            return self.need(name, kind, expected)
        self.known.append(name)
        return default

    def need(self, name: str, kind: Callable[[Any], T | None], expected: str) -> T:
        """The value of a required key."""
        self.known.append(name)
        if name not in self.content:
            raise ValueError(f"{self.place}: {name} is missing; give {expected}")
        value = kind(self.content[name])
        if value is None:
            raise ValueError(f"{self.place}: {name} must be {expected}, not {self.content[name]!r}")
        return value

    def close(self) -> None:
        """Refuses unknown keys, which are usually misspelled."""
        for name in self.content:
            if name not in self.known:
                near = difflib.get_close_matches(name, self.known, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(self.known)}"
                raise ValueError(f"{self.place}: no key {name!r} here; {hint}")


def load_toml(path: Path) -> TomlTable:
    """The whole file as a table."""
    try:
        with path.open("rb") as file:
            return TomlTable(tomllib.load(file), str(path))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: not TOML ({error}); correct the line") from error


def word(value: Any) -> str | None:
    """A string that is not empty."""
    return value if isinstance(value, str) and value.strip() else None


def flag(value: Any) -> bool | None:
    """True or false."""
    return value if isinstance(value, bool) else None


def whole(value: Any) -> int | None:
    """A whole number, 0 or more."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def number(value: Any) -> float | None:
    """Any number."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def several(kind: Callable[[Any], T | None]) -> Callable[[Any], tuple[T, ...] | None]:
    """A list of different values of one kind, at least one."""

    def read(value: Any) -> tuple[T, ...] | None:
        if not isinstance(value, list) or not value:
            return None
        items = tuple(item for item in map(kind, value) if item is not None)
        return items if len(items) == len(value) and len(set(items)) == len(items) else None

    return read


def tables(value: Any) -> list[Any] | None:
    """A list that is not empty; the caller reads its items."""
    return value if isinstance(value, list) and value else None


def settings(value: Any) -> dict[str, str] | None:
    """Settings as `--set` takes them: `train.epochs = 3` is a dotted name with the text of its value."""
    if not isinstance(value, dict):
        return None
    flat: dict[str, str] = {}
    for name, part in value.items():
        if isinstance(part, dict):
            inner = settings(part) or {}
            flat |= {f"{name}.{key}": text for key, text in inner.items()}
        else:
            flat[name] = part if isinstance(part, str) else json.dumps(part)
    return flat


def path_from(folder: Path) -> Callable[[Any], Path | None]:
    """A path: $NAMES and ~ are expanded, and relative paths start at the folder of the TOML file."""

    def read(value: Any) -> Path | None:
        text = word(value)
        if text is None:
            return None
        filled = os.path.expanduser(os.path.expandvars(text))
        if "$" in filled:
            unset = filled[filled.index("$") :].split("/")[0]
            raise ValueError(f"{text}: the environment has no {unset}; set it, or write the path")
        return folder / filled

    return read
