"""Files as text: decoded with a clear sentence where that fails, written under a temporary name and then renamed."""

from __future__ import annotations

import gzip
import io
import json
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from wingspan.corpora.formats import CorpusError, Problems

BYTE_ORDER_MARK = "\ufeff"


@contextmanager
def atomic_write(path: str | Path) -> Iterator[IO[str]]:
    """A text file to write, gzipped if the name ends in .gz; it takes its name only when all went well.

    Line ends are written as they are given. After an error the file that was there before is still there.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name[:200]}.{os.getpid()}.part")
    try:
        with part.open("wb") as raw:
            if path.suffix == ".gz":
                # no name and no time in the header: equal documents give equal bytes
                packed = gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0)
                with packed, io.TextIOWrapper(packed, encoding="utf-8", newline="") as text:
                    yield text
            else:
                with io.TextIOWrapper(raw, encoding="utf-8", newline="") as text:
                    yield text
        part.replace(path)
    except UnicodeEncodeError as error:
        code = ord(error.object[error.start])
        raise CorpusError(
            f"{path}: the text holds U+{code:04X}, half of a surrogate pair, which no UTF-8 file can hold; "
            "repair the source of the text"
        ) from error
    finally:
        part.unlink(missing_ok=True)


def read_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """The lines of a file, plain or gzipped, numbered from 1, without line ends (LF or CR LF) and byte order mark."""
    path = Path(path)
    at = 0
    with open_bytes(path) as raw:
        number = 0
        while line := _next_line(raw, path):
            number += 1
            text = _decode(line, path, number, at)
            at += len(line)
            if number == 1:
                text = text.removeprefix(BYTE_ORDER_MARK)
            yield number, text.removesuffix("\n").removesuffix("\r")


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
        return _without_half_pairs(read_text(path))
    except json.JSONDecodeError as error:
        raise CorpusError(f"{path}:{error.lineno}: no valid JSON ({error.msg} at column {error.colno})") from error
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"{path}: {_reason(error)}") from error


def read_json_lines(path: str | Path, problems: Problems) -> Iterator[tuple[int, dict[str, Any]]]:
    """The JSON objects of a file with one on each line, and the numbers of their lines; blank lines are skipped."""
    path = Path(path)
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            record = _without_half_pairs(line)
        except json.JSONDecodeError as error:
            problems.add(
                path, number, f"no valid JSON ({error.msg} at column {error.colno}); give one object on a line"
            )
            continue
        except (ValueError, RecursionError) as error:
            problems.add(path, number, _reason(error))
            continue
        if not isinstance(record, dict):
            problems.add(path, number, f"a JSON {type(record).__name__} where an object is needed; write {{...}}")
            continue
        yield number, record


def stem(path: str | Path) -> str:
    """The file's name without folder and suffixes of its format; documents without ids are named after it."""
    name = Path(path).name.removesuffix(".gz")
    return Path(name).stem or name


def numbered(path: str | Path, number: int) -> str:
    """The id of a document that has none of its own, by its place in the file, counted from 1."""
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
        raise CorpusError(f"{path}: no whole gzip file ({error}); fetch it again, or drop .gz from its name") from error


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


def _without_half_pairs(text: str) -> Any:
    """Parsed JSON, refused if an escape such as \\ud83d stands alone: no file could hold it again."""
    value = json.loads(text)
    if "\\ud" in text or "\\uD" in text:
        try:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError as error:
            raise ValueError("an escape \\ud... stands alone; write both halves of the character") from error
    return value


def _reason(error: Exception) -> str:
    return "JSON nested too deep to read" if isinstance(error, RecursionError) else str(error)
