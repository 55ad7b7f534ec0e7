"""The journal of a run: one JSON line for each event, on disk as soon as it happened.

A kill can tear the last line only. Whoever opens the journal again cuts it off and goes on behind the last whole event.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

Event = Literal["start", "coverage", "progress", "epoch", "best", "test", "end", "resumed", "error", "run"]


class Journal:
    """Appends events to a file; a context manager that closes it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists():
            cut_torn_line(self.path)
        self._file = self.path.open("ab")

    def write(self, event: Event, **fields: Any) -> None:
        """One event with the time and its fields; a number that is none (NaN, infinite) is written as null."""
        record = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": event, **fields}
        line = json.dumps(_finite(record), ensure_ascii=False, allow_nan=False, default=_plain)
        # half a surrogate pair becomes \\udXXX, which is how JSON writes it
        self._file.write(line.encode("utf-8", "backslashreplace") + b"\n")
        self._file.flush()

    def close(self) -> None:
        """Closes the file; what was written is there already."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_journal(path: str | Path) -> list[dict[str, Any]]:
    """The events of a journal, oldest first. A torn last line is left out; any other broken line is an error."""
    path = Path(path)
    lines = path.read_bytes().split(b"\n")
    events = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        event = _event(line)
        if event is None:
            if number == len(lines):  # no line end behind it: the run was killed while it wrote
                break
            raise ValueError(f"{path}:{number}: not an event of a journal; delete this line and read again")
        events.append(event)
    return events


def cut_torn_line(path: Path) -> None:
    """Makes the file end with a whole line: a torn one is cut off, one that only lacks its line end gets it."""
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        start, tail = size, b""
        while start > 0 and b"\n" not in tail:
            step = min(start, 1 << 16)
            start -= step
            file.seek(start)
            tail = file.read(step) + tail
        torn = tail.rpartition(b"\n")[2]
        if not torn:
            return
        if _event(torn) is None:
            file.truncate(size - len(torn))
        else:
            file.seek(0, os.SEEK_END)
            file.write(b"\n")


def _event(line: bytes) -> dict[str, Any] | None:
    """The event of a line, or None where it is none."""
    try:
        found = json.loads(line)
    except ValueError:  # bad JSON and bad UTF-8 alike
        return None
    return found if isinstance(found, dict) and "event" in found else None


def _finite(value: Any) -> Any:
    """The value with null for each float that JSON has no word for."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return value


def _plain(value: Any) -> Any:
    """What JSON does not know: paths as text, numbers of numpy and torch as numbers."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "item"):
        return _finite(value.item())
    raise TypeError(f"a journal holds plain values, not {type(value).__name__}; convert {value!r} first")
