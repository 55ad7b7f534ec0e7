"""Lines for people."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text


def say(console: Console, line: str) -> None:
    """One line, as long as it is; what is in it is no markup, since names may look like it."""
    console.print(Text(line), soft_wrap=True)


def counted(count: int, what: str) -> str:
    """`1 document`, `2,000 documents`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"
