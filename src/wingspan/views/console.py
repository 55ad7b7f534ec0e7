"""Lines for people on the console, and figures as JSON."""

import difflib
import inspect
import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from wingspan.files import atomic_write


def first_process() -> bool:
    """Whether this process prints and writes: the only one, or the first of those that torchrun has started."""
    return os.environ.get("WORLD_SIZE", "1") == "1" or os.environ.get("RANK", "0") == "0"


def say(console: Console, line: str) -> None:
    """Prints a line without wrapping; nothing in it is markup, since names may look like it."""
    console.print(Text(line), soft_wrap=True)


def program() -> str:
    """What calls Wingspan in the user's shell: its name, or its path where the name is not found, as after `make`."""
    called = Path(sys.argv[0])
    return str(called) if called.name == "wingspan" and shutil.which("wingspan") is None else "wingspan"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """`1 document`, `2,000 documents`; `plural` for nouns that do not just take an s."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def refuse_unknown(function: Callable[..., Any], unknown: Mapping[str, object]) -> None:
    """One sentence about an argument that the function does not have, with the one that was probably meant."""
    for name in unknown:
        known = [
            each.name for each in inspect.signature(function).parameters.values() if each.kind is not each.VAR_KEYWORD
        ]
        near = difflib.get_close_matches(name, known, 1, 0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known)}"
        raise TypeError(f"{function.__name__}() has no argument {name!r}; {hint}")


def write_json(figures: Mapping[str, Any], path: Path) -> None:
    """The file of `--json FILE`; `-` prints it. A failure leaves no half file."""
    text = json.dumps(figures, indent=2, ensure_ascii=False)
    if path == Path("-"):
        print(text)
        return
    with atomic_write(path) as file:
        file.write(text + "\n")
