"""Lines for people on the console, and figures as JSON."""

import json
import os
from collections.abc import Mapping
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


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """`1 document`, `2,000 documents`; `plural` for nouns that do not just take an s."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def write_json(figures: Mapping[str, Any], path: Path) -> None:
    """The file of `--json FILE`; `-` prints it. A failure leaves no half file."""
    text = json.dumps(figures, indent=2, ensure_ascii=False)
    if path == Path("-"):
        print(text)
        return
    with atomic_write(path) as file:
        file.write(text + "\n")
