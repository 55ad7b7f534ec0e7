"""Lines for people."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from wingspan.files import atomic_write


def first_process() -> bool:
    """Whether this process speaks and writes: the only one, or the first of those that torchrun has started."""
    return os.environ.get("WORLD_SIZE", "1") == "1" or os.environ.get("RANK", "0") == "0"


def say(console: Console, line: str) -> None:
    """One line, as long as it is; what is in it is no markup, since names may look like it."""
    console.print(Text(line), soft_wrap=True)


def counted(count: int, what: str, several: str | None = None) -> str:
    """`1 document`, `2,000 documents`; `several` is the plural where an s does not make it."""
    return f"{count:,} {what if count == 1 else several or f'{what}s'}"


# --- Figures as JSON, for every verb that has `--json FILE`.


def write_figures(figures: Mapping[str, Any], path: Path) -> None:
    """Writes the figures as JSON; `-` is standard output."""
    text = json.dumps(figures, indent=2, ensure_ascii=False)
    if path == Path("-"):
        print(text)
        return
    with atomic_write(path) as out:
        out.write(text + "\n")
