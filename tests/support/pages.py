"""The documentation as data: its pages, their code blocks, links and headings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*.md")])
_FENCE = re.compile(r"```(\w*)\s*")
_NOTE = re.compile(r"<!-- (parsed only|file|terminal): (.+?) -->")
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """One fenced block; `note` and `detail` are the comment before it, such as ("file", "mine.py")."""

    page: Path
    line: int
    language: str
    code: str
    note: str = ""
    detail: str = ""

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found, code, opened, note = [], [], None, ("", "")
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if opened is not None:
            if line.strip() == "```":
                found.append(Block(page, opened[0], opened[1], "\n".join(code) + "\n", *note))
                code, opened, note = [], None, ("", "")
            else:
                code.append(line)
        elif fence := _FENCE.fullmatch(line):
            opened = (number, fence[1])
        elif comment := _NOTE.fullmatch(line.strip()):
            note = (comment[1], comment[2])
        elif line.strip():
            assert note == ("", ""), f"{page}:{number}: the comment above must be followed by a block"
    assert opened is None, f"{page}: a block is not closed"
    return found


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    lines, inside = [], False
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            inside = not inside
        elif not inside:
            lines.append(line)
    return "\n".join(lines)


def links(page: Path) -> list[str]:
    """The page's links inside the repository."""
    return [target for target in _LINK.findall(prose(page)) if "://" not in target]


def anchors(page: Path) -> set[str]:
    """The names that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def commands(block: Block) -> list[tuple[str, str]]:
    """The commands of a shell block, each with the output that the page shows below it (console blocks only)."""
    joined = block.code.replace("\\\n", " ").splitlines()
    if block.language == "bash":
        return [(line, "") for line in joined if line.strip() and not line.startswith("#")]
    found: list[tuple[str, str]] = []
    for line in joined:
        if line.startswith("$ "):
            found.append((line.removeprefix("$ "), ""))
        else:
            found[-1] = (found[-1][0], found[-1][1] + line + "\n")
    return found
