"""TOML files that people write: every key is known, every value is of its kind, and a mistake is one sentence."""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


class TomlTable:
    """One table of a file. What is taken is known; `close` refuses the rest."""

    def __init__(self, content: Mapping[str, Any], place: str) -> None:
        self.content = dict(content)
        self.place = place
        self.known: list[str] = []

    def take(self, name: str, kind: Callable[[Any], T | None], expected: str, default: T) -> T:
        """The value of a key as `kind` reads it (None: it cannot); the default where the key is missing."""
        self.known.append(name)
        if name not in self.content:
            return default
        return self._read(name, kind, expected)

    def need(self, name: str, kind: Callable[[Any], T | None], expected: str) -> T:
        """The value of a key that has to be there."""
        self.known.append(name)
        if name not in self.content:
            raise ValueError(f"{self.place}: {name} is missing; give {expected}")
        return self._read(name, kind, expected)

    def close(self) -> None:
        """A key that nobody took is a slip of the pen, not something to pass over."""
        for name in self.content:
            if name not in self.known:
                near = difflib.get_close_matches(name, self.known, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(self.known)}"
                raise ValueError(f"{self.place}: no key {name!r} here; {hint}")

    def _read(self, name: str, kind: Callable[[Any], T | None], expected: str) -> T:
        found = kind(self.content[name])
        if found is None:
            raise ValueError(f"{self.place}: {name} must be {expected}, not {self.content[name]!r}")
        return found


def load_toml(path: Path) -> TomlTable:
    """The whole file as a table."""
    try:
        with path.open("rb") as file:
            return TomlTable(tomllib.load(file), str(path))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: not TOML ({error}); correct the line") from error


def word(value: Any) -> str | None:
    """A text that is not empty."""
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
    """A list of one kind, at least one, each once."""

    def read(value: Any) -> tuple[T, ...] | None:
        if not isinstance(value, list) or not value:
            return None
        found = tuple(item for item in map(kind, value) if item is not None)
        return found if len(found) == len(value) and len(set(found)) == len(found) else None

    return read


def tables(value: Any) -> list[Any] | None:
    """A list, read further by whoever asked."""
    return value if isinstance(value, list) and value else None


def settings(value: Any) -> dict[str, str] | None:
    """Settings as `--set` takes them: `train.epochs = 3` is a dotted name with the text of its value."""
    if not isinstance(value, dict):
        return None
    found: dict[str, str] = {}
    for name, part in value.items():
        if isinstance(part, dict):
            inner = settings(part) or {}
            found |= {f"{name}.{key}": text for key, text in inner.items()}
        else:
            found[name] = part if isinstance(part, str) else json.dumps(part)
    return found


def path_from(folder: Path) -> Callable[[Any], Path | None]:
    """A path: $NAMES and ~ are filled in, and what is relative starts at the folder of the file it stands in."""

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
